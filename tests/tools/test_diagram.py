"""The entity diagram, judged by the geometry of its SVG: for every model, and for random graphs."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import Any, NamedTuple
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audit_samples import SAMPLES
from keywright.tools.diagram.entities import Facts, Schema, schema_of
from keywright.tools.diagram.layout import COLUMNS, ON_A_PHONE
from keywright.tools.diagram.svg import Card, Line, Wire, drawn
from keywright.tools.plugins import load_model, model_names

LETTER = 6.4
"""The width of a letter of a label; tests/web measures that browsers need no more."""


class Area(NamedTuple):
    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: Area) -> bool:
        return (
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
        )

    def has_on_its_border(self, x: float, y: float) -> bool:
        return x in (self.left, self.right) and self.top < y < self.bottom


class Drawn:
    """The boxes, lines and labels of an SVG."""

    def __init__(self, svg: str) -> None:
        self.root = ElementTree.fromstring(svg)
        self.boxes = {
            group.attrib["data-box"]: _area(group.find("rect"))
            for group in self.root.iter()
            if "data-box" in group.attrib
        }
        self.lines = [group for group in self.root.iter() if "data-from" in group.attrib]
        self.labels = [_label(text) for text in self.root.iter("text") if text.get("class") == "label"]
        self.frames = [_area(g.find("rect")) for g in self.root.iter("g") if g.get("class") == "cluster"]

    def corners(self, line: Any) -> list[tuple[float, float]]:
        """Return the points of a line, without the control points of its round corners."""
        path = next(each for each in line.findall("path") if each.get("class") == "line").attrib["d"]
        return [(float(x), float(y)) for x, y in re.findall(r"(-?\d+) (-?\d+)", path)]

    def segments(self) -> Iterator[tuple[Any, Area]]:
        for line in self.lines:
            for (x, y), (x2, y2) in itertools.pairwise(self.corners(line)):
                yield line, Area(min(x, x2), min(y, y2), max(x, x2), max(y, y2))

    def problems(self) -> list[str]:
        return [*self._boxes(), *self._ends(), *self._crossed(), *self._labels(), *self._on_each_other()]

    def _boxes(self) -> Iterator[str]:
        whole = Area(0, 0, float(self.root.attrib["width"]), float(self.root.attrib["height"]))
        for name, box in self.boxes.items():
            if not (whole.left <= box.left and whole.top <= box.top):
                yield f"{name} is outside"
            if not (box.right <= whole.right and box.bottom <= whole.bottom):
                yield f"{name} is outside"
        for (one, box), (other, beside) in itertools.combinations(self.boxes.items(), 2):
            if box.meets(beside):
                yield f"{one} overlaps {other}"
        for frame, beside in itertools.combinations(self.frames, 2):
            if frame.meets(beside):
                yield f"frame {frame} overlaps {beside}"

    def _ends(self) -> Iterator[str]:
        for line in self.lines:
            start, *_, end = self.corners(line)
            for name, point in ((line.attrib["data-from"], start), (line.attrib["data-to"], end)):
                if not self.boxes[name].has_on_its_border(*point):
                    yield f"a line of {name} ends at {point}, not on the border of {self.boxes[name]}"

    def _crossed(self) -> Iterator[str]:
        for line, segment in self.segments():
            for name, box in self.boxes.items():
                if segment.meets(box):
                    yield f"the line {line.attrib['data-name']} runs through {name}"

    def _labels(self) -> Iterator[str]:
        for label in self.labels:
            for name, box in self.boxes.items():
                if label.meets(box):
                    yield f"a label at {label} covers {name}"
            for line, segment in self.segments():
                if label.meets(segment):
                    yield f"the line {line.attrib['data-name']} runs through the label at {label}"
        for one, other in itertools.combinations(self.labels, 2):
            if one.meets(other):
                yield f"labels at {one} and {other} overlap"

    def _on_each_other(self) -> Iterator[str]:
        """Yield lines that lie on each other, though they have no end in common."""
        straight = [
            (line, segment, {self.corners(line)[0], self.corners(line)[-1]})
            for line, segment in self.segments()
            if segment.left == segment.right or segment.top == segment.bottom
        ]
        for (one, way, ends), (other, beside, others) in itertools.combinations(straight, 2):
            if one is not other and not ends & others and _along(way, beside):
                yield f"the lines {one.attrib['data-name']} and {other.attrib['data-name']} lie on each other"


def _along(one: Area, other: Area) -> bool:
    across = min(one.right, other.right) - max(one.left, other.left)
    down = min(one.bottom, other.bottom) - max(one.top, other.top)
    level = one.top == one.bottom == other.top == other.bottom
    upright = one.left == one.right == other.left == other.right
    return (level and across > 0) or (upright and down > 0)


def _area(rect: Any) -> Area:
    x, y, width, height = (float(rect.attrib[name]) for name in ("x", "y", "width", "height"))
    return Area(x, y, x + width, y + height)


def _label(text: Any) -> Area:
    x, y, width = float(text.attrib["x"]), float(text.attrib["y"]), len(text.text) * LETTER
    left = x - width if text.get("text-anchor") == "end" else x
    return Area(left, y - 9, left + width, y + 2)


def plain(schema: Schema, columns: int = COLUMNS) -> str:
    return schema.svg(lambda _: Facts(), lambda _: None, columns=columns)


def schema(model: str) -> Schema:
    if model in model_names():
        return schema_of(load_model(model).described().spaces)
    return schema_of(SAMPLES[model]().model.described().spaces)


MODELS = [*model_names(), "bookshop", "town"]


@pytest.mark.parametrize("columns", [COLUMNS, ON_A_PHONE], ids=["wide", "on a phone"])
@pytest.mark.parametrize("model", MODELS)
def test_boxes_lines_and_labels_of_a_model_stay_clear_of_each_other(model: str, columns: int) -> None:
    found = Drawn(plain(schema(model), columns))
    assert found.problems() == []
    assert set(found.boxes) == {each.identity for each in schema(model).entities}
    if columns == ON_A_PHONE:
        assert all(box.right <= 260 for box in found.boxes.values())


@pytest.mark.parametrize("model", MODELS)
def test_every_declared_relation_and_reference_has_its_line(model: str) -> None:
    spaces = (load_model(model) if model in model_names() else SAMPLES[model]().model).spaces
    lines = {
        (line.attrib["data-from"], line.attrib["data-to"], line.attrib["data-name"])
        for line in Drawn(plain(schema(model))).lines
    }

    def named(kind: Any) -> str:
        return f"{kind.__name__}@{kind.declaration.space.name}"

    for space in spaces:
        for reference in space.references:
            assert (named(reference.source), named(reference.target), reference.name) in lines
        for link in space.links:
            ends = {named(kind) for kind in link.keys[:2]}
            assert any({one, other} == ends and name != "" for one, other, name in lines), link
            for index in (getattr(link, "index", None), getattr(link, "inverse_index", None)):
                assert index is None or any(other == named(index) for _, other, _ in lines), index


def test_the_models_together_have_many_lines() -> None:
    counts = {model: len(schema(model).ties) for model in MODELS}
    assert (counts["drc"], counts["spectacles"], counts["openmod"], counts["registry"]) == (30, 11, 18, 3)
    assert counts["meetup"] == 31  # 20 references, 6 relations, 5 indexes of theirs


def test_a_drawing_is_the_same_every_time() -> None:
    assert plain(schema("drc")) == plain(schema("drc"))


def test_a_template_is_shortened_at_its_end_only() -> None:
    texts = [text.text or "" for text in Drawn(plain(schema("registry"))).root.iter("text")]
    keys = [text for text in texts if "…" in text]
    assert all(text.endswith("…") for text in keys)


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[Card], list[Wire]]:
    count = draw(st.integers(1, 14))
    clusters = draw(st.lists(st.sampled_from(["", "a", "b"]), min_size=count, max_size=count))
    cards = [
        Card(
            str(number), tuple(Line("text", "key") for _ in range(draw(st.integers(1, 7)))), "", None, cluster
        )
        for number, cluster in enumerate(clusters)
    ]
    nodes = st.integers(0, count - 1).map(str)
    ends = draw(st.lists(st.tuples(nodes, nodes, st.integers(0, 2)), max_size=24))
    wires = []
    for number, (source, target, shared) in enumerate(ends):
        label = draw(st.text("abcdef ", max_size=30))
        bundle = ("", source, target)[shared]
        wires.append(
            Wire(
                source, target, label, "", "reference", shared=("", "source", "target")[shared], bundle=bundle
            )
            if shared
            else Wire(source, target, label, str(number), "relation")
        )
    return cards, wires


@settings(max_examples=150, deadline=None)
@given(graphs(), st.integers(1, 4))
def test_any_graph_is_laid_out_without_overlaps(graph: tuple[list[Card], list[Wire]], columns: int) -> None:
    found = Drawn(drawn(*graph, "a graph", columns=columns))
    assert len(found.lines) == len(graph[1])
    assert found.problems() == []
