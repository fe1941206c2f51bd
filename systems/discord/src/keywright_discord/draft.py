"""A unit of work: documents and sets as they will be, and the commands that make them so.

Changes are applied to the draft in order, in memory; what they must know of the database was read
before. The draft then becomes as few commands as possible, written together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

from keywright import Call, Key, Map, Raw, Set, Value, gather, gather_list
from keywright.keyspace.kinds.map import PUT
from keywright.keyspace.kinds.set import ADD, HAS_MANY
from keywright.operations import (
    BulkRead,
    Command,
    Effect,
    Operation,
    Refreshing,
    Sliding,
    Steps,
    as_is,
    procedure,
)
from keywright_discord.changes import Body, Mode, Snowflakes, body_bytes, body_fields
from keywright_discord.raw_json import encode, stored_fields

if TYPE_CHECKING:
    pass

Place: TypeAlias = tuple[Key, str | None]
"""Where a document is: a string, or a field of a hash."""

GET_FIELDS = Operation("get_many", b"HMGET", Effect.READ)


class Draft:
    """What one or several events change, before it is written."""

    def __init__(
        self, known: dict[Place, bytes | None], listed: dict[Set[str], set[str]] | None = None
    ) -> None:
        self._known = known
        self._listed = listed or {}
        self._documents: dict[Place, bytes | None] = {}
        self._erased: dict[Key, None] = {}
        self._members: dict[Set[Any], dict[str, bool]] = {}
        self._added: dict[Set[Any], Snowflakes] = {}
        self._many: list[_Many] = []

    def listed(self, key: Set[str]) -> set[str]:
        """What was read of a set when the draft was begun."""
        return self._listed[key]

    def get(self, place: Place) -> bytes | None:
        """A document as it is in the draft; it must have been read before, or written in it."""
        if place in self._documents:
            return self._documents[place]
        if self._many and (body := self._among_many(place[0])) is not None:
            return body
        return None if place[0] in self._erased else self._known[place]

    def put(self, place: Place, body: Body, mode: Mode) -> bool:
        """Write a document as its mode says; whether there is one now."""
        if mode is Mode.REPLACE:
            self._documents[place] = body_bytes(body)
            return True
        old = stored_fields(self.get(place))
        if old is None:
            if mode is Mode.PATCH:
                return False
            self._documents[place] = body_bytes(body)
            return True
        self._documents[place] = encode({**old, **body_fields(body)})
        return True

    def put_many(
        self, kind: type[Value[Any]], shared: tuple[str, ...], last: Snowflakes, bodies: list[bytes]
    ) -> None:
        """Write many whole strings of one class that differ in the last of their ids."""
        many = _Many(kind, shared, last, bodies)
        for place in [place for place in self._documents if type(place[0]) is kind]:
            if many.find(place[0]) is not None:
                del self._documents[place]
        self._many.append(many)

    def _among_many(self, key: Key) -> bytes | None:
        found = (many.find(key) for many in reversed(self._many))
        return next((body for body in found if body is not None), None)

    def drop(self, place: Place) -> None:
        self._documents[place] = None

    def erase(self, key: Key) -> None:
        """Remove a whole key; what the draft puts under it afterwards stays."""
        for place in [place for place in self._documents if place[0] == key]:
            del self._documents[place]
        for many in self._many:
            many.leave_out(key)
        self._members.pop(key, None)  # type: ignore[call-overload]  # only sets are in it
        self._added.pop(key, None)  # type: ignore[call-overload]
        self._erased[key] = None

    def add(self, key: Set[Any], *members: str) -> None:
        self._members.setdefault(key, {}).update(dict.fromkeys(members, True))

    def add_many(self, key: Set[Any], members: Snowflakes) -> None:
        """The same for thousands, which are not looked at one by one."""
        if key in self._members or key in self._added:
            self.add(key, *members)
        else:
            self._added[key] = members

    def remove(self, key: Set[Any], member: str) -> None:
        self._members.setdefault(key, {})[member] = False

    def calls(self) -> list[Call[Any]]:
        """The writes: whole keys removed first, then what takes their place."""
        return [
            *(key.delete() for key in self._erased),
            *(many.call() for many in self._many),
            *self._document_calls(),
            *(Refreshing(ADD, key, tuple(members.texts), int) for key, members in self._added.items()),
            *self._set_calls(),
        ]

    def _document_calls(self) -> Iterator[Call[Any]]:
        strings: dict[type[Value[Any]], list[tuple[Key, bytes]]] = {}
        maps: dict[Map[str, Any], dict[str, bytes]] = {}
        gone: dict[Map[str, Any], list[str]] = {}
        for (key, field), body in self._documents.items():
            if isinstance(key, Map) and field is not None:
                if body is None:
                    gone.setdefault(key, []).append(field)
                else:
                    maps.setdefault(key, {})[field] = body
            elif body is None:
                yield key.delete()
            else:
                assert isinstance(key, Value)
                strings.setdefault(type(key), []).append((key, body))
        for kind, pairs in strings.items():
            yield kind.set_many(pairs)
        for hash_key, entries in maps.items():
            # Bodies are bytes as they are stored: documents, and the ids of an index.
            flat = tuple(word for field, body in entries.items() for word in (field.encode(), body))
            yield Refreshing(PUT, hash_key, flat, int)
        for hash_key, fields in gone.items():
            yield hash_key.remove(*fields)

    def _set_calls(self) -> Iterator[Call[Any]]:
        for key, members in self._members.items():
            added = [member for member, present in members.items() if present]
            removed = [member for member, present in members.items() if not present]
            if added:
                yield key.add(*added)
            if removed:
                yield key.remove(*removed)


class _Many:
    """Strings of one class that differ in the last of their ids, in parallel lists."""

    def __init__(
        self, kind: type[Value[Any]], shared: tuple[str, ...], last: Snowflakes, bodies: list[bytes]
    ) -> None:
        self.kind = kind
        self.shared = shared
        self.last = last
        self.bodies = bodies
        self._found: dict[str, bytes] | None = None

    def find(self, key: Key) -> bytes | None:
        if type(key) is not self.kind or key._values[:-1] != self.shared:
            return None
        if self._found is None:
            self._found = dict(zip(self.last, self.bodies, strict=True))
        return self._found.get(key._values[-1])

    def leave_out(self, key: Key) -> None:
        if self.find(key) is not None:
            self._found = {
                last: body for last, body in (self._found or {}).items() if last != key._values[-1]
            }
            self.last, self.bodies = Snowflakes(list(self._found)), list(self._found.values())

    def call(self) -> Call[None]:
        return self.kind.set_along(self.shared, self.last, self.bodies, self.last.texts)


def read(places: Iterable[Place]) -> Call[dict[Place, bytes | None]]:
    """Documents as they are stored, in one round trip: MGET by class, HMGET by hash."""
    strings: dict[type[Key], list[Key]] = {}
    maps: dict[Key, list[str]] = {}
    for key, field in dict.fromkeys(places):
        if field is None:
            strings.setdefault(type(key), []).append(key)
        else:
            maps.setdefault(key, []).append(field)
    calls: list[Call[list[bytes | None]]] = [
        BulkRead(kind, kind.names(keys), Raw()) for kind, keys in strings.items()
    ]
    calls += [Command(GET_FIELDS, key, tuple(fields), as_is) for key, fields in maps.items()]
    order: list[Place] = [(key, None) for keys in strings.values() for key in keys]
    order += [(key, field) for key, fields in maps.items() for field in fields]

    def known(found: list[list[bytes | None]]) -> dict[Place, bytes | None]:
        return dict(zip(order, (body for bodies in found for body in bodies), strict=True))

    return gather_list(calls).map(known)


@procedure
def others(key: Set[str], members: Snowflakes) -> Steps[set[str]]:
    """The members of a set beside these. Mostly there are none, which costs half of reading them all."""
    once = tuple(dict.fromkeys(members.texts))
    present: Call[int] = Sliding(HAS_MANY, key, once, sum)
    size, known = yield gather(key.size(), present)
    if size == known:
        return set()
    stored: set[str] = yield key.members()
    return stored.difference(members)
