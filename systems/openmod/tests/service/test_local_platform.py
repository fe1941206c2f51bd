"""The platform without Reddit: posts are made once, and erasure needs no earlier event."""

from __future__ import annotations

from typing import Any

import pytest

from keywright import AsyncDatabase
from keywright_openmod.events import decode_event
from keywright_openmod.recorder import EventOutcome, HandledEvent, Recorder
from keywright_openmod.schema import CacheHash
from keywright_openmod.service.local_platform import LocalPlatform
from keywright_openmod.service.schema import LocalPost
from keywright_openmod.settings import OpenModSettings

from ..reddit_double import Death, Fate, mortal

pytestmark = pytest.mark.anyio

SETTINGS = OpenModSettings(target_subreddit="mysub_log")
REMOVAL: dict[str, Any] = {
    "type": "ModAction",
    "action": "removelink",
    "actionedAt": "2023-11-14T22:13:30Z",
    "subreddit": {"name": "mysub"},
    "moderator": {"id": "t2_mod", "name": "some_mod"},
    "targetUser": {"id": "t2_author", "name": "jane_doe"},
    "targetPost": {"id": "t3_post", "title": "A title", "selftext": "Some text."},
}
DELETION = {"type": "PostDelete", "postId": "t3_post", "source": 1, "author": {"id": "t2_author"}}


async def ingested(db: AsyncDatabase, event: dict[str, Any]) -> HandledEvent:
    platform = LocalPlatform(db)
    platform.learn(event)
    return await Recorder(db, platform, SETTINGS).handle(decode_event(event))


async def test_a_submission_is_erased_though_its_moderator_is_unknown(
    redis_url: str, db: AsyncDatabase
) -> None:
    made = (await ingested(db, REMOVAL)).post
    assert made is not None
    await db.run(CacheHash("t2_mod").delete())  # as if it had expired
    assert (await ingested(db, DELETION)).outcome is EventOutcome.RECORDED
    found = await db.run(LocalPost(made).get())
    assert found is not None
    assert "Some text" not in found.body
    assert "jane" not in found.body
    assert "unavailable" in found.body


async def posts_with(db: AsyncDatabase, marker: str) -> list[str]:
    posts = [key.post async for key in db.scan(LocalPost)]
    bodies = [await db.run(LocalPost(post).get()) for post in posts]
    return [post for post, found in zip(posts, bodies, strict=True) if found and marker in found.body]


async def test_a_crash_during_a_submission_does_not_cause_a_duplicate_post(
    redis_url: str, db: AsyncDatabase
) -> None:
    for steps in range(20):
        marker = f"{steps:064x}"
        dying = LocalPlatform(mortal(db, Fate(steps)))
        try:
            await dying.submit("mysub_log", "title", f"`openmod-{marker}`")
        except Death:
            survived = False
        else:
            survived = True
        made = await posts_with(db, marker)
        found = await LocalPlatform(db).find_submission("mysub_log", f"openmod-{marker}")
        assert made == ([found] if found else []), steps
        if survived:
            assert found
            return
    raise AssertionError("the submission never completed")
