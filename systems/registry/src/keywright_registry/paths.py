"""Repository paths: the grammar of names, and the hierarchy."""

from __future__ import annotations

import re

from keywright_registry.errors import RepositoryPathError

__all__ = [
    "LONGEST_PATH",
    "ancestry",
    "check_length",
    "check_path",
    "is_storable",
    "name_of",
    "namespace_of",
    "parent_of",
]

LONGEST_PATH = 255

# The OCI distribution specification: "[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*" for each part of a <name>.
_PART = re.compile(r"[a-z0-9]+(?:(?:\.|__?|-+)[a-z0-9]+)*")


def check_path(path: str) -> str:
    """Return the path. Raise RepositoryPathError if it is not a valid repository name."""
    check_length(path)
    for part in path.split("/"):
        if not _PART.fullmatch(part):
            raise RepositoryPathError(path, *_problem(part))
    return path


def check_length(path: str) -> None:
    if len(path) > LONGEST_PATH:
        raise RepositoryPathError(
            path, f"has {len(path)} characters, more than {LONGEST_PATH}", "Shorten it."
        )


def is_storable(path: str) -> bool:
    """Return whether a database can store it as text: no NUL, no lone surrogates."""
    return "\0" not in path and not any("\ud800" <= character <= "\udfff" for character in path)


def ancestry(path: str) -> list[str]:
    """Return the ancestors of a path and the path itself, the top one first."""
    parts = path.split("/")
    return ["/".join(parts[:depth]) for depth in range(1, len(parts) + 1)]


def parent_of(path: str) -> str | None:
    return path.rpartition("/")[0] or None


def name_of(path: str) -> str:
    return path.rpartition("/")[2]


def namespace_of(path: str) -> str:
    return path.partition("/")[0]


def _problem(part: str) -> tuple[str, str]:
    if not part:
        return "is empty, or has an empty part", "Write parts with one slash between them, none around them."
    if stray := re.search(r"[^a-z0-9._-]", part):
        reason = f"has {stray.group()!r} in it"
        return reason, "Use lower-case letters a to z, digits, and . _ - between them."
    return (
        f"has the part {part!r}, with separators in the wrong place",
        (
            "Begin and end each part with a letter or digit, and separate with one dot, one or two "
            "underscores, or dashes."
        ),
    )
