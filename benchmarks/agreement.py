"""How far an inferred declaration agrees with the declared one, key by key, on what a server holds."""

from __future__ import annotations

import enum
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

import msgspec

from keywright import Binding, CodecError, Key, Secret
from keywright.keyspace import Codec
from keywright.keyspace.layouts import LAYOUTS
from keywright.keyspace.storage import EntryPart
from keywright.testing import RedisServer

__all__ = ["Score", "Stored", "pairwise_f1", "score_of", "stored_in"]

MOST_ENTRIES = 50
GONE = -2
"""The reply to PTTL for a key that expired since its type was read, or that was read after it had expired."""
_SAME_KIND = {"counter": "value", "claim": "value", "lease": "value", "due queue": "sorted set"}
"""By storage: nothing in a database says that a number is counted up, or that a text is a lock."""


class Score(NamedTuple):
    """The measures of one system, each a share of 1, and the classes."""

    measures: dict[str, float]
    inferred: int
    declared: int
    names: int
    grouping: list[tuple[type[Key], type[Key]]]
    """The declared and the inferred class of each key that has both."""


class Stored(NamedTuple):
    """A key as a server has it: the beginning of its value in stored form, and whether it expires."""

    redis_type: str
    value: Any
    expires: bool


def stored_in(server: RedisServer) -> dict[bytes, Stored]:
    """Read all keys of a server, of each at most `MOST_ENTRIES` entries."""
    found: dict[bytes, Stored] = {}
    with server.wire() as wire:
        names: Any = wire.call("KEYS", "*")
        for name in names:
            redis_type = wire.text("TYPE", name)
            layout = LAYOUTS.get(redis_type)
            if layout is not None:
                value: Any = wire.call(*layout.everything.on(name))
                ttl: Any = wire.call("PTTL", name)
                if ttl == GONE:
                    continue
                most = MOST_ENTRIES * layout.width
                kept = value if isinstance(value, bytes) else value[:most]
                found[name] = Stored(redis_type, kept, ttl >= 0)
    return found


def score_of(
    stored: Mapping[bytes, Stored],
    bindings: Sequence[Binding],
    found_key: Callable[[bytes], Key | None],
    *,
    inferred: int,
    coverage: float,
) -> Score:
    """Compare declarations with the inferred key of each name."""
    pairs = []
    for name, what in stored.items():
        truth = declared_key(name, bindings)
        if truth is not None:
            pairs.append((truth, found_key(name), what))
    expiring: dict[type[Key], set[bool]] = defaultdict(set)
    for truth, _, what in pairs:
        expiring[type(truth)].add(what.expires)
    grouping = [(type(truth), type(found)) for truth, found, _ in pairs]
    return Score(
        {
            "F1": pairwise_f1(grouping),
            "kind": _mean(_kind(truth) == _kind(found) for truth, found in grouping),
            "codec": _mean(_codecs_agree(*pair) for pair in pairs),
            "expiry": _mean(_expires(found) == expiring[truth] for truth, found in grouping),
            "coverage": coverage,
        },
        inferred,
        len({truth for truth, _ in grouping}),
        len(stored),
        [(type(truth), type(found)) for truth, found, _ in pairs if found is not None],
    )


