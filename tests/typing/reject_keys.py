"""Wrong keys and wrong values. Each marked line is refused by both checkers; nothing else is."""

from __future__ import annotations

from datetime import UTC, datetime

from typed_keys import (
    EVENT,
    SERIES,
    Due,
    Happening,
    Log,
    Names,
    Note,
    Ranking,
    Recent,
    SeriesEvents,
    SeriesOf,
    Token,
    Total,
    Visits,
)

NOW = datetime(2019, 8, 8, tzinfo=UTC)

Visits("1")  # E: mypy[arg-type] pyright[reportArgumentType]
Visits()  # E: mypy[call-arg] pyright[reportCallIssue]
Note(1)  # E: mypy[call-arg] pyright[reportCallIssue]
Note(1, 2, 3)  # E: mypy[call-arg] pyright[reportCallIssue]
Note(1, place=2)  # E: mypy[call-arg] pyright[reportCallIssue]
Total("x")  # E: mypy[call-arg] pyright[reportCallIssue]
Happening("abc")  # E: mypy[arg-type] pyright[reportArgumentType]
Happening(SERIES)  # E: mypy[arg-type] pyright[reportArgumentType]
Visits(1).user = 2  # E: mypy[misc] pyright[reportAttributeAccessIssue]
Visits(1).nothing  # E: mypy[attr-defined] pyright[reportAttributeAccessIssue]

Visits(1).set("2")  # E: mypy[arg-type] pyright[reportArgumentType]
Visits(1).set(None)  # E: mypy[arg-type] pyright[reportArgumentType]
Visits(1).append("2")  # E: mypy[misc] pyright[reportAttributeAccessIssue]
Visits(1).set(2, when="sometimes")  # E: mypy[arg-type] pyright[reportArgumentType]
SeriesOf(EVENT).set(EVENT)  # E: mypy[arg-type] pyright[reportArgumentType]
Token(1).set("in clear")  # E: mypy[arg-type] pyright[reportArgumentType]
Total().add("2")  # E: mypy[arg-type] pyright[reportArgumentType]
Happening(EVENT).put({"name": "a"})  # E: mypy[arg-type] pyright[reportArgumentType]

SeriesEvents(SERIES).add(1)  # E: mypy[arg-type] pyright[reportArgumentType]
SeriesEvents(SERIES).add(EVENT, SERIES)  # E: mypy[arg-type] pyright[reportArgumentType]
SeriesEvents(SERIES).move(EVENT, Recent(1))  # E: mypy[arg-type] pyright[reportArgumentType]
Ranking("a").add("b", NOW)  # E: mypy[arg-type] pyright[reportArgumentType]
Due().add("b", 1.5)  # E: mypy[arg-type] pyright[reportArgumentType]
Due().add("b", None)  # E: mypy[arg-type] pyright[reportArgumentType]
Due().range_by_score(low=3)  # E: mypy[arg-type] pyright[reportArgumentType]
Names().put("1", "a")  # E: mypy[arg-type] pyright[reportArgumentType]
Names().add(1)  # E: mypy[misc] pyright[reportAttributeAccessIssue]
Recent(1).push("a", end="middle")  # E: mypy[arg-type] pyright[reportArgumentType]
Log().add("a line")  # E: mypy[arg-type] pyright[reportArgumentType]
