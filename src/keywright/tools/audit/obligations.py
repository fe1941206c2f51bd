"""Obligations: what one stored key requires of others, as the inverse of a relation or an index entry.

Each obligation is a question to the server with its expected answer, and a premise: the read that raised it.
A question with another answer is asked again together with its premise, so that a concurrent write between
two reads is not reported as a finding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from operator import eq
from typing import Any, NamedTuple

from keywright.errors import KeywrightError
from keywright.keyspace import Context, Keyspace
from keywright.keyspace.key import Key
from keywright.keyspace.layouts import Ask
from keywright.keyspace.references import Reference
from keywright.keyspace.relations import Index, Link, ManyToMany, ManyToOne, OneToOne
from keywright.keyspace.wires import Wire
from keywright.tools.audit.findings import Finding
from keywright.tools.audit.page_reader import on_name

__all__ = ["Obligation", "Obligations", "Question"]

EXISTS = Ask(b"EXISTS")


class Question(NamedTuple):
    """One reading command and its expected reply. A WRONGTYPE error is never the expected reply."""

    wire: Wire
    expected: Callable[[Any], bool]

    def holds(self, reply: Any) -> bool:
        return not isinstance(reply, KeywrightError) and self.expected(reply)


class Obligation(NamedTuple):
    """A question, its premise, and the finding if the answer is not the expected one."""

    question: Question
    premise: Question
    finding: Finding


Raise = Callable[[Any, Any], Iterator[Obligation]]


class Obligations:
    """The obligations of the key classes of some keyspaces, as one database binds them."""

    def __init__(self, spaces: Iterable[Keyspace], context: Context) -> None:
        self.context = context
        self._raised: dict[type[Key], list[Raise]] = {}
        for space in spaces:
            for link in space.links:
                self._relate(link)
            for reference in space.references:
                if reference.required:
                    self._add(reference.source, self._reference(reference))

    def concern(self, kind: type[Key]) -> bool:
        return kind in self._raised

    def of(self, key: Key, value: Any) -> Iterator[Obligation]:
        """Yield the obligations of other keys because of this value, or this page of a collection."""
        for raised in self._raised.get(type(key), ()):
            yield from raised(key, value)

    def of_sealed(self, key: Key) -> list[Obligation]:
        """Return the obligations because of a key that exists, but whose value cannot be opened."""
        try:
            return list(self.of(key, None))
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
        self._raised.setdefault(kind, []).append(raised)

    def _inside(self, link: Link, code: str, inverse: type[Any]) -> Raise:
        """A value b of a: the set of b has a."""

        def raised(key: Any, value: Any) -> Iterator[Obligation]:
            other = inverse(value)
            yield self._made(
                code, link, key, self._has(other, _identity(key)), self._is(key, value), other=other
            )

        return raised

    def _points_back(self, link: Link, forward: type[Any]) -> Raise:
        """A member a in the set of b: the value of a is b."""

        def raised(key: Any, members: Sequence[Any]) -> Iterator[Obligation]:
            for member in members:
                other, stored = forward(member), _stored(key, member)
                question = self._is(other, _identity(key))
                yield self._made("KW403", link, key, question, self._within(key, stored), stored, other)

        return raised

    def _mirrored(self, link: Link, code: str, there: type[Any]) -> Raise:
        """A value b of a: the value of b is a."""

        def raised(key: Any, value: Any) -> Iterator[Obligation]:
            other = there(value)
            yield self._made(
                code, link, key, self._is(other, _identity(key)), self._is(key, value), other=other
            )

        return raised

    def _mutual(self, link: Link, code: str, there: type[Any]) -> Raise:
        """A member b in the set of a: the set of b has a."""

        def raised(key: Any, members: Sequence[Any]) -> Iterator[Obligation]:
            for member in members:
                other, stored = there(member), _stored(key, member)
                question = self._has(other, _identity(key))
                yield self._made(code, link, key, question, self._within(key, stored), stored, other)

        return raised

    def _listed(self, link: Link, index: type[Any]) -> Raise:
        """A key is there: the index names it."""

        def raised(key: Any, value: Any) -> Iterator[Obligation]:
            other = index()
            yield self._made(
                "KW405", link, key, self._has(other, _identity(key)), self._exists(key), other=other
            )

        return raised

    def _backed(self, link: Link, of: type[Any]) -> Raise:
        """A member of an index: its key is there."""

        def raised(key: Any, members: Sequence[Any]) -> Iterator[Obligation]:
            for member in members:
                other, stored = of(member), _stored(key, member)
                question = self._exists(other)
                yield self._made("KW404", link, key, question, self._within(key, stored), stored, other)

        return raised

    def _reference(self, reference: Reference) -> Raise:
        def raised(key: Any, value: Any) -> Iterator[Obligation]:
            for entry, part in _parts(key, value, reference):
                for place in reference.places(key, part):
                    field = place.stored_field
                    question = self._exists(place.key) if field is None else self._within(place.key, field)
                    reason = f"{reference.name} leads to no {reference.target.__name__}"
                    premise = self._exists(key) if entry is None else self._within(key, entry)
                    yield self._made(
                        "KW401", reference, key, question, premise, entry, place.key, reason, field
                    )

        return raised

    def _made(
        self,
        code: str,
        link: Link | Reference,
        key: Any,
        question: Question,
        premise: Question,
        member: bytes | None = None,
        other: Any = None,
        reason: str = "",
        field: bytes | None = None,
    ) -> Obligation:
        finding = Finding(
            code,
            key.declaration.template.source,
            self.context.name(key),
            reason or f"{link.name}: {_REASONS[code].format(other=type(other).__name__)}",
            member=member,
            other=None if other is None else self.context.name(other),
            field=field,
            link=link.name,
        )
        return Obligation(question, premise, finding)

    def _exists(self, key: Key) -> Question:
        return self._question(EXISTS, key, bool)

    def _has(self, key: Key, member: Any) -> Question:
        return self._within(key, _stored(key, member))

    def _within(self, key: Key, entry: bytes) -> Question:
        layout = key.declaration.storage.layout
        return self._question(layout.presence(entry), key, layout.is_present)

    def _is(self, key: Key, value: Any) -> Question:
        stored = key.declaration.encode(value)
        return self._question(key.declaration.storage.layout.everything, key, partial(eq, stored))

    def _question(self, ask: Ask, key: Key, expected: Callable[[Any], bool]) -> Question:
        return Question(on_name(ask, self.context.name(key), type(key)), expected)


_REASONS = {
    "KW402": "{other} on the other side does not hold it",
    "KW403": "{other} on the forward side does not confirm it",
    "KW404": "it names a key that {other} has not",
    "KW405": "{other} does not name it",
}


def _parts(key: Any, value: Any, reference: Reference) -> Iterator[tuple[bytes | None, Any]]:
    """Yield the entries of a value that can be removed one by one, each with its stored form.

    A reference that does not depend on the entries belongs to the key, not to an entry.
    """
    storage = key.declaration.storage
    if not storage.divisible:
        yield None, value
        return
    nothing = storage.joined([])
    if next(reference.places(key, nothing), None) is not None:
        yield None, nothing
    else:
        yield from storage.divided(value)


def _identity(key: Key) -> Any:
    """Return the only variable of a key of a relation."""
    return key.declaration.values(key)[0]


def _stored(key: Key, member: Any) -> bytes:
    return key.declaration.encode(member)
