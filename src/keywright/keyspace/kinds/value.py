"""Value: one value under one name, a Redis string."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeVar

from keywright.keyspace.call import Call, Command, Effect, Operation, Reply, Rounds, Wire
from keywright.keyspace.codecs import Codec, codec_of
from keywright.keyspace.expiry import Expiry
from keywright.keyspace.key import Key, Unbound, type_arguments
from keywright.keyspace.kinds.bulk import BulkRead
from keywright.keyspace.kinds.encoding import encoder, optional
from keywright.keyspace.kinds.unset import UNSET, Unset
from keywright.keyspace.space import Keyspace
from keywright.keyspace.versions import Upgrade, upgraded

if TYPE_CHECKING:
    from keywright.keyspace.context import Context

T = TypeVar("T")

GET = Operation("get", b"GET", Effect.READ)
GET_RENEWING = Operation("get", b"GETEX", Effect.REPEATABLE)
TAKE = Operation("take", b"GETDEL", Effect.ONCE)
SET = Operation("set", b"SET", Effect.REPEATABLE)
SET_ONCE = Operation("set", b"SET", Effect.ONCE)
LENGTH = Operation("length", b"STRLEN", Effect.READ)
APPEND = Operation("append", b"APPEND", Effect.ONCE)
SLICE = Operation("slice", b"GETRANGE", Effect.READ)

When = Literal["absent", "present"]
_CONDITIONS: dict[str | None, tuple[bytes, ...]] = {None: (), "absent": (b"NX",), "present": (b"XX",)}


class Value(Key, Generic[T]):
    """One value of type T."""

    redis_type: ClassVar[str] = "string"
    kind: ClassVar[str] = "value"
    _codec: ClassVar[Codec[Any]]
    _encode: ClassVar[Unbound]
    _decode: ClassVar[Unbound]
    _upgrades: ClassVar[tuple[Upgrade, ...]] = ()

    def __init_subclass__(
        cls,
        *,
        key: str | None = None,
        space: Keyspace | None = None,
        expiry: Expiry | None = None,
        part_of: type[Key] | None = None,
        upgrades: Iterable[Upgrade] = (),
    ) -> None:
        cls._upgrades = tuple(upgrades)
        super().__init_subclass__(key=key, space=space, expiry=expiry, part_of=part_of)

    @classmethod
    def _declare(cls) -> Iterable[Codec[Any]]:
        cls._codec = codec_of(type_arguments(cls, Value)[0])
        cls._encode = staticmethod(encoder(cls, cls._codec))
        cls._decode = staticmethod(optional(cls._codec.decode))
        return (cls._codec,)

    @classmethod
    def get_many(cls, ids: Iterable[object]) -> Call[list[T | None]]:
        """Many values in one round trip (MGET; one a slot on a cluster), in the order asked.

        `ids` are keys of this class, or what its constructor takes: a value, a tuple for several.
        MGET answers None for a key of another Redis type where `get` raises; `audit` finds those.
        """
        return BulkRead(cls, cls.names(ids), cls._codec)

    @classmethod
    def set_many(cls, values: Iterable[tuple[Any, T]]) -> Call[None]:
        """Many values in one round trip; each write is atomic by itself, not all together."""
        return _SetMany(cls, list(values))

    def get(self) -> Call[T | None]:
        """The value, or None; renews a sliding expiry and upgrades an older shape in place."""
        read: Command[T | None] = _Get(GET, self, (), self._decode)
        return upgraded(self, read) if self._upgrades else read

    def set(
        self,
        value: T,
        *,
        when: When | None = None,
        keep_ttl: bool = False,
        expiry: Expiry | Unset | None = UNSET,
    ) -> Call[bool]:
        """Write the value, with the declared expiry unless `expiry` says otherwise.

        Returns whether it was written, which `when` may prevent. One command: it happens or it does not.
        """
        return _Set(
            SET if when is None else SET_ONCE,
            self,
            (self._encode(value), *_CONDITIONS[when]),
            _written,
            value=value,
            expiry=None if keep_ttl else expiry,
            keep_ttl=keep_ttl,
        )

    def swap(self, value: T, *, expiry: Expiry | Unset | None = UNSET) -> Call[T | None]:
        """Write the value and return the one before, in one command."""
        return _Set(
            SET_ONCE,
            self,
            (self._encode(value), b"GET"),
            self._decode,
            value=value,
            expiry=expiry,
            keep_ttl=False,
        )

    def take(self) -> Call[T | None]:
        """Return the value and delete the key, in one command: of two takers one gets it."""
        return Command(TAKE, self, (), self._decode)

    def length(self) -> Call[int]:
        """Stored bytes."""
        return Command(LENGTH, self, (), int)

    def append(self: Value[str] | Value[bytes], more: str | bytes) -> Call[int]:
        """Add to the end of a text or byte value; the new length in bytes."""
        return Command(APPEND, self, (more,), int)

    def slice(self: Value[bytes], start: int, end: int) -> Call[bytes]:
        """Bytes from start to end, both included, negative from the end."""
        return Command(SLICE, self, (start, end), bytes)


class _Get(Command[T]):
    """GET, or GETEX where the expiry slides."""

    __slots__ = ()

    def lower(self, context: Context) -> Wire:
        expiry = context.expiry_of(type(self.key))
        if expiry is None or not expiry.sliding:
            return super().lower(context)
        name = context.name(self.key)
        return Wire((b"GETEX", name, *expiry.arguments(context)), name, GET_RENEWING, type(self.key))


class _Set(Command[T]):
    __slots__ = ("expiry", "keep_ttl", "value")

    def __init__(
        self,
        operation: Operation,
        key: Key,
        operands: tuple[Any, ...],
        decode: Callable[[Reply], T],
        *,
        value: object,
        expiry: Expiry | Unset | None,
        keep_ttl: bool,
    ) -> None:
        super().__init__(operation, key, operands, decode)
        self.value = value
        self.expiry = expiry
        self.keep_ttl = keep_ttl

    def lower(self, context: Context) -> Wire:
        wire = super().lower(context)
        if self.keep_ttl:
            return wire._replace(arguments=(*wire.arguments, b"KEEPTTL"))
        expiry = context.expiry_of(type(self.key)) if self.expiry is UNSET else self.expiry
        if expiry is None:
            return wire
        assert isinstance(expiry, Expiry)
        fixed = expiry.resolved(self.value)
        if fixed is None:
            return wire
        return wire._replace(arguments=(*wire.arguments, *fixed.arguments(context)))


class _SetMany(Call[None]):
    __slots__ = ("kind", "values")

    def __init__(self, kind: type[Value[Any]], values: list[tuple[Any, Any]]) -> None:
        self.kind = kind
        self.values = values

    def rounds(self, context: Context) -> Rounds[None]:
        kind = self.kind
        if context.expiry_of(kind) is not None or kind._sealed or context.sharded:
            yield from self._one_by_one(context)
            return
        lead = context.prefixes[kind._space]
        names = kind.names(key for key, _ in self.values)
        wires = []
        for start in range(0, len(names), BulkRead.CHUNK):
            chunk = range(start, min(start + BulkRead.CHUNK, len(names)))
            pairs = [x for i in chunk for x in (lead + names[i], kind._encode(self.values[i][1]))]
            wires.append(Wire((b"MSET", *pairs), pairs[0], SET_MANY, kind))
        for reply in (yield wires):
            if isinstance(reply, Exception):
                raise reply

    def _one_by_one(self, context: Context) -> Rounds[None]:
        calls = [self.kind.made(key).set(value) for key, value in self.values]
        replies = yield [call.lower(context) for call in calls if isinstance(call, Command)]
        for reply in replies:
            if isinstance(reply, Exception):
                raise reply


SET_MANY = Operation("set_many", b"MSET", Effect.REPEATABLE)


def _written(reply: Reply) -> bool:
    return reply is not None
