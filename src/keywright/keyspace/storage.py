"""How the keys of one class are stored: the one description of a kind that every tool walks.

A storage joins the layout of the Redis type with the codecs of the declaration. It reads a key whole or in
pages, one entry at a time or many keys together, finds the defects of an entry, and makes malformed ones.
Each kind has its own beside its operations; `Order.declaration.storage` is that of a class.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from keywright.keyspace.codecs import Codec, CodecError
from keywright.keyspace.fields import FieldSet, Member, Shape
from keywright.keyspace.layouts import Ask, Layout, layout_of, pairs

if TYPE_CHECKING:
    from keywright.keyspace.key import Key

__all__ = [
    "Case",
    "Defect",
    "EntryPart",
    "Fault",
    "ItemStorage",
    "OpaqueStorage",
    "Storage",
    "StoredEntry",
    "StringStorage",
    "member_entry",
    "storage_of",
    "undeclared_names",
]


class Fault(enum.Enum):
    """The kinds of defects of a stored entry."""

    MALFORMED = "it does not decode"
    MISSING = "a required member is missing"
    UNSEALED = "it is stored in clear, and declared sealed"
    BROKEN_SEAL = "its seal does not open"
    TOO_LARGE = "it unpacks to more than is read here"


class Defect(NamedTuple):
    """One defect: `entry` is the stored entry that it concerns, `error` the exception that a read raises."""

    fault: Fault
    reason: str
    error: CodecError
    entry: bytes | None = None

    @property
    def found(self) -> str:
        """Return a description of the value found instead, if it may be shown."""
        return self.error.found if self.fault is Fault.MALFORMED else ""


class EntryPart(NamedTuple):
    """Some bytes of an entry and the codec that reads them; `role` completes a message: " as score"."""

    codec: Codec[Any]
    data: bytes
    entry: bytes | None = None
    role: str = ""


class StoredEntry(NamedTuple):
    """One entry: its parts, how their values make its value, and the defects that no decoding is needed for.

    `value` is the decoded value, `shown` its form for people: the members of a record by their stored names.
    """

    parts: Sequence[EntryPart]
    value: Callable[[Sequence[Any]], Any]
    shown: Callable[[Sequence[Any]], Any]
    defects: Sequence[Defect] = ()


class Case(NamedTuple):
    """The condition under which one of several shapes holds: values of a member, or how a variable begins."""

    member: str = ""
    values: tuple[str, ...] = ()
    variable: str = ""
    prefix: str = ""

    @property
    def words(self) -> str:
        if self.variable:
            return f"`<{self.variable}>` begins with `{self.prefix}`"
        return (
            f"`{self.member}` is {' or '.join(f'`{value}`' for value in self.values)}" if self.member else ""
        )


class Storage:
    """The storage of one key class. A stored form that it gets may be a part of a collection."""

    is_read: ClassVar[bool] = True
    """False for a class of no known kind, whose bytes mean nothing to tools."""
    whole: ClassVar[bool] = False
    """Whether it is one value, of which a page alone means nothing."""
    divisible: ClassVar[bool] = False
    """Whether it has entries, each with a name, so that one can be removed and the others stay."""
    by_name: bool = False
    """Whether the allowed shape depends on the name of the key, so that `key` is required."""
    reads: ClassVar[tuple[str, ...]] = ()
    """The reading commands that the kind sends beside those of its Redis type, for access rules."""
    writes: ClassVar[tuple[str, ...]] = ()
    groups: tuple[str, ...] = ()
    """The declared consumer groups of a stream."""
    # Typed as Any, so that a kind can narrow them: a Codec or None, and a FieldSet or None.
    item: Any = None
    """The codec of the value, of members, items, or values of fields."""
    field: Any = None
    """The codec of the fields of a map."""
    fields: Any = None
    """The members of a record, or of the entries of a stream."""

    def __init__(self, kind: type[Key]) -> None:
        self.kind = kind
        self.layout: Layout = layout_of(kind.redis_type)

    @property
    def score_meaning(self) -> str | None:
        """Return the meaning of the scores of a sorted set."""
        return None

    @property
    def score_form(self) -> Any:
        """Return the score of a sorted set, with its form for other languages."""
        return None

    @property
    def shapes(self) -> list[tuple[Shape[Any], str]]:
        """Return the shapes of the members, each with the condition, in words, under which it holds."""
        return [(shape, case.words) for shape, case in self.cases]

    @property
    def cases(self) -> list[tuple[Shape[Any], Case]]:
        """Return the shapes of the members, each with the condition under which it holds."""
        return [] if self.fields is None else _cases(self.fields)

    def form(self, stored: Any) -> Any:
        """Return the stored form that upgrades look at: bytes, or the members of a hash by name."""
        return dict(pairs(stored)) if self.layout.redis_type == "hash" else stored

    def verify(self, stored: Sequence[Any]) -> bool:
        """Decode many keys at once, if possible. Return whether it was. Raise CodecError or ValueError."""
        return False

    def value(self, stored: Any, key: Key | None = None) -> Any:
        """Return the value of a stored form, as references are declared on it. Raise CodecError."""
        raise NotImplementedError

    def entries(self, stored: Any, key: Key | None = None) -> Iterator[StoredEntry]:
        """Yield the entries of a stored form."""
        raise NotImplementedError

    @cached_property
    def has_members(self) -> bool:
        """Whether stored values may have members that are not declared."""
        return self.fields is not None or (self.item is not None and self.item.undeclared is not None)

    def undeclared(self, stored: Any, key: Key | None = None) -> list[tuple[bytes | None, list[str]]]:
        """Return the members that are not declared, by the entry that has them (None: the value)."""
        found = []
        for entry in self.entries(stored, key):
            for codec, data, name, _ in entry.parts:
                paths = codec.undeclared(data) if codec.undeclared is not None and not codec.secret else []
                if paths:
                    found.append((name, paths))
        return found

    def joined(self, values: list[Any]) -> Any:
        """Return the value made of the values of all entries."""
        return values

    def listed(self, values: list[Any]) -> Any:
        """Return the form for people, made of the shown forms of all entries."""
        return values

    def entry_name(self, entry: Any) -> bytes:
        """Return the stored name of an entry that is named by its content: a member, or a field."""
        return self.kind.declaration.encode(entry)

    def divided(self, stored: Any, value: Any) -> Iterator[tuple[bytes, Any]]:
        """Yield each entry of a value: its name as it is stored, and a value that holds nothing else.

        The name is not encoded again: another writer may have stored an equal value in another form.
        Entries of the stored form that do not decode are not in the value, and left out.
        """
        names, width = self._names(stored), self.layout.width
        if len(names) == len(value):
            yield from zip(names, self._singles(value), strict=True)
            return
        for number, name in enumerate(names):
            try:
                yield name, self.value(stored[number * width : (number + 1) * width])
            except (CodecError, ValueError):
                continue

    def _names(self, stored: Any) -> Sequence[bytes]:
        """Return the names of the entries of a stored form."""
        names: Sequence[bytes] = stored[:: self.layout.width]
        return names

    def _singles(self, value: Any) -> Iterable[Any]:
        """Return the entries of a value, each as a value of its own."""
        return ([entry] for entry in value)

    def required(self, key: Key) -> list[bytes]:
        """Return the members without which a key is incomplete."""
        return []

    def malformed(self, refused: Callable[[Codec[Any]], bytes | None], key: Key) -> Ask | None:
        """Return the command that stores a malformed entry; None if the codecs accept anything.

        `refused` gives bytes that a codec refuses, or None.
        """
        return None


class OpaqueStorage(Storage):
    """The storage of a class without a kind: it can be measured and removed, but not read."""

    is_read = False


class StringStorage(Storage):
    """The storage of one value in a string."""

    whole = True
    item: Codec[Any]

    def __init__(self, kind: type[Key]) -> None:
        super().__init__(kind)
        self.item = kind._codecs[0]

    def verify(self, stored: Sequence[Any]) -> bool:
        self.item.decode_many(stored)
        return True

    def value(self, stored: Any, key: Key | None = None) -> Any:
        return self.item.decode(stored)

    def entries(self, stored: Any, key: Key | None = None) -> Iterator[StoredEntry]:
        yield StoredEntry([EntryPart(self.item, stored)], _only, _only)

    def joined(self, values: list[Any]) -> Any:
        return values[0]

    def listed(self, values: list[Any]) -> Any:
        return values[0]

    def malformed(self, refused: Callable[[Codec[Any]], bytes | None], key: Key) -> Ask | None:
        bad = refused(self.item)
        return None if bad is None else self.layout.addition(bad)


class ItemStorage(Storage):
    """The storage of a collection of items that one codec reads."""

    item: Codec[Any]

    def __init__(self, kind: type[Key]) -> None:
        super().__init__(kind)
        self.item = kind._codecs[0]

    def verify(self, stored: Sequence[Any]) -> bool:
        self.item.decode_many(list(chain.from_iterable(stored)))
        return True

    def value(self, stored: Any, key: Key | None = None) -> Any:
        return self.item.decode_many(stored)

    def entries(self, stored: Any, key: Key | None = None) -> Iterator[StoredEntry]:
        return (StoredEntry([EntryPart(self.item, each, each)], _only, _only) for each in stored)

    def malformed(self, refused: Callable[[Codec[Any]], bytes | None], key: Key) -> Ask | None:
        bad = refused(self.item)
        return None if bad is None else self.layout.addition(bad)


def storage_of(kind: type[Key]) -> Storage:
    """Return the storage of a class that is derived from Key itself."""
    return StringStorage(kind) if kind.redis_type == "string" and kind._codecs else OpaqueStorage(kind)


def _only(values: Sequence[Any]) -> Any:
    return values[0]


def member_entry(
    fields: FieldSet[Any],
    stored: Mapping[bytes, bytes],
    entry: bytes | None = None,
    wrap: Callable[[Any], Any] = lambda value: value,
) -> StoredEntry:
    """Return the entry that members make: a record, or an entry of a stream, which `entry` names."""
    try:
        shape = fields.shape_of(stored)
    except CodecError as error:
        tag: bytes | None = getattr(fields, "tag", None)
        fault = Fault.MISSING if tag is not None and tag not in stored else Fault.MALFORMED
        defect = Defect(fault, f"expected {error.expected}", error, entry or tag)
        return StoredEntry([], _only, _only, [defect])
    there = [member for member in shape.members if member.stored in stored]
    missing = [member for member in shape.members if member.required and member.stored not in stored]

    others = shape.other_fields(stored)

    def built(values: Sequence[Any]) -> Any:
        found = {member.argument: value for member, value in zip(there, values, strict=False)}
        rest = values[len(there) :]
        more = {} if shape.others is None else {shape.others.argument: dict(pairs(rest))}
        members = {m.argument: found.get(m.argument, _default(m)) for m in shape.members}
        return wrap(shape.made({**members, **more}))

    def named(values: Sequence[Any]) -> Any:
        found = {member.stored: value for member, value in zip(there, values, strict=False)}
        members = {m.stored.decode(): found.get(m.stored, _default(m)) for m in shape.members}
        rest = values[len(there) + 1 :: 2]
        return wrap(members | {_text(name): value for (name, _), value in zip(others, rest, strict=True)})

    parts = [
        EntryPart(
            member.codec, stored[member.stored], entry or member.stored, f" as member {_quoted(member)}"
        )
        for member in there
    ]
    if shape.others is not None:
        _, field, value, _ = shape.others
        for name, data in others:
            role = f" as member {_text(name)!r}"
            parts.append(EntryPart(field, name, entry or name, role))
            parts.append(EntryPart(value, data, entry or name, role))
    return StoredEntry(parts, built, named, [_missing(member, entry) for member in missing])


def undeclared_names(fields: FieldSet[Any], stored: Mapping[bytes, bytes]) -> dict[bytes, str]:
    """Return the stored members that a shape does not declare, with their names as text."""
    shape = fields.shape_of(stored)
    if shape.others is not None:
        return {}
    declared = {member.stored for member in shape.members}
    return {name: _text(name) for name in stored if name not in declared}


def _text(name: bytes) -> str:
    return name.decode("utf-8", "backslashreplace")


def _missing(member: Member, entry: bytes | None) -> Defect:
    error = CodecError(f"the member {_quoted(member)}", "a hash without it")
    return Defect(Fault.MISSING, f"has no member {_quoted(member)}", error, entry or member.stored)


def _quoted(member: Member) -> str:
    return repr(member.stored.decode())


def _default(member: Member) -> Any:
    return member.default() if callable(member.default) else member.default


def _cases(fields: FieldSet[Any]) -> list[tuple[Shape[Any], Case]]:
    if isinstance(fields, Shape):
        return [(fields, Case())]
    tag, arms = fields.tag.decode(), fields.arms  # type: ignore[attr-defined]  # else it is a union
    words = {shape: [word.decode() for word, arm in arms.items() if arm is shape] for shape in arms.values()}
    return [
        (shape, Case(member=tag, values=tuple(words[shape])))
        for shape in fields.shapes  # type: ignore[attr-defined]  # else it is a union
    ]
