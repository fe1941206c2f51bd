"""The neighbours of a key: along relations and references, and siblings with the same variables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from keywright.errors import KeywrightError
from keywright.explorer.atlas import Atlas
from keywright.keyspace import Geo, Key, Set, SortedSet, Value
from keywright.keyspace.references import Place, Reference
from keywright.keyspace.relations import Index, Link, ManyToMany, ManyToOne, OneToOne
from keywright.tools.describe.inspection import Hidden

__all__ = ["Neighbour", "Neighbours"]

RELATION, REFERENCE, SIBLING = "relation", "reference", "sibling"
MOST_OF_ONE = 100

Follow = Callable[[Key, Any], Iterable[Key]]


class Neighbour(NamedTuple):
    """One step: its relation or reference, its sort, and its target."""

    along: str
    sort: str
    place: Place


class Neighbours:
    """The steps that a declaration allows from each of its templates."""

    def __init__(self, atlas: Atlas) -> None:
        self.atlas = atlas
        self._relations: dict[type[Key], list[tuple[str, Follow]]] = {}
        self._references: dict[type[Key], list[Reference]] = {}
        for space in atlas.spaces:
            for link in space.links:
                self._relate(link)
            for reference in space.references:
                self._references.setdefault(reference.source, []).append(reference)
        self._siblings = {kind: list(_siblings(kind, atlas.sheets)) for kind in atlas.sheets}

    def of(self, key: Key, value: Any) -> list[Neighbour]:
        """Return the steps from a key, each target once; `value` is None if only its name is known."""
        linked = self.linked(key, value)
        seen = {step.place for step in linked}
        return [*linked, *(step for step in self.siblings(key) if step.place not in seen)]

    def linked(self, key: Key, value: Any) -> list[Neighbour]:
        """Return the steps along relations and references, each target once."""
        found: dict[tuple[str, Place], Neighbour] = {}
        for neighbour in (*self._along_relations(key, value), *self._along_references(key, value)):
            found.setdefault((neighbour.along, neighbour.place), neighbour)
        return list(found.values())

    def references(self, kind: type[Key]) -> list[Reference]:
        """Return the references from and to a template."""
        every = [reference for found in self._references.values() for reference in found]
        known = self.atlas.sheets
        return [each for each in every if kind in (each.source, each.target) and each.target in known]

    def siblings(self, key: Key) -> list[Neighbour]:
        """Return the keys whose variables are a subset of this key's: other data about the same entity."""
        steps = []
        for kind, variables in self._siblings[type(key)]:
            other = kind(**{name: getattr(key, name) for name in variables})
            steps.append(Neighbour(f"same {' and '.join(variables)}", SIBLING, Place(other)))
        return steps

    def _along_relations(self, key: Key, value: Any) -> Iterator[Neighbour]:
        for name, follow in self._relations.get(type(key), ()):
            for number, other in enumerate(follow(key, value)):
                if number == MOST_OF_ONE:
                    break
                yield Neighbour(name, RELATION, Place(other))

    def _along_references(self, key: Key, value: Any) -> Iterator[Neighbour]:
        if value is None:
            return
        for reference in self._references.get(type(key), ()):
            for number, place in enumerate(_places(reference, key, value)):
                if number == MOST_OF_ONE:
                    break
                if place.key != key or place.field is not None:
                    yield Neighbour(reference.name, REFERENCE, place)

    def _relate(self, link: Link) -> None:
        if isinstance(link, Index):
            self._add(link.of, f"in {link.by.__name__}", _to_only(link.by))
            self._add(link.by, f"each {link.of.__name__}", _to_each(link.of))
            return
        assert isinstance(link, ManyToOne | OneToOne | ManyToMany)
        self._add(link.forward, f"{link.forward.__name__} ↔ {link.inverse.__name__}", _to_each(link.inverse))
        self._add(link.inverse, f"{link.inverse.__name__} ↔ {link.forward.__name__}", _to_each(link.forward))
        for index, of in (
            (_index(link, "index"), link.forward),
            (_index(link, "inverse_index"), link.inverse),
        ):
            if index is not None:
                self._add(of, f"in {index.__name__}", _to_only(index))
                self._add(index, f"each {of.__name__}", _to_each(of))

    def _add(self, kind: type[Key], name: str, follow: Follow) -> None:
        self._relations.setdefault(kind, []).append((name, follow))


def _index(link: Link, name: str) -> type[Key] | None:
    found: type[Key] | None = getattr(link, name, None)
    return found


def _to_each(kind: type[Key]) -> Follow:
    """Follow a value, or the members of a set, to the keys of a kind."""

    def follow(key: Key, value: Any) -> Iterator[Key]:
        for identity in _identities(key, value):
            try:
                yield kind.made(identity)
            except KeywrightError:
                continue

    return follow


def _to_only(kind: type[Key]) -> Follow:
    """Lead to the only key of a kind without variables."""

    def follow(key: Key, value: Any) -> Iterator[Key]:
        yield kind()

    return follow


def _identities(key: Key, value: Any) -> Iterable[Any]:
    if value is None or isinstance(value, Hidden):
        return ()
    if isinstance(key, SortedSet | Geo):
        return (member for member, _ in value)
    return value if isinstance(key, Set) else (value,) if isinstance(key, Value) else ()


def _places(reference: Reference, key: Key, value: Any) -> Iterator[Place]:
    """Yield the targets of a reference; none for stored data that it does not support."""
    try:
        yield from reference.places(key, value)
    except (AttributeError, LookupError, TypeError, ValueError, KeywrightError):
        return


def _siblings(kind: type[Key], kinds: Iterable[type[Key]]) -> Iterator[tuple[type[Key], tuple[str, ...]]]:
    alphabets = kind.declaration.template.alphabets
    for other in kinds:
        theirs = other.declaration.template.alphabets
        if other is kind or not theirs:
            continue
        if all(name in alphabets and alphabets[name] == theirs[name] for name in theirs):
            yield other, tuple(theirs)
