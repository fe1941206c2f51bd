"""How Redis stores each type: the commands that read, measure and change one key, and their replies.

A layout knows a Redis type and no declaration, so it also reads undeclared keys. `storage` adds
the codecs of a kind. Stored forms are as the server sends them: bytes of a string, a flat list of a hash or
sorted set (field, value, …; member, score, …), a list of a set, list or stream.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias, TypeVar

from keywright.errors import KeywrightError, UsageError
from keywright.keyspace.call import Command, as_is
from keywright.keyspace.checks import Check, entry_exists, field_equals, has_member, items_are, score_equals
from keywright.keyspace.wires import Effect, Operation, Reply

if TYPE_CHECKING:
    from keywright.keyspace.context import Context
    from keywright.keyspace.key import Key

__all__ = ["LAYOUTS", "Ask", "Layout", "Removal", "StoredPage", "layout_of", "stored_read"]

T = TypeVar("T")

PAGE = 512

More: TypeAlias = int | bytes
"""Where a page ended: a cursor, a place, or an id."""


class Ask(NamedTuple):
    """A command on one key, without the name, which comes second."""

    verb: bytes
    operands: tuple[bytes | int, ...] = ()

    def on(self, name: bytes) -> tuple[bytes | int, ...]:
        return (self.verb, name, *self.operands)


class StoredPage(NamedTuple):
    """A part of a key in its stored form, and the cursor of the next one (None at the end)."""

    stored: Any
    more: More | None


class Removal(NamedTuple):
    """The command that removes one entry, the checks that it is unchanged, and the command that restores it.

    The first two belong in one `commit`, so that an entry which another client changed stays.
    """

    command: Ask
    checks: list[Check]
    back: Ask


def _commands(text: str) -> tuple[str, ...]:
    return tuple(text.split())


class Layout:
    """One Redis type."""

    redis_type: ClassVar[str] = "none"
    size: ClassVar[bytes] = b"EXISTS"
    """The verb that counts the entries, or the bytes of a string."""
    everything: ClassVar[Ask] = Ask(b"EXISTS")
    """Reads the key whole, however large it is."""
    width: ClassVar[int] = 1
    """How many items of the stored list one entry takes."""
    reads: ClassVar[tuple[str, ...]] = ()
    """The reading commands that its kinds, and scripts on them, send."""
    writes: ClassVar[tuple[str, ...]] = ()

    def first_page(self, count: int = PAGE) -> Ask:
        """Read the beginning: about `count` entries."""
        return self.everything

    def next_page(self, more: More, count: int = PAGE) -> Ask:
        """Read the page after a cursor."""
        raise UsageError(f"a {self.redis_type} has no pages. Read it whole.")

    def page(self, reply: Reply, after: More | None = None, count: int = PAGE) -> StoredPage:
        """Return the page in a reply; `after` is where the page before it ended."""
        return StoredPage(reply, None)

    def complete(self, replies: list[Reply]) -> list[Any] | None:
        """Return the stored forms in many replies to `first_page`, None unless each is the whole key."""
        return replies

    def head(self, limit: int) -> Ask | None:
        """Read the first entries in one command; None where the server has no order to read in."""
        return self.everything

    def named_entries(self, stored: Any) -> list[tuple[bytes, bytes]]:
        """Return each entry as its name, if it has one, and its bytes."""
        return [(b"", each) for each in stored] if self.width == 1 else pairs(stored)

    def find(self, entry: bytes) -> Ask:
        """Read one entry."""
        raise self._no_entries()

    def found(self, entry: bytes, reply: Reply) -> Any:
        """Return the stored form of one entry in a reply to `find`, or None."""
        raise self._no_entries()

    def presence(self, entry: bytes) -> Ask:
        """Ask whether there is an entry; `is_present` reads the reply."""
        raise self._no_entries()

    def is_present(self, reply: Reply) -> bool:
        """Return whether a reply to `presence` says so."""
        return bool(reply)

    def absence(self, key: Key, entry: bytes) -> Check:
        """Return the check of a commit that there is no such entry."""
        raise self._no_entries()

    def removal(self, key: Key, entry: bytes, held: Reply) -> Removal:
        """Return how one entry is removed, given the reply to `find`."""
        raise self._no_entries()

    def restoration(self, entry: bytes, held: Reply = None) -> Ask:
        """Write an entry again that was removed, unless there is one, given the reply to `find`.

        The server appends to lists and streams only: `restore_entry.lua` of the repair inserts in between.
        """
        raise self._no_entries()

    def addition(self, *parts: bytes) -> Ask:
        """Write one entry of these parts: a value, a member, a field and its value, members of a stream."""
        raise self._no_entries()

    def _no_entries(self) -> UsageError:
        return UsageError(f"a {self.redis_type} has no entries of its own. Read or remove the whole key.")


class StringLayout(Layout):
    redis_type = "string"
    size = b"STRLEN"
    everything = Ask(b"GET")
    reads = _commands("get mget strlen getrange")
    writes = _commands("set mset getex getdel append incrby")

    def restoration(self, entry: bytes, held: Reply = None) -> Ask:
        return Ask(b"SET", (entry, b"NX"))

    def addition(self, *parts: bytes) -> Ask:
        return Ask(b"SET", (parts[0], b"KEEPTTL"))


class _Scanned(Layout):
    """A type without order: pages by cursor."""

    scan: ClassVar[bytes]

    def first_page(self, count: int = PAGE) -> Ask:
        return Ask(self.scan, (0, b"COUNT", count))

    def next_page(self, more: More, count: int = PAGE) -> Ask:
        return Ask(self.scan, (more, b"COUNT", count))

    def page(self, reply: Reply, after: More | None = None, count: int = PAGE) -> StoredPage:
        return StoredPage(reply[1], int(reply[0]) or None)

    def complete(self, replies: list[Reply]) -> list[Any] | None:
        if [cursor for cursor, _ in replies].count(b"0") < len(replies):
            return None
        return [entries for _, entries in replies]

    def head(self, limit: int) -> Ask | None:
        return None


class HashLayout(_Scanned):
    redis_type = "hash"
    size = b"HLEN"
    scan = b"HSCAN"
    everything = Ask(b"HGETALL")
    width = 2
    reads = _commands("hget hmget hgetall hkeys hvals hlen hexists hrandfield hscan")
    writes = _commands("hset hsetnx hdel hincrby")

    def find(self, entry: bytes) -> Ask:
        return Ask(b"HGET", (entry,))

    def found(self, entry: bytes, reply: Reply) -> Any:
        return None if reply is None else [entry, reply]

    def presence(self, entry: bytes) -> Ask:
        return Ask(b"HEXISTS", (entry,))

    def absence(self, key: Key, entry: bytes) -> Check:
        return field_equals(key, entry, None)

    def removal(self, key: Key, entry: bytes, held: Reply) -> Removal:
        unchanged = [field_equals(key, entry, held)]
        return Removal(Ask(b"HDEL", (entry,)), unchanged, self.restoration(entry, held))

    def restoration(self, entry: bytes, held: Reply = None) -> Ask:
        return Ask(b"HSETNX", (entry, held))

    def addition(self, *parts: bytes) -> Ask:
        return Ask(b"HSET", parts)


class SetLayout(_Scanned):
    redis_type = "set"
    size = b"SCARD"
    scan = b"SSCAN"
    everything = Ask(b"SMEMBERS")
    reads = _commands("smembers sismember smismember scard srandmember sscan sunion sinter sdiff")
    writes = _commands("sadd srem spop smove")

    def find(self, entry: bytes) -> Ask:
        return Ask(b"SISMEMBER", (entry,))

    def found(self, entry: bytes, reply: Reply) -> Any:
        return [entry] if reply else None

    presence = find

    def absence(self, key: Key, entry: bytes) -> Check:
        return has_member(key, entry, present=False)

    def removal(self, key: Key, entry: bytes, held: Reply) -> Removal:
        return Removal(Ask(b"SREM", (entry,)), [has_member(key, entry)], self.restoration(entry))

    def restoration(self, entry: bytes, held: Reply = None) -> Ask:
        return Ask(b"SADD", (entry,))

    def addition(self, *parts: bytes) -> Ask:
        return Ask(b"SADD", parts)


class SortedSetLayout(_Scanned):
    redis_type = "zset"
    size = b"ZCARD"
    scan = b"ZSCAN"
    everything = Ask(b"ZRANGE", (0, -1, b"WITHSCORES"))
    width = 2
    reads = _commands("zscore zmscore zrank zrevrank zcard zcount zrange zrangebyscore zrandmember zscan")
    writes = _commands("zadd zincrby zrem zremrangebyscore zremrangebyrank zpopmin zpopmax")

    def head(self, limit: int) -> Ask | None:
        return Ask(b"ZRANGE", (0, limit - 1, b"WITHSCORES"))

    def find(self, entry: bytes) -> Ask:
        return Ask(b"ZSCORE", (entry,))

    def found(self, entry: bytes, reply: Reply) -> Any:
        return None if reply is None else [entry, reply]

    presence = find

    def is_present(self, reply: Reply) -> bool:
        return reply is not None  # a score of 0 is one

    def absence(self, key: Key, entry: bytes) -> Check:
        return score_equals(key, entry, None)

    def removal(self, key: Key, entry: bytes, held: Reply) -> Removal:
        unchanged = [score_equals(key, entry, held)]
        return Removal(Ask(b"ZREM", (entry,)), unchanged, self.restoration(entry, held))

    def restoration(self, entry: bytes, held: Reply = None) -> Ask:
        return Ask(b"ZADD", (b"NX", held, entry))

    def addition(self, *parts: bytes) -> Ask:
        member, score = parts if len(parts) == 2 else (parts[0], b"1")
        return Ask(b"ZADD", (score, member))


class ListLayout(Layout):
    redis_type = "list"
    size = b"LLEN"
    everything = Ask(b"LRANGE", (0, -1))
    reads = _commands("lrange llen lindex lpos")
    writes = _commands("lpush rpush lpop rpop blpop brpop lset ltrim lrem linsert lmove")

    def first_page(self, count: int = PAGE) -> Ask:
        return Ask(b"LRANGE", (0, count - 1))

    def next_page(self, more: More, count: int = PAGE) -> Ask:
        assert isinstance(more, int)
        return Ask(b"LRANGE", (more, more + count - 1))

    def page(self, reply: Reply, after: More | None = None, count: int = PAGE) -> StoredPage:
        start = after if isinstance(after, int) else 0
        return StoredPage(reply, start + count if len(reply) == count else None)

    def complete(self, replies: list[Reply]) -> list[Any] | None:
        return None if PAGE in set(map(len, replies)) else replies

    def head(self, limit: int) -> Ask | None:
        return self.first_page(limit)

    def named_entries(self, stored: Any) -> list[tuple[bytes, bytes]]:
        return [(b"%d" % place, item) for place, item in enumerate(stored)]

    def find(self, entry: bytes) -> Ask:
        return Ask(b"LPOS", (entry, b"COUNT", 0))

    def found(self, entry: bytes, reply: Reply) -> Any:
        return [entry] * len(reply) or None

    def presence(self, entry: bytes) -> Ask:
        return Ask(b"LPOS", (entry,))

    def is_present(self, reply: Reply) -> bool:
        return reply is not None  # the first place is 0

    def absence(self, key: Key, entry: bytes) -> Check:
        return items_are(key, entry, 0)

    def removal(self, key: Key, entry: bytes, held: Reply) -> Removal:
        # Not the places, which change with every pop of a queue; they only tell an undo where to insert.
        unchanged = [items_are(key, entry, len(held))]
        return Removal(Ask(b"LREM", (0, entry)), unchanged, self.restoration(entry, held))

    def restoration(self, entry: bytes, held: Reply = None) -> Ask:
        return Ask(b"LINSERT", (entry, *held))

    def addition(self, *parts: bytes) -> Ask:
        return Ask(b"RPUSH", parts)


class StreamLayout(Layout):
    redis_type = "stream"
    size = b"XLEN"
    everything = Ask(b"XRANGE", (b"-", b"+"))
    reads = _commands("xrange xrevrange xlen xread xpending xinfo")
    writes = _commands("xadd xdel xtrim xgroup xreadgroup xack xautoclaim xclaim xsetid")

    def first_page(self, count: int = PAGE) -> Ask:
        return Ask(b"XRANGE", (b"-", b"+", b"COUNT", count))

    def next_page(self, more: More, count: int = PAGE) -> Ask:
        assert isinstance(more, bytes)
        return Ask(b"XRANGE", (b"(" + more, b"+", b"COUNT", count))

    def page(self, reply: Reply, after: More | None = None, count: int = PAGE) -> StoredPage:
        return StoredPage(reply, reply[-1][0] if len(reply) == count else None)

    def complete(self, replies: list[Reply]) -> list[Any] | None:
        return None if PAGE in set(map(len, replies)) else replies

    def head(self, limit: int) -> Ask | None:
        return self.first_page(limit)

    def named_entries(self, stored: Any) -> list[tuple[bytes, bytes]]:
        return [(identity, b" ".join(flat)) for identity, flat in stored]

    def find(self, entry: bytes) -> Ask:
        return Ask(b"XRANGE", (entry, entry))

    def found(self, entry: bytes, reply: Reply) -> Any:
        return reply or None

    presence = find

    def absence(self, key: Key, entry: bytes) -> Check:
        return entry_exists(key, entry, present=False)

    def removal(self, key: Key, entry: bytes, held: Reply) -> Removal:
        return Removal(Ask(b"XDEL", (entry,)), [entry_exists(key, entry)], self.restoration(entry, held))

    def restoration(self, entry: bytes, held: Reply = None) -> Ask:
        return Ask(b"XADD", (entry, *held[0][1]))

    def addition(self, *parts: bytes) -> Ask:
        return Ask(b"XADD", (b"*", *parts))


LAYOUTS: dict[str, Layout] = {
    layout.redis_type: layout
    for layout in (
        StringLayout(),
        HashLayout(),
        SetLayout(),
        SortedSetLayout(),
        ListLayout(),
        StreamLayout(),
    )
}
_UNKNOWN = Layout()


class StoredRead(Command[T]):
    """A command whose reply is taken as it is stored: seals stay closed, and no expiry is renewed."""

    def read(self, reply: Reply, context: Context) -> T:
        if isinstance(reply, KeywrightError):
            raise reply
        return self.decode(reply)


def stored_read(key: Key, ask: Ask, label: str, decode: Callable[[Reply], Any] = as_is) -> StoredRead[Any]:
    """Return a reading command on a key; observers see the label."""
    return StoredRead(Operation(label, ask.verb, Effect.READ), key, ask.operands, decode)


def layout_of(redis_type: str) -> Layout:
    """Return the layout of a type as TYPE names it; of a module's own type, one that reads nothing."""
    return LAYOUTS.get(redis_type, _UNKNOWN)


def pairs(flat: Sequence[Any]) -> list[tuple[Any, Any]]:
    """Return the entries of a flat list two by two."""
    return list(zip(flat[::2], flat[1::2], strict=True))
