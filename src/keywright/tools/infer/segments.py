"""The segments of a key name, and what each looks like: a word, or an id of some alphabet."""

from __future__ import annotations

import re
from typing import NamedTuple, TypeAlias

__all__ = ["REST", "Looks", "Segment", "looks_of", "segments_of", "values_in"]

Looks: TypeAlias = tuple[bytes | str, ...]
"""The parts of a segment: bytes are literal, a str names the class of an id."""

REST: Looks = ("rest",)
"""What follows a literal beginning."""
SEPARATORS = (b":", b"/", b"|", b".")
MOST_SEGMENTS = 24

_SPLITS = {sep: re.compile(b"([" + re.escape(sep) + b"{}])") for sep in SEPARATORS}
_PLAIN_SPLITS = {sep: re.compile(b"(" + re.escape(sep) + b")") for sep in SEPARATORS}
_TAGGED = re.compile(rb"[^{}]*\{[^{}]+\}[^{}]*")
_MOMENT = re.compile(rb"[12][0-9]{3}-[01][0-9]-[0-3][0-9]T[0-9:.]+Z")
_UUID = rb"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_CLASSES = (
    ("integer", re.compile(rb"-?(?:0|[1-9][0-9]{0,18})|1[0-9]{19}")),
    ("digits", re.compile(rb"[0-9]+")),
    ("uuid", re.compile(_UUID + b"|" + _UUID.replace(b"a-f", b"A-F"))),
    ("day", re.compile(rb"[12][0-9]{3}-[01][0-9]-[0-3][0-9]")),
    ("instant", _MOMENT),
    ("ulid", re.compile(rb"[0-7][0-9A-HJKMNP-TV-Z]{25}")),
    ("email", re.compile(rb"[A-Za-z0-9.!#$%&'*+/=?^_`|~-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+")),
    ("hex", re.compile(rb"(?=[a-f]*[0-9])(?=[0-9]*[a-f])(?:[0-9a-f]{2}){4,64}")),
    ("HEX", re.compile(rb"(?=[A-F]*[0-9])(?=[0-9]*[A-F])(?:[0-9A-F]{2}){4,64}")),
)
_LETTER = re.compile(rb"[A-Za-z]")
_DIGIT = re.compile(rb"[0-9]")
_TOKEN = re.compile(
    rb"(?=.*[0-9])(?=.*[a-z])(?=.*[A-Z])[0-9A-Za-z_-]{16,}|(?=(?:[a-z_-]*[0-9]+[a-z_-]+){3})[0-9a-z_-]{12,}"
)
_EMBEDDED = re.compile(
    rb"(?P<uuid>" + _UUID + rb")"
    rb"|(?<![0-9A-Za-z])(?P<hex>(?=[a-f]*[0-9])(?=[0-9]*[a-f])(?:[0-9a-f]{2}){8,64})(?![0-9A-Za-z])"
    rb"|(?<=[-_./#@])(?P<integer>0|[1-9][0-9]{0,18})(?![0-9A-Za-z])"
    rb"|(?<=[a-z])(?P<glued>[1-9][0-9]{2,18})(?![0-9A-Za-z])"
)


class Segment(NamedTuple):
    """One segment: the separator before it, braces of a hash tag included, and its text."""

    separator: bytes
    text: bytes


def segments_of(name: bytes) -> list[Segment]:
    """Split a name at the first separator of `: / | .` that it has, and at the braces of its hash tag."""
    used = next((sep for sep in SEPARATORS if sep in name), b":")
    tagged = b"{" in name and _TAGGED.fullmatch(name) is not None
    pieces = _split((_SPLITS if tagged else _PLAIN_SPLITS)[used], name)
    segments: list[Segment] = []
    before = pieces[0][:0]
    for number, piece in enumerate(pieces):
        if number % 2:
            before += piece
        elif piece:
            segments.append(Segment(before, piece))
            before = b""
    if before:
        segments.append(Segment(before, b""))
    if len(segments) <= MOST_SEGMENTS:
        return segments
    rest = b"".join(each.separator + each.text for each in segments[MOST_SEGMENTS:])
    first = segments[MOST_SEGMENTS - 1]
    return [*segments[: MOST_SEGMENTS - 1], Segment(first.separator, first.text + rest)]


def _split(separators: re.Pattern[bytes], name: bytes) -> list[bytes]:
    """Split a name, texts and separators in turn; the colons of a time are not separators."""
    pieces, end = [b""], 0
    for found in _MOMENT.finditer(name):
        first, *others = separators.split(name[end : found.start()])
        pieces[-1] += first
        pieces += others
        pieces[-1] += found[0]
        end = found.end()
    first, *others = separators.split(name[end:])
    return [*pieces[:-1], pieces[-1] + first, *others]


def looks_of(text: bytes) -> Looks:
    """Return what a segment looks like: one class of ids, a literal word, or both glued together."""
    for name, expression in _CLASSES:
        if expression.fullmatch(text):
            return (name,)
    if text and not _LETTER.search(text) and not text.isascii():
        return ("text",)
    parts: list[bytes | str] = []
    end = 0
    for found in _EMBEDDED.finditer(text):
        if found.start() > end:
            parts.append(text[end : found.start()])
        parts.append("integer" if found.lastgroup == "glued" else found.lastgroup or "")
        end = found.end()
    if parts and end < len(text):
        parts.append(text[end:])
    if not parts or len(parts) > 6 or any(isinstance(part, bytes) and _DIGIT.search(part) for part in parts):
        return ("token",) if _TOKEN.fullmatch(text) else (text,)
    return tuple(parts)


def values_in(text: bytes, looks: Looks) -> list[bytes]:
    """Return the texts of the ids in a segment, in the order of its looks."""
    if len(looks) == 1:
        return [] if isinstance(looks[0], bytes) else [text]
    if looks[1:] == REST and isinstance(looks[0], bytes):
        return [text[len(looks[0]) :]]
    return [found[0] for found in _EMBEDDED.finditer(text)]