def pairwise_f1(groups: Sequence[tuple[object, object]]) -> float:
    """Return the harmonic mean of precision and recall of the pairs of keys that are of one class."""
    both, truth, found = (
        sum(count * (count - 1) // 2 for count in Counter(labels).values())
        for labels in (groups, [label for label, _ in groups], [label for _, label in groups])
    )
    return 2 * both / (truth + found) if truth + found else 1.0


def declared_key(name: bytes, bindings: Sequence[Binding]) -> Key | None:
    for binding in bindings:
        if name.startswith(binding.lead):
            rest = name[len(binding.lead) :]
            key = next((key for kind in binding.space if (key := kind.parse(rest)) is not None), None)
            if key is not None:
                return key
    return None


def _mean(shares: Iterator[float] | Sequence[float] | Any) -> float:
    listed = [float(each) for each in shares]
    return sum(listed) / len(listed) if listed else 1.0


def _kind(kind: type) -> str:
    name = getattr(kind, "kind", "none")
    return _SAME_KIND.get(name, name)


def _expires(kind: type) -> set[bool]:
    """Return what a class declares: all of its keys expire, none does, or some do."""
    expiry = kind.declaration.expiry if issubclass(kind, Key) else None
    if expiry is None:
        return {False}
    return {False, True} if expiry.optional else {True}


def _codecs_agree(truth: Key, found: Key | None, stored: Stored) -> float:
    """Return the share of the stored parts that the found codecs read as the declared ones do."""
    if type(truth).redis_type != stored.redis_type or found is None:
        return 0.0
    declared = _parts(truth, stored.value)
    if not declared:
        return 1.0
    if type(found).redis_type != stored.redis_type:
        return 0.0
    ours = {(part.entry, part.role, part.data): part.codec for part in _parts(found, stored.value)}
    return _mean(
        _agree(part.codec, ours.get((part.entry, part.role, part.data)), part.data) for part in declared
    )


def _parts(key: Key, value: Any) -> list[EntryPart]:
    storage = type(key).declaration.storage
    try:
        return [part for entry in storage.entries(value, key) for part in entry.parts]
    except (CodecError, NotImplementedError):
        return []


def _agree(truth: Codec[Any], found: Codec[Any] | None, data: bytes) -> bool:
    """Return whether two codecs read bytes as the same value.

    What a system's own codec makes of bytes cannot be found: then a text, bytes or a document will do.
    """
    if found is None:
        return False
    try:
        read = found.decode(data)
        if truth.sealed:
            return isinstance(read, bytes)
        meant = truth.decode(data)
    except CodecError:
        return False
    if isinstance(meant, Secret):
        meant = meant.reveal()
    own = not type(truth).__module__.startswith("keywright.")
    return _same(_plain(meant), _plain(read), of_digits=_is_of_digits(truth)) or (
        own and isinstance(_plain(read), str | bytes | dict | list)
    )


def _is_of_digits(codec: Codec[Any]) -> bool:
    """Return whether a codec writes nothing but digits, as those of ids that are kept as text."""
    try:
        samples = [codec.encode(sample) for sample in codec.samples]
    except CodecError:
        return False
    return bool(samples) and all(sample.lstrip(b"-").isdigit() for sample in samples)


def _same(meant: Any, read: Any, *, of_digits: bool) -> bool:
    for one, other in ((meant, read), (read, meant)):
        if isinstance(one, datetime) and isinstance(other, int | float):
            seconds = one.timestamp()
            return any(abs(number - other) < 1 for number in (seconds, seconds * 1000))
        if isinstance(one, timedelta) and isinstance(other, int | float):
            return one.total_seconds() == other  # nothing stored shows that a number is a duration
    if of_digits and not isinstance(meant, bool):
        return str(meant) == str(read)
    return (type(meant) is type(read) and bool(meant == read)) or _numbers(meant, read)


def _numbers(meant: Any, read: Any) -> bool:
    """Return whether two numbers are equal: a whole float may be an integer, and a flag 0 or 1."""
    return isinstance(meant, int | float) and isinstance(read, int | float) and meant == read


def _plain(value: Any) -> Any:
    """Return a value as texts, numbers and containers, without members that are empty."""
    match value:
        case enum.Enum():
            return _plain(value.value)
        case UUID() | date() if not isinstance(value, datetime):
            return str(value)
        case Decimal():
            return float(value)
        case str() | bytes() | int() | float() | datetime() | timedelta() | None:
            return value
        case dict():
            return {_text(name): plain for name, each in value.items() if (plain := _plain(each))}
        case list() | tuple() | set() | frozenset():
            return [_plain(each) for each in value]
    try:
        return _plain(msgspec.to_builtins(value))
    except TypeError:
        return type(value).__name__


def _text(name: Any) -> str:
    return name.decode("utf-8", "replace") if isinstance(name, bytes) else str(name)
