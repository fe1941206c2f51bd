"""The members of a record: from a class with fields, or a union of such, to hash fields and back."""

from __future__ import annotations

import enum
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, TypeVar

from keywright.errors import DeclarationError, ValueRefusedError
from keywright.keyspace.codecs import Codec, CodecError, codec_of, without_none
from keywright.keyspace.codecs.models import REQUIRED, ClassField, fields_of, has_fields, maker_of, reason_of
from keywright.keyspace.member_functions import flat_reader, flat_writer

if TYPE_CHECKING:
    from keywright.keyspace.key import Key

T = TypeVar("T")


class Member(NamedTuple):
    """One hash field: its stored name, its attribute, its codec and its default."""

    stored: bytes
    attribute: str
    codec: Codec[Any]
    default: Any
    literals: tuple[str, ...]
    argument: str
    """The name of the argument that the class takes for it."""

    @property
    def required(self) -> bool:
        return self.default is REQUIRED

    @property
    def is_flag(self) -> bool:
        """Whether its field is there if it is true, and absent if not."""
        return _is_flag(self.codec)


class OtherFields:
    """Marks the member of a struct that holds all fields which the struct does not name.

    ``others: Annotated[dict[str, int], OtherFields]``: names of fields to values, which vary by key or entry.
    """


class Others(NamedTuple):
    """The member that holds the other fields: its attribute, and the codecs of their names and values."""

    attribute: str
    field: Codec[Any]
    value: Codec[Any]
    argument: str
    """The argument of the constructor that is this member."""


class FieldSet(Generic[T]):
    """The members of one shape, or of a union whose arms differ in the values of one member."""

    codecs: tuple[Codec[Any], ...]
    members: tuple[Member, ...]
    flat: Callable[[T], tuple[bytes, ...]]
    """Returns the stored members of a value as alternating names and bytes."""
    unflatten: Callable[[list[bytes]], T]
    """Returns the value of alternating names and bytes."""

    @staticmethod
    def of(owner: type[Key], hint: object) -> FieldSet[Any]:
        arms = _arms(hint)
        shapes = [Shape(owner, arm) for arm in arms]
        return shapes[0] if len(shapes) == 1 else Union(owner, shapes)

    def write(self, value: T) -> dict[bytes, bytes]:
        """Return the stored members of a value, without absent ones."""
        raise NotImplementedError

    def read(self, stored: Mapping[bytes, bytes]) -> T:
        """Return the value of stored members. Raise CodecError with the missing or malformed member."""
        raise NotImplementedError

    def shape_of(self, stored: Mapping[bytes, bytes]) -> Shape[Any]:
        """Return the shape of stored members. Raise CodecError if they match none."""
        raise NotImplementedError

    def flat_plainly(self, value: T) -> tuple[bytes, ...]:
        return tuple(chain.from_iterable(self.write(value).items()))

    def unflatten_plainly(self, reply: list[bytes]) -> T:
        flat = iter(reply)
        return self.read(dict(zip(flat, flat, strict=True)))


