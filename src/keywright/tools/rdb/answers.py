"""The replies to reading commands, from the keys of a dump, in the form in which a server sends them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

from keywright.engine.translation import refusal, verb_of
from keywright.engine.wire_format import ErrorReply
from keywright.errors import CapabilityError, UsageError
from keywright.keyspace.layouts import LAYOUTS
from keywright.keyspace.wires import Effect, Operation, Reply, Wire
from keywright.tools.rdb.entries import Collection, Identity
from keywright.tools.rdb.frames import Stored
from keywright.tools.rdb.keys import StoredKeys

__all__ = ["Answers"]

_LOWEST, _HIGHEST = (0, 0), (2**64 - 1, 2**64 - 1)
_XINFO = Operation("groups", b"XINFO", Effect.READ)
_WRONG_TYPE = ErrorReply("WRONGTYPE Operation against a key holding the wrong kind of value")


class Answers:
    """One database of a dump, as a server with it would answer."""

    def __init__(self, keys: StoredKeys, info: Callable[[Sequence[Any]], str], shown: str) -> None:
        self.keys = keys
        self._info = info
        self._shown = shown

    def to(self, wire: Wire) -> Reply:
        """Return the reply to a command, or the error in its place."""
        arguments = wire.arguments
        verb = arguments[0]
        answer = _TYPED.get(verb)
        if answer is not None:
            redis_type, read, absent = answer
            name = arguments[1] if verb != b"XINFO" else arguments[2]
            stored = self.keys.find(name)
            if stored is None:
                return absent(arguments) if callable(absent) else absent
            if self.keys.type_of(stored) != redis_type:
                return refusal(_WRONG_TYPE, wire, self._shown)
            return read(self, stored, arguments)
        general = _GENERAL.get(verb)
        return self._unanswered(wire) if general is None else general(self, arguments)

    def _unanswered(self, wire: Wire) -> Reply:
        """Return the error for a command that needs a server, or the type of a module."""
        stored = self.keys.find(wire.name) if wire.name else None
        if stored is not None and self.keys.type_of(stored) in LAYOUTS and wire.arguments[0][:5] == b"JSON.":
            return refusal(_WRONG_TYPE, wire, self._shown)
        return CapabilityError(verb_of(wire), self._shown, "no file: load it into a server to run this")

    # Any type

    def scan(self, arguments: Sequence[Any]) -> Reply:
        options = _options(arguments[2:])
        cursor, names = self.keys.page(int(arguments[1]), int(options.pop(b"COUNT", 10)))
        if options:
            raise UsageError(f"SCAN of a file has no {', '.join(map(bytes.decode, options))}. Leave it out.")
        return [b"%d" % cursor, names]

    def exists(self, arguments: Sequence[Any]) -> Reply:
        return sum(self.keys.find(name) is not None for name in arguments[1:])

    def type(self, arguments: Sequence[Any]) -> Reply:
        stored = self.keys.find(arguments[1])
        return b"none" if stored is None else self.keys.type_of(stored).encode()

    def ttl(self, arguments: Sequence[Any]) -> Reply:
        stored = self.keys.find(arguments[1])
        if stored is None:
            return -2
        return stored[6] - self.keys.now_ms if stored[6] else -1

    def seconds_left(self, arguments: Sequence[Any]) -> Reply:
        left = self.ttl(arguments)
        return left if left < 0 else (left + 500) // 1000

    def moment(self, arguments: Sequence[Any]) -> Reply:
        stored = self.keys.find(arguments[1])
        return -2 if stored is None else stored[6] or -1

    def memory(self, arguments: Sequence[Any]) -> Reply:
        """Return the bytes that a key takes in the file."""
        stored = self.keys.find(arguments[2])
        return None if stored is None else stored[3] - stored[4]

    def count(self, arguments: Sequence[Any]) -> Reply:
        return self.keys.frames.counts.get(self.keys.number, 0)

    def info(self, arguments: Sequence[Any]) -> Reply:
        return self._info(arguments[1:]).encode()

    def time(self, arguments: Sequence[Any]) -> Reply:
        seconds, milliseconds = divmod(self.keys.now_ms, 1000)
        return [b"%d" % seconds, b"%d" % (milliseconds * 1000)]

    # Strings

    def get_many(self, arguments: Sequence[Any]) -> Reply:
        return self.keys.strings(arguments[1:])

    def get(self, stored: Stored, arguments: Sequence[Any]) -> Reply:
        return self.keys.string(stored)

    def string_length(self, stored: Stored, arguments: Sequence[Any]) -> Reply:
        return self.keys.string_size(stored)

    def string_range(self, stored: Stored, arguments: Sequence[Any]) -> Reply:
        value = self.keys.string(stored)
        start, end = _span(int(arguments[2]), int(arguments[3]), len(value))
        return value[start:end]

    # Collections

    def whole(self, stored: Stored, arguments: Sequence[Any]) -> Reply:
        return self._of(stored).whole()

    def names(self, stored: Stored, arguments: Sequence[Any]) -> Reply:
        return self._of(stored).whole()[::2]

    def values(self, stored: Stored, arguments: Sequence[Any]) -> Reply:
        return self._of(stored).whole()[1::2]

    def size(self, stored: Stored, arguments: Sequence[Any]) -> Reply:
        return self._of(stored).count

    def scan_entries(self, stored: Stored, arguments: Sequence[Any]) -> Reply:
        options = _options(arguments[3:])
        count = int(options.pop(b"COUNT", 10))
        if options:
            raise UsageError(f"{arguments[0].decode()} of a file takes a count only. Leave the rest out.")
        cursor, found = self._of(stored).page(int(arguments[2]), count)
        return [b"%d" % cursor, found]

    def has(self, stored: Stored, arguments: Sequence[Any]) -> Reply:
        return int(self._of(stored).find(_bytes(arguments[2])) is not None)

    def has_each(self, stored: Stored, arguments: Sequence[Any]) -> Reply:
        collection = self._of(stored)
        return [int(collection.find(_bytes(name)) is not None) for name in arguments[2:]]

    def item(self, stored: Stored, arguments: Sequence[Any]) -> Reply:
        found = self._of(stored).find(_bytes(arguments[2]))
        return None if found is None else found[0]

    def item_each(self, stored: Stored, arguments: Sequence[Any]) -> Reply:
        collection = self._of(stored)
        found = (collection.find(_bytes(name)) for name in arguments[2:])
        return [None if each is None else each[0] for each in found]

    def field_ttls(self, stored: Stored, arguments: Sequence[Any]) -> Reply:
        collection = self._of(stored)
        found = (collection.find(_bytes(name)) for name in arguments[4:])
        now_ms = self.keys.now_ms
        return [-2 if each is None else each[1] - now_ms if each[1] else -1 for each in found]

    # Sorted sets and lists

    def scored_range(self, stored: Stored, arguments: Sequence[Any]) -> Reply:
        words = [_bytes(word).upper() for word in arguments[4:]]
        collection = self._of(stored)
        start, stop = arguments[2:4]
        if words in ([], [b"WITHSCORES"]) and 0 <= int(start) <= int(stop):
            flat = collection.first(int(stop) + 1)[2 * int(start) :]
            return flat if words else flat[::2]
        found = _scored(collection)
        if b"REV" in words:
            found.reverse()
        if b"BYSCORE" in words:
            ends = (stop, start) if b"REV" in words else (start, stop)
            found = _between(found, *map(_bytes, ends))
        else:
            first, end = _span(int(start), int(stop), len(found))
            found = found[first:end]
        if b"LIMIT" in words:
            place = words.index(b"LIMIT")
            offset, most = int(words[place + 1]), int(words[place + 2])
            found = found[offset : None if most < 0 else offset + most]
        return [part for entry in found for part in (entry if b"WITHSCORES" in words else entry[:1])]

    def scored_count(self, stored: Stored, arguments: Sequence[Any]) -> Reply:
        return len(_between(_scored(self._of(stored)), *map(_bytes, arguments[2:4])))

    def rank(self, stored: Stored, arguments: Sequence[Any]) -> Reply:
        members = self._of(stored).whole()[::2]
        name = _bytes(arguments[2])
        if name not in members:
            return None
        place = members.index(name)
        return place if arguments[0] == b"ZRANK" else len(members) - 1 - place

    def range(self, stored: Stored, arguments: Sequence[Any]) -> Reply:
        start, stop = int(arguments[2]), int(arguments[3])
        collection = self._of(stored)
        if 0 <= start <= stop:
            return collection.page(start, stop - start + 1)[1]
        items = collection.whole()
        first, end = _span(start, stop, len(items))
        return items[first:end]

    def item_at(self, stored: Stored, arguments: Sequence[Any]) -> Reply:
        items = self._of(stored).whole()
        place = int(arguments[2])
        return items[place] if -len(items) <= place < len(items) else None

    def places(self, stored: Stored, arguments: Sequence[Any]) -> Reply:
        wanted = _bytes(arguments[2])
        options = _options(arguments[3:])
        found = (place for place, (item,) in enumerate(self._of(stored).entries()) if item == wanted)
        if b"COUNT" not in options:
            return next(found, None)
        return list(islice(found, int(options[b"COUNT"]) or None))

    # Streams

    def entries(self, stored: Stored, arguments: Sequence[Any]) -> Reply:
        options = _options(arguments[4:])
        low, high = _boundary(arguments[2], _LOWEST, 0, 1), _boundary(arguments[3], _HIGHEST, 2**64 - 1, -1)
        return self._of(stored).between(low, high, int(options.get(b"COUNT", 1 << 62)))

    def entries_backwards(self, stored: Stored, arguments: Sequence[Any]) -> Reply:
        options = _options(arguments[4:])
        low, high = _boundary(arguments[3], _LOWEST, 0, 1), _boundary(arguments[2], _HIGHEST, 2**64 - 1, -1)
        found = self._of(stored).between(low, high, 1 << 62)[::-1]
        return found[: int(options.get(b"COUNT", len(found)))]

    def stream_length(self, stored: Stored, arguments: Sequence[Any]) -> Reply:
        return self.keys.stream_facts(stored).length

    def groups(self, stored: Stored, arguments: Sequence[Any]) -> Reply:
        facts = self.keys.stream_facts(stored)
        rows: list[list[Any]] = []
        for group in facts.groups:
            row: list[Any] = [b"name", group.name, b"consumers", group.consumers, b"pending", group.pending]
            row += [b"last-delivered-id", b"%d-%d" % group.last]
            if facts.added is not None:
                row += [b"entries-read", group.read, b"lag", facts.lag(group)]
            rows.append(row)
        return rows

    def _of(self, stored: Stored) -> Collection:
        return self.keys.collection(stored)


Typed = tuple[str, Callable[[Answers, Stored, Sequence[Any]], Reply], Any]


def _nothing(arguments: Sequence[Any]) -> Reply:
    return []


def _nothing_scanned(arguments: Sequence[Any]) -> Reply:
    return [b"0", []]


def _zeros(arguments: Sequence[Any]) -> Reply:
    return [0] * (len(arguments) - 2)


def _nones(arguments: Sequence[Any]) -> Reply:
    return [None] * (len(arguments) - 2)


def _absent_fields(arguments: Sequence[Any]) -> Reply:
    return [-2] * (len(arguments) - 4)


def _absent_places(arguments: Sequence[Any]) -> Reply:
    return [] if len(arguments) > 3 else None


def _no_stream(arguments: Sequence[Any]) -> Reply:
    return refusal(ErrorReply("ERR no such key"), Wire(tuple(arguments), arguments[2], _XINFO, None), "")


_TYPED: dict[bytes, Typed] = {
    b"GET": ("string", Answers.get, None),
    b"STRLEN": ("string", Answers.string_length, 0),
    b"GETRANGE": ("string", Answers.string_range, b""),
    b"HGETALL": ("hash", Answers.whole, _nothing),
    b"HKEYS": ("hash", Answers.names, _nothing),
    b"HVALS": ("hash", Answers.values, _nothing),
    b"HLEN": ("hash", Answers.size, 0),
    b"HSCAN": ("hash", Answers.scan_entries, _nothing_scanned),
    b"HEXISTS": ("hash", Answers.has, 0),
    b"HGET": ("hash", Answers.item, None),
    b"HMGET": ("hash", Answers.item_each, _nones),
    b"HPTTL": ("hash", Answers.field_ttls, _absent_fields),
    b"SMEMBERS": ("set", Answers.whole, _nothing),
    b"SCARD": ("set", Answers.size, 0),
    b"SSCAN": ("set", Answers.scan_entries, _nothing_scanned),
    b"SISMEMBER": ("set", Answers.has, 0),
    b"SMISMEMBER": ("set", Answers.has_each, _zeros),
    b"ZRANGE": ("zset", Answers.scored_range, _nothing),
    b"ZCARD": ("zset", Answers.size, 0),
    b"ZSCAN": ("zset", Answers.scan_entries, _nothing_scanned),
    b"ZCOUNT": ("zset", Answers.scored_count, 0),
    b"ZRANK": ("zset", Answers.rank, None),
    b"ZREVRANK": ("zset", Answers.rank, None),
    b"ZSCORE": ("zset", Answers.item, None),
    b"ZMSCORE": ("zset", Answers.item_each, _nones),
    b"LRANGE": ("list", Answers.range, _nothing),
    b"LLEN": ("list", Answers.size, 0),
    b"LINDEX": ("list", Answers.item_at, None),
    b"LPOS": ("list", Answers.places, _absent_places),
    b"XRANGE": ("stream", Answers.entries, _nothing),
    b"XREVRANGE": ("stream", Answers.entries_backwards, _nothing),
    b"XLEN": ("stream", Answers.stream_length, 0),
    b"XINFO": ("stream", Answers.groups, _no_stream),
}
"""The commands on one key: its type, how it is read, and the reply where there is no key."""

_GENERAL: dict[bytes, Callable[[Answers, Sequence[Any]], Reply]] = {
    b"SCAN": Answers.scan,
    b"EXISTS": Answers.exists,
    b"TYPE": Answers.type,
    b"PTTL": Answers.ttl,
    b"TTL": Answers.seconds_left,
    b"PEXPIRETIME": Answers.moment,
    b"MEMORY": Answers.memory,
    b"MGET": Answers.get_many,
    b"DBSIZE": Answers.count,
    b"INFO": Answers.info,
    b"TIME": Answers.time,
}


def _scored(collection: Collection) -> list[tuple[bytes, bytes]]:
    flat = collection.whole()
    return list(zip(flat[::2], flat[1::2], strict=True))


def _between(entries: list[tuple[bytes, bytes]], low: bytes, high: bytes) -> list[tuple[bytes, bytes]]:
    """Return the entries whose scores are in a range; `(` excludes its end."""
    least, most = (float(end.removeprefix(b"(")) for end in (low, high))
    return [
        entry
        for entry in entries
        if (least < float(entry[1]) if low[:1] == b"(" else least <= float(entry[1]))
        and (float(entry[1]) < most if high[:1] == b"(" else float(entry[1]) <= most)
    ]


def _options(words: Sequence[Any]) -> dict[bytes, Any]:
    return {bytes(name).upper(): value for name, value in zip(words[::2], words[1::2], strict=True)}


def _bytes(argument: Any) -> bytes:
    if isinstance(argument, bytes):
        return argument
    return str(argument).encode() if isinstance(argument, int | str) else bytes(argument)


def _span(start: int, stop: int, size: int) -> tuple[int, int]:
    """Return the first place of an inclusive range from either end, and the one behind the last."""
    first = max(0, start + size) if start < 0 else start
    return first, (stop + size if stop < 0 else stop) + 1


def _boundary(argument: Any, open_end: Identity, number: int, step: int) -> Identity:
    """Return an id of a range: `-` and `+` are its ends, and `(` excludes the id itself."""
    text = _bytes(argument)
    if text in (b"-", b"+"):
        return open_end
    milliseconds, dash, rest = text.removeprefix(b"(").partition(b"-")
    identity = int(milliseconds), int(rest) if dash else number
    return (identity[0], identity[1] + step) if text[:1] == b"(" else identity
