"""Decoded values as a tree of small parts that a template renders, with limits on size and depth.

Nothing here is HTML: a part is text, and the template escapes it.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

import msgspec

from keywright.explorer.atlas import spelled, text_of
from keywright.keyspace import Geo, Map, SortedSet, Stream
from keywright.keyspace.kinds.geo import Point
from keywright.keyspace.kinds.hyperloglog import Estimate
from keywright.tools.describe.inspection import Hidden, Inspection
from keywright.tools.describe.plain import plain

__all__ = ["NAMES", "TITLES", "Part", "Presenter", "in_words", "left", "sized"]

MOST_PARTS = 4000
MOST_CHARACTERS = 20_000
SHORT = 240
LONGEST_ID = 128
DEEPEST = 40
HEX_BYTES = 512
_ADDRESS = re.compile(r"https?://[^\s<>\"]{1,2000}")
NAMES = ("name", "title", "username", "global_name", "content", "topic", "status")
TITLES = ("name", "title", "username", "global_name", "display_name", "label")
"""Members that name an object for people; the other NAMES only help to recognise it."""


class Part(msgspec.Struct):
    """One value: a scalar with its text, or a group of labelled parts."""

    sort: str
    """text, number, word (true, false, null), time, concealed, bytes; object or array for groups."""
    text: str = ""
    note: str = ""
    """A note beside the text: how long ago a time was, the size of bytes."""
    parts: list[tuple[Part | None, Part]] = []
    url: str | None = None
    more: int = 0
    """How many parts were left out."""

    @property
    def is_group(self) -> bool:
        return self.sort in ("object", "array")

    @property
    def is_long(self) -> bool:
        return len(self.text) > SHORT or "\n" in self.text

    @property
    def look(self) -> str:
        """Return the classes of a scalar: one word with digits is an id, and shown as one."""
        text = self.text
        word = self.sort == "text" and 4 < len(text) <= LONGEST_ID and not set(text) & {" ", "/", "\n"}
        return "text id" if word and any(map(str.isdigit, text)) else self.sort

    @property
    def hint(self) -> str:
        """Return the name of an object, else its first fields, to identify it while it is collapsed."""
        named = {
            label.text: part
            for label, part in self.parts
            if label is not None and not part.is_group and (part.sort, part.text) != ("word", "null")
        }
        own = next((named[name].text for name in NAMES if name in named and named[name].text), "")
        return _excerpt(own or " · ".join(f"{label} {part.text}" for label, part in islice(named.items(), 3)))

    @property
    def name(self) -> str:
        """Return the name or title in an object, or nothing."""
        texts = {label.text: part.text for label, part in self.parts if label and part.sort == "text"}
        return _excerpt(next((texts[name] for name in NAMES if texts.get(name)), ""))

    @property
    def summary(self) -> str:
        """Return the number of parts, shown while a group is collapsed."""
        total = len(self.parts) + self.more
        if not total:
            return "empty"
        noun = "field" if self.sort == "object" else "item"
        return f"{total} {noun}{'' if total == 1 else 's'}"


def _excerpt(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:79]}…"


class Presenter:
    """Presents the values of one page; `links` maps texts that name another key to its page.

    `entry_url` gives the page of one entry of a map, by its field.
    """

    def __init__(
        self,
        links: Mapping[str, str] | None = None,
        entry_url: Callable[[Any], str] | None = None,
        now: datetime | None = None,
    ) -> None:
        self.links = links or {}
        self._entry_url = entry_url
        self.now = now or datetime.now(UTC)
        self._left = MOST_PARTS

    def inspected(self, found: Inspection) -> Part:
        """Return the parts of an inspected key."""
        if found.older is not None:
            return self.part(_texts(found.value))
        if isinstance(found.key, SortedSet | Map | Geo):
            return self._group("object", [(self._entry(name), item) for name, item in found.value])
        if isinstance(found.key, Stream):
            return self._group("object", [(Part("text", entry.id), entry.value) for entry in found.value])
        return self.part(found.value)

    def _entry(self, name: Any) -> Part:
        """Return the label of an entry, as a link if the entry has a page."""
        label = self.part(name)
        if self._entry_url is not None and not isinstance(name, Hidden):
            label.url = self._entry_url(name)
        return label

    def part(self, value: Any, depth: int = 0) -> Part:
        for kinds, present in _SCALARS:
            if isinstance(value, kinds):
                return self._linked(present(value, self.now))
        if depth >= DEEPEST:
            return Part("concealed", "too deep to be shown")
        if isinstance(value, Mapping):
            named = [(self.part(name), item) for name, item in self._within(value.items())]
            return self._group("object", named, len(value), depth)
        if isinstance(value, list | tuple | set | frozenset):
            return self._group("array", [(None, item) for item in self._within(value)], len(value), depth)
        return self.part(plain(value), depth + 1)

    def _within(self, items: Any) -> list[Any]:
        """Return as many items as the limit of parts allows."""
        listed = list(items)
        return listed[: max(0, self._left)]

    def _group(
        self, sort: str, items: Sequence[tuple[Part | None, Any]], total: int | None = None, depth: int = 0
    ) -> Part:
        self._left -= len(items)
        parts = [(label, self.part(item, depth + 1)) for label, item in items]
        return Part(sort, parts=parts, more=(len(items) if total is None else total) - len(parts))

    def _linked(self, part: Part) -> Part:
        if part.sort in ("text", "number"):
            part.url = self.links.get(part.text)
        if part.url is None and part.sort == "text" and _ADDRESS.fullmatch(part.text):
            part.url = part.text
        return part


def _text(value: str, now: datetime) -> Part:
    note = ""
    if len(value) > MOST_CHARACTERS:
        note = f"the first {MOST_CHARACTERS:,} of {len(value):,} characters"
        value = value[:MOST_CHARACTERS]
    shown = "".join(char if char.isprintable() or char in "\n\t" else spelled(char) for char in value)
    moment = _moment(value) if 19 <= len(value) <= 40 else None
    if moment is not None:
        return Part("time", shown, in_words(moment - now))
    return Part("text", shown, note)


def _moment(text: str) -> datetime | None:
    """Parse an ISO 8601 time with a zone; None for other texts."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo is not None and text[10:11] in ("T", " ") else None


