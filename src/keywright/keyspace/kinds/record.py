"""Record: fixed members in one Redis hash."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import timedelta
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, Unpack

from keywright.errors import DeclarationError, ValueRefusedError
from keywright.keyspace.cached_reads import required
from keywright.keyspace.call import Call, Command, Ready, Refreshing, Replacing, Sliding
from keywright.keyspace.checks import absent, exists
from keywright.keyspace.codecs import Codec, codec_of
from keywright.keyspace.commits.journal import commit
from keywright.keyspace.composition import gather_list
from keywright.keyspace.expiry import Expiry
from keywright.keyspace.field_expiry import FieldCommand, FieldExpiry, changed, declared, ttls_of
from keywright.keyspace.fields import FieldSet, Member, Others, Shape, Union
from keywright.keyspace.generated import in_bulk
from keywright.keyspace.key import Key, KeyOptions, Unbound, type_arguments
from keywright.keyspace.kinds.encoders import encoder
from keywright.keyspace.layouts import Ask, pairs
from keywright.keyspace.member_functions import records_reader
from keywright.keyspace.misuse import explained
from keywright.keyspace.storage import Case, Storage, StoredEntry, member_entry, undeclared_names
from keywright.keyspace.versions.codecs import members_recoded
from keywright.keyspace.versions.upgrades import Upgrade, upgraded
from keywright.keyspace.wires import Effect, Operation, Reply

if TYPE_CHECKING:
    from keywright.keyspace.context import Context

S = TypeVar("S")

GET = Operation("get", b"HGETALL", Effect.READ)
PICK = Operation("pick", b"HMGET", Effect.READ)
WRITE = Operation("put", b"HSET", Effect.REPEATABLE)
DROP = Operation("drop", b"HDEL", Effect.REPEATABLE)
ADD = Operation("add", b"HINCRBY", Effect.ONCE)
EXPIRE = Operation("expire_member", b"HPEXPIRE", Effect.REPEATABLE)
PERSIST = Operation("persist_member", b"HPERSIST", Effect.REPEATABLE)


class RecordStorage(Storage):
    """Members that make one value together."""

    whole = True
    fields: FieldSet[Any]

    def __init__(self, kind: type[Record[Any]]) -> None:
        super().__init__(kind)
        self.fields = kind._fields
        self._by_prefix = kind._by_prefix
        self.by_name = kind._by_prefix is not None

    @property
    def cases(self) -> list[tuple[Shape[Any], Case]]:
        if self._by_prefix is None:
            return super().cases
        variable, by_prefix = self._by_prefix
        return [(shape, Case(variable=variable, prefix=prefix)) for prefix, shape in by_prefix.items()]

    def value(self, stored: Any, key: Key | None = None) -> Any:
        return self.fields_of(key).read(_by_member(stored))

    def entries(self, stored: Any, key: Key | None = None) -> Iterator[StoredEntry]:
        yield member_entry(self.fields_of(key), _by_member(stored))

    def undeclared(self, stored: Any, key: Key | None = None) -> list[tuple[bytes | None, list[str]]]:
        others = undeclared_names(self.fields_of(key), _by_member(stored))
        return [*((name, [text]) for name, text in others.items()), *super().undeclared(stored, key)]

    def joined(self, values: list[Any]) -> Any:
        return values[0]

    def listed(self, values: list[Any]) -> Any:
        return values[0]

    def required(self, key: Key) -> list[bytes]:
        fields = self.fields_of(key)
        # Without the discriminator of a union it is not known which members are required.
        return [m.stored for m in fields.members if m.required] if isinstance(fields, Shape) else []

    def malformed(self, refused: Callable[[Codec[Any]], bytes | None], key: Key) -> Ask | None:
        for member in self.fields_of(key).members:
            bad = None if member.codec.sealed else refused(member.codec)
            if bad is not None:
                return self.layout.addition(member.stored, bad)
        others: Others | None = getattr(self.fields_of(key), "others", None)
        bad = None if others is None else refused(others.value)
        if others is None or bad is None:
            return None
        return self.layout.addition(others.field.encode(others.field.samples[0]), bad)

    def fields_of(self, key: Key | None) -> FieldSet[Any]:
        """Return the members that a key has: of a class with `shape_by` they follow from its name."""
        if self._by_prefix is None or key is None:
            return self.fields
        assert isinstance(key, Record)
        return key._own_fields()


class Record(Key, Generic[S]):
    """A hash whose fields are the members of the struct or dataclass S, or of a union of them.

    An optional member (`X | None`, or one with a default) is left out of the hash when it is None.
    Members that S does not know are ignored by reads and kept by `update`, unless S has a member marked with
    `OtherFields`: that one holds them.
    `expiry` is that of the whole record, `field_expiry` that of some members: ``{"code": expires_in(…)}``
    (Redis 7.4 or Valkey 9).
    With `shape_by` the arm of a union follows from the prefix of a key variable instead of a member.
    """

    redis_type: ClassVar[str] = "hash"
    kind: ClassVar[str] = "record"
    _storage = RecordStorage
    _fields: ClassVar[FieldSet[Any]]
    _decode_fields: ClassVar[Unbound]
    _by_prefix: ClassVar[tuple[str, dict[str, Shape[Any]]] | None] = None
    _upgrades: ClassVar[tuple[Upgrade, ...]] = ()

    def __init_subclass__(
        cls,
        *,
        shape_by: tuple[str, dict[str, type]] | None = None,
        upgrades: Iterable[Upgrade] = (),
        formerly: Mapping[str, object] | None = None,
        field_expiry: Mapping[str, Expiry] | None = None,
        **options: Unpack[KeyOptions],
    ) -> None:
        if shape_by is not None:
            variable, prefixes = shape_by
            cls._by_prefix = variable, {prefix: Shape(cls, arm) for prefix, arm in prefixes.items()}
        cls._upgrades = tuple(upgrades)
        super().__init_subclass__(**options)
        if formerly:
            cls._upgrades += (_recoding(cls, formerly),)
        if field_expiry is not None:
            cls._field_expiry = _expiries(cls, field_expiry)
            required(cls, cls._cached)

    @classmethod
    def _declare(cls) -> Iterable[Codec[Any]]:
        if cls._by_prefix is not None:
            shapes = list(cls._by_prefix[1].values())
            cls._fields = shapes[0]
            if cls._by_prefix[0] not in cls._template.variables:
                raise DeclarationError(
                    cls.__name__,
                    f"shape_by names {cls._by_prefix[0]!r}, not a variable of the key",
                    "Name one.",
                )
            return tuple(codec for shape in shapes for codec in shape.codecs)
        cls._fields = FieldSet.of(cls, type_arguments(cls, Record)[0])
        decode = _optional_record(cls._fields)
        if isinstance(cls._fields, Shape):
            decode = in_bulk(decode, records_reader(cls._fields))
        cls._decode_fields = staticmethod(decode)
        return cls._fields.codecs

    @classmethod
    def shapes(cls) -> tuple[Shape[Any], ...]:
        """Return every shape this record may have."""
        if cls._by_prefix is not None:
            return tuple(cls._by_prefix[1].values())
        if isinstance(cls._fields, Union):
            return tuple(cls._fields.shapes)
        assert isinstance(cls._fields, Shape)
        return (cls._fields,)

    @classmethod
    @explained
    def get_many(cls, ids: Iterable[object]) -> Call[list[S | None]]:
        """Read many records in one batch, in the given order; None for those that do not exist."""
        return gather_list(cls.made(each).get() for each in ids)

    def get(self) -> Call[S | None]:
        """Return the record, or None. Upgrade an older shape in place."""
        if self._upgrades:
            return self.get_upgraded(*self._upgrades)
        return Sliding(GET, self, (), self._decode)

    @explained
    def get_upgraded(self, *upgrades: Upgrade) -> Call[S | None]:
        """Read with these upgrades instead of the declared ones, for those that need outside information."""
        read: Command[S | None] = Sliding(GET, self, (), self._decode)
        return upgraded(self, read, upgrades) if upgrades else read

    def put(self, value: S) -> Call[None]:
        """Make the record exactly this: delete and write in one transaction, so no reader sees half of it."""
        return Replacing.by(self._written(value))

    def write(self, value: S) -> Call[int]:
        """Write the members of a value in one command; others in the hash stay. Return how many are new."""
        return self._written(value)

    def create(self, value: S) -> Call[bool]:
        """Write the record if there is none. Return whether it was written."""
        return commit(f"create {type(self).__name__}", [absent(self)], [self._written(value)]).map(bool)

    def update(self, **members: object) -> Call[bool]:
        """Change members of a record that exists; None removes an optional one. Return whether it exists.

        Of the other fields those that are given are changed, and those whose value is None are removed.
        """
        return commit(f"update {type(self).__name__}", [exists(self)], self.changes(**members)).map(bool)

    def changes(self, **members: object) -> list[Call[Any]]:
        """Return the writes of `update`, for a commit of your own that checks that the record exists."""
        written, dropped = dict[bytes, bytes](), list[bytes]()
        for attribute, value in members.items():
            shape = self._shape_with(attribute)
            if shape.others is not None and attribute == shape.others.attribute:
                kept, gone = _divided(value)
                written |= shape.encode_others(kept)
                dropped += self._names_of(shape, gone)
                continue
            member = shape.member(attribute)
            encoded = shape.encode(member, value)
            if encoded is None:
                dropped.append(member.stored)
            else:
                written[member.stored] = encoded
        writes: list[Call[Any]] = []
        if written:
            writes.append(RefreshingUnlessByValue(WRITE, self, _flat(written), int))
        if dropped:
            writes.append(RefreshingUnlessByValue(DROP, self, tuple(dropped), int))
        return writes

    def pick(self, *members: str) -> Call[dict[str, Any]]:
        """Return some members by name, those that are stored, without reading the rest."""
        if not members:
            return Ready({})
        asked = [self._shape_with(name).member(name) for name in members]

        def found(reply: Reply) -> dict[str, Any]:
            return {
                m.attribute: m.codec.decode(v) for m, v in zip(asked, reply, strict=True) if v is not None
            }

        return Sliding(PICK, self, tuple(member.stored for member in asked), found)

    def add(self, member: str, by: int = 1) -> Call[int]:
        """Add to an integer member and return it. This makes a hash that does not exist: create it first."""
        return Refreshing(ADD, self, (self._shape_with(member).member(member).stored, by), int)

    @explained
    def expire_member(self, member: str, after: timedelta) -> Call[bool]:
        """Set the expiry of one member. Return whether it is stored. Needs Redis 7.4 or Valkey 9."""
        stored = self._optional_member(member).stored
        return FieldCommand(EXPIRE, self, (after // timedelta(milliseconds=1), b"FIELDS", 1, stored), changed)

    @explained
    def persist_member(self, member: str) -> Call[bool]:
        """Remove the expiry of one member. Return whether it had one. Needs Redis 7.4 or Valkey 9."""
        stored = self._shape_with(member).member(member).stored
        return FieldCommand(PERSIST, self, (b"FIELDS", 1, stored), changed)

    @explained
    def member_ttls(self, *members: str) -> Call[dict[str, timedelta | None]]:
        """Return the times to live of members; None for one without expiry, or that is not stored.

        Needs Redis 7.4 or Valkey 9.
        """
        if not members:
            return Ready({})
        stored = [self._shape_with(name).member(name).stored for name in members]
        return ttls_of(self, stored).map(lambda found: dict(zip(members, found, strict=True)))

    def _optional_member(self, name: str) -> Member:
        member = self._shape_with(name).member(name)
        if member.required:
            raise ValueRefusedError(
                self._template.source, "a member that may be absent", f"{name!r}, which is required"
            )
        return member

    def _members_of(self, value: S) -> dict[bytes, bytes]:
        return self._own_fields().write(value)

    def _own_fields(self) -> FieldSet[Any]:
        if self._by_prefix is None:
            return self._fields
        variable, shapes = self._by_prefix
        text = str(getattr(self, variable))
        return next((shape for prefix, shape in shapes.items() if text.startswith(prefix)), self._fields)

    def _shape_with(self, attribute: str) -> Shape[Any]:
        own = self._own_fields()
        shapes = (own,) if isinstance(own, Shape) else self.shapes()
        return next((s for s in shapes if attribute in s.attributes), shapes[0])

    def _names_of(self, shape: Shape[Any], names: Iterable[Any]) -> list[bytes]:
        """Return the stored names of other fields."""
        assert shape.others is not None
        encode = encoder(type(self), shape.others.field)
        stored = [encode(name) for name in names]
        named = [member.attribute for member in shape.members if member.stored in stored]
        if named:
            expected = f"names in {shape.others.attribute!r} that are not members"
            raise ValueRefusedError(self._template.source, expected, repr(named[0]))
        return stored

    def _written(self, value: S) -> Command[int]:
        fields = self._fields if self._by_prefix is None else self._own_fields()
        members = fields.flat(value)
        if not members:
            raise ValueRefusedError(
                self._template.source, "at least one member", "a record whose members are all absent"
            )
        return _RefreshingAs(WRITE, self, members, int, value)

    @property
    def _decode(self) -> Callable[[Reply], Any]:
        return self._decode_fields if self._by_prefix is None else _optional_record(self._own_fields())


class RefreshingUnlessByValue(Refreshing[S]):
    """A write of some members: an expiry that follows from the whole value stays as it is."""

    def expiry(self, context: Context) -> Expiry | None:
        declared = super().expiry(context)
        return None if declared is not None and callable(declared.moment) else declared


class _RefreshingAs(Refreshing[S]):
    """A write of a whole value, whose expiry may follow from it."""

    value: Any

    def expiry(self, context: Context) -> Expiry | None:
        declared = super().expiry(context)
        return declared and declared.resolved(self.value)


def _expiries(cls: type[Record[Any]], field_expiry: Mapping[str, Expiry]) -> FieldExpiry:
    members = [(member.attribute, member) for shape in cls.shapes() for member in shape.members]
    others = [shape.others.attribute for shape in cls.shapes() if shape.others is not None]
    named: dict[bytes, tuple[str, Expiry]] = {}
    rest: Expiry | None = None
    for attribute, expiry in field_expiry.items():
        found = [member for name, member in members if name == attribute]
        if not found and attribute not in others:
            raise DeclarationError(
                cls.__name__, f"field_expiry names {attribute!r}, which is not a member", "Name one."
            )
        if any(member.required for member in found):
            raise DeclarationError(
                cls.__name__,
                f"{attribute!r} expires, but every record must have it",
                f"Declare it with a default, as in {attribute}: … | None = None.",
            )
        if attribute in others:
            rest = expiry
        named.update({member.stored: (repr(attribute), expiry) for member in found})
    # Members that are not named do not expire, unlike other fields where those are named.
    lasting = {member.stored: None for _, member in members if member.stored not in named}
    result = declared(cls.__name__, rest, named)
    result.named.update(lasting)
    return result


def _recoding(cls: type[Record[Any]], formerly: Mapping[str, object]) -> Upgrade:
    members = {member.attribute: member for shape in cls.shapes() for member in shape.members}
    unknown = [attribute for attribute in formerly if attribute not in members]
    if unknown:
        raise DeclarationError(
            cls.__name__, f"formerly names {unknown[0]!r}, which is not a member", "Name one."
        )
    former = {members[attribute]: codec_of(hint) for attribute, hint in formerly.items()}
    return members_recoded({member: codec.for_member(member.stored) for member, codec in former.items()})


def _divided(values: object) -> tuple[Any, list[Any]]:
    """Return the fields to write, and the names of those to remove."""
    if not isinstance(values, Mapping):
        return values, []  # the encoder refuses it
    return (
        {name: value for name, value in values.items() if value is not None},
        [name for name, value in values.items() if value is None],
    )


def _by_member(stored: Any) -> Mapping[bytes, bytes]:
    return stored if isinstance(stored, Mapping) else dict(pairs(stored))


def _flat(members: dict[bytes, bytes]) -> tuple[bytes, ...]:
    return tuple(chain.from_iterable(members.items()))


def _optional_record(fields: FieldSet[Any]) -> Callable[[Reply], Any]:
    unflatten = fields.unflatten

    def decoded(reply: list[bytes]) -> Any:
        return unflatten(reply) if reply else None

    return decoded
