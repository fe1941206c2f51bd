"""Key classes made at run time, and values for every type of variable."""

from __future__ import annotations

import enum
import types
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Annotated, Any, Literal, NewType
from uuid import UUID

from hypothesis import strategies as st

from keywright import (
    I64,
    U64,
    Base64Url,
    Choice,
    Day,
    Email,
    Except,
    FreeText,
    Hex,
    Id,
    Key,
    Keyspace,
    OneOf,
    Pattern,
    Plain,
    Prefixed,
    RestOfName,
    Segment,
    Sha256,
    SnowflakeId,
    SnowflakeStr,
    Ulid,
    Uuid,
    UuidText,
    Value,
)

UserId = NewType("UserId", str)


class Colour(enum.Enum):
    RED = "red"
    DEEP_BLUE = "blue:deep"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 10


_identifiers = st.text("aZ09_-", min_size=1, max_size=4)
_unsigned = st.integers(0, 2**64 - 1)
_things = st.sampled_from(["t1_", "t3_"]).flatmap(
    lambda lead: st.text("az09", min_size=1, max_size=3).map(lead.__add__)
)

VARIABLES: dict[Any, st.SearchStrategy[Any]] = {
    str: _identifiers,
    int: st.integers(-(2**63), 2**63 - 1),
    Id: _identifiers,
    UserId: _identifiers,
    I64: st.integers(-(2**63), 2**63 - 1),
    U64: _unsigned,
    SnowflakeId: _unsigned,
    SnowflakeStr: _unsigned.map(str),
    Sha256: st.text("0123456789abcdef", min_size=64, max_size=64),
    FreeText: st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=4),
    Colour: st.sampled_from(Colour),
    Level: st.sampled_from(Level),
    Literal["a", "b:c"]: st.sampled_from(["a", "b:c"]),
    Annotated[str, Choice("on", "off")]: st.sampled_from(["on", "off"]),
    Annotated[str, Plain(extra=":")]: st.text("a:", min_size=1, max_size=4),
    Annotated[str, Hex(2)]: st.text("0123456789abcdef", min_size=2, max_size=2),
    Annotated[str, Prefixed("t3_")]: st.text("az09", min_size=1, max_size=3).map("t3_".__add__),
    Annotated[str, OneOf(Prefixed("t1_"), Prefixed("t3_"))]: _things,
    UUID: st.uuids(),
    date: st.dates(),
    datetime: st.datetimes(timezones=st.just(UTC)),
    Decimal: st.decimals(
        allow_nan=False, allow_infinity=False, places=2, min_value=-999, max_value=999
    ).filter(lambda value: bool(value) or not value.is_signed()),
    bool: st.booleans(),
    Annotated[str, Ulid()]: st.from_regex("[0-7][0-9A-HJKMNP-TV-Z]{25}", fullmatch=True),
    Annotated[str, Base64Url(4)]: st.text("aZ09_-", min_size=4, max_size=4),
    Annotated[str, Email()]: st.sampled_from(["ann@example.org", "o'b+x@a-b.c.de"]),
    Annotated[str, Hex(4, upper=True)]: st.text("0123456789ABCDEF", min_size=4, max_size=4),
    Annotated[str, UuidText()]: st.uuids().map(str),
    Annotated[UUID, Uuid(upper=True, dashes=False)]: st.uuids(),
    Annotated[date, Day("")]: st.dates(date(1000, 1, 1)),
    bytes: st.binary(min_size=1, max_size=4).map(lambda data: data.replace(b":", b"\xff")),
    Annotated[str, Segment()]: st.text("a {}\x00é", min_size=1, max_size=4),
    Annotated[str, Except(Plain(), "a")]: _identifiers.filter(lambda text: text != "a"),
    Annotated[str, Pattern("[a-z]{2}-[0-9]+")]: st.from_regex("[a-z]{2}-[0-9]+", fullmatch=True),
}
LAST: dict[Any, st.SearchStrategy[Any]] = {
    **VARIABLES,
    RestOfName: st.text("a: %é", min_size=1, max_size=4),
}


def key_class(
    space: Keyspace,
    template: str,
    variables: Mapping[str, Any],
    *,
    base: Any = Value[int],
    name: str = "Made",
    doc: str | None = "Made at run time.",
    **options: Any,
) -> type[Any]:
    """Return the class that `class Made(Value[int], key=template, space=space)` would declare."""
    body = {"__annotations__": dict(variables), "__doc__": doc, "__module__": __name__}
    return types.new_class(name, (base,), {"key": template, "space": space, **options}, body_filled(body))


def body_filled(body: Mapping[str, Any]) -> Any:
    def fill(namespace: dict[str, Any]) -> None:
        namespace.update(body)

    return fill


@st.composite
def key_classes(draw: st.DrawFn, space: Keyspace) -> tuple[type[Key], dict[str, st.SearchStrategy[Any]]]:
    """Draw a class with up to three variables, declared in any order, and the alphabet of each.

    The last variable may be an optional segment.
    """
    count = draw(st.integers(0, 3))
    literals = st.sampled_from([":", "a", "a:", ":b:", "é/"])
    hints: dict[str, Any] = {}
    pieces = [draw(st.sampled_from(["a", "b", "a:b", "k"]))]
    for number in range(count):
        table = LAST if number == count - 1 else VARIABLES
        hints[f"v{number}"] = draw(st.sampled_from(list(table)))
        pieces += [draw(literals), f"<v{number}>"]
    values = {name: LAST[hint] for name, hint in hints.items()}
    last = f"v{count - 1}"
    if count and hints[last] is not RestOfName and draw(st.booleans()):
        pieces[-2:] = [f"[{pieces[-2]}{pieces[-1]}]"]
        hints[last], values[last] = hints[last] | None, st.none() | values[last]
    elif count and hints[f"v{count - 1}"] is not RestOfName:
        pieces.append(draw(st.sampled_from(["", ":z", ":a"])))
    declared = draw(st.permutations(list(hints)))
    made = key_class(space, "".join(pieces), {name: hints[name] for name in declared})
    return made, {name: values[name] for name in declared}