def _time(value: datetime, now: datetime) -> Part:
    aware = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
    return Part("time", value.isoformat(sep=" "), in_words(aware - now))


def _bytes(value: bytes, now: datetime) -> Part:
    """Return bytes as text if all of them are, else in hexadecimal."""
    beginning = bytes(value[: MOST_CHARACTERS * 4])
    try:
        beginning.decode()
    except UnicodeDecodeError:
        shown = value[:HEX_BYTES]
        return Part("bytes", f"{shown.hex(' ')}{' …' if len(value) > len(shown) else ''}", sized(len(value)))
    return Part("bytes", text_of(value, MOST_CHARACTERS), sized(len(value)))


def _number(value: int | float, now: datetime) -> Part:
    text = str(value)
    if len(text) > MOST_CHARACTERS:
        text = f"{text[:60]}…"
    return Part("number", text)


def _point(value: Point, now: datetime) -> Part:
    return Part("text", f"{value.latitude:.5f}°, {value.longitude:.5f}°", "latitude, longitude")


def _texts(stored: Any) -> Any:
    """Decode the bytes of an older shape, whose types are not known, where they are UTF-8."""
    if isinstance(stored, dict):
        return {_texts(name): _texts(value) for name, value in stored.items()}
    try:
        return stored.decode() if isinstance(stored, bytes) else stored
    except UnicodeDecodeError:
        return stored


def in_words(distance: timedelta) -> str:
    """Format a distance from now: `in 3 d 4 h`, `2 min ago`."""
    seconds = distance.total_seconds()
    duration = left(abs(seconds) * 1000)
    return f"in {duration}" if seconds >= 0 else f"{duration} ago"


_UNITS = ((31_557_600, "y"), (86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def left(milliseconds: float) -> str:
    """Format a duration in its two largest units, as in `1 h 55 min`."""
    seconds = int(milliseconds // 1000)
    for place, (length, unit) in enumerate(_UNITS):
        if seconds >= length:
            count, rest = divmod(seconds, length)
            words = f"{count:,} {unit}"
            if unit == "s":
                return words
            smaller, smaller_unit = _UNITS[place + 1]
            return f"{words} {rest // smaller} {smaller_unit}" if rest >= smaller else words
    return "less than 1 s"


def sized(count: float | None) -> str:
    """Format a number of bytes."""
    if count is None:
        return "—"
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            return f"{count:.0f} {unit}" if unit == "B" or count >= 100 else f"{count:.1f} {unit}"
        count /= 1024
    raise AssertionError("the last unit takes any size")


Present = Callable[[Any, datetime], Part]

_SCALARS: tuple[tuple[type | tuple[type, ...], Present], ...] = (
    (Hidden, lambda value, _: Part("concealed", value.value)),
    (type(None), lambda *_: Part("word", "null")),
    (bool, lambda value, _: Part("word", "true" if value else "false")),
    (enum.Enum, lambda value, now: _text(str(value.value), now)),
    (Point, _point),
    (Estimate, lambda value, _: Part("number", f"about {int(value):,}", "an estimate, ± 0.81 %")),
    ((int, float), _number),
    (str, _text),
    (datetime, _time),
    ((bytes, bytearray), _bytes),
)
