"""Read a key for its page: facts, its value within limits, its raw bytes.

Only reads, renews no expiry and upgrades nothing. Commands denied by the ACL are left out and raise no error.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from keywright.engine import AsyncDatabase
from keywright.engine.nodes import Batch
from keywright.errors import KeywrightError, ServerRefusedError, StoredDataError
from keywright.keyspace import Call, Key, gather_list
from keywright.keyspace.call import Plain as PlainCall
from keywright.keyspace.codecs import CodecError, UnpackedTooLarge, unpacking_at_most
from keywright.keyspace.kinds.stream import ConsumerGroup, consumer_group
from keywright.keyspace.layouts import LAYOUTS, Ask, layout_of
from keywright.keyspace.references import Place
from keywright.keyspace.wires import Effect, Operation, Reply, Rounds, Wire
from keywright.tools.describe.inspection import Inspection, inspect, inspect_entry

__all__ = ["Facts", "Raw", "Reading", "answers", "are_there", "ask", "facts_of", "measures", "raw_of", "read"]

MOST_BYTES = 1 << 20
MOST_ENTRIES = 200
RAW_BYTES = 4096
RAW_ENTRIES = 20

T = TypeVar("T")


class Facts(NamedTuple):
    """The server's facts about a key; None if it refused the command."""

    stored_type: str
    ttl_ms: int | None
    memory: int | None
    encoding: str | None
    size: int | None = None
    """Entries, or bytes of a string."""
    fields: Sequence[tuple[bytes, int]] = ()
    """The fields of a hash that expire on their own, with their time to live in ms; the next one first."""
    groups: Sequence[ConsumerGroup] = ()
    """The consumer groups of a stream."""

    @property
    def exists(self) -> bool:
        return self.stored_type != "none"


class Reading(NamedTuple):
    """A key as it was read. `whole` is the value for following references, if it could be decoded."""

    key: Key
    facts: Facts
    inspection: Inspection | None = None
    trouble: StoredDataError | None = None
    too_large: bool = False
    unpacks: bool = False
    """Whether it is too large only once it is unpacked."""
    whole: Any = None


class Raw(NamedTuple):
    """Stored bytes, possibly truncated: one pair for a string, else pairs of field or member and value."""

    entries: list[tuple[bytes, bytes]]
    size: int
    truncated: bool
    too_large: bool = False


def ask(verb: bytes, name: bytes, *operands: bytes | int, before: Sequence[bytes] = ()) -> Call[Reply]:
    """Return a read command on a name, with its raw reply; `before` are subcommands."""
    return PlainCall(Operation("explore", verb, Effect.READ), (*before, name, *operands), name)


async def answers(db: AsyncDatabase, calls: Sequence[Call[Any]]) -> list[Any]:
    """Return the replies, None for commands denied by the ACL. Raise other errors."""
    found = await db.run(gather_list([call.attempt() for call in calls]))
    return [_allowed(each) for each in found]


def _allowed(reply: Any) -> Any:
    if isinstance(reply, ServerRefusedError | StoredDataError):
        return None  # denied, or the key has another type by now
    if isinstance(reply, KeywrightError):
        raise reply
    return reply


async def facts_of(db: AsyncDatabase, name: bytes) -> Facts:
    """Return type, expiry, memory, encoding and size, in two round trips."""
    stored_type = (await db.run(ask(b"TYPE", name))).decode()
    if stored_type == "none":
        return Facts(stored_type, None, None, None)
    ttl_ms, memory, encoding, size = await answers(
        db,
        [
            ask(b"PTTL", name),
            ask(b"MEMORY", name, before=[b"USAGE"]),
            ask(b"OBJECT", name, before=[b"ENCODING"]),
            ask(layout_of(stored_type).size, name),
        ],
    )
    fields = await _expiring_fields(db, name, size or 0) if stored_type == "hash" else ()
    groups = await _groups(db, name) if stored_type == "stream" else ()
    return Facts(stored_type, ttl_ms, memory, encoding and encoding.decode(), size, fields, groups)


async def _groups(db: AsyncDatabase, name: bytes) -> list[ConsumerGroup]:
    (found,) = await answers(db, [ask(b"XINFO", name, before=[b"GROUPS"])])
    return [consumer_group(row) for row in found or ()]


async def _expiring_fields(db: AsyncDatabase, name: bytes, size: int) -> list[tuple[bytes, int]]:
    """Return the fields that expire, of a hash that can be shown whole on a server with field expiry."""
    if size > MOST_ENTRIES or not (await db.server()).can("field expiry"):
        return []
    (fields,) = await answers(db, [ask(b"HKEYS", name)])
    if not fields:
        return []
    (found,) = await answers(db, [ask(b"HPTTL", name, b"FIELDS", len(fields), *fields)])
    expiring = [(field, ttl) for field, ttl in zip(fields, found or (), strict=False) if ttl >= 0]
    return sorted(expiring, key=lambda each: each[1])


async def measures(db: AsyncDatabase, names: Sequence[bytes]) -> list[tuple[int | None, int | None]]:
    """Return the time to live (ms) and the memory of many keys, in one round trip."""
    calls = [call for name in names for call in (ask(b"PTTL", name), ask(b"MEMORY", name, before=[b"USAGE"]))]
    found = await answers(db, calls)
    return list(zip(found[::2], found[1::2], strict=True))


