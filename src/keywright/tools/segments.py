"""The segments of a key name, and what each looks like: a word, or an id of some alphabet."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple, TypeAlias

__all__ = [
    "REST",
    "Looks",
    "Segment",
    "likely_pattern",
    "looks_of",
    "rest_of",
    "segments_of",
    "values_in",
]

Looks: TypeAlias = tuple[bytes | str, ...]
"""The parts of a segment: bytes are literal, a str names the class of an id."""

REST: Looks = ("rest",)
"""What follows a literal beginning."""
MOST_SEGMENTS = 24

_SEPARATOR = re.compile(rb"[:/|]|\.(?![0-9])|(?<![0-9])\.")
_MOMENT = re.compile(rb"[12][0-9]{3}-[01][0-9]-[0-3][0-9]T[0-9:.]+Z")
_UUID = rb"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_CLASSES = (
    ("integer", re.compile(rb"-?(?:0|[1-9][0-9]{0,18})|1[0-9]{19}")),
    ("digits", re.compile(rb"[0-9]+")),
    ("address", re.compile(rb"[0-9]{1,3}(?:\.[0-9]{1,3}){3}|[0-9a-f]{1,4}(?:[:-][0-9a-f]{1,4}){5,7}")),
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

LONGEST_WORD = 24
_WORD = re.compile(rb"[A-Za-z_.-]{0,%d}" % LONGEST_WORD)
_PLACEHOLDERS = {
    **dict.fromkeys(("integer", "digits"), "<number>"),
    **dict.fromkeys(("hex", "HEX"), "<hex>"),
    "uuid": "<uuid>",
    "ulid": "<ulid>",
    "day": "<date>",
    "instant": "<time>",
    "email": "<email>",
}
LONGEST_SEGMENT = 200
MOST_SHOWN = 8


class Segment(NamedTuple):
    """One segment: the separator before it, braces included, and its text."""

    separator: bytes
    text: bytes


def segments_of(name: bytes) -> list[Segment]:
    """Split a name at its separators and at braces.

    Separators are the first of `: / | .` in the name, and `:` and `/` wherever they are; a URL is not split.
    """
    pieces = _split(_separators(name, braces=b"{" in name and b"}" in name), name)
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


def rest_of(name: bytes, place: int) -> bytes:
    """Return the text of a name from a segment to the end."""
    segments = segments_of(name)[place:]
    return b"".join(each.separator + each.text for each in segments)[len(segments[0].separator) :]


def _separators(name: bytes, *, braces: bool) -> re.Pattern[bytes]:
    found = _SEPARATOR.search(name)
    first = b":" if found is None or (found[0] == b"." and b"@" in name) else found[0]
    is_address = b"://" in name or b"@" in name
    return _expression(b"".join(dict.fromkeys((first, b"" if is_address else b":/"))), braces)


@cache
def _expression(separators: bytes, braces: bool) -> re.Pattern[bytes]:
    """Return the expression of separators, each a byte; a dot between digits is part of a number."""
    plain = re.escape(separators.replace(b".", b"") + (b"{}" if braces else b""))
    choices = [b"[" + plain + b"]"] if plain else []
    if b"." in separators:
        choices += [rb"\.(?![0-9])", rb"(?<![0-9])\."]
    return re.compile(b"(" + b"|".join(choices) + b")")


def _split(separators: re.Pattern[bytes], name: bytes) -> list[bytes]:
    """Split a name, texts and separators in turn; the colons of a time are not separators."""
    if b"T" not in name:
        return separators.split(name)
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


def likely_pattern(name: bytes) -> str:
    """Return the likely template of an unknown name: its words, with placeholders for ids."""
    shown = segments_of(name[: LONGEST_SEGMENT * MOST_SHOWN])[:MOST_SHOWN]
    return "".join(each.separator.decode("ascii") + _placeholders(each.text) for each in shown)


def _placeholders(text: bytes) -> str:
    """Return a segment with placeholders for the ids in it, or for all of it if its words are not words."""
    if text.isalpha() and len(text) <= LONGEST_WORD:
        return text.decode("ascii")
    if text.isdigit():
        return "<number>"
    looks = looks_of(text) if len(text) <= LONGEST_SEGMENT else ("text",)
    parts = [
        part.decode("ascii")
        if isinstance(part, bytes) and _WORD.fullmatch(part)
        else _PLACEHOLDERS.get(part)
        if isinstance(part, str)
        else None
        for part in looks
    ]
    return "<text>" if None in parts else "".join(part for part in parts if part)
