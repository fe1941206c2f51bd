"""Reads of both layouts: documents by place, listings without expired entries, hydration.

A hole is a place in a document where normalisation left an id, or nothing, instead of another document.
All holes of one level are read together, so a hydrated read takes as many round trips as references are
deep, for one document or a hundred.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

import msgspec

from keywright import Call, Key, Map, Raw, Set, gather_list
from keywright.errors import ConflictError, KeywrightError, OutcomeUnknownError, UsageError
from keywright.operations import (
    BulkRead,
    Check,
    Command,
    Effect,
    Operation,
    Steps,
    absent,
    as_is,
    bound_context,
    commit,
    procedure,
    stored_field_equals,
    undecodable,
)
from keywright_discord.draft import GET_FIELDS
from keywright_discord.raw_json import (
    NOT_AN_OBJECT,
    JsonObject,
    PayloadError,
    decode_object,
    excerpt,
    identity,
)

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
_codec = JsonObject()

# Not `index.remove`, which renews the expiry of the index: a read renews nothing (docs/resolutions.md#a16).
_DROP_MEMBER = Operation("drop", b"SREM", Effect.REPEATABLE)
_DROP_FIELD = Operation("drop", b"HDEL", Effect.REPEATABLE)


Family: TypeAlias = tuple[Any, ...] | Map[str, Any]
"""Documents that differ in one id: the class of their keys with the ids before it, or a hash."""
Address: TypeAlias = tuple[Family, str]
"""Where a document is: its family, and its last id."""


class Hole(msgspec.Struct, gc=False):
    """A reference: where its document is, and what becomes of it in the object that has the reference."""

    at: Address
    target: Any
    """The object or list that the document goes into, under this name."""
    name: str | int
    unknown: str | None = None
    """The id that stands for a document that is not stored; without one, the target stays as it is."""
    part: str | None = None
    """The field of the object under that name that the document becomes, unless it has the field."""
    newer: Object | None = None
    """Fields that replace those of the document."""
    inner: Callable[[Object, list[Hole]], None] | None = None
    """Adds the holes inside the document."""


class Entity(NamedTuple):
    """One sort of document: the names of its ids, its address, and what adds its holes to a list."""

    ids: Ids
    address: Callable[..., Address]
    holes: Callable[[Ids, Object, list[Hole]], None] | None = None


class Entities:
    """Reads of the entities of one layout by name, as stored or hydrated."""

    def __init__(self, entities: Mapping[str, Entity]) -> None:
        self.entities = entities

    def get(self, entity: str, *ids: Id) -> Call[Object | None]:
        """Return a document as it is stored, or None."""
        return self.get_many(entity, [ids]).map(_first)

    def get_many(self, entity: str, ids: Iterable[tuple[Id, ...]]) -> Call[list[Object | None]]:
        """Return documents as they are stored, in the order of the ids, in one round trip."""
        return self._stored(entity, self._all_ids(entity, ids))

    def hydrate(self, entity: str, *ids: Id) -> Call[Object | None]:
        """Return a document with the documents that it refers to, or None."""
        return self.hydrate_many(entity, [ids]).map(_first)

    def hydrate_many(self, entity: str, ids: Iterable[tuple[Id, ...]]) -> Call[list[Object | None]]:
        """Return documents with those that they refer to, in the order of the ids.

        At most three round trips for all of them together.
        """
        return self._hydrated(entity, self._all_ids(entity, ids))

    @procedure
    def _hydrated(self, entity: str, asked: list[Ids]) -> Steps[list[Object | None]]:
        context = yield bound_context()
        found: list[Object | None] = yield self._stored(entity, asked)
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
        return self._all_ids(entity, [ids])[0]

    def _all_ids(self, entity: str, asked: Iterable[Sequence[Id]]) -> list[Ids]:
        known = self.entities.get(entity)
        if known is None:
            raise UsageError(
                f"there is no {entity!r} in this layout. It has: {', '.join(sorted(self.entities))}."
            )
        names = known.ids
        checked: list[Ids] = []
        for ids in asked:
            if len(ids) != len(names):
                takes = " ".join(name.upper() for name in names)
                raise UsageError(f"{entity} takes {takes}, but {len(ids)} ids were given. Give {len(names)}.")
            texts = [
                str(each) if name == CODE else snowflake(name, each)
                for name, each in zip(names, ids, strict=True)
            ]
            checked.append(tuple(texts))
        return checked

    def _stored(self, entity: str, asked: list[Ids]) -> Call[list[Object | None]]:
        address = self.entities[entity].address
        return _documents([address(*ids) for ids in asked])

    def _fill(self, entity: str, found: Iterable[tuple[Ids, Object]], context: Context) -> Steps[None]:
        add_holes = self.entities[entity].holes
        if add_holes is not None:
            holes: list[Hole] = []
            for ids, body in found:
                add_holes(ids, body, holes)
            yield from fill(holes, context)


def snowflake(name: str, value: Id) -> str:
    """Return an id as it is stored. Raise UsageError if it cannot be an id of Discord's."""
    try:
        return identity(value, name)
    except PayloadError:
        raise UsageError(
            f"{name} must be a Discord id, as text ('334385199974967042') or int, got {excerpt(value)}."
        ) from None


