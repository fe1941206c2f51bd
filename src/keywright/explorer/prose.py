"""Docstrings and reasons as HTML for people; all of their text is escaped."""

from __future__ import annotations

import re

from markupsafe import Markup, escape

from keywright.explorer.presentation import left

__all__ = ["doc", "prose"]

_BYTES = re.compile(r"\bb'((?:[^'\\]|\\.)*)'")
_SECONDS = re.compile(r"\b(declared |expires in )(\d[\d.e+]*) s\b")


def doc(text: str) -> Markup:
    """Render a docstring: text between backticks as code, all of it escaped."""
    pieces = [escape(piece) for piece in text.split("`")]
    if len(pieces) % 2 == 0:
        return escape(text)  # an unpaired backtick stays a backtick
    code = Markup("<code>{}</code>")
    marked = [code.format(piece) if number % 2 else piece for number, piece in enumerate(pieces)]
    return Markup("").join(marked)


def prose(text: str) -> Markup:
    """Render the reason of a finding or of an error for people: no Python literals, durations in words."""
    quoted = _BYTES.sub(r"“\1”", text)
    return doc(_SECONDS.sub(lambda found: f"{found[1]}{left(float(found[2]) * 1000)}", quoted))
