"""Wrong calls, relations and runs. Each marked line is refused by both checkers; nothing else is."""

from __future__ import annotations

from typed_keys import (
    EVENT,
    SERIES,
    Happening,
    Level,
    Readers,
    Seats,
    SeriesEvents,
    SeriesOf,
    Stops,
    TagEvents,
    Total,
    Visits,
    event_series,
    tags,
)

import keywright
from keywright import aconnect, connect, gather, many_to_one

keywright.nonsense()  # E: mypy[attr-defined] pyright[reportAttributeAccessIssue]

event_series.assign(SERIES, EVENT)  # E: mypy[arg-type] pyright[reportArgumentType]
event_series.of(SERIES)  # E: mypy[arg-type] pyright[reportArgumentType]
tags.replace(EVENT, [EVENT])  # E: mypy[list-item] pyright[reportArgumentType]
many_to_one(SeriesEvents, inverse=TagEvents)  # E: mypy[arg-type] pyright[reportArgumentType]
many_to_one(SeriesOf)  # E: mypy[call-arg] pyright[reportCallIssue]

gather(Total().get(), 3)  # E: mypy[call-overload] pyright[reportArgumentType,reportCallIssue]
Total().get() + 1  # E: mypy[operator] pyright[reportOperatorIssue]
Total().get().map(len)  # E: mypy[arg-type] pyright[reportArgumentType]

Readers().add(5)  # E: mypy[arg-type] pyright[reportArgumentType]
Readers().merge(SeriesEvents(SERIES))  # E: mypy[arg-type] pyright[reportArgumentType]
Seats().set("1")  # E: mypy[arg-type] pyright[reportArgumentType]
Seats().count(unit="word")  # E: mypy[arg-type] pyright[reportArgumentType]
Level().put(EVENT)  # E: mypy[arg-type] pyright[reportArgumentType]
Stops().add(EVENT, (1, 2))  # E: mypy[arg-type] pyright[reportArgumentType]


def with_threads() -> None:
    with connect() as db:
        db.run(Total())  # E: mypy[arg-type] pyright[reportArgumentType]
        db.run(Total().get)  # E: mypy[arg-type] pyright[reportArgumentType]
        db.run(Happening(EVENT).get()).name  # E: mypy[union-attr] pyright[reportOptionalMemberAccess]
        number: str = db.run(Total().get())  # E: mypy[assignment] pyright[reportAssignmentType]
        print(number)
        db.scan(Visits(1))  # E: mypy[arg-type] pyright[reportArgumentType]
    with aconnect() as other:  # E: mypy[attr-defined] pyright[reportGeneralTypeIssues]
        print(other)


async def with_asyncio() -> None:
    with connect() as db:
        await db.run(Total().get())  # E: mypy[misc] pyright[reportGeneralTypeIssues]
    async with aconnect() as other:
        total: int = other.run(Total().get())  # E: mypy[assignment] pyright[reportAssignmentType]
        print(total)
