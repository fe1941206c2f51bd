"""Errors as JSON, for programs that asked for JSON: one object on standard error."""

from __future__ import annotations

import json
from collections.abc import Sequence

from keywright.errors import KeywrightError

__all__ = ["as_json_line", "wants_json"]


def wants_json(arguments: Sequence[str]) -> bool:
    """Return whether the arguments of a command ask for JSON on standard output."""
    return any(
        each == "--format=json" or (each == "--format" and list(arguments[place + 1 : place + 2]) == ["json"])
        for place, each in enumerate(arguments)
    )


def as_json_line(error: KeywrightError) -> str:
    """Return an error as one line. It is ASCII, so that nothing in it controls a terminal."""
    described = {"type": type(error).__name__, "message": str(error), "exit_code": error.exit_code}
    return json.dumps({"error": described})
