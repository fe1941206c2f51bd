"""Looking at a stored key without touching it: no expiry renewed, no shape upgraded, nothing written.

`inspect` reads any kind of key as it is stored and decodes it as declared, up to a limit, with all
that is secret left out. The kinds' own reads are for programs; this is for people and tools.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from keywright.errors import KeywrightError, WrongTypeError
from keywright.keyspace.call import Command, Steps, as_is, bound_context, procedure, undecodable
from keywright.keyspace.codecs import Codec, CodecError, Int64
from keywright.keyspace.composition import gather
from keywright.keyspace.fields import FieldSet
from keywright.keyspace.kinds import Counter, Entry, List, Map, Record, Set, SortedSet, Stream, Value
from keywright.keyspace.wires import Effect, Operation, Reply

if TYPE_CHECKING:
    from keywright.keyspace.context import Context
    from keywright.keyspace.key import Key

LIMIT = 1000

TYPE = Operation("inspect", b"TYPE", Effect.READ)
SIZES = {
    "string": b"STRLEN",
    "hash": b"HLEN",
    "set": b"SCARD",
    "zset": b"ZCARD",
    "list": b"LLEN",
    "stream": b"XLEN",
}
"""What tells how many entries a type has, or bytes."""
_LOOKUPS = {"hash": b"HGET", "set": b"SISMEMBER", "zset": b"ZSCORE"}


class Hidden(enum.Enum):
    """What stands for a value that is not shown."""

    SECRET = "(secret)"
    SEALED = "(sealed)"


class Inspection(NamedTuple):
    """A stored key. What `value` is follows from the kind:

    value, counter: the value; record: stored member names to values; set, list: a list; sorted set:
    (member, score) pairs; map: (field, value) pairs; stream: entries whose value is like a record.
    `size` is how many entries the key has, `truncated` whether `value` holds only some of them.
    `older` names the version of an older shape, whose bytes are then given as they are stored.
    """

    key: Key
    value: Any
    size: int
    truncated: bool = False
    older: str | None = None


@procedure
def inspect(key: Key, limit: int = LIMIT) -> Steps[Inspection | None]:
    """Read a key of any kind without changing it, at most `limit` of its entries; None when it is absent.

    Raises WrongTypeError or StoredDataError for what is not as declared. Sealed values are opened and
    checked where a keyring is bound, and are never part of what is returned. Not atomic: a key that
    changes meanwhile may be seen half old, half new.
    """
    context = yield bound_context()
    size = _Raw(Operation("inspect", SIZES[key.redis_type], Effect.READ), key, (), as_is)
    found, count = yield gather(_Raw(TYPE, key, (), bytes.decode), size.attempt())
    if found == "none":
        return None
    if found != key.redis_type:
        expected = f"a {key.kind} ({key.redis_type})"
        raise WrongTypeError(context.name(key), key._template.source, expected, f"a {found}")
    if isinstance(count, KeywrightError):
        raise count
    inspection: Inspection = yield from _read(key, count, limit, context)
    return inspection


@procedure
def inspect_entry(key: Key, entry: bytes) -> Steps[Inspection | None]:
    """Read one field of a map, or one member of a set or sorted set, given as it is stored.

    None when it is absent; else like `inspect`, with that one entry as the value.
    """
    verb = _LOOKUPS[key.redis_type]
    context = yield bound_context()
    found = yield _command(key, verb, entry)
    if found is None or found == 0:
        return None
    stored = [entry] if verb == b"SISMEMBER" else [(entry, found)]
    try:
        return Inspection(key, _Reader(key, context).decoded(stored), 1)
    except CodecError as error:
        raise undecodable(key, context, error) from error


def _read(key: Key, size: int, limit: int, context: Context) -> Steps[Any]:
    stored = yield from _stored(key, size, limit)
    if not stored and stored != b"":
        return None
    reader = _Reader(key, context)
    older = reader.older(stored)
    try:
        value = reader.as_stored(stored) if older else reader.decoded(stored)
    except CodecError as error:
        raise undecodable(key, context, error) from error
    entries = 1 if key.redis_type == "string" else size
    return Inspection(key, value, entries, key.redis_type != "string" and size > limit, older)


def _stored(key: Key, size: int, limit: int) -> Steps[Any]:
    """The raw form: bytes, or a list of bytes, pairs or stream entries."""
    if key.redis_type == "string":
        return (yield _command(key, b"GET"))
    if key.redis_type == "list":
        return (yield _command(key, b"LRANGE", 0, limit - 1))
    if key.redis_type == "zset":
        return _pairs((yield _command(key, b"ZRANGE", 0, limit - 1, b"WITHSCORES")))
    if key.redis_type == "stream":
        return (yield _command(key, b"XRANGE", b"-", b"+", b"COUNT", limit))
    whole, page = (b"SMEMBERS", b"SSCAN") if key.redis_type == "set" else (b"HGETALL", b"HSCAN")
    flat = (yield _command(key, whole)) if size <= limit else (yield from _scanned(key, page, limit))
    entries = flat if key.redis_type == "set" else _pairs(flat)
    return entries[:limit]


def _scanned(key: Key, verb: bytes, limit: int) -> Steps[Any]:
    """Some entries of a large set or hash, page by page, so that no single command is slow."""
    found: dict[bytes, bytes] = {}
    cursor = 0
    while True:
        cursor, flat = yield _command(key, verb, cursor, b"COUNT", limit)
        found.update(_pairs(flat) if verb == b"HSCAN" else ((member, b"") for member in flat))
        cursor = int(cursor)
        if cursor == 0 or len(found) >= limit:
            break
    return [part for pair in found.items() for part in pair] if verb == b"HSCAN" else list(found)


class _Raw(Command[Any]):
    """One reading command whose reply is taken as it is: not unsealed, and no expiry renewed."""

    def read(self, reply: Reply, context: Context) -> Any:
        if isinstance(reply, KeywrightError):
            raise reply
        return self.decode(reply)


class _Reader:
    """Decodes what one key stores, and hides what must not be seen."""

    def __init__(self, key: Key, context: Context) -> None:
        self.key = key
        binding = context.bindings.get(key._space)
        self.can_open = binding is not None and binding.keyring is not None
        self.context = context

    def older(self, stored: Any) -> str | None:
        """The version of the upgrade that a read of the kind would make."""
        upgrades = getattr(self.key, "_upgrades", ())
        form = dict(stored) if upgrades and isinstance(stored, list) else stored
        return next((u.version for u in upgrades if not u.moved_from and u.applies(form)), None)

    def as_stored(self, stored: Any) -> Any:
        """Bytes of an older shape, of which it is not known which are secret."""
        if self.key._secret or self.key._sealed:
            return Hidden.SECRET
        return dict(stored) if isinstance(stored, list) else stored

    def decoded(self, stored: Any) -> Any:
        key = self.key
        if isinstance(key, Record):
            return self._members(key._own_fields(), dict(stored))
        if isinstance(key, Stream):
            return [
                Entry(item[0].decode(), self._members(key._fields, dict(_pairs(item[1])))) for item in stored
            ]
        if isinstance(key, Map):
            return [(self._one(key._field, field), self._one(key._value, value)) for field, value in stored]
        if isinstance(key, SortedSet):
            return [
                (self._one(key._codec, member), key._score.read(float(score))) for member, score in stored
            ]
        if isinstance(key, Set):
            return _ordered([self._one(key._codec, member) for member in stored])
        if isinstance(key, List):
            return [self._one(key._codec, item) for item in stored]
        if isinstance(key, Value):
            return self._one(key._codec, stored)
        if isinstance(key, Counter):
            return self._one(Int64(), stored)
        return stored

    def _members(self, fields: FieldSet[Any], stored: Mapping[bytes, bytes]) -> dict[str, Any]:
        shape = fields.shape_of(stored)
        values: dict[str, Any] = {}
        for member in shape.members:
            name, data = member.stored.decode(), stored.get(member.stored)
            if data is not None:
                values[name] = self._member(name, member.codec, data)
            elif member.required:
                raise CodecError(f"the member {name!r}", "a hash without it")
            else:
                values[name] = member.default() if callable(member.default) else member.default
        return values

    def _member(self, name: str, codec: Codec[Any], data: bytes) -> Any:
        try:
            return self._one(codec, data)
        except CodecError as error:
            raise type(error)(f"{error.expected} as member {name!r}", error.found) from error

    def _one(self, codec: Codec[Any], data: bytes) -> Any:
        if codec.sealed and not self.can_open:
            return Hidden.SEALED
        value = codec.decode(self.context.unseal(self.key, data) if codec.sealed else data)
        return Hidden.SECRET if codec.secret else self._shown(value)

    def _shown(self, value: Any) -> Any:
        hides = self.key.hides
        if not hides or not isinstance(value, dict):
            return value
        return {name: Hidden.SECRET if name in hides else each for name, each in value.items()}


def _command(key: Key, verb: bytes, *operands: bytes | int) -> Command[Any]:
    return _Raw(Operation("inspect", verb, Effect.READ), key, operands, as_is)


def _pairs(flat: Iterable[Any]) -> list[tuple[Any, Any]]:
    half: Iterator[Any] = iter(flat)
    return list(zip(half, half, strict=True))


def _ordered(members: list[Any]) -> list[Any]:
    """By value where values have an order, else by how they print; the server's order means nothing."""
    by: Callable[[Any], Any]
    for by in (as_is, repr):
        try:
            return sorted(members, key=by)
        except TypeError:
            continue
    return members
