"""Reading all that is stored, as it is: page by page, in bulk, and without stopping at what is spoilt."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from keywright import AsyncDatabase, CodecError, Database, Key, Raw, Record, Set, Value, gather_list
from keywright.errors import StoredDataError
from keywright.keyspace.kinds.record import GET as GET_RECORD
from keywright.keyspace.kinds.set import MEMBERS
from keywright.operations import (
    BulkRead,
    Check,
    Command,
    Operation,
    Steps,
    as_is,
    exists,
    procedure,
    stored_equals,
    stored_member,
    stored_members_equal,
)
from keywright_meetup import schema
from keywright_meetup.schema import MeetupEvent, meetup
from keywright_meetup.soundness import State

if TYPE_CHECKING:
    from keywright import Context

__all__ = ["Spoilt", "Survey", "asurvey", "survey"]

WINDOW = 2000

# What expires by itself, what belongs to the organizer and our own bookkeeping take part in no invariant.
_APART = (
    schema.MeetupLinking,
    schema.Csrf,
    schema.AccessToken,
    schema.RefreshToken,
    schema.RefreshTime,
    schema.Provisioning,
    schema.OrganizerLease,
    schema.UserTokensLease,
    schema.TaskLease,
)


@dataclass(frozen=True)
class Spoilt:
    """A key of another Redis type, an undecodable value, an incomplete record, or such a member of a set."""

    key: Key
    reason: str
    still: tuple[Check, ...]
    """The checks that it is so still."""
    member: bytes | None = None


@dataclass
class Survey:
    """All that is stored: what can be read, and what cannot."""

    state: State = field(default_factory=State)
    spoilt: list[Spoilt] = field(default_factory=list)
    keys: int = 0


def survey(db: Database) -> Survey:
    """Read every key of the model. Only reads, and holds up nobody: names come by SCAN, values in bulk."""
    found = Survey()
    for window in _windows(db.names(meetup), db.context):
        db.run(_into(found, window))
    return found


async def asurvey(db: AsyncDatabase) -> Survey:
    """`survey` for asyncio."""
    found = Survey()
    names = [name async for name in db.names(meetup)]
    for window in _windows(names, db.context):
        await db.run(_into(found, window))
    return found


def _windows(names: Iterable[bytes], context: Context) -> Iterator[list[Key]]:
    """The keys that have these names, each once: SCAN may tell a name twice."""
    lead = len(context.prefixes[meetup])
    seen: set[bytes] = set()
    window: list[Key] = []
    for name in names:
        key = None if name in seen else _key(name[lead:])
        if key is None:
            continue
        seen.add(name)
        window.append(key)
        if len(window) == WINDOW:
            yield window
            window = []
    yield window


def _key(name: bytes) -> Key | None:
    """The key of a name, found by its first and last word instead of by trying every template."""
    words = name.split(b":")
    shape = (words[0], len(words))
    kind = _KINDS.get((*shape, words[-1])) or _KINDS.get((*shape, b""))
    return None if kind is None else kind.parse(name)


def _shape(kind: type[Key]) -> tuple[bytes, int, bytes]:
    words = kind._template.source.encode().split(b":")
    return words[0], len(words), b"" if words[-1].startswith(b"<") else words[-1]


_KINDS: dict[tuple[bytes, int, bytes], type[Key]] = {
    _shape(kind): kind for kind in meetup if kind not in _APART
}


@procedure
def _into(found: Survey, keys: Sequence[Key]) -> Steps[None]:
    """Read some keys and add them to a survey; two round trips, more only where something is spoilt."""
    found.keys += len(keys)
    for kind, some in _by_kind(keys).items():
        if issubclass(kind, Value):
            yield from _values(found, kind, some)
        elif issubclass(kind, Set):
            yield from _sets(found, kind, some)
        elif issubclass(kind, Record):
            yield from _records(found, kind, some)


def _by_kind(keys: Sequence[Key]) -> dict[type[Key], list[Any]]:
    groups: dict[type[Key], list[Any]] = defaultdict(list)
    for key in keys:
        groups[type(key)].append(key)
    return groups


def _values(found: Survey, kind: type[Value[Any]], keys: list[Value[Any]]) -> Steps[None]:
    stored = yield BulkRead(kind, [key._name for key in keys], Raw())
    # MGET answers nothing for a key of another type, too.
    yield from _of_kind(found, [key for key, value in zip(keys, stored, strict=True) if value is None])
    for key, value in zip(keys, stored, strict=True):
        if value is not None:
            try:
                found.state.values[kind][_identity(key)] = kind._codec.decode(value)
            except CodecError as error:
                found.spoilt.append(
                    Spoilt(key, f"should hold {error.expected}", (stored_equals(key, value),))
                )


def _sets(found: Survey, kind: type[Set[Any]], keys: list[Set[Any]]) -> Steps[None]:
    decode = kind._codec.decode
    for key, reply in (yield from _read(found, MEMBERS, keys)):
        members = set()
        for member in reply:
            try:
                members.add(decode(member))
            except CodecError as error:
                still = (stored_member(key, member),)
                found.spoilt.append(Spoilt(key, f"should hold {error.expected}", still, member))
        found.state.sets[kind][_identity(key)] = members


def _records(found: Survey, kind: type[Record[Any]], keys: list[Record[Any]]) -> Steps[None]:
    whole = found.state.records[kind]
    if kind is not MeetupEvent:
        whole.update(map(_identity, (yield from _of_kind(found, keys))))
        return
    for key, reply in (yield from _read(found, GET_RECORD, keys)):
        try:
            if reply:
                kind._fields.unflatten(reply)
                whole.add(_identity(key))
        except CodecError as error:
            pairs = iter(reply)
            still = (stored_members_equal(key, dict(zip(pairs, pairs, strict=True))),)
            found.spoilt.append(Spoilt(key, f"should hold {error.expected}", still))


def _read(found: Survey, operation: Operation, keys: list[Any]) -> Steps[list[tuple[Any, Any]]]:
    """One command each, with the replies as they are; a key of another Redis type is spoilt."""
    commands = [Command(operation, key, (), as_is) for key in keys]
    try:
        return list(zip(keys, (yield gather_list(commands)), strict=True))
    except StoredDataError:
        replies = yield gather_list(command.attempt() for command in commands)
    pairs = list(zip(keys, replies, strict=True))
    yield from _of_kind(found, [key for key, reply in pairs if isinstance(reply, StoredDataError)])
    return [(key, reply) for key, reply in pairs if not isinstance(reply, StoredDataError)]


def _of_kind(found: Survey, keys: list[Any]) -> Steps[list[Any]]:
    """Those of some keys that are of the Redis type they should be; one of another is spoilt."""
    types = yield gather_list(key.stored_type() for key in keys)
    for key, other in zip(keys, types, strict=True):
        if other not in ("none", key.redis_type):
            still = (exists(key), Check(key, "fits", (other,)))
            found.spoilt.append(Spoilt(key, f"is a {other}", still))
    return [key for key, other in zip(keys, types, strict=True) if other == key.redis_type]


def _identity(key: Key) -> Any:
    return key._values[0] if key._values else None
