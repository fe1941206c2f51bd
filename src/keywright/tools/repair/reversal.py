"""Undoing the writes of a commit: one command for each write, from reads before it is applied.

If a whole key is deleted, the commit also checks that it has not changed since it was read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from keywright.engine import AsyncDatabase
from keywright.keyspace import gather, gather_list
from keywright.keyspace.call import Plain, Steps, procedure
from keywright.keyspace.checks import Check, absent, equals, hash_is, members_are, serialised_as
from keywright.keyspace.commits.work import Work
from keywright.keyspace.layouts import LAYOUTS
from keywright.keyspace.wires import Effect, Operation
from keywright.tools.repair.fingerprints import exact
from keywright.tools.repair.undo import Back, restoring

__all__ = ["reversed_writes"]

RENEWING = frozenset({b"PEXPIRE", b"PEXPIREAT"})  # only the expiry of written keys: no data is lost
WHOLE = frozenset({b"UNLINK", b"DEL"})
READS: dict[bytes, bytes] = {
    b"SADD": b"SMISMEMBER",
    b"SREM": b"SMISMEMBER",
    b"HSET": b"HMGET",
    b"HDEL": b"HMGET",
    b"ZADD": b"ZMSCORE",
    b"ZREM": b"ZMSCORE",
}
PLACES = frozenset({b"RPUSH", b"LPUSH", b"LSET", b"LREM", b"XADD", b"XDEL"})

CONTENT = {b"string": b"GET", b"set": b"SMEMBERS", b"hash": b"HGETALL"}

Key = Callable[[bytes], Any]


class Before(NamedTuple):
    """A key as it was before a commit."""

    dump: bytes | None
    ttl_ms: int
    content: Any
    """The bytes of a string, the members of a set, the fields of a hash; None for others. Of a command that
    writes entries, what was there of these."""

    def still(self, key: Any) -> Check:
        """Return the check that the key has not changed."""
        if self.dump is None:
            return absent(key)
        if isinstance(self.content, bytes):
            return equals(key, self.content)
        if isinstance(self.content, dict):
            return hash_is(key, self.content)
        if self.content is None:
            return serialised_as(key, exact(self.dump))
        return members_are(key, self.content)


async def reversed_writes(
    db: AsyncDatabase, work: Work, key: Key, code: str, *, ordered: bool = False
) -> tuple[list[Back], list[Check]]:
    """Return the commands that undo the writes, and the checks that they still do when they are applied.

    Raise ValueError if a write cannot be undone. Writes to lists and streams can be only with `ordered`: the
    work itself checks then that the items and entries are as they were read.
    """
    writes = [
        (work.names[index], verb, arguments)
        for index, (verb, *arguments) in work.writes
        if verb not in RENEWING
    ]
    _require_reversible(writes, ordered=ordered)
    states = await db.run(gather_list(_before(*each) for each in writes))
    backs: list[Back] = []
    checks: list[Check] = []
    for (name, verb, arguments), state in zip(writes, states, strict=True):
        if verb in WHOLE:
            checks.append(state.still(key(name)))
            backs += [] if state.dump is None else [restoring(name, code, state.dump, state.ttl_ms)]
        elif verb == b"SET":
            backs += _unset(name, arguments[0], state, code)
        elif verb in PLACES:
            backs += _displaced(name, verb, arguments, state, code)
        elif verb in (b"HSET", b"ZADD"):
            backs += _unwritten(name, verb, arguments, state.content, code)
        else:
            undone = _BACKS[verb](name, _entries(verb, arguments), state.content)
            backs += [Back(words, name, code, ttl_ms=max(0, state.ttl_ms)) for words in undone]
    return backs, checks


def _require_reversible(writes: Sequence[tuple[bytes, bytes, list[bytes]]], *, ordered: bool) -> None:
    names = [name for name, _, _ in writes]
    for name, verb, _ in writes:
        if verb not in (*WHOLE, b"SET", *READS, *(PLACES if ordered else ())):
            raise ValueError(f"its repair sends {verb.decode()}, which cannot be undone")
        if verb in WHOLE and names.count(name) > 1:
            raise ValueError("its repair deletes a key and writes it too, which cannot be undone")


@procedure
def _before(name: bytes, verb: bytes, arguments: list[bytes]) -> Steps[Before]:
    """Read the data that a write will change: the entries that it names, or the whole key."""
    if verb in READS:
        entries, ttl = yield gather(
            _read(READS[verb], name, *_entries(verb, arguments)), _read(b"PTTL", name)
        )
        return Before(None, ttl, entries)
    if verb in PLACES:
        held, ttl = yield gather(_read(*_place(name, verb, arguments)), _read(b"PTTL", name))
        return Before(None, ttl, held)
    kind, dump, ttl = yield gather(_read(b"TYPE", name), _read(b"DUMP", name), _read(b"PTTL", name))
    content: Any = (yield _read(CONTENT[kind], name)) if kind in CONTENT else None
    if kind == b"hash":
        flat = iter(content)
        content = dict(zip(flat, flat, strict=True))
    return Before(dump, ttl, content)


def _unset(name: bytes, written: bytes, before: Before, code: str) -> list[Back]:
    """Return the commands that undo a SET. A key of another type is restored once the string is deleted."""
    if isinstance(before.content, bytes):
        lasting = [b"PX", b"%d" % before.ttl_ms] if before.ttl_ms > 0 else []
        return [Back([b"SET", name, before.content, *lasting], name, code, wrote=written)]
    gone = Back([b"UNLINK", name], name, code, wrote=written)
    return [gone] if before.dump is None else [restoring(name, code, before.dump, before.ttl_ms), gone]


def _unwritten(
    name: bytes, verb: bytes, arguments: Sequence[bytes], held: Sequence[bytes | None], code: str
) -> list[Back]:
    """Return the commands that undo HSET or ZADD, each only while the entry is as it was written."""
    pairs = arguments[len(arguments) % 2 :]  # after an option of ZADD
    written, drop = (pairs[1::2], b"HDEL") if verb == b"HSET" else (pairs[::2], b"ZREM")
    backs = []
    for entry, wrote, old in zip(_entries(verb, arguments), written, held, strict=True):
        if old is None:
            command = [drop, name, entry]
        else:
            command = [verb, name, *((entry, old) if verb == b"HSET" else (old, entry))]
        backs.append(Back(command, name, code, wrote=wrote))
    return backs


def _place(name: bytes, verb: bytes, arguments: Sequence[bytes]) -> tuple[bytes, ...]:
    """Return the read of the item or entry that a write to a list or stream changes."""
    if verb == b"LSET":
        return b"LINDEX", name, arguments[0]
    if verb == b"LREM":
        return b"LPOS", name, arguments[1], b"COUNT", b"0"
    if verb == b"XDEL":
        return b"XRANGE", name, arguments[0], arguments[0]
    return b"EXISTS", name


def _displaced(name: bytes, verb: bytes, arguments: Sequence[bytes], before: Before, code: str) -> list[Back]:
    """Return the commands that undo a write to a list or a stream, of one item or entry."""
    held = before.content
    if verb in (b"RPUSH", b"LPUSH"):
        return [Back([b"RPOP" if verb == b"RPUSH" else b"LPOP", name], name, code, wrote=arguments[0])]
    if verb == b"LSET":
        return [Back([b"LSET", name, arguments[0], held], name, code, wrote=arguments[1])]
    if verb == b"XADD":
        return [Back([b"XDEL", name, arguments[0]], name, code)]
    if not held:
        return []
    layout = LAYOUTS["list" if verb == b"LREM" else "stream"]
    entry = arguments[1] if verb == b"LREM" else arguments[0]
    return [Back.by(layout.restoration(entry, held), name, code, before.ttl_ms)]


def _entries(verb: bytes, arguments: Sequence[bytes]) -> list[bytes]:
    """Return the members or fields that a command writes."""
    if verb == b"HSET":
        return list(arguments[::2])
    if verb == b"ZADD":
        pairs = arguments[len(arguments) % 2 :]
        return list(pairs[1::2])
    return list(arguments)


def _added(name: bytes, entries: Sequence[bytes], held: Sequence[int]) -> list[list[bytes]]:
    new = [entry for entry, there in zip(entries, held, strict=True) if not there]
    return [[b"SREM", name, *new]] if new else []


def _removed(name: bytes, entries: Sequence[bytes], held: Sequence[int]) -> list[list[bytes]]:
    old = [entry for entry, there in zip(entries, held, strict=True) if there]
    return [[b"SADD", name, *old]] if old else []


def _fields_dropped(name: bytes, fields: Sequence[bytes], held: Sequence[bytes | None]) -> list[list[bytes]]:
    kept = [(field, value) for field, value in zip(fields, held, strict=True) if value is not None]
    return [[b"HSETNX", name, field, value] for field, value in kept]


def _unscored(name: bytes, members: Sequence[bytes], held: Sequence[bytes | None]) -> list[list[bytes]]:
    kept = [(member, score) for member, score in zip(members, held, strict=True) if score is not None]
    return [[b"ZADD", name, b"NX", score, member] for member, score in kept]


_BACKS: dict[bytes, Callable[[bytes, Sequence[bytes], Any], list[list[bytes]]]] = {
    b"SADD": _added,
    b"SREM": _removed,
    b"HDEL": _fields_dropped,
    b"ZREM": _unscored,
}


def _read(verb: bytes, name: bytes, *operands: bytes) -> Plain:
    return Plain(Operation("repair", verb, Effect.READ), (name, *operands), name)