def fill(holes: list[Hole], context: Context) -> Steps[None]:
    """Fill holes, then those inside the documents that filled them, level by level."""
    while holes:
        known = yield read_documents([hole.at for hole in holes])
        deeper: list[Hole] = []
        for hole in holes:
            family, last = at = hole.at
            body = known[family][last]
            if body is not None:
                # Decoded for each hole, so that a caller who changes one user does not change the others.
                found = decoded(at, body, context)
            elif hole.unknown is not None:
                found = {"id": hole.unknown}
            else:
                continue
            if hole.part is not None:
                _add(hole.target, hole.name, hole.part, found)
                continue
            hole.target[hole.name] = found if hole.newer is None else {**found, **hole.newer}
            if hole.inner is not None and body is not None:
                hole.inner(found, deeper)
        holes = deeper


def _add(target: Any, name: str | int, part: str, found: Object) -> None:
    """Add a document to the object under a name, which was an id before, unless it has the field."""
    outer = target.get(name) if isinstance(target, dict) else target[name]
    if isinstance(outer, dict):
        outer.setdefault(part, found)


def read_documents(addresses: Iterable[Address]) -> Call[dict[Family, dict[str, bytes | None]]]:
    """Return documents as they are stored, in one round trip: MGET by class, HMGET by hash."""
    asked: dict[Family, dict[str, None]] = {}
    for family, last in addresses:
        ids = asked.get(family)
        if ids is None:
            asked[family] = {last: None}
        else:
            ids[last] = None
    together: dict[type[Key] | Key, list[Family]] = {}
    for family in asked:
        together.setdefault(family[0] if isinstance(family, tuple) else family, []).append(family)

    def by_family(found: list[list[bytes | None]]) -> dict[Family, dict[str, bytes | None]]:
        known: dict[Family, dict[str, bytes | None]] = {}
        for families, bodies in zip(together.values(), found, strict=True):
            rest = iter(bodies)
            for family in families:
                known[family] = dict(zip(asked[family], rest, strict=False))  # the next family has the rest
        return known

    return gather_list([_read(each, asked) for each in together.values()]).map(by_family)


def _read(families: list[Family], asked: Mapping[Family, Iterable[str]]) -> Call[list[bytes | None]]:
    """Return the documents of one hash, or of all families of one class."""
    first = families[0]
    if not isinstance(first, tuple):
        return Command(GET_FIELDS, first, tuple(asked[first]), as_is)
    kind = first[0]
    names: list[bytes] = []
    for family in families:
        assert isinstance(family, tuple)
        names += kind.names_along(family[1:], list(asked[family]))
    return BulkRead(kind, names, Raw())


@procedure
def living(index: Index, address: Callable[[str], Address]) -> Steps[dict[str, Object]]:
    """Return the documents that an index lists and that still exist (docs/resolutions.md#a14).

    Ids without a document are removed from the index, in a commit that checks again that none exists. On a
    cluster such a commit uses the journal, which caches do not look at: a document that a cache writes at
    that very moment may be unlisted until it is written again.
    """
    found: dict[str, Object] = {}
    cursor = 0
    while True:
        cursor, listed = yield index.scan(cursor, PAGE)
        addresses = {each: address(each) for each in listed}
        bodies = yield _documents(list(addresses.values()))
        read_now = dict(zip(addresses, bodies, strict=True))
        found |= {each: body for each, body in read_now.items() if body is not None}
        yield from drop_dead(index, {each: at for each, at in addresses.items() if read_now[each] is None})
        if cursor == 0:
            return found


def drop_dead(index: Index, dead: Mapping[str, Address]) -> Steps[None]:
    """Remove ids without a document from an index, unless there is one again by then."""
    if not dead:
        return
    drops = [
        commit("drop", [_missing(at)], [_removal(index, each)], subject=f"{each} of {index!r}").attempt()
        for each, at in dead.items()
    ]
    for outcome in (yield gather_list(drops)):
        # A conflict or an unknown outcome needs no retry: the next reader looks again.
        if isinstance(outcome, KeywrightError) and not isinstance(
            outcome, ConflictError | OutcomeUnknownError
        ):
            raise outcome


def _missing(at: Address) -> Check:
    family, last = at
    if isinstance(family, tuple):
        return absent(_key_of(at))
    return stored_field_equals(family, last.encode(), None)


def _key_of(at: Address) -> Key:
    family, last = at
    if not isinstance(family, tuple):
        return family
    return family[0](*family[1:], last)  # type: ignore[no-any-return]  # a class of keys


def _removal(index: Index, listed: str) -> Call[int]:
    if isinstance(index, Map):
        return Command(_DROP_FIELD, index, (index.declaration.encode_field(listed),), int)
    return Command(_DROP_MEMBER, index, (index.declaration.encode(listed),), int)


@procedure
def _documents(addresses: list[Address]) -> Steps[list[Object | None]]:
    if not addresses:
        return []
    context = yield bound_context()
    known = yield read_documents(addresses)
    found: list[Object | None] = []
    for at in addresses:
        family, last = at
        body = known[family][last]
        found.append(None if body is None else decoded(at, body, context))
    return found


def decoded(at: Address, body: bytes, context: Context) -> Object:
    """Return a document. Raise StoredDataError if it is not a JSON object."""
    try:
        return decode_object(body)
    except NOT_AN_OBJECT as error:
        raise undecodable(_key_of(at), context, _codec.refusal(body, error)) from error


def _first(found: list[T]) -> T:
    return found[0]
