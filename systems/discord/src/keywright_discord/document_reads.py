"""Reads of both layouts: documents by place, listings without expired entries, hydration.

A hole is a place in a document where normalisation left an id, or nothing, instead of another document.
All holes of one level are read together, so a hydrated read takes as many round trips as references are
deep, for one document or a hundred.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

from keywright import Call, CodecError, Map, Set, gather_list
from keywright.errors import ConflictError, KeywrightError, OutcomeUnknownError, UsageError
from keywright.operations import (
    Check,
    Command,
    Effect,
    Operation,
    Steps,
    absent,
    bound_context,
    commit,
    procedure,
    stored_field_equals,
    undecodable,
)
from keywright_discord.draft import Place, read
from keywright_discord.raw_json import JsonObject, PayloadError, excerpt, identity

if TYPE_CHECKING:
    from keywright import Context

T = TypeVar("T")
Object: TypeAlias = dict[str, Any]
"""A decoded document."""
Id: TypeAlias = str | int
"""An id as callers have it."""
Ids: TypeAlias = tuple[str, ...]
Index: TypeAlias = Set[str] | Map[str, str]
"""An index of documents that expire: a set of their ids, or a hash whose fields are their ids."""

CODE = "code"
"""The one id that is not a snowflake: that of an invite or a template."""

PAGE = 1000
_decode = JsonObject().decode

# Not `index.remove`, which renews the expiry of the index: a read renews nothing (docs/resolutions.md#a16).
_DROP_MEMBER = Operation("drop", b"SREM", Effect.REPEATABLE)
_DROP_FIELD = Operation("drop", b"HDEL", Effect.REPEATABLE)


class Hole(NamedTuple):
    """A reference: the place of its document, what to do with it or without it, and the holes inside it."""

    place: Place
    fill: Callable[[Object], None]
    leave: Callable[[], None] | None = None
    inner: Callable[[Object], Iterable[Hole]] | None = None


class Entity(NamedTuple):
    """One sort of document: the names of its ids, its place, and its holes."""

    ids: Ids
    place: Callable[..., Place]
    holes: Callable[[Ids, Object], Iterable[Hole]] | None = None


class Entities:
    """Reads of the entities of one layout by name, as stored or hydrated."""

    def __init__(self, entities: Mapping[str, Entity]) -> None:
        self.entities = entities

    def get(self, entity: str, *ids: Id) -> Call[Object | None]:
        """Return a document as it is stored, or None."""
        return self.get_many(entity, [ids]).map(_first)

    def get_many(self, entity: str, ids: Iterable[tuple[Id, ...]]) -> Call[list[Object | None]]:
        """Return documents as they are stored, in the order of the ids, in one round trip."""
        return _documents([self._at(entity, self.ids(entity, each)) for each in ids])

    def hydrate(self, entity: str, *ids: Id) -> Call[Object | None]:
        """Return a document with the documents that it refers to, or None."""
        return self.hydrate_many(entity, [ids]).map(_first)

    def hydrate_many(self, entity: str, ids: Iterable[tuple[Id, ...]]) -> Call[list[Object | None]]:
        """Return documents with those that they refer to, in the order of the ids.

        At most three round trips for all of them together.
        """
        asked = [self.ids(entity, each) for each in ids]
        return self._hydrated(entity, asked, [self._at(entity, each) for each in asked])

    @procedure
    def _hydrated(self, entity: str, asked: list[Ids], places: list[Place]) -> Steps[list[Object | None]]:
        context = yield bound_context()
        found: list[Object | None] = yield _documents(places)
        known = [(each, body) for each, body in zip(asked, found, strict=True) if body is not None]
        yield from self._fill(entity, known, context)
        return found

    @procedure
    def hydrate_all(
        self, entity: str, listing: Call[dict[str, Object]], *above: str
    ) -> Steps[dict[str, Object]]:
        """Return the documents of a listing, hydrated; `above` are the ids that precede the listed one."""
        context = yield bound_context()
        found: dict[str, Object] = yield listing
        yield from self._fill(entity, [((*above, each), body) for each, body in found.items()], context)
        return found

    def ids(self, entity: str, ids: Sequence[Id]) -> Ids:
        """Return ids as they are stored. Raise UsageError if the entity is unknown or has other ids."""
        known = self.entities.get(entity)
        if known is None:
            raise UsageError(
                f"there is no {entity!r} in this layout. It has: {', '.join(sorted(self.entities))}."
            )
        if len(ids) != len(known.ids):
            takes = " ".join(name.upper() for name in known.ids)
            raise UsageError(f"{entity} takes {takes}, but {len(ids)} ids were given. Give {len(known.ids)}.")
        return tuple(
            str(each) if name == CODE else snowflake(name, each)
            for name, each in zip(known.ids, ids, strict=True)
        )

    def _at(self, entity: str, ids: Ids) -> Place:
        return self.entities[entity].place(*ids)

    def _fill(self, entity: str, found: Iterable[tuple[Ids, Object]], context: Context) -> Steps[None]:
        holes = self.entities[entity].holes
        if holes is not None:
            yield from fill((hole for ids, body in found for hole in holes(ids, body)), context)


def snowflake(name: str, value: Id) -> str:
    """Return an id as it is stored. Raise UsageError if it cannot be an id of Discord's."""
    try:
        return identity(value, name)
    except PayloadError:
        raise UsageError(
            f"{name} must be a Discord id, as text ('334385199974967042') or int, got {excerpt(value)}."
        ) from None


