"""The service as separate processes: killed, restarted, several at once."""

from __future__ import annotations

import signal
from collections import Counter
from functools import partial
from pathlib import Path

import pytest

from keywright import AsyncDatabase
from keywright_openmod.schema import ExtractHash, ModActionSet
from keywright_openmod.simulator import RedditSimulator, SimulatedSubmission
from service_processes import launched

from ..reddit_service import ASYNCPRAW_WARNS, environment, eventually, published, settled

pytestmark = [ASYNCPRAW_WARNS, pytest.mark.anyio]

serving = partial(launched, "openmod", "serve")


def moderated(reddit: RedditSimulator, number: int) -> list[SimulatedSubmission]:
    author = reddit.world.join(f"author{len(reddit.world.users)}")
    posts = [reddit.world.post(author, "mysub", f"post {each}", "text") for each in range(number)]
    for each in posts:
        reddit.world.moderate(reddit.moderator, "removelink", each, "mysub")
    return posts


async def assert_each_disclosed_once(
    reddit: RedditSimulator, db: AsyncDatabase, posts: list[SimulatedSubmission]
) -> None:
    public = reddit.world.posts_in("mysub_log")
    about = {post.id: await db.run(ModActionSet(post.id).members()) for post in posts}
    assert Counter(map(len, about.values())) == {1: len(posts)}
    assert sorted(each.id for each in public) == sorted(found for (found,) in about.values())
    assert all([await db.run(ExtractHash(each.id).get()) for each in public])


async def test_killed_repeatedly_the_service_loses_no_event_and_makes_no_duplicate_post(
    redis_url: str, tmp_path: Path, reddit: RedditSimulator, db: AsyncDatabase
) -> None:
    variables = environment(reddit, redis_url, OPENMOD_HOLD="2s")
    posts: list[SimulatedSubmission] = []
    for stop_at in (3, 15, 30):
        posts += moderated(reddit, 20)
        with serving(variables=variables, log=tmp_path / "log") as process:
            await published(reddit, stop_at)
            # The posts are public, but perhaps not recorded yet.
            process.signal(signal.SIGKILL)
            assert await process.ended() == -signal.SIGKILL
    assert len(reddit.extracts) < 60
    with serving(variables=variables, log=tmp_path / "log") as process:
        await published(reddit, 60)
        await settled(db)
        process.signal(signal.SIGTERM)
        assert await process.ended() == 0
    await assert_each_disclosed_once(reddit, db, posts)


async def test_a_post_that_was_made_just_before_a_kill_is_found_again(
    redis_url: str, tmp_path: Path, reddit: RedditSimulator, db: AsyncDatabase
) -> None:
    variables = environment(reddit, redis_url, OPENMOD_HOLD="2s")
    reddit.faults.fail("/api/submit", None, times=8, done=True)
    posts = moderated(reddit, 3)
    with serving(variables=variables, log=tmp_path / "log") as process:
        await eventually(lambda: len(reddit.extracts) == 3, "all extracts are public")
        process.signal(signal.SIGKILL)
        await process.ended()
    assert await db.run(ModActionSet(posts[0].id).members()) == []
    reddit.faults.clear()
    with serving(variables=variables, log=tmp_path / "log") as process:
        await settled(db)
        process.signal(signal.SIGTERM)
        assert await process.ended() == 0
    await assert_each_disclosed_once(reddit, db, posts)


async def test_two_processes_share_the_work(
    redis_url: str, tmp_path: Path, reddit: RedditSimulator, db: AsyncDatabase
) -> None:
    variables = environment(reddit, redis_url)
    with (
        serving(variables=variables, log=tmp_path / "one"),
        serving(variables=variables, log=tmp_path / "two"),
    ):
        await eventually(
            lambda: [each.path for each in reddit.answered].count("/api/v1/me") >= 2, "both processes run"
        )
        posts = moderated(reddit, 25)
        await published(reddit, 25)
        await settled(db)
    await assert_each_disclosed_once(reddit, db, posts)


async def test_the_log_of_a_process_has_no_credentials(
    redis_url: str, tmp_path: Path, reddit: RedditSimulator
) -> None:
    variables = environment(reddit, redis_url)
    with serving(variables=variables, log=tmp_path / "log") as process:
        moderated(reddit, 1)
        reddit.faults.fail("/api/v1/access_token", 503)
        await eventually(lambda: len(reddit.extracts) == 1, "an extract")
        process.signal(signal.SIGTERM)
        assert await process.ended() == 0
    log = (tmp_path / "log").read_text()
    assert "stopped" in log
    for secret in (reddit.settings.password, reddit.settings.client_secret):
        assert secret not in log