async def read(db: AsyncDatabase, key: Key, entry: bytes | None = None) -> Reading:
    """Read a key, or one entry of it, within limits."""
    facts = await facts_of(db, db.context.name(key))
    if not facts.exists:
        return Reading(key, facts)
    as_declared = key.redis_type == facts.stored_type
    if as_declared and await _is_too_large(db, key, facts, entry):
        return Reading(key, facts, too_large=True)
    try:
        with unpacking_at_most(MOST_BYTES):
            if entry is not None and as_declared:
                found = await _decoded_aside(db, inspect_entry(key, entry))
            else:
                found = await _decoded_aside(db, inspect(key, _bound(key, facts)))
    except StoredDataError as error:
        if isinstance(error.__cause__, UnpackedTooLarge):
            return Reading(key, facts, too_large=True, unpacks=True)
        return Reading(key, facts, trouble=error)
    return Reading(key, facts, found, whole=await _whole(db, key, found))


async def _decoded_aside(db: AsyncDatabase, call: Call[T]) -> T:
    """Run a call with its replies decoded in a thread: other pages must not wait for a large value."""
    rounds = call.rounds(db.context)
    replies: list[Reply] | None = None
    while True:
        advanced = await asyncio.to_thread(_advanced, rounds, replies)
        if isinstance(advanced, _Decoded):
            value: T = advanced.value
            return value
        replies = await db.run(Batch(advanced))


class _Decoded(msgspec.Struct, Generic[T]):
    value: T


def _advanced(rounds: Rounds[T], replies: list[Reply] | None) -> Sequence[Wire] | _Decoded[T]:
    """Return the wires of the next round trip, or the value of the call after its last."""
    try:
        return next(rounds) if replies is None else rounds.send(replies)
    except StopIteration as stop:  # a future cannot carry it out of a thread
        return _Decoded(stop.value)


async def _is_too_large(db: AsyncDatabase, key: Key, facts: Facts, entry: bytes | None) -> bool:
    if key.redis_type != "string" and key.declaration.storage.whole:
        # It must be read whole: members that were not read would be reported as missing.
        return (facts.memory or 0) > MOST_BYTES or (facts.memory is None and (facts.size or 0) > MOST_ENTRIES)
    return await _is_heavy(db, db.context.name(key), facts, entry)


async def _is_heavy(db: AsyncDatabase, name: bytes, facts: Facts, entry: bytes | None) -> bool:
    """Return whether a string, an entry, or the average entry of a collection exceeds the limit of a page."""
    if facts.stored_type == "string":
        return (facts.size or 0) > MOST_BYTES
    if entry is not None and facts.stored_type == "hash":
        return ((await answers(db, [ask(b"HSTRLEN", name, entry)]))[0] or 0) > MOST_BYTES
    return (facts.memory or 0) // (facts.size or 1) > MOST_BYTES


def _bound(key: Key, facts: Facts) -> int:
    """Return how many entries to read: fewer if they are large."""
    if key.declaration.storage.whole:
        return facts.size or 1
    if facts.memory is None or not facts.size:
        return MOST_ENTRIES // 4
    return max(1, min(MOST_ENTRIES, MOST_BYTES * facts.size // max(1, facts.memory)))


async def _whole(db: AsyncDatabase, key: Key, found: Inspection | None) -> Any:
    """Return the value in the form that references are declared on; None for secrets and older shapes."""
    declared = key.declaration
    if found is None or found.older is not None or declared.secret or declared.sealed:
        return None
    storage = declared.storage
    if not storage.whole:
        return storage.joined(found.value)
    if storage.fields is None:
        return found.value
    stored = (await answers(db, [_asked(storage.layout.everything, db.context.name(key))]))[0]
    if not stored:
        return None
    try:
        with unpacking_at_most(MOST_BYTES):
            return await asyncio.to_thread(storage.value, stored, key)
    except CodecError:
        return None


async def raw_of(db: AsyncDatabase, name: bytes, entry: bytes | None = None) -> Raw:
    """Return the stored bytes, truncated if they are many."""
    facts = await facts_of(db, name)
    size = facts.size or 0
    if facts.stored_type == "string":
        data = await db.run(ask(b"GETRANGE", name, 0, RAW_BYTES - 1))
        return Raw([(b"", data)], size, size > RAW_BYTES)
    if await _is_heavy(db, name, facts, entry):
        return Raw([], size, truncated=True, too_large=True)
    if entry is not None and facts.stored_type == "hash":
        value = await db.run(ask(b"HGET", name, entry))
        return Raw([(entry, value)] if value is not None else [], 1, False)
    entries = await _raw_entries(db, name, facts.stored_type)
    return Raw(entries[:RAW_ENTRIES], size, size > RAW_ENTRIES)


async def _raw_entries(db: AsyncDatabase, name: bytes, stored_type: str) -> list[tuple[bytes, bytes]]:
    layout = LAYOUTS.get(stored_type)
    if layout is None:
        return []
    page = layout.page(await db.run(_asked(layout.first_page(RAW_ENTRIES), name)), count=RAW_ENTRIES)
    return layout.named_entries(page.stored)


async def are_there(db: AsyncDatabase, places: Sequence[Place]) -> list[bool | None]:
    """Return whether keys, fields and members exist, in one round trip; None if the ACL denies it."""
    return await answers(db, [_presence(db, place) for place in places])


def _presence(db: AsyncDatabase, place: Place) -> Call[bool]:
    name, field = db.context.name(place.key), place.stored_field
    if field is None:
        return ask(b"EXISTS", name).map(bool)
    layout = place.key.declaration.storage.layout
    return _asked(layout.presence(field), name).map(layout.is_present)


def _asked(what: Ask, name: bytes) -> Call[Reply]:
    return ask(what.verb, name, *what.operands)
