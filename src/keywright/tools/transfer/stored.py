"""Whole keys in their stored form: read page by page, compared, and the commands that write them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from keywright.errors import CapabilityError, EngineError, KeywrightError, ServerRefusedError, WrongTypeError
from keywright.keyspace import Key, gather
from keywright.keyspace.call import Plain, Steps, bound_context, procedure, server_ms
from keywright.keyspace.layouts import Ask, pairs, stored_read
from keywright.keyspace.wires import Effect, Operation

__all__ = [
    "GroupState",
    "PendingState",
    "StoredKey",
    "StreamState",
    "TooLarge",
    "commands_of",
    "number_of",
    "read_whole",
]

PAGE = 512
WORDS = 1000
"""The words of one command: Lua unpacks a few thousand."""
LARGEST_KEY = 32 << 20
MOST_PENDING = 100_000
SLACK_MS = 1000
"""Before Redis 7.0 the time of an expiry follows from the time that is left and the clock, both rounded."""

XINFO = Operation("export", b"XINFO", Effect.READ)
XPENDING = Operation("export", b"XPENDING", Effect.READ)


class PendingState(NamedTuple):
    """An entry that a consumer has not acknowledged."""

    id: bytes
    consumer: bytes
    delivered_at_ms: int
    deliveries: int


class GroupState(NamedTuple):
    """A consumer group."""

    name: bytes
    last_id: bytes
    entries_read: int | None
    consumers: list[bytes]
    pending: list[PendingState]


class StreamState(NamedTuple):
    """What a stream has beside its entries."""

    last_id: bytes
    added: int | None
    max_deleted_id: bytes | None
    groups: list[GroupState]


class StoredKey(NamedTuple):
    """A key as the server holds it. `stored` is None for a type that only its module reads: `dump` has it."""

    stored: Any
    expires_at_ms: int | None = None
    fields_expire_at_ms: Sequence[tuple[bytes, int]] = ()
    stream: StreamState | None = None
    dump: bytes | None = None

    def same(self, other: StoredKey, redis_type: str) -> bool:
        """Return whether both are the same key, with the same expiries within a second.

        Delivery times of pending entries are not compared.
        """
        mine, theirs = _moments(self), _moments(other)
        return (
            mine.keys() == theirs.keys()
            and all(abs(mine[name] - theirs[name]) <= SLACK_MS for name in mine)
            and _comparable(self, redis_type) == _comparable(other, redis_type)
        )

    @property
    def bytes(self) -> int:
        """Return about how many bytes the stored form has."""
        if self.dump is not None:
            return len(self.dump)
        return _size(self.stored)


class TooLarge(NamedTuple):
    """A key that is not read whole, since it has more bytes or entries."""

    bytes: int


@procedure
def read_whole(key: Key) -> Steps[StoredKey | TooLarge | None]:
    """Read a key as it is stored, with its expiries; None if it does not exist.

    Raise WrongTypeError if it has another type than declared. A collection of more than 512 entries is read
    page by page, so a key that changes meanwhile may be seen half old, half new.
    """
    layout = key.declaration.storage.layout
    context = yield bound_context()
    paged = bool(layout.reads) and key.redis_type != "string"
    first = layout.first_page(PAGE) if paged else Ask(layout.size)
    found, moment, begun = yield gather(
        _ask(key, Ask(b"TYPE")), _ask(key, Ask(b"PEXPIRETIME")).attempt(), _ask(key, first).attempt()
    )
    if found == b"none":
        return None
    if found.decode() != key.redis_type:
        template = key.declaration.template.source
        raise WrongTypeError(context.name(key), template, f"a {key.redis_type}", f"a {found.decode()}")
    if isinstance(begun, KeywrightError):
        raise begun
    expires = yield from _moment(key, context.name(key), moment)
    if not layout.reads:
        dump = yield _ask(key, Ask(b"DUMP"))
        if dump is None:
            return None
        return TooLarge(len(dump)) if len(dump) > LARGEST_KEY else StoredKey(None, expires, dump=dump)
    if paged:
        stored = yield from _pages(key, begun)
    else:  # a string may be large, so its length is asked for first
        stored = TooLarge(begun) if begun > LARGEST_KEY else (yield _ask(key, layout.everything))
    if stored is None or (not stored and key.redis_type not in ("string", "stream")):
        return None
    if isinstance(stored, TooLarge):
        return stored
    fields = (yield from _field_moments(key, stored)) if key.redis_type == "hash" else ()
    stream = (yield from _stream(context.name(key))) if key.redis_type == "stream" else None
    return stream if isinstance(stream, TooLarge) else StoredKey(stored, expires, fields, stream)


def _moment(key: Key, name: bytes, moment: Any) -> Steps[int | None]:
    """Return when a key expires, given the reply to PEXPIRETIME."""
    if not isinstance(moment, KeywrightError):
        return moment if moment >= 0 else None
    if not isinstance(moment, ServerRefusedError | CapabilityError):
        raise moment
    left, now = yield gather(_ask(key, Ask(b"PTTL")), server_ms(name))  # before Redis 7.0
    return now + left if left >= 0 else None


def _pages(key: Key, first: Any) -> Steps[Any]:
    """Return all entries of a key, given the reply to its first page."""
    layout = key.declaration.storage.layout
    page = layout.page(first, None, PAGE)
    if page.more is None:
        too_large = page.stored is not None and _size(page.stored) > LARGEST_KEY
        return TooLarge(_size(page.stored)) if too_large else page.stored
    ordered = key.redis_type in ("list", "stream")
    found: list[Any] = list(page.stored)
    size = _size(found)
    while page.more is not None:
        page = layout.page((yield _ask(key, layout.next_page(page.more, PAGE))), page.more, PAGE)
        found += page.stored
        size += _size(page.stored)
        if size > LARGEST_KEY:
            return TooLarge(size)
    if ordered:
        return found
    # A page may repeat what one before it had.
    once = {found[place]: found[place : place + layout.width] for place in range(0, len(found), layout.width)}
    return [item for entry in once.values() for item in entry]


def _field_moments(key: Key, stored: Sequence[bytes]) -> Steps[list[tuple[bytes, int]]]:
    context = yield bound_context()
    if context.field_expiry is False:
        return []
    fields = list(stored[::2])
    found: list[tuple[bytes, int]] = []
    for start in range(0, len(fields), WORDS):
        part = fields[start : start + WORDS]
        moments = yield _ask(key, Ask(b"HPEXPIRETIME", (b"FIELDS", len(part), *part))).attempt()
        if isinstance(moments, KeywrightError):
            if isinstance(moments, ServerRefusedError) or not isinstance(moments, EngineError):
                raise moments
            return []
        found += [(field, moment) for field, moment in zip(part, moments or (), strict=False) if moment > 0]
    return found


def _stream(name: bytes) -> Steps[StreamState | TooLarge]:
    facts, rows, now = yield gather(
        _info(b"STREAM", name), Plain(XINFO, (b"GROUPS", name), name), server_ms(name)
    )
    groups = []
    for row in rows:
        group = dict(pairs(row))
        consumers = yield Plain(XINFO, (b"CONSUMERS", name, group[b"name"]), name)
        pending = yield from _pending(name, group[b"name"], now)
        if isinstance(pending, TooLarge):
            return pending
        names = [dict(pairs(each))[b"name"] for each in consumers]
        read = group.get(b"entries-read")
        groups.append(GroupState(group[b"name"], group[b"last-delivered-id"], read, names, pending))
    return StreamState(
        facts[b"last-generated-id"], facts.get(b"entries-added"), facts.get(b"max-deleted-entry-id"), groups
    )


def _pending(name: bytes, group: bytes, now: int) -> Steps[list[PendingState] | TooLarge]:
    found: list[PendingState] = []
    start = b"-"
    while True:
        rows = yield Plain(XPENDING, (name, group, start, b"+", PAGE), name)
        found += [PendingState(row[0], row[1], now - row[2], row[3]) for row in rows]
        if len(rows) < PAGE:
            return found
        if len(found) > MOST_PENDING:
            return TooLarge(len(found))
        start = b"(" + rows[-1][0]


def _info(subcommand: bytes, name: bytes) -> Any:
    return Plain(XINFO, (subcommand, name), name).map(lambda reply: dict(pairs(reply)))


def _ask(key: Key, ask: Ask) -> Any:
    return stored_read(key, ask, "export")


def _size(stored: Any) -> int:
    if stored is None:
        return 0
    if isinstance(stored, bytes):
        return len(stored)
    return sum(_size(each) for each in stored)


def _comparable(key: StoredKey, redis_type: str) -> Any:
    stored = key.stored
    if redis_type == "set" and stored is not None:
        stored = frozenset(stored)
    elif redis_type == "zset" and stored is not None:
        stored = {member: float(score) for member, score in pairs(stored)}
    elif redis_type == "hash" and stored is not None:
        stored = dict(pairs(stored))
    stream = key.stream and (
        key.stream.last_id,
        {
            group.name: (group.last_id, {(each.id, each.consumer, each.deliveries) for each in group.pending})
            for group in key.stream.groups
        },
    )
    return stored, stream, key.dump


def _moments(key: StoredKey) -> dict[bytes | None, int]:
    moments: dict[bytes | None, int] = dict(key.fields_expire_at_ms)
    if key.expires_at_ms is not None:
        moments[None] = key.expires_at_ms
    return moments


Words = tuple[bytes, bytes, list[bytes]]
"""A command: its verb, the word before the key if there is one, and those after it."""


def commands_of(found: StoredKey, redis_type: str, *, counters: bool) -> list[Words]:
    """Return the commands that write a key which does not exist.

    `counters` are those of streams and groups, which servers have since Redis 7.0.
    """
    commands = list(_content(found, redis_type, counters=counters))
    by_moment: dict[int, list[bytes]] = {}
    for field, moment in found.fields_expire_at_ms:
        by_moment.setdefault(moment, []).append(field)
    for moment, fields in by_moment.items():
        for start in range(0, len(fields), WORDS):
            part = fields[start : start + WORDS]
            commands.append((b"HPEXPIREAT", b"", [b"%d" % moment, b"FIELDS", b"%d" % len(part), *part]))
    if found.expires_at_ms is not None:
        commands.append((b"PEXPIREAT", b"", [b"%d" % found.expires_at_ms]))
    return commands


def _content(found: StoredKey, redis_type: str, *, counters: bool) -> Iterator[Words]:
    stored = found.stored
    if found.dump is not None:
        yield b"RESTORE", b"", [b"0", found.dump]
    elif redis_type == "string":
        yield b"SET", b"", [stored]
    elif redis_type == "ReJSON-RL":
        yield b"JSON.SET", b"", [b"$", stored]
    elif redis_type == "stream":
        assert found.stream is not None
        yield from _stream_commands(stored, found.stream, counters=counters)
    else:
        verb = {"hash": b"HSET", "set": b"SADD", "list": b"RPUSH", "zset": b"ZADD"}[redis_type]
        if redis_type == "zset":
            stored = [word for member, score in pairs(stored) for word in (score, member)]
        for start in range(0, len(stored), WORDS):
            yield verb, b"", list(stored[start : start + WORDS])


def _stream_commands(stored: Sequence[Any], state: StreamState, *, counters: bool) -> Iterator[Words]:
    if not stored:  # only a group makes an empty stream, else an entry that is removed again
        yield b"XADD", b"", [max(state.last_id, b"0-1", key=number_of), b"x", b"x"]
        yield b"XTRIM", b"", [b"MAXLEN", b"0"]
    for entry, flat in stored:
        yield b"XADD", b"", [entry, *flat]
    more = []
    if counters and state.added is not None:
        more = [b"ENTRIESADDED", b"%d" % state.added, b"MAXDELETEDID", state.max_deleted_id or b"0-0"]
    yield b"XSETID", b"", [state.last_id, *more]
    for group in state.groups:
        read = (
            [] if group.entries_read is None or not counters else [b"ENTRIESREAD", b"%d" % group.entries_read]
        )
        yield b"XGROUP", b"CREATE", [group.name, group.last_id, *read]
        for consumer in group.consumers:
            yield b"XGROUP", b"CREATECONSUMER", [group.name, consumer]
        for each in group.pending:
            yield (
                b"XCLAIM",
                b"",
                [
                    *(group.name, each.consumer, b"0", each.id, b"TIME", b"%d" % each.delivered_at_ms),
                    *(b"RETRYCOUNT", b"%d" % each.deliveries, b"FORCE", b"JUSTID"),
                ],
            )


def number_of(identity: bytes) -> tuple[int, int]:
    """Return the two numbers of the id of an entry."""
    first, _, second = identity.partition(b"-")
    return int(first), int(second or b"0")
