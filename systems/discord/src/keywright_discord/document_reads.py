"""Reads of both layouts: documents by place, listings that expire with what they list, holes filled.

A hole is where normalisation left an id, or nothing, and another document belongs. All holes that are
known at one moment are read together, so a hydrated read takes as many round trips as references
are deep, whether it is of one document or of a hundred.
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
from keywright_discord.documents import JsonObject
from keywright_discord.draft import Place, read

if TYPE_CHECKING:
    from keywright import Context

T = TypeVar("T")
Object: TypeAlias = dict[str, Any]
"""A document as it is read."""
Ids: TypeAlias = tuple[str, ...]
Index: TypeAlias = Set[str] | Map[str, str]
"""What lists records that expire: a set of their ids, or a hash whose fields are."""

PAGE = 1000
_decode = JsonObject().decode

# Not `index.remove`, which renews the index's expiry: a read renews nothing (A16).
_DROP_MEMBER = Operation("drop", b"SREM", Effect.REPEATABLE)
_DROP_FIELD = Operation("drop", b"HDEL", Effect.REPEATABLE)


class Hole(NamedTuple):
    """A reference: where its document is, what to do with it or without it, and the holes inside it."""

    place: Place
    fill: Callable[[Object], None]
    leave: Callable[[], None] | None = None
    inner: Callable[[Object], Iterable[Hole]] | None = None


class Entity(NamedTuple):
    """One sort of document: what its ids are called, where it is, and which holes it has."""

    ids: Ids
    place: Callable[..., Place]
    holes: Callable[[Ids, Object], Iterable[Hole]] | None = None


class Entities:
    """The entities of one layout by name, each to be read as stored or hydrated."""

    def __init__(self, entities: Mapping[str, Entity]) -> None:
        self.entities = entities

    def get(self, entity: str, *ids: str) -> Call[Object | None]:
        """A document as it is stored; None when there is none."""
        return self.get_many(entity, [ids]).map(_first)

    @procedure
    def get_many(self, entity: str, ids: Iterable[Ids]) -> Steps[list[Object | None]]:
        """Documents as they are stored, in the order asked, in one round trip."""
        places = [self.at(entity, each) for each in ids]
        context = yield bound_context()
        return (yield from _documents(places, context))

    def hydrate(self, entity: str, *ids: str) -> Call[Object | None]:
        """A document with what it refers to; None when there is none."""
        return self.hydrate_many(entity, [ids]).map(_first)

    @procedure
    def hydrate_many(self, entity: str, ids: Iterable[Ids]) -> Steps[list[Object | None]]:
        """Documents with what they refer to, in the order asked: at most three round trips for all."""
        asked = list(ids)
        places = [self.at(entity, each) for each in asked]
        context = yield bound_context()
        found: list[Object | None] = yield from _documents(places, context)
        known = [(each, body) for each, body in zip(asked, found, strict=True) if body is not None]
        yield from self._fill(entity, known, context)
        return found

    @procedure
    def hydrate_all(
        self, entity: str, listing: Call[dict[str, Object]], *above: str
    ) -> Steps[dict[str, Object]]:
        """A listing's documents with what they refer to; `above` are the ids before the listed one."""
        context = yield bound_context()
        found: dict[str, Object] = yield listing
        yield from self._fill(entity, [((*above, each), body) for each, body in found.items()], context)
        return found

    def at(self, entity: str, ids: Sequence[str]) -> Place:
        """Where a document is; UsageError names what is wrong with an entity or its ids."""
        known = self.entities.get(entity)
        if known is None:
            raise UsageError(
                f"there is no {entity!r} in this layout. It has: {', '.join(sorted(self.entities))}."
            )
        if len(ids) != len(known.ids):
            takes = " ".join(name.upper() for name in known.ids)
            raise UsageError(f"{entity} takes {takes}, but {len(ids)} ids were given. Give {len(known.ids)}.")
        return known.place(*ids)

    def _fill(self, entity: str, found: Iterable[tuple[Ids, Object]], context: Context) -> Steps[None]:
        holes = self.entities[entity].holes
        if holes is not None:
            yield from fill((hole for ids, body in found for hole in holes(ids, body)), context)


def fill(holes: Iterable[Hole], context: Context) -> Steps[None]:
    """Fill holes, and those inside what filled them, level by level."""
    level = list(holes)
    while level:
        known = yield read(hole.place for hole in level)
        deeper: list[Hole] = []
        for hole in level:
            body = known[hole.place]
            if body is not None:
                # Decoded for each hole: nobody finds a user changed who changed it elsewhere.
                found = _decoded(hole.place, body, context)
                hole.fill(found)
                deeper += hole.inner(found) if hole.inner is not None else ()
            elif hole.leave is not None:
                hole.leave()
        level = deeper


@procedure
def living(index: Index, place: Callable[[str], Place]) -> Steps[dict[str, Object]]:
    """The documents that an index lists and that still exist, page by page (A14).

    What has expired does not show up and is dropped from the index, which re-checks in the same step
    that it does not exist. Across the slots of a cluster that goes through the journal, of which the
    caches know nothing: one that writes a document at that very moment may find it unlisted until it
    is next written.
    """
    context = yield bound_context()
    found: dict[str, Object] = {}
    cursor = 0
    while True:
        cursor, listed = yield index.scan(cursor, PAGE)
        places = {each: place(each) for each in listed}
        bodies = yield from _documents(list(places.values()), context)
        read_now = dict(zip(places, bodies, strict=True))
        found |= {each: body for each, body in read_now.items() if body is not None}
        yield from drop_dead(index, {each: places[each] for each in places if read_now[each] is None})
        if cursor == 0:
            return found


def drop_dead(index: Index, dead: Mapping[str, Place]) -> Steps[None]:
    """Remove from an index what names no document, unless there is one again by then."""
    if not dead:
        return
    drops = [
        commit("drop", [_missing(place)], [_removal(index, each)], subject=f"{each} of {index!r}").attempt()
        for each, place in dead.items()
    ]
    for outcome in (yield gather_list(drops)):
        # Whether it was dropped or not, the next reader looks again.
        if isinstance(outcome, KeywrightError) and not isinstance(
            outcome, ConflictError | OutcomeUnknownError
        ):
            raise outcome


def _missing(place: Place) -> Check:
    key, field = place
    return absent(key) if field is None else stored_field_equals(key, field.encode(), None)


def _removal(index: Index, listed: str) -> Call[int]:
    if isinstance(index, Map):
        return Command(_DROP_FIELD, index, (index._encode_field(listed),), int)
    return Command(_DROP_MEMBER, index, (index._encode(listed),), int)


def _documents(places: list[Place], context: Context) -> Steps[list[Object | None]]:
    if not places:
        return []
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
