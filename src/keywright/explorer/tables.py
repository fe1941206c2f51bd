"""Tables: typed columns, rows, and what a view does with them: filter, sort, count frequent values.

Pure data. Values are decoded ones; a secret is a `Hidden` and is neither compared nor counted.
"""

from __future__ import annotations

import contextlib
import enum
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple

import msgspec

from keywright.errors import UsageError
from keywright.keyspace.kinds.hyperloglog import Estimate
from keywright.tools.describe.inspection import Hidden
from keywright.tools.describe.plain import plain

__all__ = [
    "TESTS",
    "Column",
    "Facet",
    "Filter",
    "Row",
    "cell_text",
    "facets",
    "filtered",
    "is_empty",
    "moment_of",
    "natural",
    "ordered",
    "telling",
]

TESTS = {
    "eq": "is",
    "ne": "is not",
    "contains": "contains",
    "lt": "<",
    "gt": ">",
    "empty": "is empty",
    "filled": "is not empty",
}
MOST_FACETS, MOST_CHOICES = 5, 8
LONGEST_CHOICE = 60
_DIGITS = re.compile(r"(\d{1,40})")
_SIZES = {"": 1, "b": 1, "k": 1024, "kib": 1024, "m": 1 << 20, "mib": 1 << 20, "g": 1 << 30, "gib": 1 << 30}
_SPANS = {"ms": 0.001, "": 1, "s": 1, "min": 60, "h": 3600, "d": 86_400, "y": 31_557_600}
_MEASURE = re.compile(r"\s*([\d.]+)\s*([a-zA-Z]*)\s*")


class Column(msgspec.Struct, frozen=True):
    """One column; `sort` is number, time, truth, choice, text, bytes, data (it has parts), span or size."""

    id: str
    title: str
    sort: str = "text"
    words: str = ""
    choices: tuple[str, ...] = ()
    secret: bool = False
    role: str = "value"
    """variable, value, count (entries of a collection), or fact: what the server knows about a key."""

    @property
    def is_numeric(self) -> bool:
        return self.sort in ("number", "span", "size") and self.role != "variable"


class Row(msgspec.Struct):
    """One row. `problems` are the reasons of cells that do not decode; `note` is about the whole row."""

    name: bytes
    """The full name of a key, or the stored name of an entry."""
    url: str
    values: dict[str, Any]
    problems: dict[str, str] = {}
    note: str = ""
    harmless: bool = False
    """Whether the note is not about a fault: the value is too large, or not read."""
    stored: Any = None
    """The stored form, for following references."""
    key: Any = None


class Filter(NamedTuple):
    """One test of a column; `to` is the text that a person typed."""

    column: str
    test: str
    to: str = ""


class Facet(NamedTuple):
    """The most frequent values of a column, with their counts; `others` have other values."""

    column: Column
    values: list[tuple[str, int]]
    others: int


def is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, str | bytes | list | tuple | dict | set) and not value)


def cell_text(value: Any) -> str:
    """Return a value as one text: JSON for objects and arrays, base64 for bytes that are not text."""
    if value is None:
        return ""
    if isinstance(value, str) and not isinstance(value, enum.Enum):
        return value
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            pass
    if isinstance(value, Estimate):
        return str(int(value))
    if isinstance(value, dict | list):
        with contextlib.suppress(TypeError):  # a type that only `plain` knows
            return msgspec.json.encode(value).decode()
    written = plain(value)
    if isinstance(written, bool):
        return "true" if written else "false"
    if isinstance(written, str):
        return written
    if isinstance(written, int | float):
        return str(written)
    return msgspec.json.encode(written).decode()


def natural(text: str) -> list[str | int]:
    """Return a sort key that compares digits as numbers, so that 9 comes before 10."""
    return [int(part) if place % 2 else part for place, part in enumerate(_DIGITS.split(text))]


