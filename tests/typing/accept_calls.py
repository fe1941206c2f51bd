"""What composed calls, relations and both engines give."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any, assert_type

from typed_keys import (
    EVENT,
    SERIES,
    Details,
    EventId,
    Happening,
    SeriesEvents,
    SeriesId,
    Total,
    Visits,
    all_events,
    event_series,
    tags,
    twins,
)

from keywright import (
    AsyncDatabase,
    Call,
    Context,
    Database,
    Effect,
    Finding,
    Server,
    aconnect,
    atomic,
    check,
    connect,
    erase,
    gather,
    gather_list,
    raw,
)
from keywright.errors import KeywrightError

get, size, number = Happening(EVENT).get(), SeriesEvents(SERIES).size(), Total().get()

assert_type(gather(get, size), Call[tuple[Details | None, int]])
assert_type(gather(get, size, number), Call[tuple[Details | None, int, int]])
assert_type(gather(get, size, number, get, size), Call[tuple[Details | None, int, int, Details | None, int]])
assert_type(gather(size, size, size, size, size, size), Call[tuple[int, ...]])
assert_type(gather_list([size, number]), Call[list[int]])
assert_type(raw(b"STRLEN", "a", as_type=int, effect=Effect.READ), Call[int])
assert_type(raw(b"LRANGE", "a", 0, -1, as_type=list[str]), Call[list[str]])
assert_type(raw(b"PING"), Call[Any])
assert_type(atomic(get, size), Call[tuple[Details | None, int]])
assert_type(atomic(size, number, spread=True), Call[tuple[int, int]])
assert_type(size.map(str), Call[str])
assert_type(size.attempt(), Call[int | KeywrightError])

mixed: list[Call[object]] = [get, size, number]
anything: Call[object] = gather_list(mixed)

assert_type(event_series.of(EVENT), Call[SeriesId | None])
assert_type(event_series.inverse_of(SERIES), Call[set[EventId]])
assert_type(event_series.assign(EVENT, SERIES), Call[bool])
assert_type(event_series.assign(EVENT, SERIES, also=[number]), Call[bool])
assert_type(twins.inverse_of(SERIES), Call[EventId | None])
assert_type(twins.replace(EVENT, SERIES), Call[bool])
assert_type(tags.of(EVENT), Call[set[SeriesId]])
assert_type(tags.replace(EVENT, [SERIES]), Call[bool])
assert_type(all_events.members(), Call[set[EventId]])
assert_type(erase(Happening(EVENT)), Call[bool])
assert_type(check(Happening._space), list[Finding])


def with_threads() -> None:
    with connect() as db:
        assert_type(db, Database)
        assert_type(db.run(get), Details | None)
        details, guests = db.run(gather(get, SeriesEvents(SERIES).members()))
        assert_type(details, Details | None)
        assert_type(guests, set[EventId])
        assert_type(db.scan(Visits), Iterator[Visits])
        assert_type(db.server(), Server)
        assert_type(db.context, Context)


async def with_asyncio() -> None:
    async with aconnect("redis://localhost") as db:
        assert_type(db, AsyncDatabase)
        assert_type(await db.run(size), int)
        assert_type(await db.run(gather(get, size)), tuple[Details | None, int])
        assert_type(db.scan(Visits), AsyncIterator[Visits])
    assert_type(await aconnect(), AsyncDatabase)
