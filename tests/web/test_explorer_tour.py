"""The guided tour: break a sample, audit it, repair it, undo; and nothing outside the sample changes."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from browsing import Chromium, assert_fits
from exploring import Explored, exploring, filled, serious_findings
from keywright import Id, Keyspace, Value, aconnect, connect, refers
from keywright.errors import UsageError
from keywright.explorer import ExplorerSettings, Tour, create_app
from keywright.testing.conditions import wait_until
from keywright.testing.runs import Raw
from keywright_demo.bookshop import bind, bookshop, fill
from keywright_meetup.schema import meetup

PREFIX = "sample-bookshop:"
TOUR = Tour(bookshop, fill)


@contextmanager
def touring(url: str, tmp_path: Path, *others: Keyspace, **options: Any) -> Iterator[Explored]:
    with connect(url, bind()) as db:
        fill(db)
    settings = {"write": True, "undo": tmp_path / "undo.jsonl", "tour": TOUR, **options}
    with exploring(url, [bookshop, *others], [bind()], **settings) as explored:
        yield explored.surveyed()


class Visitor:
    """Sends the forms of the tour."""

    def __init__(self, explored: Explored, client: httpx.Client) -> None:
        self.explored, self.client = explored, client

    @property
    def document(self) -> Any:
        return self.client.get(f"{self.explored.base}/tour", headers={"Accept": "application/json"}).json()

    def send(self, path: str, **fields: str) -> httpx.Response:
        page = self.client.get(f"{self.explored.base}/audit").text
        mark = re.findall(r'name="mark" value="([0-9a-f]+)"', page)[0]
        return self.client.post(self.explored.base + path, data={"mark": mark, **fields})

    def done(self, path: str, **fields: str) -> Any:
        """Send a form, wait until what it started has ended, and return the state of the tour."""
        sent = self.send(path, **fields)
        assert sent.status_code == 303, sent.text
        explorer = self.explored.explorer
        assert explorer.tour is not None
        tour = explorer.tour
        wait_until(lambda: not (tour.busy or explorer.auditing.running or explorer.repairs.running), path)
        return self.document


def stored(raw: Raw) -> dict[bytes, Any]:
    """Return every key with its value and whether it expires. DUMP has the members of a set in any order."""

    def value(name: bytes) -> Any:
        held = sorted(raw("SMEMBERS", name)) if raw("TYPE", name) == b"set" else raw("DUMP", name)
        return held, raw("PTTL", name) > 0

    return {name: value(name) for name in raw("KEYS", "*")}


def shop(raw: Raw) -> set[bytes]:
    return set(raw("KEYS", f"{PREFIX}*"))


def test_what_is_broken_is_found_repaired_and_taken_back_and_other_keys_stay_as_they_are(
    redis_url: str, raw: Raw, tmp_path: Path
) -> None:
    filled(redis_url, "meetup")
    raw("SET", "sample-bookshopping:1", "another program's")
    raw("SET", "csrf:lasting", "a finding of meetup that the tour must not repair")
    others = stored(raw)
    with touring(redis_url, tmp_path, meetup) as explored, httpx.Client(timeout=20) as client:
        visitor = Visitor(explored, client)
        whole = shop(raw)
        broken = visitor.done("/tour/break")
        twice = visitor.send("/tour/break")
        nowhere = visitor.send("/repair", code="KW301", space="no such keyspace")
        audited = visitor.done("/tour/audit")
        by_code = {row["code"]: row for row in audited["codes"]}
        endless = next(each["name"] for each in broken["faults"] if each["code"] == "KW301")
        assert raw("PTTL", endless) == -1
        visitor.done("/repair", code="KW301", space="bookshop")
        job = client.get(f"{explored.base}/repair/1", headers={"Accept": "application/json"}).json()
        repaired = visitor.done("/repair/1/apply", plan=job["plan"])
        assert raw("PTTL", endless) > 0
        left = visitor.done("/tour/audit")
        page = client.get(f"{explored.base}/tour").text
        undone = visitor.done("/repair/1/undo")
        assert raw("PTTL", endless) == -1
        again = visitor.done("/tour/refill")
        assert shop(raw) == whole
        clean = visitor.done("/tour/audit")
    assert broken["problem"] is None
    assert {each["code"] for each in broken["faults"]} >= {
        "KW101",
        "KW201",
        "KW202",
        "KW203",
        "KW204",
        "KW205",
    }
    assert {each["code"] for each in broken["faults"]} >= {
        "KW301",
        "KW401",
        "KW402",
        "KW403",
        "KW404",
        "KW405",
    }
    assert all(each["name"].startswith(PREFIX) for each in broken["faults"])
    assert (twice.status_code, nowhere.status_code) == (400, 400)
    assert "damaged already" in twice.text
    assert (audited["audited"], audited["missed"]) == (True, 0)
    assert all(row["planted"] <= row["found"] for row in by_code.values())
    assert by_code["KW301"]["damage"] == "The expiry of a key was removed."
    assert {step["name"] for step in job["first_steps"]} == {
        each["name"] for each in broken["faults"] if each["code"] == "KW301"
    }, "the key of meetup is not in the plan"
    assert repaired["repairs"] == [{"url": "/repair/1", "code": "KW301", "state": "applied"}]
    assert next(row["found"] for row in left["codes"] if row["code"] == "KW301") == 0
    assert 'action="/repair/1/undo"' in page
    assert undone["repairs"][0]["state"] == "undone"
    assert (again["faults"], again["audited"]) == ([], False)
    assert (clean["codes"], clean["audited"]) == ([], True)
    rest = {name: held for name, held in stored(raw).items() if not name.startswith(PREFIX.encode())}
    assert rest == others


def test_only_forms_of_the_page_break_the_sample(redis_url: str, raw: Raw, tmp_path: Path) -> None:
    with touring(redis_url, tmp_path) as explored:
        before = stored(raw)
        refused = [explored.post(f"/tour/{each}", {}).status_code for each in ("break", "audit", "refill")]
        unmarked = explored.post("/tour/break", {"mark": "0" * 64}).status_code
        assert stored(raw) == before
    assert [*refused, unmarked] == [403] * 4


def test_an_explorer_without_a_tour_has_no_page_and_no_link(redis_url: str, tmp_path: Path) -> None:
    with touring(redis_url, tmp_path, tour=None) as explored:
        assert explored.get("/tour").status_code == 404
        assert 'href="/tour"' not in explored.get("/").text
        assert "tour" not in explored.get("/", Accept="application/json").json()["pages"]


def test_a_tour_that_could_damage_other_data_is_refused(redis_url: str) -> None:
    bare = Keyspace("bare", "Without a prefix.")
    leading_out = Keyspace("leading out", "Refers to another keyspace.", prefix="out")

    class Thing(Value[Id], key="thing:<thing>", space=bare):
        """A thing."""

        thing: Id

    class Note(Value[Id], key="note:<note>", space=leading_out):
        """A note on a thing."""

        note: Id

    refers(Note, Thing, lambda _, thing: [thing], name="about")

    async def refusal(space: Keyspace) -> str:
        async with aconnect(redis_url) as db:
            with pytest.raises(UsageError) as refused:
                create_app(db, [bare, leading_out], ExplorerSettings(write=True, tour=Tour(space, fill)))
            return str(refused.value)

    with pytest.raises(UsageError, match="allowed to write"):
        ExplorerSettings(tour=TOUR).check()
    assert "needs a prefix of its own" in asyncio.run(refusal(bare))
    assert "refers to Thing of another keyspace" in asyncio.run(refusal(leading_out))


def test_the_tour_is_taken_by_clicks_and_fits_on_a_phone(
    chromium: Chromium, redis_url: str, tmp_path: Path
) -> None:
    async def walk(page: Any) -> list[str]:
        await page.goto(explored.base)
        await page.click("text=Begin the tour")
        await page.click("button:text-is('Break it')")
        await page.wait_for_selector("text=Every damaged key")
        await page.click("button:text-is('Audit')")
        await page.wait_for_selector("text=faults were found")
        await page.set_viewport_size({"width": 390, "height": 844})
        trouble = await serious_findings(page)
        await assert_fits(page)
        await page.click("tr:has-text('KW405') button")
        await page.click("button:text-is('Repair them')")
        await page.wait_for_selector("text=Done.")
        await page.click(".crumbs >> text=Tour")
        await page.click("button:text-is('Undo')")
        await page.wait_for_selector("text=Undone.")
        await page.click(".crumbs >> text=Tour")
        await page.click("button:text-is('Begin again')")
        await page.wait_for_selector("button:text-is('Break it')")
        return trouble

    with touring(redis_url, tmp_path) as explored:
        assert chromium.visit(walk, width=1440) == []
