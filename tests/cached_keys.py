"""Cached keys of each kind, and what tests of the cache ask of both engines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import msgspec

from engines import Asyncio, Blocking
from keywright import (
    CacheStats,
    Call,
    Counter,
    Geo,
    Id,
    Keyspace,
    List,
    Map,
    Record,
    RoundTrip,
    Sealed,
    Set,
    SortedSet,
    Value,
)
from keywright.testing import wait_until

shelf = Keyspace("shelf", "Keys whose reads are cached, and one whose reads are not.")

OpenCached = Callable[..., "Cached"]


class Person(msgspec.Struct):
    name: str
    age: int


class Word(Value[str], key="word:<word>", space=shelf, cached=True):
    """A text."""

    word: Id


class Total(Counter, key="total:<total>", space=shelf, cached=True):
    """A number."""

    total: Id


class Member(Record[Person], key="member:<member>", space=shelf, cached=True):
    """A person."""

    member: Id


class Price(Map[str, int], key="price:<shop>", space=shelf, cached=True):
    """Prices by name."""

    shop: Id


class Tags(Set[str], key="tags:<item>", space=shelf, cached=True):
    """Texts."""

    item: Id


class Ranks(SortedSet[str, int], key="ranks:<game>", space=shelf, cached=True):
    """Points by player."""

    game: Id


class Lines(List[str], key="lines:<file>", space=shelf, cached=True):
    """Texts in order."""

    file: Id


class Places(Geo[str], key="places:<town>", space=shelf, cached=True):
    """Places by name."""

    town: Id


class Plain(Value[str], key="plain:<word>", space=shelf):
    """A text that is read from the server each time."""

    word: Id


vault = Keyspace("vault", "Sealed values.")


class Token(Value[Annotated[str, Sealed]], key="token:<user>", space=vault, cached=True):
    """A secret."""

    user: Id


class Cached:
    """An open database of either engine, with the number of its round trips."""

    def __init__(self, engine: Blocking | Asyncio, trips: list[RoundTrip]) -> None:
        self.engine = engine
        self.trips = trips

    def run(self, call: Call[Any]) -> Any:
        return self.engine.run(call)

    def settled(self, seconds: float = 20.0) -> bool:
        """Wait until changes are tracked, and those that were acknowledged before are known."""
        if isinstance(self.engine, Asyncio):
            return self.engine.wait(self.engine.database.settle_cache(seconds))
        return self.engine.database.settle_cache(seconds)

    def settle(self) -> None:
        wait_until(self.settled, "changes are tracked")

    @property
    def stats(self) -> CacheStats:
        return self.engine.database.cache_stats()

    def trips_of(self, call: Call[Any]) -> int:
        """Return how many round trips a call makes."""
        before = len(self.trips)
        self.run(call)
        return len(self.trips) - before

    def warm(self) -> None:
        """Make the database know that there are cached keys, and settle."""
        self.run(Word("warm").get())
        self.settle()