class Shape(FieldSet[T]):
    """One class with fields."""

    def __init__(self, owner: type[Key], hint: type[T]) -> None:
        self.owner = owner
        self.type = hint
        self.others = _others(owner, hint)
        self.members = tuple(_members(owner, hint, self.others))
        self.codecs = tuple(member.codec for member in self.members)
        if self.others is not None:
            self.codecs += (self.others.field, self.others.value)
        self._named = frozenset(member.stored for member in self.members)
        self.attributes = [member.attribute for member in self.members]
        if self.others is not None:
            self.attributes.append(self.others.attribute)
        self._readers = [
            (member, member.stored, member.argument, member.codec.quick_decode or member.codec.decode)
            for member in self.members
        ]
        self._writers = [
            (member, member.stored, member.attribute, member.codec.quick_encode or member.codec.encode)
            for member in self.members
        ]
        self.make = maker_of(hint)
        self.flat = flat_writer(self)
        self.unflatten = flat_reader(self)

    def shape_of(self, stored: Mapping[bytes, bytes]) -> Shape[Any]:
        return self

    def member(self, attribute: str) -> Member:
        for member in self.members:
            if member.attribute == attribute:
                return member
        raise ValueRefusedError(
            self.owner._template.source,
            f"members {', '.join(m.attribute for m in self.members)}",
            repr(attribute),
        )

    def write(self, value: T) -> dict[bytes, bytes]:
        if not isinstance(value, self.type):
            raise ValueRefusedError(
                self.owner._template.source, f"a {self.type.__name__}", f"a {type(value).__name__}"
            )
        stored = {}
        for member, name, attribute, quick in self._writers:
            item = getattr(value, attribute)
            if item is None or item is False:
                encoded = self.encode(member, item)
                if encoded is not None:
                    stored[name] = encoded
                continue
            try:
                stored[name] = quick(item)
            except Exception:  # noqa: BLE001  # the slow way reports the invalid value
                stored[name] = self._encoded(member, item)
        if self.others is not None:
            stored.update(self.encode_others(getattr(value, self.others.attribute)))
        return stored

    def encode_others(self, values: Mapping[Any, Any]) -> dict[bytes, bytes]:
        """Return the stored form of the fields that the struct does not name."""
        assert self.others is not None
        attribute, field, value, _ = self.others
        template = self.owner._template.source
        if not isinstance(values, Mapping):
            raise ValueRefusedError(template, f"a dict as {attribute!r}", f"a {type(values).__name__}")
        try:
            stored = {field.encode(name): value.encode(each) for name, each in values.items()}
        except CodecError as error:
            raise ValueRefusedError(template, f"{error.expected} in {attribute!r}", error.found) from error
        taken = self._named.intersection(stored)
        if taken:
            name = repr(min(taken).decode())
            raise ValueRefusedError(template, f"names in {attribute!r} that are not members", name)
        return stored

    def other_fields(self, stored: Mapping[bytes, bytes]) -> list[tuple[bytes, bytes]]:
        """Return the stored fields that the struct does not name, if it has a member for them."""
        if self.others is None:
            return []
        return [(name, data) for name, data in stored.items() if name not in self._named]

    def encode(self, member: Member, value: object) -> bytes | None:
        """Return the stored form of one member, or None if it must be absent."""
        if not member.required and (value is None or (value is False and member.is_flag)):
            return None
        return self._encoded(member, value)

    def _encoded(self, member: Member, value: object) -> bytes:
        try:
            return member.codec.encode(value)
        except CodecError as error:
            expected = f"{error.expected} as {member.attribute!r}"
            raise ValueRefusedError(self.owner._template.source, expected, error.found) from error

    def read(self, stored: Mapping[bytes, bytes]) -> T:
        values: dict[str, Any] = {}
        get = stored.get
        for member, name, argument, quick in self._readers:
            data = get(name)
            if data is not None:
                try:
                    values[argument] = quick(data)
                except Exception:  # noqa: BLE001  # the slow way reports the malformed value
                    values[argument] = _decoded(member, data)
            elif member.required:
                raise CodecError(f"the member {name.decode()!r}", f"only {_listed(stored)}")
            else:
                default = member.default
                values[argument] = default() if callable(default) else default
        if self.others is not None:
            values[self.others.argument] = self.read_others(stored)
        return self.made(values)

    def made(self, arguments: Mapping[str, Any]) -> T:
        """Return the value of these arguments. Raise CodecError if the class refuses them."""
        try:
            value: T = self.make(**arguments)
        except Exception as error:  # noqa: BLE001  # the validation of the class may raise anything
            reason = "<secret>" if any(codec.secret for codec in self.codecs) else reason_of(error)
        else:
            return value
        raise CodecError(f"a {self.type.__name__}", f"members that it refuses ({reason[:200]})")

    def read_others(self, stored: Mapping[bytes, bytes]) -> dict[Any, Any]:
        """Return the fields that the struct does not name."""
        assert self.others is not None
        found = {}
        for name, data in self.other_fields(stored):
            try:
                found[self.others.field.decode(name)] = self.others.value.decode(data)
            except CodecError as error:
                shown = name.decode("utf-8", "backslashreplace")
                raise type(error)(f"{error.expected} as member {shown!r}", error.found) from error
        return found


