"""A browser on a million keys: tables, filters, walks, search, operations, and an audit at the same time.

How long pages take is measured by `python -m benchmarks.explorer`, not asserted here. The tests count what a
page asks the server for instead.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
import redis
from benchmarks.explorer import fill, space

from browsing import Chromium
from exploring import Explored, exploring
from keywright.testing import RedisServer
from keywright.testing.conditions import wait_until
from keywright.tools.pace import FULL_SPEED

KEYS = 1_000_000
ORDERS = "/template/bench-explorer/Order"
PATIENCE_SECONDS = 180


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    with RedisServer(options={"appendonly": "no"}) as server:
        with redis.Redis.from_url(server.url) as client:
            fill(client, KEYS)
        yield server


@pytest.fixture(scope="module")
def explored(server: RedisServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Explored]:
    undo = tmp_path_factory.mktemp("undo") / "undo"
    with exploring(server.url, [space], write=True, undo=undo, survey_pace=FULL_SPEED) as explored:
        wait_until(lambda: explored.explorer.surveyor.complete, "a survey", seconds=PATIENCE_SECONDS)
        yield explored


def test_a_person_works_on_a_million_keys(chromium: Chromium, explored: Explored) -> None:
    async def work(page: Any) -> list[str]:
        seen = []
        await page.goto(explored.base + "/")
        seen.append(await page.inner_text(".figure >> nth=0"))
        await page.goto(explored.base + ORDERS)
        await page.click("summary:has-text('Filter')")
        await page.select_option("select[name=col]", "status")
        await page.fill("input[name=to]", "paid")
        await page.click("button:text-is('Apply')")
        await page.click("th a:text-is('total')")
        states = await page.locator("table.rows tbody tr td:nth-child(3)").all_inner_texts()
        seen.append(" ".join(sorted(set(states))))
        await page.goto(explored.base + ORDERS)
        await page.click("a:text-is('Walk through all keys')")
        await page.click("a:text-is('Continue the scan')")
        seen.append(str(await page.locator("table.rows tbody tr").count() > 0))
        await page.fill("#q", "o777770")
        await page.press("#q", "Enter")
        await page.click("main a.row:has-text('o777770') >> nth=0")
        seen.append(await page.inner_text("h1"))
        await page.click("a:text-is('Change members')")
        await page.fill("input[name$=total]", "5")
        await page.click("button:text-is('Show the commands')")
        await page.click("button:text-is('Write')")
        seen.append(await page.inner_text(".notice.good"))
        return seen

    count, states, walked, key, written = chromium.visit(work)
    assert int(count.replace(",", "")) == KEYS + 14
    assert states == "paid"
    assert walked == "True"
    assert key == "shop:order:o777770"
    assert written.startswith("Written.")


def test_pages_are_served_while_all_keys_are_audited(explored: Explored) -> None:
    """The audit lets pages pass. Each page is whole, and the audit can be cancelled."""
    auditing = explored.explorer.auditing
    explored.explorer.db._loop.call_soon_threadsafe(auditing.start)
    wait_until(lambda: auditing.progress and auditing.progress.seen > 1000, "the audit to begin")
    pages = [explored.get(path) for path in (ORDERS, "/map", "/key?name=shop:wide", "/operations")]
    assert auditing.running
    assert [page.status_code for page in pages] == [200] * 4
    assert pages[0].text.count("data-ttl") + pages[0].text.count(">never<") == 50
    asyncio.run_coroutine_threadsafe(auditing.cancel(), explored.explorer.db._loop).result(PATIENCE_SECONDS)
    assert not auditing.running


def test_no_page_of_a_million_keys_scans_but_the_walk(server: RedisServer, explored: Explored) -> None:
    server.call("CONFIG", "RESETSTAT")
    for path in ("/", "/map", "/schema", "/operations", ORDERS, f"{ORDERS}?sort=total", "/search?q=o777770"):
        assert explored.get(path).status_code in (200, 303)
    assert "cmdstat_scan" not in str(server.call("INFO", "commandstats"))