def moment_of(text: str) -> datetime | None:
    """Parse an ISO 8601 time; without a zone it is UTC. None for other texts."""
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def _rank(value: Any, column: Column) -> tuple[int, Any]:
    """Return a key by which any two values of a column can be compared."""
    if isinstance(value, enum.Enum) and not isinstance(value, Hidden):
        value = value.value
    if isinstance(value, bool):
        return 0, int(value)
    if isinstance(value, int | float | Decimal):
        return (1, value) if not (isinstance(value, float) and math.isnan(value)) else (2, 0)
    if isinstance(value, datetime):
        return 3, (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp()
    if isinstance(value, timedelta):
        return 1, value.total_seconds()
    if isinstance(value, date):
        return 4, natural(value.isoformat())
    if column.sort == "time" and isinstance(value, str) and (moment := moment_of(value)) is not None:
        return 3, moment.timestamp()
    return 4, natural(cell_text(value)[:400].casefold())


def _operand(column: Column, text: str) -> tuple[int, Any]:
    """Return the key of a typed text. Raise UsageError if it is not a value of the column."""
    asked = text.strip()
    if column.sort in ("number", "span", "size"):
        number = _number(column, asked)
        if number is None:
            raise UsageError(
                f"{column.title!r} is compared with {_EXPECTED[column.sort]}, got {text[:80]!r}."
            )
        return 1, number
    if column.sort == "time":
        moment = moment_of(asked)
        if moment is None:
            raise UsageError(
                f"{column.title!r} is compared with a time, as in 2026-01-31T12:00, got {text[:80]!r}."
            )
        return 3, moment.timestamp()
    if column.sort == "truth":
        return 0, int(asked.casefold() in ("true", "yes", "1"))
    return 4, natural(text[:400].casefold())


_EXPECTED = {
    "number": "a number",
    "span": "a duration, as in 30 min or 3600",
    "size": "a size, as in 4 KiB or 4096",
}


def _number(column: Column, text: str) -> float | int | None:
    if column.sort == "number":
        try:
            return int(text) if re.fullmatch(r"[+-]?\d{1,60}", text) else _finite(float(text))
        except ValueError:
            return None
    measure = _MEASURE.fullmatch(text)
    units = _SPANS if column.sort == "span" else _SIZES
    if measure is None or measure[2].casefold() not in units:
        return None
    try:
        number = float(measure[1]) * units[measure[2].casefold()]
    except ValueError:
        return None
    return number * 1000 if column.sort == "span" else number  # times to live are in ms


def _finite(number: float) -> float | None:
    return None if math.isnan(number) else number


def _test_of(column: Column, chosen: Filter) -> Callable[[Any], bool]:
    if column.secret:
        raise UsageError(f"{column.title!r} is secret, so it is neither filtered nor sorted.")
    if chosen.test == "empty":
        return is_empty
    if chosen.test == "filled":
        return lambda value: not is_empty(value)
    if chosen.test == "contains":
        needle = chosen.to.casefold()
        return lambda value: needle in cell_text(value).casefold()
    if chosen.test in ("eq", "ne"):
        wanted = chosen.test == "eq"
        if column.sort in ("number", "span", "size", "time", "truth"):
            operand = _operand(column, chosen.to)
            return lambda value: (value is not None and _rank(value, column) == operand) is wanted
        return lambda value: (value is not None and cell_text(value) == chosen.to) is wanted
    if chosen.test not in ("lt", "gt"):
        raise UsageError(f"{chosen.test[:40]!r} is not a test. Use one of {', '.join(TESTS)}.")
    operand = _operand(column, chosen.to)

    def compared(value: Any) -> bool:
        if value is None:
            return False
        rank = _rank(value, column)
        if rank[0] != operand[0]:
            return False
        return bool(rank < operand if chosen.test == "lt" else rank > operand)

    return compared


def filtered(rows: Iterable[Row], columns: Mapping[str, Column], filters: Sequence[Filter]) -> list[Row]:
    """Return the rows that pass all tests. Raise UsageError for a test that cannot be made."""
    tests = []
    for each in filters:
        column = columns.get(each.column)
        if column is None:
            column = Column(each.column, each.column)  # a member that no object read so far has
        tests.append((each.column, _test_of(column, each)))
    return [
        row
        for row in rows
        if all(
            not isinstance(row.values.get(name), Hidden) and test(row.values.get(name))
            for name, test in tests
        )
    ]


def ordered(rows: Sequence[Row], column: Column | None, *, descending: bool) -> list[Row]:
    """Return the rows sorted by a column, rows without a value last."""
    if column is None:
        return list(rows)
    if column.secret:
        raise UsageError(f"{column.title!r} is secret, so it is neither filtered nor sorted.")
    there: list[Row] = []
    without: list[Row] = []
    for row in rows:
        value = row.values.get(column.id)
        (without if value is None or isinstance(value, Hidden) else there).append(row)
    there.sort(key=lambda row: _rank(row.values[column.id], column), reverse=descending)
    return there + without


def telling(rows: Sequence[Row], columns: Sequence[Column], names: Sequence[str]) -> list[Column]:
    """Return columns with those last that say nothing here: empty ones, and those that repeat a name."""

    def says(column: Column) -> bool:
        own = [row.values.get(column.id) for row in rows]
        if all(map(is_empty, own)) and not any(column.id in row.problems for row in rows):
            return False
        return not any(own == [row.values.get(name) for row in rows] for name in names)

    filled = {column.id: says(column) for column in columns} if rows else {}
    return sorted(columns, key=lambda column: not filled.get(column.id, True))


def _varies(rows: Sequence[Row], column: Column) -> bool:
    """Return whether the first rows show that nearly every value is another one."""
    first = [row.values.get(column.id) for row in rows[:40]]
    scalars = {value for value in first if isinstance(value, str | int | float)}
    return len(scalars) > 20


def facets(rows: Sequence[Row], columns: Iterable[Column]) -> list[Facet]:
    """Return the frequent values of the columns that are like enumerations."""
    found = []
    for column in columns:
        if (
            column.secret
            or column.role in ("count", "fact")
            or column.sort not in ("choice", "truth", "text", "number", "data")
        ):
            continue
        if column.sort not in ("choice", "truth") and _varies(rows, column):
            continue
        counts = Counter(
            text
            for row in rows
            if (value := row.values.get(column.id)) is not None
            and not isinstance(value, Hidden | dict | list | tuple | bytes)
            and len(text := cell_text(value)) <= LONGEST_CHOICE
            and text
        )
        many = sum(counts.values())
        enough = column.sort in ("choice", "truth") or (many >= 4 and len(counts) <= max(2, many // 4))
        ids = column.role != "variable" and all(text.isdigit() and len(text) > 12 for text in counts)
        many_numbers = column.sort == "number" and len(counts) > MOST_CHOICES
        if len(counts) > 1 and enough and not many_numbers and not ids:
            values = sorted(counts.most_common(MOST_CHOICES), key=lambda each: (-each[1], natural(each[0])))
            found.append(Facet(column, values, many - sum(count for _, count in values)))
    found.sort(key=lambda facet: (facet.column.sort not in ("choice", "truth"), len(facet.values)))
    return found[:MOST_FACETS]
