"""Text for a terminal: names and values of a database must not reach it as commands."""

from __future__ import annotations

import re

__all__ = ["printable"]

# C0, DEL and C1 move the cursor, recolour and retitle; the others reverse text, or end a line unseen.
# Surrogates cannot be encoded.
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(line: str) -> str:
    r"""Return one line of text with control characters, newlines and bidirectional overrides as `\x1b`."""
    return _UNSAFE.sub(_escaped, line)


def _escaped(found: re.Match[str]) -> str:
    return found.group().encode("unicode_escape").decode("ascii")
