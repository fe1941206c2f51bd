"""The schema page: the diagram with counts and findings, every line in words, the proof."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import cli_spaces
from browsing import Chromium
from exploring import Explored, exploring, exploring_sample, watched
from keywright import Keyspace, Set, Value, many_to_one
from keywright.explorer.atlas import template_url
from keywright.explorer.pages.schema import schema_url
from keywright.testing.conditions import wait_until
from keywright.testing.runs import Raw
from keywright.tools.plugins import load_model

MODELS = ("drc", "spectacles", "openmod", "registry", "meetup")
OVERLAPS = """
const box = each => each.getBoundingClientRect();
const over = (a, b, from, to) => a[from] < b[to] - 1 && b[from] < a[to] - 1;
const meet = (a, b) => over(a, b, "left", "right") && over(a, b, "top", "bottom");
const svg = document.querySelector("svg.diagram");
const labels = [...svg.querySelectorAll("text.label")], cards = [...svg.querySelectorAll("rect.card")];
const wrong = [];
labels.forEach((label, number) => {
  for (const card of cards) if (meet(box(label), box(card))) wrong.push(`${label.textContent} covers a box`);
  for (const other of labels.slice(number + 1))
    if (meet(box(label), box(other))) wrong.push(`${label.textContent} covers ${other.textContent}`);
});
for (const text of svg.querySelectorAll(".box text:not([class^=badge])")) {
  const card = box(text.closest(".box").querySelector("rect.card"));
  if (box(text).left < card.left || box(text).right > card.right || box(text).bottom > card.bottom)
    wrong.push(`${text.textContent} leaves its box`);
}
return {wrong, labels: labels.length, cards: cards.length};
"""


def audited(explored: Explored) -> None:
    auditing = explored.explorer.auditing
    explored.explorer.db._loop.call_soon_threadsafe(auditing.start)
    wait_until(lambda: auditing.tally, "the audit")


def document(explored: Explored, path: str = "/schema") -> Any:
    """Return the document of a schema, once its proof is done."""

    def proved() -> Any:
        found = explored.get(path, Accept="application/json").json()
        return found if found["proof"] is not None else None

    return wait_until(proved, "the proof")


@pytest.fixture
def every_model(redis_url: str) -> Iterator[Explored]:
    """Explore all models at once, on an empty server."""
    spaces = [space for model in MODELS for space in load_model(model).spaces]
    with exploring(redis_url, spaces) as explored:
        yield explored.surveyed()


def test_texts_of_every_diagram_stay_where_the_layout_put_them(
    chromium: Chromium, every_model: Explored
) -> None:
    spaces = [space.name for space in every_model.explorer.atlas.spaces]
    found: dict[str, Any] = {}

    async def look(page: Any) -> None:
        for space in spaces:
            await page.goto(every_model.base + schema_url(space))
            found[space] = await page.evaluate(f"() => {{ {OVERLAPS} }}")

    async def visit(page: Any) -> list[str]:
        return await watched(page, look)

    assert chromium.visit(visit) == []
    assert {space: each["wrong"] for space, each in found.items()} == {space: [] for space in spaces}
    assert (found["drc"]["cards"], found["meetup"]["cards"]) == (33, 41)
    assert found["drc"]["labels"] == 30


def test_boxes_lead_to_templates_and_lines_to_their_words(chromium: Chromium, redis_url: str) -> None:
    async def click(page: Any) -> list[str]:
        await page.goto(explored.base + "/schema")
        await page.click(".narrow a[data-from='EventGuests@meetup'][data-name='event'] text.label")
        row = await page.inner_text("tr:target")
        await page.click(".narrow a[data-box='MeetupEvent@meetup'] text.entity")
        return [row, await page.inner_text("h1")]

    with exploring_sample(redis_url, "meetup") as explored:
        row, title = chromium.visit(click, width=390)
    assert "EventGuests refers to MeetupEvent by event, which must exist." in row
    assert title == "MeetupEvent"


def test_the_diagram_of_the_largest_model_is_on_the_screen(chromium: Chromium, redis_url: str) -> None:
    """At 1440 pixels all of it; on a phone one column of whole boxes, with its lines beside it."""

    async def measured(page: Any) -> dict[str, Any]:
        await page.goto(explored.base + "/schema/drc")
        found: dict[str, Any] = await page.evaluate("""() => {
            const part = document.getElementById('diagram-scroll');
            const boxes = [...part.querySelectorAll('a[data-box]')].map(box => box.getBoundingClientRect());
            const shown = boxes.filter(box => box.width > 0);
            return {
                hidden: part.scrollWidth - part.clientWidth,
                right: Math.max(...shown.map(box => box.right)),
                boxes: shown.length,
                letters: Math.min(...shown.map(box => box.width / 212)) * 11,
            };
        }""")
        return found

    with exploring_sample(redis_url, "drc") as explored:
        wide, phone = (chromium.visit(measured, width=width) for width in (1440, 390))
    assert (wide["hidden"], wide["boxes"], phone["boxes"]) == (0, 33, 33)
    assert wide["letters"] > 9
    assert phone["letters"] == 11
    assert phone["right"] <= 390


def test_the_schema_has_counts_findings_and_older_versions(redis_url: str, raw: Raw) -> None:
    with exploring_sample(redis_url, "bookshop") as explored:
        before = document(explored)
        raw("SET", "shop:hours", "9-18")
        raw("DEL", "shop:book:b_3")
        raw("SET", "shop:book:b_3", "not a record")
        audited(explored)
        after = document(explored)
        page = explored.get("/schema").text
    books = next(each for each in before["templates"] if each["name"] == "Book")
    assert (books["keys"] > 0, books["findings"]) == (True, None)
    found = {each["name"]: each["findings"] for each in after["templates"]}
    assert found["Book"] >= 1
    assert found["OpeningHours"] == 1
    assert found["Stock"] == 0
    assert '<text class="badge-text-error"' in page
    hours = [each for each in after["older_versions"] if each["name"] == "OpeningHours"]
    assert [(each["keys"], each["share"]) for each in hours] == [(1, 1.0)] * len(hours)
    assert hours
    assert [each["keys"] for each in before["older_versions"]] == [None] * len(before["older_versions"])


def test_every_rule_of_the_proof_is_listed_with_its_meaning(redis_url: str) -> None:
    with exploring_sample(redis_url, "drc") as explored:
        proof = document(explored)["proof"]
        page = explored.get("/schema/drc").text
    assert [each["keyspace"] for each in proof] == ["drc", "drc-private", "the union of drc, drc-private"]
    assert all(each["proved"] for each in proof)
    rules = proof[0]["proofs"]
    assert f"proved {len(rules)} of {len(rules)}" in page
    assert all(rule["statement"] in page for rule in rules)


def test_a_model_that_is_not_proved_shows_what_fails(redis_url: str) -> None:
    with exploring(redis_url, [cli_spaces.overlapping]) as explored:
        proof = document(explored)["proof"][0]
        page = explored.get("/schema").text
    assert not proof["proved"]
    good = sum(each["proved"] for each in proof["proofs"])
    assert f"proved {good} of {len(proof['proofs'])}" in page
    assert good < len(proof["proofs"])
    assert "both can make the same name" in page


def test_every_relation_and_reference_is_in_the_document(every_model: Explored) -> None:
    lines = document(every_model)["lines"]
    spaces = every_model.explorer.atlas.spaces
    references = [
        (each.source.__name__, each.name, each.target.__name__)
        for space in spaces
        for each in space.references
    ]
    assert [
        (each["from"]["name"], each["name"], each["to"]["name"])
        for each in lines
        if each["sort"] == "reference"
    ] == references
    assert {link.name for space in spaces for link in space.links} <= {each["name"] for each in lines}
    crossing = [each for each in lines if each["from"]["keyspace"] != each["to"]["keyspace"]]
    assert {each["from"]["keyspace"] for each in crossing} == {"drc-private", "spectacles-private"}


def test_all_models_at_once_are_listed_and_drawn_one_by_one(every_model: Explored) -> None:
    page = every_model.get("/schema").text
    assert "too many for one drawing" in page
    for space in every_model.explorer.atlas.spaces:
        assert f'href="{schema_url(space.name)}"' in page
    assert every_model.get("/schema/nowhere").status_code == 404


hostile = Keyspace("</svg><script>alert(1)</script>@a/b", "Has a <b>name</b> that is markup.")


class Owner(Value[str], key="owner&:<thing>", space=hostile):
    """The <script>alert(2)</script> owner."""

    thing: str


class Owned(Set[str], key="'\"&amp;owned:<owner>", space=hostile):
    """Things."""

    owner: str


many_to_one(Owner, inverse=Owned)


def test_names_of_a_declaration_are_escaped_in_the_diagram(redis_url: str) -> None:
    with exploring(redis_url, [hostile]) as explored:
        page = explored.get(schema_url(hostile.name))
    assert page.status_code == 200
    assert "<script>alert" not in page.text
    assert "&#x27;&quot;&amp;amp;owned:" in page.text
    assert page.text.count('data-box="') == 4, "two boxes, for wide screens and for phones"
    assert template_url(hostile.name, "Owner") in page.text
