"""What the operations of every kind give."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, assert_type

from typed_keys import (
    EVENT,
    SERIES,
    Details,
    Due,
    EventId,
    Expiring,
    Happening,
    Level,
    Log,
    Names,
    Note,
    Ranking,
    Readers,
    Recent,
    Seats,
    SeriesEvents,
    SeriesId,
    SeriesOf,
    Small,
    Stops,
    Tallies,
    Token,
    Total,
    Visits,
)

from keywright import Call, Entry, Near, Point, Secret

NOW = datetime(2019, 8, 8, tzinfo=UTC)
details = Details("Redis night", NOW)

key = Happening(EVENT)
assert_type(key, Happening)
assert_type(key.event, EventId)
assert_type(Note(1, 2), Note)
assert_type(Note(user=1, number=2).number, int)
assert_type(Note.parse(b"note:1:2"), Note | None)
assert_type(Total(), Total)

assert_type(key.exists(), Call[bool])
assert_type(key.delete(), Call[bool])
assert_type(key.ttl(), Call[timedelta | None])
assert_type(key.stored_type(), Call[str])
assert_type(key.dump(), Call[bytes | None])

assert_type(key.get(), Call[Details | None])
assert_type(key.put(details), Call[None])
assert_type(key.create(details), Call[bool])
assert_type(key.update(name="Valkey night"), Call[bool])
assert_type(key.pick("name"), Call[dict[str, Any]])
assert_type(Happening.get_many([EVENT, key]), Call[list[Details | None]])

assert_type(Visits(1).get(), Call[int | None])
assert_type(Visits(1).set(2), Call[bool])
assert_type(Visits(1).swap(2), Call[int | None])
assert_type(Visits(1).take(), Call[int | None])
assert_type(Visits.get_many([1, 2]), Call[list[int | None]])
assert_type(SeriesOf(EVENT).get(), Call[SeriesId | None])
assert_type(Note(1, 2).append("more"), Call[int])
assert_type(Token(1).get(), Call[Secret[str] | None])
assert_type(Token(1).set(Secret("hidden")), Call[bool])

assert_type(Total().get(), Call[int])
assert_type(Total().add(2), Call[int])
assert_type(Total().set(2), Call[None])

assert_type(SeriesEvents(SERIES).add(EVENT), Call[int])
assert_type(SeriesEvents(SERIES).members(), Call[set[EventId]])
assert_type(SeriesEvents(SERIES).has_many([EVENT]), Call[dict[EventId, bool]])
assert_type(SeriesEvents(SERIES).pop(), Call[EventId | None])
assert_type(SeriesEvents(SERIES).scan(), Call[tuple[int, list[EventId]]])
assert_type(SeriesEvents(SERIES).union(SeriesEvents(SERIES)), Call[set[EventId]])

assert_type(Ranking("a").add("b", 1.5), Call[bool])
assert_type(Ranking("a").add("b", 1), Call[bool])
assert_type(Ranking("a").range(), Call[list[tuple[str, float]]])
assert_type(Ranking("a").score("b"), Call[float | None])
assert_type(Due().add("b", NOW), Call[bool])
assert_type(Due().range_by_score(high=NOW, limit=10), Call[list[tuple[str, datetime]]])
assert_type(Due().scores(["b"]), Call[dict[str, datetime]])
assert_type(Expiring().add("b", None), Call[bool])
assert_type(Expiring().range(), Call[list[tuple[str, datetime | None]]])

assert_type(Names().get(1), Call[str | None])
assert_type(Names().all(), Call[dict[int, str]])
assert_type(Names().put(1, "a"), Call[bool])
assert_type(Tallies().add("a", 2), Call[int])

assert_type(Recent(1).push("a", "b", end="left"), Call[int])
assert_type(Recent(1).range(), Call[list[str]])
assert_type(Recent(1).pop(), Call[str | None])
assert_type(Recent(1).wait(timedelta(seconds=1)), Call[str | None])

assert_type(Readers().add(EVENT), Call[bool])
assert_type(Readers().estimate(Readers()), Call[int])
assert_type(Readers().merge(Readers()), Call[None])

assert_type(Stops().add(EVENT, Point(1, 2)), Call[bool])
assert_type(Stops().position(EVENT), Call[Point | None])
assert_type(Stops().within(EVENT, 10), Call[list[Near[EventId]]])
assert_type(Seats().set(1), Call[bool])
assert_type(Seats().get_many([1]), Call[dict[int, bool]])
assert_type(Seats().first(), Call[int | None])
assert_type(Level().get(), Call[Small])
assert_type(Level().put(Small(1)), Call[None])
assert_type(Level().add("level"), Call[int | None])

assert_type(Log().add(details), Call[str])
assert_type(Log().range(), Call[list[Entry[Details]]])
assert_type(Log().consume("group", "me", count=10), Call[list[Entry[Details]]])
assert_type(Log().claim("group", "me", "1-0", idle=timedelta(0)), Call[list[Entry[Details]]])
assert_type(Log().create_groups(), Call[list[str]])
