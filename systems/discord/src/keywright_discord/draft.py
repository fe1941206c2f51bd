"""A unit of work: documents and sets as they will be, and the commands that make them so.

Changes are applied to the draft in order, in memory; the documents that they depend on were read before.
The draft then becomes as few commands as possible, written together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from msgspec import UNSET, UnsetType

from keywright import Call, Key, Map, Raw, Set, Value, gather, gather_list
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
from keywright_discord.changes import Mode
from keywright_discord.raw_json import Body, Fields, Snowflakes, body_bytes, body_fields, stored_fields

Place: TypeAlias = tuple[Key, str | None]
"""The place of a document: a string, or a field of a hash."""

# The operations of a key encode and decode values; a draft has and needs them as they are stored.
GET_FIELDS = Operation("get_many", b"HMGET", Effect.READ)
PUT_FIELDS = Operation("put", b"HSET", Effect.REPEATABLE)
ADD_MEMBERS = Operation("add", b"SADD", Effect.REPEATABLE)
HAS_MEMBERS = Operation("has_many", b"SMISMEMBER", Effect.READ)


class Draft:
    """The changes of one or several events, before they are written."""

    def __init__(self, known: dict[Place, bytes | None], listed: Mapping[Key, Any], now_ms: int) -> None:
        self.now_ms = now_ms
        self._known = known
        self._listed = listed
        # Documents as they will be; those that are None are removed. Objects are encoded at the end, since
        # several changes may be merged into one.
        self._strings: dict[Key, Body | None] = {}
        self._fields: dict[Key, dict[str, Body | None]] = {}
        self._erased: dict[Key, None] = {}
        self._members: dict[Set[Any], dict[str, bool]] = {}
        self._added: dict[Set[Any], Snowflakes] = {}
        self._many: list[_Many] = []

    def listed(self, key: Key) -> Any:
        """Return what was read of a set or an index when the draft was begun; sets are as in the draft."""
        return self._listed[key]

    def contains(self, key: Set[Any], member: str) -> bool:
        """Return whether a member is in a set as it is in the draft; the set must have been read before."""
        written = self._members.get(key, {}).get(member)
        return member in self._listed[key] if written is None else written

    def get(self, place: Place) -> bytes | None:
        """Return a document as it is in the draft; it must have been read before, or written in it."""
        body = self._body(place)
        return None if body is None else body_bytes(body)

    def fields(self, place: Place) -> Fields | None:
        """Return the fields of a document as it is in the draft, or None if there is no object."""
        body = self._body(place)
        return stored_fields(body) if body is None or isinstance(body, bytes) else body

    def put(self, place: Place, body: Body, mode: Mode, carried: tuple[str, ...] = ()) -> bool:
        """Write a document in its mode. Return whether there is one now."""
        if mode is Mode.REPLACE and not carried:
            self._write(place, body)
            return True
        old = self.fields(place)
        if mode is Mode.REPLACE:
            kept = {name: raw for name, raw in (old or {}).items() if name in carried}
            self._write(place, {**kept, **body_fields(body)} if kept else body)
            return True
        if old is not None:
            self._write(place, {**old, **body_fields(body)})
        elif mode is Mode.MERGE:
            self._write(place, body)
        return old is not None or mode is Mode.MERGE

    def put_many(
        self, kind: type[Value[Any]], shared: tuple[str, ...], last: Snowflakes, bodies: list[bytes]
    ) -> None:
        """Write many whole strings of one class that differ in the last of their ids."""
        many = _Many(kind, shared, last, bodies)
        for key in [key for key in self._strings if type(key) is kind]:
            if many.find(key) is not None:
                del self._strings[key]
        self._many.append(many)

    def replace(self, key: Map[str, Any], documents: Mapping[str, Body]) -> None:
        """Make these the only documents of a hash."""
        self.erase(key)
        if documents:
            self._fields[key] = dict(documents)

    def drop(self, place: Place) -> None:
        self._write(place, None)

    def erase(self, key: Key) -> None:
        """Remove a whole key; what the draft puts under it afterwards stays."""
        self._strings.pop(key, None)
        self._fields.pop(key, None)
        for many in self._many:
            many.leave_out(key)
        self._members.pop(key, None)  # type: ignore[call-overload]  # only sets are in it
        self._added.pop(key, None)  # type: ignore[call-overload]
        self._erased[key] = None
        if isinstance(key, Set) and key in self._listed:
            self._listed[key].clear()

    def add(self, key: Set[Any], *members: str) -> None:
        written = self._members.get(key)
        if written is None:
            written = self._members[key] = {}
        for member in members:
            written[member] = True
        if self._listed and key in self._listed:
            self._listed[key].update(members)

    def add_many(self, key: Set[Any], members: Snowflakes) -> None:
        """Add thousands of members without a look at each."""
        if key in self._members or key in self._added:
            self.add(key, *members)
        else:
            self._added[key] = members

    def remove(self, key: Set[Any], member: str) -> None:
        self._members.setdefault(key, {})[member] = False
        if key in self._listed:
            self._listed[key].discard(member)

    def calls(self) -> list[Call[Any]]:
        """Return the writes: whole keys removed first, then what takes their place."""
        return [
            *(key.delete() for key in self._erased),
            *(many.call() for many in self._many),
            *self._document_calls(),
            *(Refreshing(ADD_MEMBERS, key, tuple(ids.texts), int) for key, ids in self._added.items()),
            *self._set_calls(),
        ]

    def _write(self, place: Place, body: Body | None) -> None:
        key, field = place
        if field is None:
            self._strings[key] = body
        else:
            self._fields.setdefault(key, {})[field] = body

    def _body(self, place: Place) -> Body | None:
        key, field = place
        written: Body | UnsetType | None = UNSET
        if field is None:
            written = self._strings.get(key, UNSET)
        elif (bodies := self._fields.get(key)) is not None:
            written = bodies.get(field, UNSET)
        if written is not UNSET:
            return written
        if self._many and (body := self._among_many(key)) is not None:
            return body
        return None if self._erased and key in self._erased else self._known[place]

    def _among_many(self, key: Key) -> bytes | None:
        found = (many.find(key) for many in reversed(self._many))
        return next((body for body in found if body is not None), None)

    def _document_calls(self) -> Iterator[Call[Any]]:
        strings: dict[type[Value[Any]], list[tuple[Key, bytes]]] = {}
        for key, body in self._strings.items():
            if body is None:
                yield key.delete()
            else:
                assert isinstance(key, Value)
                strings.setdefault(type(key), []).append((key, body_bytes(body)))
        for kind, pairs in strings.items():
            yield kind.set_many(pairs)
        for key, bodies in self._fields.items():
            assert isinstance(key, Map)
            written: list[bytes] = []
            for field, body in bodies.items():
                if body is not None:
                    written += (field.encode(), body_bytes(body))
            gone = [field for field, body in bodies.items() if body is None]
            if written:
                yield Refreshing(PUT_FIELDS, key, tuple(written), int)
            if gone:
                yield key.remove(*gone)

    def _set_calls(self) -> Iterator[Call[Any]]:
        for key, members in self._members.items():
            added = [member for member, present in members.items() if present]
            removed = [member for member, present in members.items() if not present]
            if added:
                yield Refreshing(ADD_MEMBERS, key, tuple(map(str.encode, added)), int)
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
        self._by_last: dict[str, bytes] | None = None

    def find(self, key: Key) -> bytes | None:
        last = self._last_of(key)
        if last is None:
            return None
        if self._by_last is None:
            self._by_last = dict(zip(self.last, self.bodies, strict=True))
        return self._by_last.get(last)

    def leave_out(self, key: Key) -> None:
        last = self._last_of(key)
        if last is None or self.find(key) is None or self._by_last is None:
            return
        del self._by_last[last]
        self.last, self.bodies = Snowflakes(list(self._by_last)), list(self._by_last.values())

    def call(self) -> Call[None]:
        return self.kind.set_along(self.shared, self.last, self.bodies, self.last.texts)

    def _last_of(self, key: Key) -> str | None:
        """Return the last id of a key that may be among these strings."""
        if type(key) is not self.kind:
            return None
        *shared, last = key.declaration.values(key)
        return last if tuple(shared) == self.shared else None


def read(places: Iterable[Place]) -> Call[dict[Place, bytes | None]]:
    """Return documents as they are stored, by place, in one round trip: MGET by class, HMGET by hash."""
    groups: dict[type[Key] | Key, list[Place]] = {}
    for place in dict.fromkeys(places):
        key, field = place
        groups.setdefault(type(key) if field is None else key, []).append(place)
    calls: list[Call[list[bytes | None]]] = []
    for group, some in groups.items():
        if isinstance(group, Key):
            calls.append(Command(GET_FIELDS, group, tuple([field for _, field in some]), as_is))
        else:
            calls.append(BulkRead(group, group.names([key for key, _ in some]), Raw()))

    def by_place(found: list[list[bytes | None]]) -> dict[Place, bytes | None]:
        known: dict[Place, bytes | None] = {}
        for some, bodies in zip(groups.values(), found, strict=True):
            known.update(zip(some, bodies, strict=True))
        return known

    return gather_list(calls).map(by_place)


def among(key: Set[str], members: Iterable[str]) -> Call[set[str]]:
    """Return those of these ids that are in a set."""
    asked = Snowflakes(list(dict.fromkeys(members)))
    return Sliding(
        HAS_MEMBERS,
        key,
        tuple(asked.texts),
        lambda found: {each for each, present in zip(asked, found, strict=True) if present},
    )


@procedure
def others(key: Set[str], members: Snowflakes) -> Steps[set[str]]:
    """Return the members of a set beside these. Mostly there are none, which costs half of reading all."""
    if not members:
        return (yield key.members())  # type: ignore[no-any-return]  # what a procedure sends back is not typed
    once = tuple(dict.fromkeys(members.texts))
    present: Call[int] = Sliding(HAS_MEMBERS, key, once, sum)
    size, known = yield gather(key.size(), present)
    if size == known:
        return set()
    stored: set[str] = yield key.members()
    return stored.difference(members)
