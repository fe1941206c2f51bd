"""Findings on pages, and their repair where it is allowed."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from browsing import Chromium
from exploring import Explored, exploring, exploring_sample, key_path, serious_findings
from keywright import Id, Keyspace, Value, connect
from keywright.explorer.audits import finding_id
from keywright.explorer.explanations import explained
from keywright.testing.conditions import wait_until
from keywright.testing.runs import Raw
from keywright.tools.audit.findings import CODES

inside = Keyspace("inside", "Notes with a prefix.", prefix="inside")


class Note(Value[str], key="note:<note>", space=inside):
    """A note."""

    note: Id


BROKEN = "event_series:s0:meetup_events"


def _break(raw: Raw) -> None:
    raw("SREM", BROKEN, "e1")  # the inverse side forgets an event
    raw("SET", "csrf:forever", "x")  # no expiry
    raw("SET", "leftover:1", "x")  # nobody's


async def _audited(page: Any, explored: Explored) -> None:
    await page.goto(explored.base + "/audit")
    await page.click("button:text-matches('audit', 'i')")
    await page.wait_for_selector("#audit:not([hx-get]) p:has-text('keys audited')")


def test_every_finding_is_explained() -> None:
    assert {code for code in CODES if not all(explained(code))} == set()


def test_an_audit_is_started_from_a_page_and_its_findings_lead_to_the_keys(
    chromium: Chromium, redis_url: str, raw: Raw
) -> None:
    async def audit(page: Any) -> list[str]:
        await _audited(page, explored)
        codes = await page.locator("h2 .tag").all_inner_texts()
        trouble = await serious_findings(page)
        await page.click("tr:has-text('leftover:1') a.row")
        return [*codes, *trouble, await page.inner_text(".notice.warning")]

    with exploring_sample(redis_url, "meetup") as explored:
        _break(raw)
        *codes, notice = chromium.visit(audit)
        readonly = explored.get("/audit").text
    assert codes == ["KW204", "KW301", "KW402", "KW101"], "errors first"
    assert "KW101" in notice
    assert "Repair…" not in readonly


def test_keys_outside_the_explored_prefixes_are_not_counted_as_audited(
    chromium: Chromium, redis_url: str, raw: Raw
) -> None:
    async def audit(page: Any) -> str:
        await _audited(page, explored)
        return str(await page.inner_text("p:has-text('keys audited')"))

    with connect(redis_url, inside.bind()) as db:
        db.run(Note("one").set("text"))
    raw("MSET", "other:1", "x", "other:2", "x")
    with exploring(redis_url, [inside], [inside.bind()]) as explored:
        shown = chromium.visit(audit)
        document = explored.get("/audit", Accept="application/json").json()
    assert shown.startswith("1 keys audited")
    assert "2 other keys are outside" in shown
    assert [document["keys"], document["history"][0]["keys"]] == [1, 1]


def test_a_healthy_database_is_said_to_be_so(chromium: Chromium, redis_url: str) -> None:
    async def audit(page: Any) -> str:
        await _audited(page, explored)
        return str(await page.inner_text(".notice"))

    with exploring_sample(redis_url, "registry") as explored:
        assert chromium.visit(audit) == "Everything is as declared."


def test_a_finding_is_repaired_after_its_plan_was_shown(
    chromium: Chromium, redis_url: str, raw: Raw, tmp_path: Path
) -> None:
    async def repair(page: Any) -> list[str]:
        await _audited(page, explored)
        await page.click("section:has-text('KW402') a:has-text('Repair')")
        plan = await page.inner_text("ol")
        await page.click("button:text-is('Repair it')")
        done = await page.inner_text(".notice.good")
        await page.click("a:text-is('Back to the findings')")
        await page.wait_for_selector("h2 .tag")
        return [plan, done, *await page.locator("h2 .tag").all_inner_texts()]

    with exploring_sample(redis_url, "meetup", write=True, undo=tmp_path / "undo") as explored:
        _break(raw)
        plan, done, *left = chromium.visit(repair)
    assert plan.startswith("fix meetup_event:e1:event_series")
    assert done.startswith("Done.")
    assert left == ["KW204", "KW301", "KW101"]
    assert raw("SISMEMBER", BROKEN, "e1") == 1


def test_removing_says_that_it_removes_and_can_be_undone(
    chromium: Chromium, redis_url: str, raw: Raw, tmp_path: Path
) -> None:
    async def repair(page: Any) -> list[str]:
        await _audited(page, explored)
        await page.click("tr:has-text('leftover:1') a:has-text('Repair')")
        warning = await page.inner_text(".notice.bad")
        await page.click("button:text-is('Remove it')")
        return [warning, await page.inner_text(".notice.good")]

    with exploring_sample(redis_url, "meetup", write=True, undo=tmp_path / "undo") as explored:
        _break(raw)
        warning, done = chromium.visit(repair)
    assert warning.startswith("This removes data.")
    assert done.startswith("Done.")
    assert raw("EXISTS", "leftover:1") == 0
    assert (tmp_path / "undo").stat().st_size > 0


def test_a_plan_that_is_not_what_was_shown_is_shown_again_before_it_is_carried_out(
    redis_url: str, raw: Raw, tmp_path: Path
) -> None:
    with (
        exploring_sample(redis_url, "meetup", write=True, undo=tmp_path / "undo") as explored,
        httpx.Client(base_url=explored.base) as client,
    ):
        _break(raw)
        path = _finding(explored, client, "leftover:1")
        shown = _fields(client.get(path).text)
        raw("SET", "leftover:1", "precious by now")
        first = client.post(f"{path}/repair", data=shown)
        kept = raw("GET", "leftover:1")
        second = client.post(f"{path}/repair", data=_fields(first.text))
    assert first.status_code == 409
    assert "The plan has changed since it was shown." in first.text
    assert kept == b"precious by now"
    assert second.status_code == 200
    assert raw("EXISTS", "leftover:1") == 0


def test_nothing_is_removed_where_the_way_back_cannot_be_written(
    redis_url: str, raw: Raw, tmp_path: Path
) -> None:
    undo = tmp_path / "no such folder" / "undo"
    with (
        exploring_sample(redis_url, "meetup", write=True, undo=undo) as explored,
        httpx.Client(base_url=explored.base) as client,
    ):
        _break(raw)
        path = _finding(explored, client, "leftover:1")
        answer = client.post(f"{path}/repair", data=_fields(client.get(path).text))
    assert answer.status_code == 400
    assert "--undo" in answer.text
    assert raw("EXISTS", "leftover:1") == 1


def test_two_repairs_at_once_both_write_down_the_way_back(redis_url: str, raw: Raw, tmp_path: Path) -> None:
    with (
        exploring_sample(redis_url, "meetup", write=True, undo=tmp_path / "undo") as explored,
        httpx.Client(base_url=explored.base) as client,
    ):
        names = [f"leftover:{n}" for n in range(8)]
        for name in names:
            raw("SET", name, "x")
        paths = [_finding(explored, client, name) for name in names]
        forms = {path: _fields(client.get(path).text) for path in paths}
        with ThreadPoolExecutor(len(paths)) as people:
            answers = list(
                people.map(lambda each: client.post(f"{each[0]}/repair", data=each[1]), forms.items())
            )
    assert [answer.status_code for answer in answers] == [200] * 8
    assert not any(raw("EXISTS", name) for name in names)
    assert len((tmp_path / "undo").read_bytes().splitlines()) == 8


def _finding(explored: Explored, client: httpx.Client, name: str) -> str:
    """The page of the finding on a key, after an audit where there was none yet."""
    auditing = explored.explorer.auditing
    if auditing.tally is None:
        client.post("/audit", data=_fields(client.get("/audit").text))
        wait_until(lambda: auditing.tally, "the audit")
    return f"/audit/{finding_id(auditing.findings_on(name.encode())[0])}"


def _fields(page: str) -> dict[str, str]:
    """What the last form of a page would send."""
    return dict(re.findall(r'<input type="hidden" name="(\w+)" value="(\w+)">', page))


@pytest.mark.parametrize("write", [False, True])
def test_a_repair_needs_a_form_of_this_session_and_permission(
    redis_url: str, raw: Raw, *, write: bool
) -> None:
    with (
        exploring_sample(redis_url, "meetup", write=write) as explored,
        httpx.Client(base_url=explored.base) as client,
    ):
        _break(raw)
        mark = re.search(r'name="mark" value="([0-9a-f]+)"', client.get("/audit").text)
        assert mark is not None
        client.post("/audit", data={"mark": mark[1]})
        wait_until(lambda: explored.explorer.auditing.tally, "the audit")
        link = re.search(r'href="(/audit/[0-9a-f]+)"', client.get("/audit").text)
        assert link is not None
        forged = client.post(f"{link[1]}/repair", data={"mark": "0" * 64}).status_code
        assert forged == 403
        assert raw("EXISTS", "leftover:1") == 1
        if not write:
            assert client.post(f"{link[1]}/repair", data={"mark": mark[1]}).status_code == 403
            assert raw("EXISTS", "leftover:1") == 1


def test_the_page_of_a_key_tells_what_an_audit_found_on_it(
    chromium: Chromium, redis_url: str, raw: Raw
) -> None:
    async def look(page: Any) -> str:
        await _audited(page, explored)
        await page.goto(explored.base + key_path("csrf:forever"))
        return str(await page.locator(".notice.bad >> nth=0").inner_text())

    with exploring_sample(redis_url, "meetup") as explored:
        _break(raw)
        assert chromium.visit(look).startswith("✖ error KW")
