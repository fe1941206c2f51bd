"""Whether a stored value is what its template declares, and the value where it is.

Stored forms are as the server sends them: bytes for strings, flat lists for hashes and sorted sets,
lists for sets, lists and streams. Nothing is asked here; a collection may be given in parts.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain
from typing import Any, NamedTuple

from keywright.errors import KeywrightError
from keywright.keyspace import Context, Counter, Entry, List, Map, Record, Set, SortedSet, Stream, Value
from keywright.keyspace.codecs import Codec, CodecError, SealRefused, is_sealed
from keywright.keyspace.expiry import Expiry
from keywright.keyspace.fields import FieldSet
from keywright.keyspace.key import Key
from keywright.keyspace.kinds.unset import UNSET

__all__ = ["Checked", "Checker", "Problem"]

SLACK_MS = 1500  # a TTL is read after it was set, and both are rounded
CLOCK_SLACK_MS = 10_000  # a moment is compared with our clock, which is not the server's


class Problem(NamedTuple):
    """One thing wrong with a value; `member` is the stored entry concerned."""

    code: str
    reason: str
    found: str = ""
    member: bytes | None = None


class Checked(NamedTuple):
    """The value, UNSET where it could not be told, and what is wrong."""

    value: Any
    problems: Sequence[Problem] = ()


class Checker:
    """The checks of one key class in one database."""

    def __init__(self, kind: type[Key], context: Context) -> None:
        self.kind = kind
        self.context = context
        self.upgrades = [u for u in getattr(kind, "_upgrades", ()) if u.moved_from is None]
        self.expiry: Expiry | None = context.expiry_of(kind)
        binding = context.bindings.get(kind._space)
        self.can_open = binding is not None and binding.keyring is not None
        self._entries = _ENTRIES.get(_shape(kind))
        self._together = _TOGETHER.get(_shape(kind), _all_strings if kind.redis_type == "string" else None)

    def sound(self, stored: Sequence[Any]) -> bool:
        """Whether many stored values are all as declared; False where one by one it must be found out."""
        if self.upgrades or self.kind._sealed or self._together is None:
            return False
        try:
            self._together(self.kind, stored)
        except (CodecError, ValueError):
            return False
        return True

    @property
    def whole(self) -> bool:
        """Whether a value is judged as one, so that parts of it must be put together first."""
        return issubclass(self.kind, Record) or self._entries is None

    def check(self, key: Callable[[], Any], stored: Any) -> Checked:
        """Judge a stored value; `key` makes the key, which few values need."""
        older = self._older(stored)
        if older is not None:
            return Checked(UNSET, [Problem("KW103", f"stored in the older shape {older!r}")])
        if issubclass(self.kind, Record):
            return self._record(key(), _mapping(stored))
        if self._entries is None:
            return self._string(stored) if self.kind.redis_type == "string" else Checked(UNSET)
        values: list[Any] = []
        problems: list[Problem] = []
        for entry in self._entries(self, stored):
            (problems if isinstance(entry, Problem) else values).append(entry)
        return Checked(dict(values) if issubclass(self.kind, Map) else values, problems)

    def expiry_problem(self, ttl_ms: int, value: Any) -> Problem | None:
        """What is wrong with the time a key has left (-1: for ever); value-bound expiries need the value."""
        bound = self.longest_ms(value)
        if bound is None:
            return None
        if ttl_ms == -1:
            return Problem("KW301", f"has no expiry, declared {self._described}")
        if ttl_ms > bound:
            return Problem("KW302", f"expires in {ttl_ms / 1000:g} s, declared {self._described}")
        return None

    def longest_ms(self, value: Any) -> int | None:
        """The longest a key may still live, with some slack; None where nothing is declared for it."""
        expiry = self.expiry
        if expiry is None:
            return None
        if expiry.longest_ms is not None:
            return expiry.longest_ms + SLACK_MS
        if value is UNSET and callable(expiry.moment):
            return None
        moment = _moment(expiry, value)
        if moment is None:
            return None
        return max(0, round(moment.timestamp() * 1000) - self.context.now_ms()) + CLOCK_SLACK_MS

    @property
    def needs_value_for_expiry(self) -> bool:
        return self.expiry is not None and callable(self.expiry.moment)

    @property
    def _described(self) -> str:
        return self.expiry.describe() if self.expiry is not None else "for ever"

    def _older(self, stored: Any) -> str | None:
        if not self.upgrades:
            return None
        try:
            form = stored if isinstance(stored, bytes) else _mapping(stored)
            opened = self._opened(form)
        except (CodecError, KeywrightError):
            return None
        return next((upgrade.version for upgrade in self.upgrades if upgrade.applies(opened)), None)

    def _opened(self, form: Any) -> Any:
        if not self.kind._sealed:
            return form
        if isinstance(form, bytes):
            return self.context.unseal(self.kind, form)
        return {name: self.context.unseal(self.kind, value) for name, value in form.items()}

    def _string(self, stored: bytes) -> Checked:
        value = self.decode(self.kind._codecs[0], stored)
        return Checked(UNSET, [value]) if isinstance(value, Problem) else Checked(value)

    def decode(self, codec: Codec[Any], data: bytes, member: bytes | None = None) -> Any:
        """A decoded value, UNSET for a seal that nothing here opens, or the problem with it."""
        try:
            if codec.sealed and not is_sealed(data) and self.can_open:
                return _in_clear(codec, member)
            if codec.sealed and is_sealed(data):
                if not self.can_open:
                    return UNSET
                data = self.context.unseal(self.kind, data)
            return codec.decode(data)
        except SealRefused as error:
            if not is_sealed(data):
                return _in_clear(codec, member)
            return Problem("KW205", f"expected {error.expected}, found {error.found}", "", member)
        except CodecError as error:
            return Problem("KW202", f"expected {error.expected}", error.found, member)

    def _record(self, key: Any, stored: Mapping[bytes, bytes]) -> Checked:
        fields = key._own_fields()
        problems = list(self._members(fields, stored))
        if problems or (not self.can_open and any(map(is_sealed, stored.values()))):
            return Checked(UNSET, problems)
        return Checked(fields.read(self._opened(stored)))

    def _members(self, fields: FieldSet[Any], stored: Mapping[bytes, bytes]) -> Iterator[Problem]:
        try:
            shape = fields.shape_of(stored)
        except CodecError as error:
            tag: bytes | None = getattr(fields, "tag", None)
            missing = tag is not None and tag not in stored
            yield Problem("KW203" if missing else "KW202", f"expected {error.expected}", error.found, tag)
            return
        for member in shape.members:
            data = stored.get(member.stored)
            if data is None:
                if member.required:
                    yield Problem("KW203", f"has no member {member.stored.decode()!r}", "", member.stored)
                continue
            found = self.decode(member.codec, data, member.stored)
            if isinstance(found, Problem):
                yield found._replace(reason=f"{found.reason} as member {member.stored.decode()!r}")

    def _set_entries(self, stored: Sequence[bytes]) -> Iterator[Any]:
        codec: Codec[Any] = self.kind._codecs[0]
        try:
            yield from codec.decode_many(stored)
        except CodecError:
            yield from (self.decode(codec, member, member) for member in stored)

    def _list_entries(self, stored: Sequence[bytes]) -> Iterator[Any]:
        codec: Codec[Any] = self.kind._codecs[0]
        return (self.decode(codec, item, item) for item in stored)

    def _sorted_entries(self, stored: Sequence[bytes]) -> Iterator[Any]:
        kind: Any = self.kind
        for member, score in _pairs(stored):
            found = self.decode(kind._codec, member, member)
            if isinstance(found, Problem):
                yield found
                continue
            try:
                yield found, kind._score.read(float(score))
            except CodecError as error:
                yield Problem("KW202", f"expected {error.expected} as score", error.found, member)

    def _map_entries(self, stored: Sequence[bytes]) -> Iterator[Any]:
        kind: Any = self.kind
        for field, data in _pairs(stored):
            name = self.decode(kind._field, field, field)
            value = self.decode(kind._value, data, field)
            yield next((part for part in (name, value) if isinstance(part, Problem)), (name, value))

    def _stream_entries(self, stored: Sequence[Any]) -> Iterator[Any]:
        kind: Any = self.kind
        for identity, flat in stored:
            members = _mapping(flat)
            problem = next(self._members(kind._fields, members), None)
            if problem is not None:
                yield problem._replace(member=identity)
            elif not kind._sealed:
                yield Entry(identity.decode(), kind._fields.read(members))


def _all_strings(kind: Any, stored: Sequence[bytes]) -> None:
    kind._codecs[0].decode_many(stored)


def _all_members(kind: Any, stored: Sequence[Sequence[bytes]]) -> None:
    kind._codecs[0].decode_many(list(chain.from_iterable(stored)))


def _all_scored(kind: Any, stored: Sequence[Sequence[bytes]]) -> None:
    flat = list(chain.from_iterable(stored))
    kind._codec.decode_many(flat[::2])
    deque(map(kind._score.read, map(float, flat[1::2])), maxlen=0)


def _all_fields(kind: Any, stored: Sequence[Sequence[bytes]]) -> None:
    flat = list(chain.from_iterable(stored))
    kind._field.decode_many(flat[::2])
    kind._value.decode_many(flat[1::2])


_TOGETHER: dict[type[Key], Callable[[Any, Sequence[Any]], None]] = {
    Set: _all_members,
    List: _all_members,
    SortedSet: _all_scored,
    Map: _all_fields,
}

_ENTRIES: dict[type[Key], Callable[[Checker, Any], Iterator[Any]]] = {
    Set: Checker._set_entries,
    List: Checker._list_entries,
    SortedSet: Checker._sorted_entries,
    Map: Checker._map_entries,
    Stream: Checker._stream_entries,
}


def _shape(kind: type[Key]) -> type[Key]:
    kinds: tuple[type[Key], ...] = (Set, List, SortedSet, Map, Stream, Value, Counter, Record)
    return next((each for each in kinds if issubclass(kind, each)), Key)


def _in_clear(codec: Codec[Any], member: bytes | None) -> Problem:
    return Problem("KW204", f"expected {codec.expected}, found plaintext", "", member)


def _moment(expiry: Expiry, value: Any) -> datetime | None:
    try:
        resolved = expiry.resolved(value)
    except (AttributeError, KeyError, TypeError, ValueError):
        return None  # the value is not of the form that the declaration's function reads
    moment = None if resolved is None else resolved.moment
    return moment if isinstance(moment, datetime) else None


def _mapping(stored: Any) -> Mapping[bytes, bytes]:
    return stored if isinstance(stored, Mapping) else dict(_pairs(stored))


def _pairs(flat: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
    half = iter(flat)
    return zip(half, half, strict=True)
