"""What `up` was asked for."""

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
    """A real server; None starts one that ends with us. REDIS_URL is not looked at: samples are written."""
    broker: str | None = None
    """None: streams in the same Redis."""
    explorer: bool = True
    port: int | None = None
    """Of the explorer; None takes the usual one, or another when that is taken."""
    seconds: float | None = None
    """When to stop."""
    logs: Path | None = None
    """Where the parts' logs are written and kept; None keeps them only while it runs."""
    confirmed: bool = False
    """Whether samples may be written beside what a real server has already."""


def chosen_models(only: str | None, without: str | None) -> tuple[str, ...]:
    """The models that two comma lists leave; UsageError for one that is not there, or when none is left."""
    wanted, unwanted = _named(only, "--only"), _named(without, "--without")
    left = tuple(model for model in MODELS if model in (wanted or MODELS) and model not in unwanted)
    if not left:
        raise UsageError("no model is left to run. Give --only other names, or leave --without out.")
    return left


def _named(given: str | None, option: str) -> list[str]:
    names = [name.strip() for name in (given or "").split(",") if name.strip()]
    for name in names:
        if name not in MODELS:
            raise UsageError(f"{option} {name!r} is not a model. There are {', '.join(MODELS)}.")
    return names
