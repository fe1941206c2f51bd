"""Queries of extracts from stored data alone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
import redis

from keywright import AsyncDatabase
from keywright_openmod.actions import LinkAction
from keywright_openmod.schema import ExtractHash, LinkExtract, ModActionSet, TrackingSet
from keywright_openmod.service.queries import PAGE, extracts_about, show_extract

pytestmark = pytest.mark.anyio

NOON = datetime(2024, 1, 2, 12, tzinfo=UTC)


async def test_extracts_about_a_user_are_listed_over_pages(redis_url: str, db: AsyncDatabase) -> None:
    number = 2 * PAGE + 7

    times = {f"t3_{place}": NOON + timedelta(seconds=place) for place in range(number)}
    await db.run(TrackingSet("t2_ann").add_many(times))
    for place in range(0, number, 3):
        await db.run(ModActionSet(f"t3_{place}").add(f"t3_x{place}", NOON))
        extract = LinkExtract(LinkAction.SPAM_LINK, "t2_mod", "t2_ann", f"t3_{place}")
        await db.run(ExtractHash(f"t3_x{place}").put(extract))
    await db.run(ModActionSet("t2_ann").add("t3_ban", NOON))
    listed = [each async for each in extracts_about(db, "t2_ann")]
    assert [each.post for each in listed] == ["t3_ban", *(f"t3_x{each}" for each in range(0, number, 3))]
    assert [each.thing for each in listed[1:]] == [f"t3_{each}" for each in range(0, number, 3)]
    assert {each.type for each in listed[1:]} == {"spamlink"}


async def test_an_audit_of_a_special_account_shows_its_name_without_a_link(
    redis_url: str, db: AsyncDatabase
) -> None:
    audit = {
        "type": "removelink",
        "actor": "Anti-Evil Operations",
        "thingId": "t3_1",
        "permalink": "/r/cats/comments/1/",
        "createdAt": "1700000000000",
    }

    with redis.Redis.from_url(redis_url) as client:
        client.hset("audit:t3_a", mapping=audit)
    found = await show_extract(db, "t3_a")
    assert found is not None
    assert "* Moderator: Anti\\-Evil Operations (Admin)\n" in found.body
    assert "/user/" not in found.body
