"""Parsing a name takes time in proportion to its length, whatever the template and the name."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keywright import Id, Keyspace, Value
from keywright.keyspace import Context
from keywright.keyspace.alphabets import Alphabet, Hex, Plain, Text, Unsigned64
from keywright.keyspace.template import Template
from keywright.tools.audit.matcher import Matcher

OVERLAPPING: dict[str, Mapping[str, Alphabet[Any]]] = {
    "<a>-<b>": {"a": Plain(), "b": Plain()},
    "<a>-<b>-<c>-<d>": {"a": Plain(), "b": Plain(), "c": Plain(), "d": Plain()},
    "<a><b><c>": {"a": Plain(), "b": Plain(), "c": Plain()},
    "x:<a>:<b>:end": {"a": Plain(extra=":"), "b": Hex(4)},
    "x:<a>:<b>": {"a": Plain(extra=":"), "b": Unsigned64()},
}


def lines_run(call: Any) -> int:
    """Return how many lines of Python a call runs: its cost, on any machine."""
    count = 0

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("source", OVERLAPPING)
@pytest.mark.parametrize("end", [b"", b"!", b":end"])
def test_the_cost_of_a_long_name_grows_with_its_length_only(source: str, end: bytes) -> None:
    template = Template(source, OVERLAPPING[source])
    assert template.backtracks  # else a regular expression decides, which has no lines to count
    body = b"x:" + b"-:" * 1000
    template.parse(body)
    short, long = (lines_run(lambda size=size: template.parse(body[:size] + end)) for size in (200, 1600))
    assert long < 10 * max(short, 100)


@pytest.mark.parametrize("source", OVERLAPPING)
@given(data=st.data())
def test_a_name_is_read_as_a_regular_expression_reads_it(source: str, data: st.DataObject) -> None:
    template = Template(source, OVERLAPPING[source])
    name = data.draw(st.text("ab0-:x!é", max_size=12))
    found = template._pattern_match(name)
    assert template.texts(name) == (None if found is None else found.groups())


def test_other_templates_are_matched_by_a_regular_expression() -> None:
    assert not Template("user:<a>:<b>", {"a": Plain(), "b": Plain()}).backtracks
    assert not Template("user:<a>", {"a": Text()}).backtracks


def test_a_walk_over_names_matches_overlapping_templates_too() -> None:
    space = Keyspace("pairs", "Names with two readings.", prefix="p")

    class Pair(Value[str], key="<first>-<second>", space=space):
        """A pair."""

        first: Id
        second: Id

    matcher = Matcher([space], Context())
    hostile = b"p:" + b"-" * 4000 + b"!"
    groups, unknown = matcher.grouped([b"p:a-b", b"a-b", hostile])
    assert [(known.kind, names) for known, names in groups.items()] == [(Pair, [b"p:a-b"])]
    assert unknown == [b"a-b", hostile]
