"""Durations as configuration writes them: `2m`, `90s`, `1h30m`, `500ms`."""

from __future__ import annotations

import re
from datetime import timedelta

from keywright.errors import UsageError

__all__ = ["duration"]

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = r"(\d+(?:\.\d+)?)(ms|s|m|h)"
_parts = re.compile(_PART).findall
_whole = re.compile(f"(?:{_PART})+").fullmatch


def duration(text: str) -> timedelta:
    """UsageError unless it is a positive duration."""
    seconds = sum(float(number) * _UNITS[unit] for number, unit in _parts(text)) if _whole(text) else 0.0
    if seconds <= 0:
        raise UsageError(f"{text!r} is not a duration. Write it as in 2m, 90s, 1h30m or 500ms.")
    return timedelta(seconds=seconds)
