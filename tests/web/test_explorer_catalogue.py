"""Programs of the catalogue in a browser: every page fits, and shows what Celery and RQ really store."""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any
from urllib.parse import quote

import pytest
import redis

from browsing import Chromium
from exploring import exploring, key_path, serious_findings, watched
from keywright.tools.plugins import load_catalogue

UUID = "f81d4fae-7dec-41d0-a765-00a0c91e6bf6"
PROGRAMS = load_catalogue().values()
BODY = base64.b64encode(b'[[2, 3], {}, {"callbacks": null}]').decode()
MESSAGE = {
    "body": BODY,
    "content-encoding": "utf-8",
    "content-type": "application/json",
    "headers": {"task": "shop.add", "id": UUID},
    "properties": {"correlation_id": UUID, "delivery_tag": UUID},
}
RESULT = {
    "status": "SUCCESS",
    "result": 5,
    "traceback": None,
    "children": [],
    "task_id": UUID,
    "date_done": None,
}


@pytest.fixture
def database(redis_url: str) -> str:
    with redis.Redis.from_url(redis_url) as client:
        client.sadd("_kombu.binding.celery", "celery\x06\x16\x06\x16celery")
        client.lpush("celery", json.dumps(MESSAGE))
        client.set(f"celery-task-meta-{UUID}", json.dumps(RESULT))
        client.rpush("rq:queue:default", "j1")
        client.sadd("rq:queues", "rq:queue:default")
        job = {"status": "queued", "origin": "default", "description": "shop.add(2, 3)", "timeout": "180"}
        client.hset("rq:job:j1", mapping={**job, "data": zlib.compress(b"not a pickle")})
    return redis_url


def test_the_schemas_of_all_programs_fit_on_a_phone(chromium: Chromium, database: str) -> None:
    spaces = [space for program in PROGRAMS for space in program.spaces]
    found: dict[str, list[str]] = {}

    async def look(page: Any) -> None:
        for space in spaces:
            await page.goto(f"{explored.base}/schema/{quote(space.name)}")
            boxes = await page.locator(".diagram.narrow [data-box]:visible").count()
            wider = await page.evaluate("document.documentElement.scrollWidth - innerWidth")
            found[space.name] = [
                *await serious_findings(page),
                *["wider"] * (wider > 0),
                *["empty"] * (not boxes),
            ]

    with exploring(database, spaces) as explored:
        assert chromium.visit(lambda page: watched(page, look), width=390, dark=True) == []
    assert len(found) >= 12
    assert {name: trouble for name, trouble in found.items() if trouble} == {}


def test_values_of_programs_are_decoded(chromium: Chromium, database: str) -> None:
    async def read(page: Any) -> list[str]:
        texts = []
        for path in (key_path("celery"), key_path(f"celery-task-meta-{UUID}"), key_path("rq:job:j1")):
            await page.goto(explored.base + path)
            texts.append(await page.inner_text("main"))
        return texts

    spaces = [space for each in PROGRAMS if each.name in ("celery", "rq") for space in each.spaces]
    with exploring(database, spaces) as explored:
        queue, result, job = chromium.visit(read)
    assert "shop.add" in queue
    assert "SUCCESS" in result
    assert "shop.add(2, 3)" in job
