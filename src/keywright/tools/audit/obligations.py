"""What one stored key obliges others to hold: the other side of a relation, an index entry, a target.

Each obligation is a question to the server with the answer it must have, and a premise: what was seen
that raised it. A question with another answer is asked again together with its premise, so that what a
writer changes between two reads is not taken for a fault.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from keywright.keyspace import Context, Keyspace, Map, Set, SortedSet
from keywright.keyspace.key import Key
from keywright.keyspace.references import Reference
from keywright.keyspace.relations import Index, Link, ManyToMany, ManyToOne, OneToOne
from keywright.keyspace.wires import Wire
from keywright.tools.audit.findings import Finding
from keywright.tools.audit.page_reader import on_name

__all__ = ["Obligation", "Obligations", "Question"]

ANYTHING = object()


class Question(NamedTuple):
    """One reading command and the answer that is expected."""

    wire: Wire
    expected: Any

    def holds(self, reply: Any) -> bool:
        return reply is not None if self.expected is ANYTHING else bool(reply == self.expected)


class Obligation(NamedTuple):
    """A question, what raised it, and the finding if the answer is another."""

    question: Question
    premise: Question
    finding: Finding


Raise = Callable[[Any, Any], Iterator[Obligation]]


class Obligations:
    """The obligations of every key class of some keyspaces, as one database binds them."""

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
        """What must hold elsewhere because this value, or part of a collection, is stored here."""
        for raised in self._raised.get(type(key), ()):
            yield from raised(key, value)

    def of_sealed(self, key: Key) -> list[Obligation]:
        """Return what must hold because a key is there whose value cannot be opened."""
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
                code, link, key, self._has(other, key._values[0]), self._is(key, value), other=other
            )

        return raised

    def _points_back(self, link: Link, forward: type[Any]) -> Raise:
        """A member a in the set of b: the value of a is b."""

        def raised(key: Any, members: Sequence[Any]) -> Iterator[Obligation]:
            for member in members:
                other = forward(member)
                question = self._is(other, key._values[0])
                yield self._made(
                    "KW403", link, key, question, self._has(key, member), key._encode(member), other
                )

        return raised

    def _mirrored(self, link: Link, code: str, there: type[Any]) -> Raise:
        """A value b of a: the value of b is a."""

        def raised(key: Any, value: Any) -> Iterator[Obligation]:
            other = there(value)
            yield self._made(
                code, link, key, self._is(other, key._values[0]), self._is(key, value), other=other
            )

        return raised

    def _mutual(self, link: Link, code: str, there: type[Any]) -> Raise:
        """A member b in the set of a: the set of b has a."""

        def raised(key: Any, members: Sequence[Any]) -> Iterator[Obligation]:
            for member in members:
                other = there(member)
                question = self._has(other, key._values[0])
                yield self._made(
                    code, link, key, question, self._has(key, member), key._encode(member), other
                )

        return raised

    def _listed(self, link: Link, index: type[Any]) -> Raise:
        """A key is there: the index names it."""

        def raised(key: Any, value: Any) -> Iterator[Obligation]:
            other = index()
            yield self._made(
                "KW405", link, key, self._has(other, key._values[0]), self._exists(key), other=other
            )

        return raised

    def _backed(self, link: Link, of: type[Any]) -> Raise:
        """A member of an index: its key is there."""

        def raised(key: Any, members: Sequence[Any]) -> Iterator[Obligation]:
            for member in members:
                other = of(member)
                yield self._made(
                    "KW404",
                    link,
                    key,
                    self._exists(other),
                    self._has(key, member),
                    key._encode(member),
                    other,
                )

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
            type(key)._template.source,
            self.context.name(key),
            reason or f"{link.name}: {_REASONS[code].format(other=type(other).__name__)}",
            member=member,
            other=None if other is None else self.context.name(other),
            field=field,
            link=link.name,
        )
        return Obligation(question, premise, finding)

    def _exists(self, key: Key) -> Question:
        return self._question(b"EXISTS", key, expected=1)

    def _has(self, key: Any, member: Any) -> Question:
        return self._within(key, key._encode(member))

    def _within(self, key: Any, field: bytes) -> Question:
        if key.redis_type == "zset":
            return self._question(b"ZSCORE", key, field, expected=ANYTHING)
        verb = b"HEXISTS" if key.redis_type == "hash" else b"SISMEMBER"
        return self._question(verb, key, field, expected=1)

    def _is(self, key: Any, value: Any) -> Question:
        return self._question(b"GET", key, expected=key._encode(value))

    def _question(self, verb: bytes, key: Key, *operands: bytes, expected: Any) -> Question:
        return Question(on_name(verb, self.context.name(key), *operands, source=type(key)), expected)


_REASONS = {
    "KW402": "{other} on the other side does not hold it",
    "KW403": "{other} on the forward side does not confirm it",
    "KW404": "it names a key that {other} has not",
    "KW405": "{other} does not name it",
}


def _parts(key: Any, value: Any, reference: Reference) -> Iterator[tuple[bytes | None, Any]]:
    """A value entry by entry, where entries can be removed one by one, with how each is stored.

    What is mentioned whatever the entries are is the key's own mention, and no entry's.
    """
    if not isinstance(key, Map | SortedSet | Set):
        yield None, value
        return
    nothing: Any = {} if isinstance(key, Map) else []
    if next(reference.places(key, nothing), None) is not None:
        yield None, nothing
    elif isinstance(key, Map):
        yield from ((key._encode_field(field), {field: each}) for field, each in value.items())
    elif isinstance(key, SortedSet):
        yield from ((key._encode(pair[0]), [pair]) for pair in value)
    else:
        yield from ((key._encode(member), [member]) for member in value)
