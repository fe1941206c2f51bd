"""Map: ids to values in one Redis hash."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from itertools import chain
from typing import Any, ClassVar, Generic, TypeVar, Unpack

from keywright.keyspace.cached_reads import required
from keywright.keyspace.call import Call, Ready, Refreshing, Sliding, nothing
from keywright.keyspace.codecs import Codec, codec_of
from keywright.keyspace.composition import atomic
from keywright.keyspace.expiry import Expiry
from keywright.keyspace.field_expiry import FieldCommand, changed, declared, ttls_of
from keywright.keyspace.key import Key, KeyOptions, Unbound, type_arguments
from keywright.keyspace.kinds.encoders import (
    comparable,
    encoder,
    items,
    optional,
    pair_encoder,
    paired,
    sealed_pair_encoder,
    sealed_pairs,
)
from keywright.keyspace.layouts import Ask, pairs
from keywright.keyspace.misuse import explained
from keywright.keyspace.storage import EntryPart, Storage, StoredEntry
from keywright.keyspace.wires import Effect, Operation, Reply

F = TypeVar("F")
V = TypeVar("V")

GET = Operation("get", b"HGET", Effect.READ)
GET_MANY = Operation("get_many", b"HMGET", Effect.READ)
ALL = Operation("all", b"HGETALL", Effect.READ)
FIELDS = Operation("fields", b"HKEYS", Effect.READ)
VALUES = Operation("values", b"HVALS", Effect.READ)
ALL_VALUES = Operation("values", b"HGETALL", Effect.READ)
SIZE = Operation("size", b"HLEN", Effect.READ)
HAS = Operation("has", b"HEXISTS", Effect.READ)
SAMPLE = Operation("sample", b"HRANDFIELD", Effect.READ)
SCAN = Operation("scan", b"HSCAN", Effect.READ)
PUT = Operation("put", b"HSET", Effect.REPEATABLE)
PUT_IF_ABSENT = Operation("put_if_absent", b"HSETNX", Effect.ONCE)
REMOVE = Operation("remove", b"HDEL", Effect.REPEATABLE)
ADD = Operation("add", b"HINCRBY", Effect.ONCE)
EXPIRE = Operation("expire_field", b"HPEXPIRE", Effect.REPEATABLE)
PERSIST = Operation("persist_field", b"HPERSIST", Effect.REPEATABLE)


class MapStorage(Storage):
    """Fields with values; each field names its entry."""

    divisible = True
    item: Codec[Any]
    field: Codec[Any]

    def __init__(self, kind: type[Map[Any, Any]]) -> None:
        super().__init__(kind)
        self.field, self.item = kind._field, kind._value

    def verify(self, stored: Sequence[Any]) -> bool:
        flat = list(chain.from_iterable(stored))
        self.field.decode_many(flat[::2])
        self.item.decode_many(flat[1::2])
        return True

    def value(self, stored: Any, key: Key | None = None) -> Any:
        if self.item.sealed:
            return sealed_pairs(self.field, self.item)(stored)
        fields, values = self.field.decode_many(stored[::2]), self.item.decode_many(stored[1::2])
        return dict(zip(fields, values, strict=True))

    def entries(self, stored: Any, key: Key | None = None) -> Iterator[StoredEntry]:
        for field, value in pairs(stored):
            yield StoredEntry(
                (EntryPart(self.field, field, field), EntryPart(self.item.for_member(field), value, field)),
                tuple,
                tuple,
            )

    def joined(self, values: list[Any]) -> Any:
        return dict(values)

    def entry_name(self, entry: Any) -> bytes:
        return self.kind.declaration.encode_field(entry)

    def _singles(self, value: Any) -> Iterable[Any]:
        return ({field: each} for field, each in value.items())

    def malformed(self, refused: Callable[[Codec[Any]], bytes | None], key: Key) -> Ask | None:
        bad = refused(self.item)
        if bad is not None:
            return self.layout.addition(self.field.encode(self.field.samples[0]), bad)
        bad = refused(self.field)
        return None if bad is None else self.layout.addition(bad, b"value")


class Map(Key, Generic[F, V]):
    """A hash from ids of type F to values of type V.

    `expiry` is that of the whole map, `field_expiry` that of each entry (Redis 7.4 or Valkey 9).
    """

    redis_type: ClassVar[str] = "hash"
    kind: ClassVar[str] = "map"
    _storage = MapStorage
    _field: ClassVar[Codec[Any]]
    _value: ClassVar[Codec[Any]]
    _encode_field: ClassVar[Unbound]
    _encode_value: ClassVar[Unbound]
    _encode_pair: ClassVar[Unbound]
    _decode_value: ClassVar[Unbound]
    _decode_pairs: ClassVar[Unbound]

    def __init_subclass__(cls, *, field_expiry: Expiry | None = None, **options: Unpack[KeyOptions]) -> None:
        super().__init_subclass__(**options)
        if field_expiry is not None:
            cls._field_expiry = declared(cls.__name__, field_expiry)
            required(cls, cls._cached)

    @classmethod
    def _declare(cls) -> Iterable[Codec[Any]]:
        field, value = type_arguments(cls, Map)
        cls._field, cls._value = comparable(cls, codec_of(field)), codec_of(value)
        cls._encode_field = staticmethod(encoder(cls, cls._field))
        cls._encode_value = staticmethod(encoder(cls, cls._value))
        pair = sealed_pair_encoder if cls._value.sealed else pair_encoder
        cls._encode_pair = staticmethod(pair(cls, cls._field, cls._value))
        cls._decode_value = staticmethod(optional(cls._value))
        decoder = sealed_pairs if cls._value.sealed else paired
        cls._decode_pairs = staticmethod(decoder(cls._field, cls._value))
        return cls._field, cls._value

    def get(self, field: F) -> Call[V | None]:
        """Return the value of a field, or None if it does not exist."""
        stored = self._encode_field(field)
        decode = optional(self._value.for_member(stored)) if self._sealed else self._decode_value
        return Sliding(GET, self, (stored,), decode)

    @explained
    def get_many(self, fields: Iterable[F]) -> Call[dict[F, V]]:
        """Return the values of these fields, those that exist, in one command."""
        asked = list(fields)
        if not asked:
            return Ready({})
        stored = tuple(map(self._encode_field, asked))
        codec = self._value
        decode = codec.decode

        def found(reply: Reply) -> dict[F, V]:
            return {f: decode(v) for f, v in zip(asked, reply, strict=True) if v is not None}

        def opened(reply: Reply) -> dict[F, V]:
            triples = zip(asked, stored, reply, strict=True)
            return {f: codec.for_member(s).decode(v) for f, s, v in triples if v is not None}

        return Sliding(GET_MANY, self, stored, opened if self._sealed else found)

    def all(self) -> Call[dict[F, V]]:
        """Return every field and value. For maps of unknown size use `scan`, which reads pages."""
        return Sliding(ALL, self, (), self._decode_pairs)

    def fields(self) -> Call[list[F]]:
        """Return all fields, in no order. For large maps use `scan`."""
        return Sliding(FIELDS, self, (), items(self._field))

    def values(self) -> Call[list[V]]:
        """Return all values, in no order. For large maps use `scan`."""
        if self._sealed:  # a value opens with its field only
            pairs = self._decode_pairs
            return Sliding(ALL_VALUES, self, (), lambda reply: list(pairs(reply).values()))
        return Sliding(VALUES, self, (), items(self._value))

    def size(self) -> Call[int]:
        """Return the number of fields."""
        return Sliding(SIZE, self, (), int)

    def has(self, field: F) -> Call[bool]:
        """Return whether a field exists."""
        return Sliding(HAS, self, (self._encode_field(field),), bool)

    def sample(self, count: int) -> Call[list[F]]:
        """Return up to `count` different fields, chosen at random."""
        return Sliding(SAMPLE, self, (count,), items(self._field))

    def put(self, field: F, value: V) -> Call[bool]:
        """Write one field. Return whether it is new."""
        return Refreshing(PUT, self, self._encode_pair(field, value), bool)

    @explained
    def put_many(self, entries: Mapping[F, V]) -> Call[int]:
        """Write many fields in one command; other fields stay. Return how many are new."""
        return Refreshing(PUT, self, self._flat(entries), int) if entries else Ready(0)

    def put_if_absent(self, field: F, value: V) -> Call[bool]:
        """Set a field unless it exists. Return whether it was set."""
        return Refreshing(PUT_IF_ABSENT, self, self._encode_pair(field, value), bool)

    @explained
    def replace(self, entries: Mapping[F, V]) -> Call[None]:
        """Make these the only entries: delete and write in one transaction, so no reader sees it empty."""
        if not entries:
            return self.delete().map(nothing)
        return atomic(self.delete(), self.put_many(entries)).map(nothing)

    def remove(self, *fields: F) -> Call[int]:
        """Remove fields. Return how many existed."""
        if not fields:
            return Ready(0)
        return Refreshing(REMOVE, self, tuple(map(self._encode_field, fields)), int)

    @explained
    def expire_field(self, field: F, after: timedelta) -> Call[bool]:
        """Set the expiry of one field. Return whether the field exists. Needs Redis 7.4 or Valkey 9."""
        operands = (after // timedelta(milliseconds=1), b"FIELDS", 1, self._encode_field(field))
        return FieldCommand(EXPIRE, self, operands, changed)

    @explained
    def persist_field(self, field: F) -> Call[bool]:
        """Remove the expiry of one field. Return whether it had one. Needs Redis 7.4 or Valkey 9."""
        return FieldCommand(PERSIST, self, (b"FIELDS", 1, self._encode_field(field)), changed)

    @explained
    def field_ttls(self, *fields: F) -> Call[dict[F, timedelta | None]]:
        """Return the times to live of fields; None for one without expiry, or that does not exist.

        Needs Redis 7.4 or Valkey 9.
        """
        if not fields:
            return Ready({})
        stored = [self._encode_field(field) for field in fields]
        return ttls_of(self, stored).map(lambda found: dict(zip(fields, found, strict=True)))

    def add(self: Map[F, int], field: F, by: int = 1) -> Call[int]:
        """Add to a field that holds an integer, and return it."""
        return Refreshing(ADD, self, (self._encode_field(field), by), int)

    def scan(self, cursor: int = 0, count: int = 500) -> Call[tuple[int, dict[F, V]]]:
        """Return one page: the next cursor (0 at the end) and some entries; an entry may come twice."""
        pairs = self._decode_pairs

        def page(reply: Reply) -> tuple[int, dict[F, V]]:
            return int(reply[0]), pairs(reply[1])

        return Sliding(SCAN, self, (cursor, b"COUNT", count), page)

    def _flat(self, entries: Mapping[F, V]) -> tuple[bytes, ...]:
        pair = self._encode_pair
        return tuple(x for field, value in entries.items() for x in pair(field, value))
