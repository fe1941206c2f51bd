"""Obligations: what one stored key requires of others, as the inverse of a relation or an index entry.

Each obligation is a question to the server with its expected answer, and has a premise: the read that raised
it. A question with another answer is asked again together with its premise, so that a concurrent write
between two reads is not reported as a finding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from operator import eq
from typing import Any, NamedTuple

from keywright.errors import UsageError
from keywright.keyspace import Context, Keyspace
from keywright.keyspace.codecs import CodecError
from keywright.keyspace.key import Key
from keywright.keyspace.kinds.unset import UNSET
from keywright.keyspace.references import Reference
from keywright.keyspace.relations import Index, Link, ManyToMany, ManyToOne, OneToOne
from keywright.keyspace.wires import Effect, Operation, Wire
from keywright.tools.audit.findings import Finding
from keywright.tools.audit.page_reader import on_name

__all__ = ["Obligation", "Obligations", "Question"]

EXISTS = Operation("exists", b"EXISTS", Effect.READ)


class Question(NamedTuple):
    """One reading command, and whether a reply is the expected one. A WRONGTYPE error never is."""

    wire: Wire
    expected: Callable[[Any], bool]


class Obligation(NamedTuple):
    """A question about another key, and the key, the entry of it or the value of it that raises it."""

    question: Question
    code: str
    link: Link | Reference
    key: Key
    other: Key | None
    """The key that the question is about; None for an id that no key can have."""
    entry: bytes | None = None
    """The entry of the key that raises it; None if the key or its value does."""
    field: bytes | None = None
    """The field of the other key that the question is about."""
    value: Any = UNSET
    """The value that raises it; UNSET if any value does."""


Raise = Callable[[Any, Any, Any], Iterator[Obligation]]


class Obligations:
    """The obligations of the key classes of some keyspaces, as one database binds them."""

    def __init__(self, spaces: Iterable[Keyspace], context: Context) -> None:
        self.context = context
        self.kinds: dict[type[Key], list[Raise]] = {}
        for space in spaces:
            for link in space.links:
                self._relate(link)
            for reference in space.references:
                if reference.required:
                    self._add(reference.source, self._reference(reference))

    def of(self, key: Key, value: Any, stored: Any) -> Iterator[Obligation]:
        """Yield the obligations of other keys because of this value, or this page of a collection."""
        for raised in self.kinds.get(type(key), ()):
            yield from raised(key, value, stored)

    def of_sealed(self, key: Key) -> list[Obligation]:
        """Return the obligations because of a key that exists, but whose value cannot be opened."""
        try:
            return list(self.of(key, None, None))
        except (AttributeError, LookupError, TypeError, ValueError):
            return []  # a declared function reads the value

    def _relate(self, link: Link) -> None:
        if isinstance(link, Index):
            self._add(link.of, self._listed(link, link.by))
            self._add(link.by, self._backed(link, link.of))
        elif isinstance(link, ManyToOne):
            self._add(link.forward, self._inside(link, "KW402", link.inverse))
            self._add(link.inverse, self._points_back(link, link.forward))
            self._indexed(link, link.index, link.forward)
        elif isinstance(link, OneToOne):
            self._add(link.forward, self._mirrored(link, "KW402", link.inverse))
            self._add(link.inverse, self._mirrored(link, "KW403", link.forward))
            self._indexed(link, link.index, link.forward)
            self._indexed(link, link.inverse_index, link.inverse)
        elif isinstance(link, ManyToMany):
            self._add(link.forward, self._mutual(link, "KW402", link.inverse))
            self._add(link.inverse, self._mutual(link, "KW403", link.forward))

    def _indexed(self, link: Link, index: type[Any] | None, of: type[Key]) -> None:
        if index is not None:
            self._add(of, self._listed(link, index))
            self._add(index, self._backed(link, of))

    def _add(self, kind: type[Key], raised: Raise) -> None:
        self.kinds.setdefault(kind, []).append(raised)

    def premise(self, obligation: Obligation) -> Question:
        """Return the question whether the key still raises an obligation."""
        key = obligation.key
        if obligation.entry is not None:
            return self._within(key, obligation.entry)
        return self._exists(key) if obligation.value is UNSET else self._is(key, obligation.value)

    def finding(self, obligation: Obligation) -> Finding:
        """Return the finding that an obligation is not met."""
        _, code, link, key, other, entry, field, _ = obligation
        return Finding(
            code,
            key.declaration.template.source,
            self.context.name(key),
            f"{link.name}{_reason(code, link, other)}",
            member=entry,
            other=None if other is None else self.context.name(other),
            field=field,
            link=link.name,
        )

    def _inside(self, link: Link, code: str, inverse: type[Any]) -> Raise:
        """A value b of a: the set of b has a."""

        def raised(key: Any, value: Any, stored: Any) -> Iterator[Obligation]:
            other = inverse(value)
            yield Obligation(self._has(other, _identity(key)), code, link, key, other, value=value)

        return raised

    def _points_back(self, link: Link, forward: type[Any]) -> Raise:
        """A member a in the set of b: the value of a is b."""

        def raised(key: Any, members: Sequence[Any], stored: Any) -> Iterator[Obligation]:
            for member in members:
                other = forward(member)
                question = self._is(other, _identity(key))
                yield Obligation(question, "KW403", link, key, other, _stored(key, member))

        return raised

    def _mirrored(self, link: Link, code: str, there: type[Any]) -> Raise:
        """A value b of a: the value of b is a."""

        def raised(key: Any, value: Any, stored: Any) -> Iterator[Obligation]:
            other = there(value)
            yield Obligation(self._is(other, _identity(key)), code, link, key, other, value=value)

        return raised

    def _mutual(self, link: Link, code: str, there: type[Any]) -> Raise:
        """A member b in the set of a: the set of b has a."""

        def raised(key: Any, members: Sequence[Any], stored: Any) -> Iterator[Obligation]:
            for member in members:
                other = there(member)
                question = self._has(other, _identity(key))
                yield Obligation(question, code, link, key, other, _stored(key, member))

        return raised

    def _listed(self, link: Link, index: type[Any]) -> Raise:
        """A key is there: the index names it."""

        def raised(key: Any, value: Any, stored: Any) -> Iterator[Obligation]:
            other = index()
            yield Obligation(self._has(other, _identity(key)), "KW405", link, key, other)

        return raised

    def _backed(self, link: Link, of: type[Any]) -> Raise:
        """A member of an index: its key is there."""

        def raised(key: Any, members: Sequence[Any], stored: Any) -> Iterator[Obligation]:
            for member in members:
                other = of(member)
                yield Obligation(self._exists(other), "KW404", link, key, other, _stored(key, member))

        return raised

    def _reference(self, reference: Reference) -> Raise:
        def raised(key: Any, value: Any, stored: Any) -> Iterator[Obligation]:
            for entry, part in _parts(key, value, stored, reference):
                for identity in reference.ids(key, part):
                    yield self._led(reference, key, entry, identity)

        return raised

    def _led(self, reference: Reference, key: Key, entry: bytes | None, identity: Any) -> Obligation:
        try:
            place = reference.place(identity)
            other, field = place.key, place.stored_field
        except (UsageError, CodecError):  # no key, or no member of one, can be what the data names
            never = self._exists(key)._replace(expected=lambda _: False)
            return Obligation(never, "KW401", reference, key, None, entry)
        question = self._exists(other) if field is None else self._within(other, field)
        return Obligation(question, "KW401", reference, key, other, entry, field)

    def _exists(self, key: Key) -> Question:
        name = self.context.name(key)
        return Question(Wire((b"EXISTS", name), name, EXISTS, type(key)), bool)

    def _has(self, key: Key, member: Any) -> Question:
        return self._within(key, _stored(key, member))

    def _within(self, key: Key, entry: bytes) -> Question:
        layout = key.declaration.storage.layout
        wire = on_name(layout.presence(entry), self.context.name(key), type(key))
        return Question(wire, layout.is_present)

    def _is(self, key: Key, value: Any) -> Question:
        everything = key.declaration.storage.layout.everything
        stored = key.declaration.encode(value)
        return Question(on_name(everything, self.context.name(key), type(key)), partial(eq, stored))


_REASONS = {
    "KW401": " leads to no {other}",
    "KW402": ": {other} on the other side does not hold it",
    "KW403": ": {other} on the forward side does not confirm it",
    "KW404": ": it names a {other} that is not stored",
    "KW405": ": {other} does not name it",
}


def _parts(key: Any, value: Any, stored: Any, reference: Reference) -> Iterator[tuple[bytes | None, Any]]:
    """Yield the entries of a value that can be removed one by one, each with its stored name.

    A reference that does not depend on the entries belongs to the key, not to an entry.
    """
    storage = key.declaration.storage
    if not storage.divisible:
        yield None, value
        return
    nothing = storage.joined([])
    if any(True for _ in reference.ids(key, nothing)):
        yield None, nothing
    elif stored is not None:  # None for a sealed value that cannot be opened
        yield from storage.divided(stored, value)


def _reason(code: str, link: Link | Reference, other: Key | None) -> str:
    if other is not None:
        return _REASONS[code].format(other=type(other).__name__)
    assert isinstance(link, Reference)
    return f" leads to no {link.target.__name__}: no name can have this id"


def _identity(key: Key) -> Any:
    """Return the only variable of a key of a relation."""
    return key.declaration.values(key)[0]


def _stored(key: Key, member: Any) -> bytes:
    return key.declaration.encode(member)
