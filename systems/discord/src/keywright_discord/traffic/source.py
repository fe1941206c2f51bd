"""The random source of traffic: one seed gives the same traffic everywhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, Generic, TypeVar

T = TypeVar("T")
Json = dict[str, Any]

_START = datetime(2026, 8, 1, tzinfo=UTC)
_DISCORD_EPOCH = datetime(2015, 1, 1, tzinfo=UTC)
_WORDS = (
    *("rain", "anvil", "lantern", "quartz", "meadow", "harbour", "violet", "ember", "pixel", "noodle"),
    *("falcon", "tundra", "cobalt", "saffron", "orbit", "willow", "granite", "marble", "copper", "raven"),
    *("雪", "ночь", "café", "naïve", "🌊", "über"),
)


class Source:
    """Random choices, time and ids. Ids are unique and above 2^53, as Discord's are."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self._ms = (_START - _DISCORD_EPOCH) // timedelta(milliseconds=1)

    def snowflake(self) -> str:
        random = self.random
        self._ms += 1 + int(random.random() * 40)
        return str(self._ms << 22 | int(random.random() * (1 << 22)))

    def time(self) -> str:
        """Return the simulated time in Discord's format."""
        return (_DISCORD_EPOCH + timedelta(milliseconds=self._ms)).isoformat(timespec="microseconds")

    def past(self) -> str:
        """Return a time in the last three years."""
        days = self.random.random() * 1000
        return (_START - timedelta(days=days)).isoformat(timespec="microseconds")

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def number(self, below: int) -> int:
        return int(self.random.random() * below)

    def pick(self, options: Sequence[T]) -> T:
        return options[int(self.random.random() * len(options))]

    def some(self, options: Sequence[T], most: int) -> list[T]:
        """Return up to `most` different options."""
        return self.random.sample(options, min(len(options), self.number(most + 1)))

    def hexadecimal(self) -> str:
        return f"{self.random.getrandbits(128):032x}"

    def maybe_hash(self, share: float) -> str | None:
        return self.hexadecimal() if self.chance(share) else None

    def words(self, count: int) -> str:
        return " ".join(self.pick(_WORDS) for _ in range(count))


class Bag(Generic[T]):
    """Items by id; one can be picked or removed at random in constant time."""

    def __init__(self) -> None:
        self._things: dict[str, T] = {}
        self._ids: list[str] = []
        self._places: dict[str, int] = {}

    def put(self, identity: str, thing: T) -> T:
        if identity not in self._things:
            self._places[identity] = len(self._ids)
            self._ids.append(identity)
        self._things[identity] = thing
        return thing

    def drop(self, identity: str) -> None:
        if identity not in self._things:
            return
        place, last = self._places.pop(identity), self._ids.pop()
        if last != identity:
            self._ids[place] = last
            self._places[last] = place
        del self._things[identity]

    def any_id(self, source: Source) -> str | None:
        return source.pick(self._ids) if self._ids else None

    def any(self, source: Source) -> T | None:
        return self._things[source.pick(self._ids)] if self._ids else None

    def get(self, identity: str) -> T | None:
        return self._things.get(identity)

    @property
    def ids(self) -> Sequence[str]:
        return self._ids

    def values(self) -> Iterator[T]:
        return iter(self._things.values())

    def __contains__(self, identity: str) -> bool:
        return identity in self._things

    def __len__(self) -> int:
        return len(self._ids)
