"""The tables as steps, one file a version and database. A step that was released is never edited."""

from __future__ import annotations

from importlib.resources import files
from typing import NamedTuple

__all__ = ["Step", "steps"]


class Step(NamedTuple):
    """One version: its name, as `schema_migrations` has it, and its statements."""

    name: str
    statements: tuple[str, ...]


def steps(database: str) -> list[Step]:
    """The steps for `postgresql` or `sqlite`, oldest first."""
    sources = [each for each in files(__name__).joinpath(database).iterdir() if each.name.endswith(".sql")]
    return [
        Step(source.name.removesuffix(".sql"), _statements(source.read_text(encoding="utf-8")))
        for source in sorted(sources, key=lambda each: each.name)
    ]


def _statements(text: str) -> tuple[str, ...]:
    return tuple(stripped for part in text.split(";") if (stripped := part.strip()))
