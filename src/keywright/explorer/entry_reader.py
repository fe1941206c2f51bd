"""Read a page of the entries of a collection: by cursor, by index, by score, or by id, within limits.

Maps and sets have no order: their pages follow the cursor of HSCAN and SSCAN. Sorted sets begin at the top,
streams with the newest entry, lists at either end.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec

from keywright.engine import AsyncDatabase
from keywright.errors import KeywrightError, UsageError
from keywright.explorer.atlas import key_url
from keywright.explorer.columns import VALUE, codec_columns, found_columns, members_of, shape_columns
from keywright.explorer.key_reader import MOST_BYTES, Facts
from keywright.explorer.key_scan import as_glob
from keywright.explorer.row_reader import Decoder, batched, wire
from keywright.explorer.tables import Column, Row, moment_of, natural
from keywright.explorer.views import number_of
from keywright.keyspace import Key
from keywright.keyspace.codecs import unpacking_at_most
from keywright.keyspace.layouts import Ask, pairs
from keywright.keyspace.storage import StoredEntry
from keywright.tools.describe.inspection import Hidden

__all__ = ["PLACES", "EntryPage", "entry_page", "has_pages"]

A_PAGE = 100
PLACES = ("at", "order", "match", "min", "max", "before")
LONGEST_JSON = 16 << 10


class EntryPage(NamedTuple):
    """Some entries of a collection as rows, where they are in it, and the places before and after."""

    columns: list[Column]
    rows: list[Row]
    how: str
    order: str
    kind: str
    """hash, set, zset, list or stream."""
    more: dict[str, str] | None = None
    back: dict[str, str] | None = None
    whole: bool = False
    """Whether these are all entries, in an order of this page."""
    trouble: str | None = None


def has_pages(key: Key, facts: Facts) -> bool:
    """Return whether a key is a collection, stored as declared, with entries that may be shown one by one."""
    storage = key.declaration.storage
    light = (facts.memory or 0) // (facts.size or 1) <= MOST_BYTES
    stored = facts.stored_type == key.redis_type and bool(facts.size)
    return storage.is_read and not storage.whole and stored and light


async def entry_page(
    db: AsyncDatabase, key: Key, facts: Facts, placed: Mapping[str, str], *, most: int = A_PAGE
) -> EntryPage:
    """Return the entries at a place of a collection."""
    reader = _Reader(db, key, facts, most)
    try:
        read = getattr(reader, f"_{facts.stored_type}")
        found: EntryPage = await read(placed)
    except UsageError as error:
        return EntryPage(reader.columns, [], "", "", facts.stored_type, trouble=str(error))
    return found


class _Reader:
    def __init__(self, db: AsyncDatabase, key: Key, facts: Facts, most: int) -> None:
        self.db = db
        self.key = key
        self.kind = type(key)
        self.name = db.context.name(key)
        self.size = facts.size or 0
        self.storage = key.declaration.storage
        self.decoder = Decoder(self.kind, db)
        each = (facts.memory or 0) / max(1, self.size)
        self.count = max(1, min(most, int(MOST_BYTES / each) if each else most))
        self.first = self._first_columns()
        taken = [column.id for column in self.first]
        if self.storage.fields is not None:
            held = shape_columns(self.kind, taken)
        elif facts.stored_type == "hash":
            held = codec_columns(self.kind, self.storage.item, taken)
        elif facts.stored_type in ("set", "zset"):
            held = []  # the member is its own name
        else:
            held = codec_columns(self.kind, self.storage.item, taken)
        self.columns = [*self.first, *held]
        self.ids = {column.title: column.id for column in held}

    def _first_columns(self) -> list[Column]:
        """Return the columns that name an entry: field, member and score, place, or id."""
        item = self.storage.item
        secret = item is not None and (item.secret or item.sealed)
        words = "" if item is None else item.expected
        stored = self.storage.layout.redis_type
        if stored == "hash":
            field = self.storage.field
            secret = field.secret or field.sealed
            return [Column("field", "field", "text", field.expected, (), secret, "variable")]
        if stored == "set":
            return [Column("member", "member", "text", words, (), secret, "variable")]
        if stored == "zset":
            score = self.storage.score_meaning or "number"
            return [
                Column("member", "member", "text", words, (), secret, "variable"),
                Column("score", "score", self._score_sort(), score),
                Column("rank", "rank", "number", "the place in the order, from 0", role="count"),
            ]
        if stored == "list":
            return [Column("index", "index", "number", "the place in the list, from 0", role="variable")]
        return [
            Column("id", "id", "text", "the id of the entry", role="variable"),
            Column("time", "time", "time", "the time in the id"),
        ]

    def _score_sort(self) -> str:
        accepts = getattr(getattr(self.storage, "score", None), "score", None)
        found = getattr(accepts, "accepts", None)
        return "time" if found is datetime else "number" if found in (int, float) else "data"

    async def _ask(self, *asks: Ask) -> list[Any]:
        replies = await batched(
            self.db, [wire(self.kind, ask.verb, self.name, *ask.operands) for ask in asks]
        )
        for reply in replies:
            if isinstance(reply, KeywrightError):
                raise UsageError(f"The entries cannot be read: {reply}")
        return replies

    async def _page(self, stored: Any, labels: Sequence[Mapping[str, Any]] = (), **about: Any) -> EntryPage:
        rows = await asyncio.to_thread(self._rows, stored, labels)
        found = found_columns(rows, {}, self.kind, self.columns)
        columns = list(self.columns)
        if found and all(self.ids.get(VALUE) not in row.values for row in rows):
            columns = [column for column in columns if column.title != VALUE]
        return EntryPage([*columns, *found], rows, kind=self.storage.layout.redis_type, **about)

    def _rows(self, stored: Any, labels: Sequence[Mapping[str, Any]]) -> list[Row]:
        layout = self.storage.layout
        streamed = layout.redis_type == "stream"
        names = [each[0] for each in stored] if streamed else stored[:: layout.width]
        rows = []
        taken = {column.id for column in self.columns}
        with unpacking_at_most(MOST_BYTES):
            for at, entry in enumerate(self.storage.entries(stored, self.key)):
                name = names[at]
                row = Row(name, key_url(self.name, name), dict(labels[at]) if labels else {}, {})
                rows.append(row)
                if streamed:
                    self._label(row, "stream", (), name)
                    self._members(row, entry, stored[at][1], taken)
                    row.stored, row.key = stored[at : at + 1], self.key
                    continue
                values, problems = self.decoder.entry(entry)
                row.note = next(iter(problems.values()), "")
                self._label(row, layout.redis_type, values, name)
                if layout.redis_type in ("hash", "list") and not problems:
                    self.decoder.spread(row, values[-1], self.ids, taken)
                elif not problems and not isinstance(values[0], Hidden) and members_of(values[0]):
                    self.decoder.spread(row, values[0], self.ids, taken)
                row.stored = stored[at * layout.width : (at + 1) * layout.width]
                row.key = self.key
        return rows

    def _label(self, row: Row, stored_type: str, values: Sequence[Any], name: bytes) -> None:
        """Put the name of an entry into its row, and hide one that is secret."""
        if stored_type == "stream":
            row.values["id"] = name.decode("ascii", "replace")
            row.values["time"] = _time_of(name)
        elif stored_type == "list":
            row.name, row.url = b"%d" % row.values["index"], ""
        else:
            row.values[self.first[0].id] = values[0] if values[0] is not None else _text(name)
            if stored_type != "hash":
                row.url = ""  # the row shows all there is; the member may lead to another key
            if stored_type == "zset" and values[1] is not None:
                row.values["score"] = values[1]
        if self.first[0].secret:
            row.name, row.url = b"(secret)", ""

    def _members(self, row: Row, entry: StoredEntry, flat: Sequence[bytes], taken: set[str]) -> None:
        """Put the members of a stream entry into its row, JSON texts decoded."""
        values, problems = self.decoder.members(entry)
        row.note = problems.pop("", "")
        row.problems = {self.ids.get(title, title): reason for title, reason in problems.items()}
        if entry.parts:
            members = entry.shown(values).value
        elif self.decoder.discreet:
            return
        else:
            members = {_text(name): _text(data) for name, data in pairs(flat)}
        texts = {str(name): _unpacked(value) for name, value in members.items()}
        self.decoder.spread(row, texts, self.ids, taken)

    # One method for each Redis type, named as TYPE names it.

    async def _hash(self, placed: Mapping[str, str]) -> EntryPage:
        return await self._by_cursor(b"HSCAN", b"HGETALL", placed, "fields")

    async def _set(self, placed: Mapping[str, str]) -> EntryPage:
        return await self._by_cursor(b"SSCAN", b"SMEMBERS", placed, "members")

    async def _by_cursor(
        self, verb: bytes, everything: bytes, placed: Mapping[str, str], noun: str
    ) -> EntryPage:
        layout = self.storage.layout
        match = self._pattern(placed)
        if not match and self.size <= self.count and "at" not in placed:
            (stored,) = await self._ask(Ask(everything))
            stored = self._natural(stored)
            found = len(stored) // layout.width
            how = f"All {found:,} {noun}" if found != 1 else f"The only {noun[:-1]}"
            return await self._page(stored, how=how, order="in order", whole=True)
        cursor, passed = (number_of(part) for part in f"{placed.get('at', '0-0')}-0".split("-")[:2])
        count = self.count if not match else max(self.count, 2000)
        pattern = (b"MATCH", as_glob(match).encode()) if match else ()
        (reply,) = await self._ask(Ask(verb, (cursor, *pattern, b"COUNT", count)))
        following, stored = int(reply[0]), reply[1]
        found = len(stored) // layout.width
        passed += count if match else found
        how = f"{found:,} of {self.size:,} entries"
        if match:
            how = f"{found:,} {noun} that match; looked at about {min(passed, self.size):,} of {self.size:,}"
        elif passed > found:
            how = f"{found:,} more of {self.size:,} entries"
        more = {**placed, "at": f"{following}-{passed}"} if following else None
        return await self._page(stored, how=how, order="in the server's hash order", more=more)

    def _pattern(self, placed: Mapping[str, str]) -> str:
        match = placed.get("match", "")
        if match and self.first[0].secret:
            raise UsageError("The names of these entries are secret, so they are not searched.")
        return match

    def _natural(self, stored: Any) -> list[Any]:
        width = self.storage.layout.width
        flat = list(stored)
        entries = [flat[at : at + width] for at in range(0, len(flat), width)]
        entries.sort(key=lambda entry: natural(entry[0].decode("utf-8", "surrogateescape")))
        return [item for entry in entries for item in entry]

    async def _zset(self, placed: Mapping[str, str]) -> EntryPage:
        match = self._pattern(placed)
        if match:
            return await self._matching_scores(placed, match)
        lowest_first = placed.get("order") == "lowest"
        at = number_of(placed.get("at", ""))
        least, most = placed.get("min", ""), placed.get("max", "")
        order = "lowest score first" if lowest_first else "highest score first"
        reverse = () if lowest_first else (b"REV",)
        if least or most:
            low, high = self._score(least, b"-inf"), self._score(most, b"+inf")
            ends = (low, high) if lowest_first else (high, low)
            ask = Ask(b"ZRANGE", (*ends, b"BYSCORE", *reverse, b"LIMIT", at, self.count, b"WITHSCORES"))
            stored, inside = await self._ask(ask, Ask(b"ZCOUNT", (low, high)))
            labels: list[dict[str, Any]] = []
            total = inside
        else:
            ask = Ask(b"ZRANGE", (at, at + self.count - 1, *reverse, b"WITHSCORES"))
            (stored,) = await self._ask(ask)
            total = self.size
            labels = [{"rank": at + number} for number in range(len(stored) // 2)]
        found = len(stored) // 2
        how = _from_to(at, found, total, "members" if not (least or most) else "members in this range")
        return await self._page(
            stored,
            labels,
            how=how,
            order=order,
            more=_onward(placed, at, found, total),
            back=_backward(placed, at, self.count),
        )

    async def _matching_scores(self, placed: Mapping[str, str], match: str) -> EntryPage:
        cursor, passed = (number_of(part) for part in f"{placed.get('at', '0-0')}-0".split("-")[:2])
        count = 2000
        (reply,) = await self._ask(
            Ask(b"ZSCAN", (cursor, b"MATCH", as_glob(match).encode(), b"COUNT", count))
        )
        following, stored = int(reply[0]), reply[1]
        passed += count
        seen = min(passed, self.size)
        how = f"{len(stored) // 2:,} members that match; looked at about {seen:,} of {self.size:,}"
        more = {**placed, "at": f"{following}-{passed}"} if following else None
        return await self._page(stored, how=how, order="in the server's hash order", more=more)

    def _score(self, text: str, default: bytes) -> bytes:
        """Return a bound of scores: a number, or a time for scores that are times."""
        if not text:
            return default
        moment = moment_of(text) if not _is_number(text) else None
        if moment is not None:
            score = getattr(self.storage, "score", None)
            try:
                return score.encode(moment) if score is not None else b""
            except (TypeError, AttributeError, ValueError, KeywrightError):
                raise UsageError(f"The scores are {self.storage.score_meaning}, got {text[:60]!r}.") from None
        if not _is_number(text):
            raise UsageError(f"A score must be a number or a time, got {text[:60]!r}.")
        return text.strip().encode()

    async def _list(self, placed: Mapping[str, str]) -> EntryPage:
        from_end = placed.get("order") == "last"
        at = number_of(placed.get("at", ""))
        if from_end:
            stop = self.size - 1 - at
            start = max(0, stop - self.count + 1)
        else:
            start, stop = at, at + self.count - 1
        (stored,) = await self._ask(Ask(b"LRANGE", (start, stop))) if stop >= 0 else ([],)
        labels = [{"index": start + number} for number in range(len(stored))]
        if from_end:
            stored, labels = stored[::-1], labels[::-1]
        found = len(stored)
        return await self._page(
            stored,
            labels,
            how=_from_to(at, found, self.size, "items"),
            order="from the end" if from_end else "from the start",
            more=_onward(placed, at, found, self.size),
            back=_backward(placed, at, self.count),
        )

    async def _stream(self, placed: Mapping[str, str]) -> EntryPage:
        oldest_first = placed.get("order") == "oldest"
        low, high = self._id(placed.get("min", ""), b"-", 0), self._id(placed.get("max", ""), b"+", 999)
        at = placed.get("at", "")
        if at:
            after = b"(" + self._id(at, b"", 0)
            low, high = (after, high) if oldest_first else (low, after)
        ends = (low, high) if oldest_first else (high, low)
        verb = b"XRANGE" if oldest_first else b"XREVRANGE"
        (stored,) = await self._ask(Ask(verb, (*ends, b"COUNT", self.count)))
        found = len(stored)
        last = stored[-1][0].decode() if found == self.count else ""
        how = f"{found:,} of {self.size:,} entries"
        more = {**placed, "at": last} if last else None
        return await self._page(
            stored, how=how, order="oldest first" if oldest_first else "newest first", more=more
        )

    def _id(self, text: str, default: bytes, milliseconds: int) -> bytes:
        """Return an id of a stream from an id or a time."""
        asked = text.strip()
        if not asked:
            return default
        first, _, second = asked.partition("-")
        if first.isdigit() and len(first) <= 20 and (not second or (second.isdigit() and len(second) <= 20)):
            return asked.encode()
        moment = moment_of(asked)
        if moment is None or moment.timestamp() < 0:
            raise UsageError(
                f"An entry is found by its id or a time, as in 2026-01-31T12:00, got {asked[:60]!r}."
            )
        return b"%d" % (int(moment.timestamp() * 1000) + milliseconds)


def _text(data: bytes) -> str | bytes:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def _unpacked(value: Any) -> Any:
    """Return a text that holds a JSON object or array as that; any other value as it is."""
    if isinstance(value, bytes):
        value = _text(value)
    if isinstance(value, str) and value[:1] in ("{", "[") and len(value) <= LONGEST_JSON:
        try:
            return msgspec.json.decode(value)
        except (msgspec.DecodeError, RecursionError):
            return value
    return value


def _time_of(identity: bytes) -> datetime | None:
    try:
        return datetime.fromtimestamp(int(identity.partition(b"-")[0]) / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _is_number(text: str) -> bool:
    try:
        return not math.isnan(float(text))
    except ValueError:
        return False


def _from_to(at: int, found: int, total: int, noun: str) -> str:
    if not found:
        return f"No {noun} here; there are {total:,}"
    if found == total:
        return f"All {total:,} {noun}" if total != 1 else f"The only one of the {noun}"
    return f"{at + 1:,} to {at + found:,} of {total:,} {noun}"


def _onward(placed: Mapping[str, str], at: int, found: int, total: int) -> dict[str, str] | None:
    return {**placed, "at": str(at + found)} if found and at + found < total else None


def _backward(placed: Mapping[str, str], at: int, count: int) -> dict[str, str] | None:
    return {**placed, "at": str(max(0, at - count))} if at else None
