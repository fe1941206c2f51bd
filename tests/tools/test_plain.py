"""Every decoded value has one JSON form, exact and without secrets."""

from __future__ import annotations

import dataclasses
import enum
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keywright import Secret
from keywright.tools.describe.inspection import Hidden
from keywright.tools.describe.plain import plain


class Colour(enum.Enum):
    RED = "red"


class Size(enum.IntEnum):
    LARGE = 3


class Inner(msgspec.Struct, rename="camel"):
    when_made: datetime
    token: Secret[str] | None = None


class Tagged(msgspec.Struct, tag="box", tag_field="kind"):
    inner: list[Inner]


class Pair(msgspec.Struct, array_like=True):
    a: int
    b: bytes


@dataclasses.dataclass
class Point:
    x: float
    y: Size


MOMENT = datetime(2019, 8, 8, 17, 30, tzinfo=UTC)

FORMS: list[tuple[Any, Any]] = [
    (None, None),
    (True, True),
    (2**64 - 1, 2**64 - 1),
    (0.5, 0.5),
    (float("inf"), "inf"),
    (float("nan"), "nan"),
    ("naïve ☕", "naïve ☕"),
    (b"text too", {"base64": "dGV4dCB0b28="}),
    (b"\xff", {"base64": "/w=="}),
    (MOMENT, "2019-08-08T17:30:00+00:00"),
    (date(2019, 8, 8), "2019-08-08"),
    (Colour.RED, "red"),
    (Size.LARGE, 3),
    (Secret("hidden"), "(secret)"),
    (Hidden.SEALED, "(sealed)"),
    ([1, (2, {3})], [1, [2, [3]]]),
    ({1: "a", Colour.RED: b""}, {"1": "a", "red": {"base64": ""}}),
    (Point(0.5, Size.LARGE), {"x": 0.5, "y": 3}),
    (Pair(1, b"a"), [1, {"base64": "YQ=="}]),
    (
        Tagged([Inner(MOMENT, Secret("hidden"))]),
        {"kind": "box", "inner": [{"whenMade": "2019-08-08T17:30:00+00:00", "token": "(secret)"}]},
    ),
    (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
    (Decimal("1.10"), "1.10"),
    (1j, "1j"),
]


@pytest.mark.parametrize(("value", "form"), FORMS, ids=lambda each: type(each).__name__)
def test_each_type_has_its_form(value: Any, form: Any) -> None:
    assert plain(value) == form
    json.dumps(plain(value), allow_nan=False)


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(JSON)
def test_json_values_stay_unchanged(value: Any) -> None:
    assert json.loads(json.dumps(plain(value))) == value


@given(st.text(min_size=8), st.sampled_from([list, tuple]))
def test_a_secret_never_shows_however_deep_it_lies(hidden: str, wrap: type) -> None:
    shown = json.dumps(plain({"a": wrap([Secret(f"<{hidden}>")])}), ensure_ascii=False)
    assert shown == '{"a": ["(secret)"]}'
