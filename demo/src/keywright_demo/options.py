"""The options of `keywright up`."""

from __future__ import annotations

from pathlib import Path

import msgspec

from keywright.errors import UsageError

__all__ = ["MODELS", "UpOptions", "chosen_models"]

MODELS = ("drc", "spectacles", "registry", "openmod", "meetup")


class UpOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Which models to run, on which servers, for how long."""

    models: tuple[str, ...] = MODELS
    url: str | None = None
    """A real server; None starts an embedded one. REDIS_URL is not used, because samples are written."""
    broker: str | None = None
    """None: streams in the same Redis."""
    explorer: bool = True
    port: int | None = None
    """The port of the explorer; None takes the default, or another if that is in use."""
    seconds: float | None = None
    """Stop after this time."""
    logs: Path | None = None
    """The folder in which logs are kept; None deletes them at the end."""
    confirmed: bool = False
    """Whether samples may be written to a real server that has keys."""


def chosen_models(only: str | None, without: str | None) -> tuple[str, ...]:
    """Return the models that two comma-separated lists select. Raise UsageError if one is unknown."""
    wanted, unwanted = _named(only, "--only"), _named(without, "--without")
    left = tuple(model for model in MODELS if model in (wanted or MODELS) and model not in unwanted)
    if not left:
        raise UsageError("no model is left to run. Change --only or --without.")
    return left


def _named(given: str | None, option: str) -> list[str]:
    names = [name.strip() for name in (given or "").split(",") if name.strip()]
    for name in names:
        if name not in MODELS:
            raise UsageError(f"{option} must be models ({', '.join(MODELS)}), got {name!r}.")
    return names