class Union(FieldSet[T]):
    """Several shapes, distinguished by a member whose literal values belong to one shape each."""

    def __init__(self, owner: type[Key], shapes: list[Shape[Any]]) -> None:
        self.owner = owner
        self.shapes = shapes
        self.tag = _discriminator(owner, shapes)
        self.arms: dict[bytes, Shape[Any]] = {
            literal.encode(): shape
            for shape in shapes
            for member in shape.members
            if member.stored == self.tag
            for literal in member.literals
        }
        self.members = tuple({m.stored: m for shape in shapes for m in shape.members}.values())
        self.codecs = tuple(codec for shape in shapes for codec in shape.codecs)
        self.flat = lambda value: self._shape_for(value).flat(value)
        self.unflatten = self.unflatten_plainly

    def write(self, value: T) -> dict[bytes, bytes]:
        return self._shape_for(value).write(value)

    def read(self, stored: Mapping[bytes, bytes]) -> T:
        value: T = self.shape_of(stored).read(stored)
        return value

    def _shape_for(self, value: T) -> Shape[Any]:
        return next((shape for shape in self.shapes if isinstance(value, shape.type)), self.shapes[0])

    def shape_of(self, stored: Mapping[bytes, bytes]) -> Shape[Any]:
        tag = stored.get(self.tag)
        shape = self.arms.get(tag) if tag is not None else None
        if shape is None:
            known = ", ".join(sorted(value.decode() for value in self.arms))
            raise CodecError(f"one of {known} as member {self.tag.decode()!r}", repr(tag))
        return shape


def _decoded(member: Member, data: bytes) -> Any:
    try:
        return member.codec.decode(data)
    except CodecError as error:
        expected = f"{error.expected} as member {member.stored.decode()!r}"
        raise type(error)(expected, error.found) from error


def _arms(hint: object) -> list[Any]:
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        return list(typing.get_args(hint))
    return [hint]


def _declared(owner: type[Key], hint: type) -> list[ClassField]:
    if not has_fields(hint):
        raise DeclarationError(
            owner.__name__,
            f"{hint!r} has no fixed members",
            "Use a msgspec.Struct, a dataclass, a class of attrs or a Pydantic model.",
        )
    return list(fields_of(hint))


def _others(owner: type[Key], hint: type) -> Others | None:
    """Return the member that holds the fields which a struct does not name, if it has one."""
    found = [field for field in _declared(owner, hint) if _marked(field.hint)]
    if not found:
        return None
    member, *more = found
    attribute, inner = member.attribute, typing.get_args(member.hint)[0]
    if more or typing.get_origin(inner) is not dict:
        raise DeclarationError(
            owner.__name__,
            f"{attribute!r} cannot hold the other fields",
            "Declare one member as Annotated[dict[name, value], OtherFields].",
        )
    field, value = map(codec_of, typing.get_args(inner))
    if field.secret or field.sealed or value.sealed:
        raise DeclarationError(
            owner.__name__,
            f"the other fields in {attribute!r} cannot be sealed, nor their names secret",
            "Declare a member of its own, or a Map.",
        )
    return Others(attribute, field, value, member.argument)


def _marked(hint: Any) -> bool:
    marks = getattr(hint, "__metadata__", ())
    return any(mark is OtherFields or isinstance(mark, OtherFields) for mark in marks)


def _members(owner: type[Key], hint: type, others: Others | None) -> Iterable[Member]:
    for field in _declared(owner, hint):
        if others is not None and field.attribute == others.attribute:
            continue
        inner = without_none(field.hint)
        stored = field.stored.encode()
        codec = codec_of(inner).for_member(stored)
        absent = field.default
        if absent is REQUIRED:
            absent = _when_absent(codec, optional=inner is not field.hint)
        yield Member(stored, field.attribute, codec, absent, _literals(inner), field.argument)


def _when_absent(codec: Codec[Any], *, optional: bool) -> Any:
    if _is_flag(codec):
        return False
    return None if optional else REQUIRED


def _literals(hint: Any) -> tuple[str, ...]:
    if typing.get_origin(hint) is typing.Annotated:
        hint = typing.get_args(hint)[0]
    if typing.get_origin(hint) is Literal:
        return tuple(v.value if isinstance(v, enum.Enum) else v for v in typing.get_args(hint))
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return tuple(str(v.value) for v in hint)
    return ()


def _discriminator(owner: type[Key], shapes: list[Shape[Any]]) -> bytes:
    for member in shapes[0].members:
        values = [m.literals for shape in shapes for m in shape.members if m.stored == member.stored]
        every = [literal for literals in values for literal in literals]
        if len(values) == len(shapes) and all(values) and len(set(every)) == len(every):
            return member.stored
    raise DeclarationError(
        owner.__name__,
        "nothing tells the shapes of its union apart",
        "Give each shape a member of the same name with Literal values of its own.",
    )


def _is_flag(codec: Codec[Any]) -> bool:
    return getattr(codec, "absent_when_false", False)


def _listed(stored: Mapping[bytes, bytes]) -> str:
    names = ", ".join(repr(name.decode("utf-8", "backslashreplace")) for name in list(stored)[:12])
    return names or "no members"
