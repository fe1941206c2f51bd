"""Value: one value under one name, a Redis string."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeVar, Unpack

from keywright.errors import UsageError
from keywright.keyspace.call import Call, Command, Refreshing, Sliding, nothing, plain_without_expiry
from keywright.keyspace.codecs import Codec, Raw, Text, codec_of
from keywright.keyspace.composition import gather_list
from keywright.keyspace.expiry import Expiry
from keywright.keyspace.key import Key, KeyOptions, Unbound, type_arguments
from keywright.keyspace.kinds.bulk import BulkRead, checked
from keywright.keyspace.kinds.encoders import encoder, many_encoder, optional
from keywright.keyspace.kinds.merge import common_expiry, kinds_of, read_together, write_together, written
from keywright.keyspace.kinds.unset import UNSET, Unset
from keywright.keyspace.misuse import explained, raise_explained
from keywright.keyspace.storage import StringStorage
from keywright.keyspace.versions.codecs import recoded
from keywright.keyspace.versions.upgrades import Upgrade, upgraded
from keywright.keyspace.wires import Effect, Operation, Reply, Rounds, Wire

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
PAIRS_A_COMMAND = 4096
"""Of one MSET, so that none blocks the server for long."""

When = Literal["absent", "present"]
_CONDITIONS: dict[str | None, tuple[bytes, ...]] = {None: (), "absent": (b"NX",), "present": (b"XX",)}


class Value(Key, Generic[T]):
    """One value of type T."""

    redis_type: ClassVar[str] = "string"
    kind: ClassVar[str] = "value"
    _storage = StringStorage
    _codec: ClassVar[Codec[Any]]
    _encode: ClassVar[Unbound]
    _encode_many: ClassVar[Unbound]
    _decode: ClassVar[Unbound]
    _expires_by_value: ClassVar[bool] = False
    _upgrades: ClassVar[tuple[Upgrade, ...]] = ()

    def __init_subclass__(
        cls,
        *,
        upgrades: Iterable[Upgrade] = (),
        formerly: Iterable[object] = (),
        **options: Unpack[KeyOptions],
    ) -> None:
        cls._upgrades = tuple(upgrades)
        super().__init_subclass__(**options)
        if "key" in options:
            cls._upgrades += tuple(recoded(cls._codec, codec_of(hint)) for hint in formerly)

    @classmethod
    def _declare(cls) -> Iterable[Codec[Any]]:
        cls._codec = codec_of(type_arguments(cls, Value)[0])
        cls._encode = staticmethod(encoder(cls, cls._codec))
        cls._encode_many = staticmethod(many_encoder(cls, cls._codec))
        cls._decode = staticmethod(optional(cls._codec))
        cls._expires_by_value = cls._expiry is not None and callable(cls._expiry.moment)
        return (cls._codec,)

    @classmethod
    @explained
    def get_many(cls, ids: Iterable[object]) -> Call[list[T | None]]:
        """Read many values in one batch (MGET; one per slot on a cluster), in the given order.

        `ids` are keys of this class, or arguments of its constructor: a value, a tuple for several.
        MGET answers None for a key of another Redis type where `get` raises; `audit` finds those.
        """
        if cls._upgrades or cls._former:
            return gather_list(cls.made(each).get() for each in ids)
        return BulkRead(cls, cls.names(ids), cls._codec)

    @classmethod
    @explained
    def set_many(cls, values: Iterable[tuple[Any, T]]) -> Call[None]:
        """Write many values in one batch. Each write is atomic, the batch is not."""
        pairs = list(values)
        if cls._former:
            return gather_list(cls.made(key).set(value) for key, value in pairs).map(nothing)
        return _SetMany(cls, [key for key, _ in pairs], [value for _, value in pairs])

    @classmethod
    @explained
    def set_along(
        cls,
        shared: tuple[object, ...],
        last: Sequence[Any],
        values: Sequence[T],
        tails: list[bytes] | None = None,
    ) -> Call[None]:
        """Write many values, as `set_many`, of keys that differ in their last variable only: twice as fast.

        `tails` are the texts of `last`, where the caller has them from its alphabet already.
        """
        if cls._former:
            return cls.set_many(((*shared, each), value) for each, value in zip(last, values, strict=True))
        if len(last) != len(values):
            raise UsageError(f"{len(values)} values are given for {len(last)} keys. Give one for each.")
        return _SetAlong(cls, last, values, shared, tails)

    def get(self) -> Call[T | None]:
        """Return the value, or None. Renew a sliding expiry and upgrade an older shape in place."""
        read: Command[T | None] = _Get(GET, self, (), self._decode)
        return upgraded(self, read, self._upgrades) if self._upgrades else read

    def set(
        self,
        value: T,
        *,
        when: When | None = None,
        keep_ttl: bool = False,
        expiry: Expiry | Unset | None = UNSET,
    ) -> Call[bool]:
        """Write the value, with the declared expiry unless `expiry` says otherwise.

        Return whether it was written, which `when` may prevent. It is one atomic command.
        """
        if when is None and not keep_ttl and expiry is UNSET and not self._expires_by_value:
            return Expiring(SET, self, (self._encode(value),), _written)
        operation = SET if when is None else SET_ONCE
        try:
            operands = (self._encode(value), *_CONDITIONS[when])
        except (KeyError, TypeError) as error:
            raise_explained(Value.set, (self, value), {"when": when}, error)
        if keep_ttl:
            return Command(operation, self, (*operands, b"KEEPTTL"), _written)
        return _ExpiringAs(operation, self, operands, _written, value, expiry)

    @explained
    def swap(self, value: T, *, expiry: Expiry | Unset | None = UNSET) -> Call[T | None]:
        """Write the value and return the previous one, in one command."""
        return _ExpiringAs(SET_ONCE, self, (self._encode(value), b"GET"), self._decode, value, expiry)

    def take(self) -> Call[T | None]:
        """Return the value and delete the key, in one command: of two takers one gets it."""
        return Command(TAKE, self, (), self._decode)

    def length(self) -> Call[int]:
        """Return the number of stored bytes."""
        return Sliding(LENGTH, self, (), int)

    def append(self: Value[str] | Value[bytes], more: str | bytes) -> Call[int]:
        """Append to a text or byte value. Return the new length in bytes."""
        self._refuse_parts()
        return Refreshing(APPEND, self, (more,), int)

    def slice(self: Value[bytes], start: int, end: int) -> Call[bytes]:
        """Return the bytes from start to end, both included, negative from the end."""
        self._refuse_parts()
        return Sliding(SLICE, self, (start, end), bytes)

    def _refuse_parts(self) -> None:
        # A part of compressed or sealed bytes means nothing, and appending would leave plaintext behind.
        if not isinstance(self._codec, Text | Raw):
            raise UsageError(
                f"{self._template.source!r} stores {self._codec.expected}, which is not divisible. "
                f"Read and write it whole."
            )


class _Get(Command[T]):
    """GET, or GETEX where the expiry slides."""

    @plain_without_expiry
    def lower(self, context: Context) -> Wire:
        key = self.key
        name = context.prefixes[key._space] + key._name
        expiry = key._expiry if not context.overrides else context.expiry_of(key.__class__)
        if expiry is None or not expiry.sliding:
            return Wire((b"GET", name), name, GET, key.__class__)
        return Wire((b"GETEX", name, *expiry.arguments(context)), name, GET_RENEWING, type(self.key))

    @staticmethod
    def merged(commands: Sequence[Command[Any]], context: Context) -> Rounds[list[Any]] | None:
        """Return one MGET for many GETs, unless reading renews an expiry or is cached by key."""
        kinds = kinds_of(commands)
        if context.cached and not kinds.isdisjoint(context.cached):
            return None
        expiries = [context.expiry_of(kind) for kind in kinds]
        if any(expiry is not None and expiry.sliding for expiry in expiries):
            return None
        return read_together(commands, context)


class Expiring(Command[T]):
    """SET with the expiry that the key has in this database."""

    @plain_without_expiry
    def lower(self, context: Context) -> Wire:
        wire = Command.lower(self, context)
        expiry = self.key._expiry if not context.overrides else context.expiry_of(self.key.__class__)
        if expiry is not None and not expiry.by_kind:
            expiry = expiry.of_key(self.key)
        if expiry is not None and callable(expiry.moment):
            # Bound to a moment in the value where the declaration is not: rare, so the value is read back.
            expiry = expiry.resolved(self.decode_written())
        return wire if expiry is None else _with(wire, expiry, context)

    @staticmethod
    def merged(commands: Sequence[Command[Any]], context: Context) -> Rounds[list[Any]] | None:
        """Return one MSET or MSETEX for many SETs, unless they are sealed or expire at different times."""
        kinds = kinds_of(commands)
        expiry = common_expiry(kinds, context)
        if isinstance(expiry, Unset) or any(kind._sealed for kind in kinds):
            return None
        return write_together(commands, context, expiry)

    def decode_written(self) -> Any:
        kind: type[Value[Any]] = self.key.__class__  # type: ignore[assignment]  # only values are set
        return kind._codec.decode(self.operands[0])


class _ExpiringAs(Command[T]):
    """SET with an expiry of its own, or one that depends on the value."""

    value: Any
    expiry: Expiry | Unset | None

    def lower(self, context: Context) -> Wire:
        wire = Command.lower(self, context)
        chosen = context.expiry_of(type(self.key)) if isinstance(self.expiry, Unset) else self.expiry
        chosen = chosen and chosen.of_key(self.key)
        expiry = chosen and chosen.resolved(self.value)
        return wire if expiry is None else _with(wire, expiry, context)


def _with(wire: Wire, expiry: Expiry, context: Context) -> Wire:
    return wire.with_arguments((*wire.arguments, *expiry.arguments(context)))


class _SetMany(Call[None]):
    """MSET or MSETEX in bounded batches; one SET each where the key is sealed or lives on a cluster."""

    __slots__ = ("ids", "kind", "values")

    def __init__(self, kind: type[Value[Any]], ids: Sequence[Any], values: Sequence[Any]) -> None:
        self.kind = kind
        self.ids = ids
        self.values = values

    def rounds(self, context: Context) -> Rounds[None]:
        kind, expiry = self.kind, common_expiry([self.kind], context)
        denied = expiry is not None and context.in_transaction  # a denied MSETEX could not be made good there
        if isinstance(expiry, Unset) or denied or kind._sealed or context.sharded:
            for reply in (yield self._one_by_one(context)):
                checked(reply)
            return
        names = self._names(context.prefixes[kind._space])
        flat = [b""] * (2 * len(names))
        flat[::2] = names
        flat[1::2] = kind._encode_many(self.values)
        one_by_one = partial(self._one_by_one, context)
        yield from written(flat, kind, PAIRS_A_COMMAND, expiry, one_by_one, context)

    def _one_by_one(self, context: Context) -> list[Wire]:
        pairs = zip(self._keys(), self.values, strict=True)
        calls = [key.set(value) for key, value in pairs]
        return [call.lower(context) for call in calls if isinstance(call, Command)]

    def _names(self, lead: bytes) -> list[bytes]:
        return [lead + name for name in self.kind.names(self.ids)]

    def _keys(self) -> Iterable[Value[Any]]:
        return map(self.kind.made, self.ids)


class _SetAlong(_SetMany):
    """MSET for keys that share all variables but the last, which `ids` holds."""

    __slots__ = ("shared", "tails")

    def __init__(
        self,
        kind: type[Value[Any]],
        ids: Sequence[Any],
        values: Sequence[Any],
        shared: tuple[object, ...],
        tails: list[bytes] | None,
    ) -> None:
        super().__init__(kind, ids, values)
        self.shared = shared
        self.tails = tails

    def _names(self, lead: bytes) -> list[bytes]:
        return self.kind.names_along(self.shared, self.ids, lead, self.tails)

    def _keys(self) -> Iterable[Value[Any]]:
        return (self.kind.made((*self.shared, each)) for each in self.ids)


def _written(reply: Reply) -> bool:
    return reply is not None
