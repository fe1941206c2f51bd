"""Values as people read them, the treemap's boxes, and small words; without a server."""

from __future__ import annotations

import enum
from datetime import UTC, datetime, timedelta
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keywright.explorer.atlas import key_url, query_of, text_of
from keywright.explorer.page_templates import clock, rate, share
from keywright.explorer.presentation import Part, Presenter, in_words, left, sized
from keywright.explorer.prose import doc, prose
from keywright.explorer.treemap import Box, squarified
from keywright.explorer.trees import tree
from keywright.tools.describe.inspection import Hidden

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


class Colour(enum.Enum):
    RED = "red"


@pytest.mark.parametrize(
    ("value", "sort", "text", "note"),
    [
        (None, "word", "null", ""),
        (True, "word", "true", ""),
        (12345678901234567890, "number", "12345678901234567890", ""),
        ("plain", "text", "plain", ""),
        ("2026-01-02T11:00:00+00:00", "time", "2026-01-02T11:00:00+00:00", "1 h ago"),
        ("2026-13-02T11:00:00+00:00", "text", "2026-13-02T11:00:00+00:00", ""),
        (NOON + timedelta(days=3), "time", "2026-01-05 12:00:00+00:00", "in 3 d"),
        (b"\x00PNG", "bytes", "\\x00PNG", "4 B"),
        (Colour.RED, "text", "red", ""),
        (Hidden.SECRET, "concealed", "(secret)", ""),
    ],
)
def test_a_scalar_reads_as(value: object, sort: str, text: str, note: str) -> None:
    part = Presenter(now=NOON).part(value)
    assert (part.sort, part.text, part.note) == (sort, text, note)


def test_only_texts_and_numbers_become_links() -> None:
    found = Presenter({"17": "/there", "true": "/nowhere"}).part({"a": "17", "b": 17, "c": True, "d": "x"})
    assert [part.url for _, part in found.parts] == ["/there", "/there", None, None]


def test_an_object_is_told_by_its_name_while_it_is_folded() -> None:
    part = Presenter().part({"id": "1", "name": "general", "topic": "all"})
    assert (part.hint, part.summary) == ("general", "3 fields")
    assert Presenter().part({"book": "b_1", "cents": 100, "to": [1]}).hint == "book b_1 · cents 100"


def test_a_page_never_holds_more_than_some_thousand_parts() -> None:
    found = Presenter().part([list(range(3000)) for _ in range(100)])
    assert _count(found) <= 4200
    assert found.more + len(found.parts) == 100


def _count(part: Part) -> int:
    return 1 + sum(_count(each) for _, each in part.parts)


def test_nesting_ends_somewhere() -> None:
    value: object = "end"
    for _ in range(500):
        value = [value]
    part = Presenter().part(value)
    for _ in range(40):
        part = part.parts[0][1]
    assert part.text == "too deep to be shown"


@pytest.mark.parametrize(
    ("spent", "shown"),
    [
        (0, "less than 1 s"),
        (1500, "1 s"),
        (59_999, "59 s"),
        (6_900_000, "1 h 55 min"),
        (7_200_000, "2 h"),
        (9e10, "2 y 311 d"),
    ],
)
def test_a_length_of_time_in_words(spent: float, shown: str) -> None:
    assert left(spent) == shown


def test_a_moment_is_ahead_or_behind() -> None:
    assert in_words(timedelta(minutes=-2)) == "2 min ago"
    assert in_words(timedelta(minutes=2)) == "in 2 min"


@pytest.mark.parametrize(
    ("size", "shown"), [(None, "—"), (0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (5 << 40, "5120 GiB")]
)
def test_bytes_for_people(size: int | None, shown: str) -> None:
    assert sized(size) == shown


def test_shares_and_rates_for_people() -> None:
    assert [share(each) for each in (None, 0, 0.001, 0.5, 0.999, 1)] == [
        "—",
        "0 %",
        "< 1 %",
        "50 %",
        "> 99 %",
        "100 %",
    ]
    assert [rate(each) for each in (None, 0, 1.26, -1234)] == ["—", "0 / min", "+1.3 / min", "-1,234 / min"]


def test_a_time_of_another_day_has_its_date() -> None:
    now = datetime(2026, 11, 18, 19, 30, tzinfo=UTC)
    moments = [now - timedelta(hours=3), now - timedelta(days=15), now - timedelta(days=400)]
    shown = [clock(each.timestamp(), now) for each in moments]
    assert shown == ["16:30:00", "3 Nov 19:30:00", "14 Oct 2025 19:30:00"]


def test_one_word_with_digits_looks_like_an_id() -> None:
    words = ["a7484ffbbfd9", "1532900671561083730", "rain.643539", "en-US", "room 12345", "/a/b12345", "12"]
    looks = [Presenter().part(word).look for word in words]
    assert looks == ["text id", "text id", "text id", "text", "text", "text", "text"]


def test_docstrings_are_escaped_and_their_code_marked() -> None:
    assert str(doc("a `<b>` & c")) == "a <code>&lt;b&gt;</code> &amp; c"
    assert str(doc("one ` <mark>")) == "one ` &lt;mark&gt;"


@given(st.binary(min_size=1), st.binary(min_size=1))
def test_any_name_and_entry_survive_a_link(name: bytes, entry: bytes) -> None:
    path, _, query = key_url(name, entry).partition("?")
    assert (path, query_of(query.encode())) == ("/key", {"name": name, "entry": entry})


@given(st.binary())
def test_any_bytes_are_shown_in_printable_characters(data: bytes) -> None:
    assert text_of(data).isprintable()


@given(st.lists(st.floats(0.001, 1e9), min_size=1, max_size=40))
def test_a_treemap_covers_its_room_without_overlap(weights: list[float]) -> None:
    weights = sorted(weights, reverse=True)
    room = Box(0, 0, 1000, 360)
    boxes = squarified(weights, room)
    total = sum(weights)
    for weight, box in zip(weights, boxes, strict=True):
        assert box.area == pytest.approx(weight / total * room.area, rel=1e-6, abs=1e-3)
        assert box.x >= -1e-6
        assert box.y >= -1e-6
        assert box.x + box.width <= 1000 + 1e-3
        assert box.y + box.height <= 360 + 1e-3
    for one, other in combinations(boxes[:12], 2):
        across = min(one.x + one.width, other.x + other.width) - max(one.x, other.x)
        down = min(one.y + one.height, other.y + other.height) - max(one.y, other.y)
        assert across <= 1e-6 or down <= 1e-6


def test_a_treemap_of_nothing_has_no_area() -> None:
    assert [box.area for box in squarified([0, 0], Box(0, 0, 10, 10))] == [0, 0]


@pytest.mark.parametrize(
    ("reason", "shown"),
    [
        ("found b'lost'", "found “lost”"),
        (
            "has no expiry, declared 2.592e+06 s after the last use",
            "has no expiry, declared 30 d after the last use",
        ),
        ("expires in 999999 s, declared 86400 s", "expires in 11 d 13 h, declared 1 d"),
        ("found b'in 5 s' (got `array`)", "found “in 5 s” (got <code>array</code>)"),
        ("found b'<b>'", "found “&lt;b&gt;”"),
    ],
)
def test_reasons_have_no_python_literals_and_durations_in_words(reason: str, shown: str) -> None:
    assert prose(reason) == shown


def test_a_text_that_is_the_whole_value_is_not_folded() -> None:
    lines = Presenter().part("line one\n<line two>")
    assert tree(lines) == "<pre>line one\n&lt;line two&gt;</pre>"
    assert "<details" in tree(Part("array", parts=[(None, lines)]))
