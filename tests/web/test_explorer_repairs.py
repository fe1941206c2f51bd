"""Findings on every page, broken keys shown whole, and repairs of all findings of a code with undo."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from browsing import Chromium, assert_fits
from exploring import Explored, exploring, exploring_sample, key_path, serious_findings
from keywright.explorer.atlas import template_url
from keywright.testing.conditions import wait_until
from keywright.testing.runs import Raw
from keywright_meetup.schema import meetup


class Person:
    """A browser session without a browser: it sends the forms of pages."""

    def __init__(self, explored: Explored, client: httpx.Client) -> None:
        self.explored = explored
        self.client = client

    def document(self, path: str) -> Any:
        return self.client.get(self.explored.base + path, headers={"Accept": "application/json"}).json()

    def send(self, path: str, **fields: str) -> httpx.Response:
        page = self.client.get(f"{self.explored.base}/audit").text
        mark = re.findall(r'name="mark" value="([0-9a-f]+)"', page)[0]
        return self.client.post(self.explored.base + path, data={"mark": mark, **fields})

    def audited(self) -> Any:
        self.send("/audit")
        wait_until(lambda: not self.explored.explorer.auditing.running, "the audit")
        return self.document("/audit")

    def settled(self, path: str) -> Any:
        """Wait until a job rests. Return its document."""
        job = self.explored.explorer.repairs.job(int(path.rpartition("/")[2]))
        assert job is not None
        wait_until(lambda: not job.busy, "the job")
        return self.document(path)


@contextmanager
def person(redis_url: str, tmp_path: Path, *, write: bool = True) -> Iterator[Person]:
    with (
        exploring_sample(redis_url, "meetup", write=write, undo=tmp_path / "undo.jsonl") as explored,
        httpx.Client(timeout=20) as client,
    ):
        yield Person(explored, client)


def test_all_findings_of_a_code_are_repaired_by_a_plan_and_taken_back(
    redis_url: str, raw: Raw, tmp_path: Path
) -> None:
    with person(redis_url, tmp_path) as operator:
        for number in range(300):
            raw("SET", f"csrf:lasting{number}", "x")
        before = operator.audited()
        path = operator.send("/repair", code="KW301").headers["location"]
        plan = operator.settled(path)
        untouched = raw("PTTL", "csrf:lasting7")
        operator.send(f"{path}/apply", plan=plan["plan"])
        applied = operator.settled(path)
        expiring = raw("PTTL", "csrf:lasting7")
        operator.send(f"{path}/undo")
        undone = operator.settled(path)
        lasting = raw("PTTL", "csrf:lasting7")
        listed = operator.client.get(f"{operator.explored.base}/audit").text
    assert next(group["count"] for group in before["findings"] if group["code"] == "KW301") == 300
    assert (plan["state"], plan["steps"], len(plan["first_steps"])) == ("planned", 300, 100)
    assert plan["first_steps"][0]["commands"][0].startswith("PEXPIRE csrf:lasting")
    assert untouched == -1
    assert (applied["state"], applied["outcomes"]) == ("applied", {"done": 300})
    assert 0 < expiring <= 3_600_000
    assert (undone["state"], undone["undone"]) == ("undone", {"restored": 300, "left": 0})
    assert lasting == -1
    assert f'href="{path}"' in listed


def test_what_can_only_be_removed_needs_a_second_plan_that_says_so(
    redis_url: str, raw: Raw, tmp_path: Path
) -> None:
    with person(redis_url, tmp_path) as operator:
        raw("HSET", "leftover:1", "a", "1")
        operator.audited()
        safe = operator.settled(operator.send("/repair", code="KW101").headers["location"])
        path = operator.send("/repair", code="KW101", remove="1").headers["location"]
        plan = operator.settled(path)
        page = operator.client.get(operator.explored.base + path).text
        stale = operator.send(f"{path}/apply", plan="0" * 18).status_code
        operator.send(f"{path}/apply", plan=plan["plan"])
        operator.settled(path)
        gone = raw("EXISTS", "leftover:1")
        operator.send(f"{path}/undo")
        operator.settled(path)
    assert (safe["steps"], safe["left_to_people"]) == (0, {"KW101": 1})
    assert plan["first_steps"][0]["commands"] == ["UNLINK leftover:1"]
    assert "This removes data." in page
    assert stale == 409
    assert gone == 0
    assert raw("HGETALL", "leftover:1") == {b"a": b"1"}


def test_a_cancelled_repair_stops_between_two_steps_and_can_be_undone(
    redis_url: str, raw: Raw, tmp_path: Path
) -> None:
    with person(redis_url, tmp_path) as operator:
        for number in range(3000):
            raw("SET", f"csrf:lasting{number}", "x")
        path = operator.send("/repair", code="KW301").headers["location"]
        plan = operator.settled(path)
        operator.send(f"{path}/apply", plan=plan["plan"])
        second = operator.send("/repair", code="KW301").status_code
        operator.send(f"{path}/cancel")
        cancelled = operator.settled(path)
        expiring = sum(raw("PTTL", f"csrf:lasting{number}") > 0 for number in range(3000))
        operator.send(f"{path}/undo")
        operator.settled(path)
        left = sum(raw("PTTL", f"csrf:lasting{number}") > 0 for number in range(3000))
    assert second == 400
    assert cancelled["state"] == "cancelled"
    assert expiring == cancelled["outcomes"]["done"] < 3000
    assert left == 0


def test_a_reader_and_a_foreign_form_repair_nothing(redis_url: str, raw: Raw, tmp_path: Path) -> None:
    raw("SET", "leftover:1", "x")
    with person(redis_url, tmp_path, write=False) as reader:
        refused = reader.send("/repair", code="KW101", remove="1").status_code
    with person(redis_url, tmp_path) as operator:
        foreign = httpx.post(operator.explored.base + "/repair", data={"code": "KW101"}).status_code
        unknown = operator.send("/repair", code="KW999").status_code
        missing = operator.client.get(operator.explored.base + "/repair/77").status_code
    assert (refused, foreign, unknown, missing) == (403, 403, 400, 404)
    assert raw("EXISTS", "leftover:1") == 1


def test_findings_are_counted_on_the_start_page_the_map_the_side_and_the_template(
    redis_url: str, raw: Raw, tmp_path: Path
) -> None:
    with person(redis_url, tmp_path) as operator:
        raw("SET", "csrf:lasting", "x")
        raw("HSET", "meetup_event:e1", "time", "noon")
        operator.audited()
        operator.audited()
        start = operator.document("/")
        rows = {each["name"]: each["findings"] for each in operator.document("/map")["templates"]}
        event = operator.document(template_url("meetup", "MeetupEvent"))["findings"]
        page = operator.client.get(operator.explored.base).text
        history = operator.document("/audit")["history"]
    assert start["findings"] >= 2
    assert rows["MeetupEvent"] == event == {"errors": 1, "warnings": 0}
    assert rows["MeetupEvents"] == {"errors": 0, "warnings": 0}
    assert re.search(r"MeetupEvent</span><span class=\"badge\" title=\"1 errors", page)
    assert len(history) == 2
    assert history[0]["findings"]["KW301"] == 1


def test_bad_entries_of_a_collection_are_named_and_marked(redis_url: str, raw: Raw, tmp_path: Path) -> None:
    with person(redis_url, tmp_path) as operator:
        raw("SADD", "meetup_events", "gone1", "gone2")
        operator.audited()
        page = operator.client.get(operator.explored.base + key_path("meetup_events")).text
    notices = re.findall(r'<div class="notice bad">.*?</div>', page, re.DOTALL)
    marked = re.findall(r'<tr class="bad"><td>.*?>(\w+)</a>', page)
    assert len(notices) == 1, "one for the code, with its entries"
    assert [f"; entry {each};" in notices[0] for each in ("gone1", "gone2")] == [True, True]
    assert sorted(marked) == ["gone1", "gone2"]


def test_a_broken_record_shows_every_member_beside_its_declaration(redis_url: str, raw: Raw) -> None:
    with exploring_sample(redis_url, "meetup") as explored:
        raw("HSET", "meetup_event:e1", "time", "noon", "extra", "<b>x</b>")
        raw("HDEL", "meetup_event:e1", "link")
        document = explored.get(key_path("meetup_event:e1"), Accept="application/json").json()
        page = explored.get(key_path("meetup_event:e1")).text
    stored = {part["entry"]: part for part in document["stored"]}
    assert stored["name"]["problem"] is None
    assert stored["time"]["stored"] == "noon"
    assert "RFC 3339" in stored["time"]["problem"]
    assert (stored["link"]["declared"], stored["link"]["stored"]) == ("UTF-8 text", "")
    assert stored["link"]["problem"] is not None
    assert stored["extra"]["problem"] == "the declaration has no such member"
    assert "&lt;b&gt;x&lt;/b&gt;" in page
    assert "<b>x</b>" not in page


def test_a_key_of_another_type_shows_what_is_stored(redis_url: str, raw: Raw) -> None:
    with exploring_sample(redis_url, "meetup") as explored:
        raw("DEL", "meetup_event:e1")
        raw("SADD", "meetup_event:e1", "one", "two")
        document = explored.get(key_path("meetup_event:e1"), Accept="application/json").json()
    assert {part["stored"] for part in document["stored"]} == {"one", "two"}


def test_a_broken_secret_is_not_shown(redis_url: str, raw: Raw) -> None:
    with exploring_sample(redis_url, "meetup") as explored:
        raw("DEL", "meetup_user:1:oauth2_tokens")
        raw("SADD", "meetup_user:1:oauth2_tokens", "token-of-ann")
        raw("HSET", "meetup_user:2:oauth2_tokens", "expires", "token-of-ben")
        pages = [
            explored.get(key_path(f"meetup_user:{number}:oauth2_tokens"), Accept=accept).text
            for number in (1, 2)
            for accept in ("text/html", "application/json")
        ]
    assert not any("token-of" in page for page in pages)


@pytest.mark.parametrize(("width", "dark"), [(1440, False), (390, True)])
def test_a_plan_and_a_broken_key_fit_and_axe_finds_nothing_serious(
    chromium: Chromium, redis_url: str, raw: Raw, tmp_path: Path, width: int, *, dark: bool
) -> None:
    async def look(page: Any) -> list[str]:
        await page.goto(explored.base + "/audit")
        await page.click("button:text-is('Start an audit')")
        await page.wait_for_selector("button:text-is('Repair all…')")
        trouble = await serious_findings(page)
        await page.click("section:has(h2#KW301) button:text-is('Repair all…')")
        await page.wait_for_selector("button:text-is('Repair them')")
        trouble += await serious_findings(page)
        await assert_fits(page)
        await page.goto(explored.base + key_path("meetup_event:e1"))
        await assert_fits(page)
        return [*trouble, *await serious_findings(page)]

    with exploring(redis_url, [meetup], write=True, undo=tmp_path / "undo") as explored:
        raw("SET", "csrf:lasting", "x")
        raw("HSET", "meetup_event:e1", "time", "noon", "x" * 300, "y" * 3000)
        assert chromium.visit(look, width=width, dark=dark) == []