def fill(holes: Iterable[Hole], context: Context) -> Steps[None]:
    """Fill holes, then those inside the documents that filled them, level by level."""
    level = list(holes)
    while level:
        known = yield read(hole.place for hole in level)
        deeper: list[Hole] = []
        for hole in level:
            body = known[hole.place]
            if body is not None:
                # Decoded for each hole, so that a caller who changes one user does not change the others.
                found = _decoded(hole.place, body, context)
                hole.fill(found)
                deeper += hole.inner(found) if hole.inner is not None else ()
            elif hole.leave is not None:
                hole.leave()
        level = deeper


@procedure
def living(index: Index, place: Callable[[str], Place]) -> Steps[dict[str, Object]]:
    """Return the documents that an index lists and that still exist (docs/resolutions.md#a14).

    Ids without a document are removed from the index, in a commit that checks again that none exists. On a
    cluster such a commit uses the journal, which caches do not look at: a document that a cache writes at
    that very moment may be unlisted until it is written again.
    """
    found: dict[str, Object] = {}
    cursor = 0
    while True:
        cursor, listed = yield index.scan(cursor, PAGE)
        places = {each: place(each) for each in listed}
        bodies = yield _documents(list(places.values()))
        read_now = dict(zip(places, bodies, strict=True))
        found |= {each: body for each, body in read_now.items() if body is not None}
        yield from drop_dead(index, {each: places[each] for each in places if read_now[each] is None})
        if cursor == 0:
            return found


def drop_dead(index: Index, dead: Mapping[str, Place]) -> Steps[None]:
    """Remove ids without a document from an index, unless there is one again by then."""
    if not dead:
        return
    drops = [
        commit("drop", [_missing(place)], [_removal(index, each)], subject=f"{each} of {index!r}").attempt()
        for each, place in dead.items()
    ]
    for outcome in (yield gather_list(drops)):
        # A conflict or an unknown outcome needs no retry: the next reader looks again.
        if isinstance(outcome, KeywrightError) and not isinstance(
            outcome, ConflictError | OutcomeUnknownError
        ):
            raise outcome


def _missing(place: Place) -> Check:
    key, field = place
    return absent(key) if field is None else stored_field_equals(key, field.encode(), None)


def _removal(index: Index, listed: str) -> Call[int]:
    if isinstance(index, Map):
        return Command(_DROP_FIELD, index, (index.declaration.encode_field(listed),), int)
    return Command(_DROP_MEMBER, index, (index.declaration.encode(listed),), int)


@procedure
def _documents(places: list[Place]) -> Steps[list[Object | None]]:
    if not places:
        return []
    context = yield bound_context()
    known = yield read(places)
    bodies = [(place, known[place]) for place in places]
    return [None if body is None else _decoded(place, body, context) for place, body in bodies]


def _decoded(place: Place, body: bytes, context: Context) -> Object:
    try:
        return _decode(body)
    except CodecError as error:
        raise undecodable(place[0], context, error) from error


def _first(found: list[T]) -> T:
    return found[0]
