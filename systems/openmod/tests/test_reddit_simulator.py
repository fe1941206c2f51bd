"""The simulated Reddit, tested with an unmodified asyncpraw."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from asyncpraw import Reddit
from asyncprawcore.exceptions import Forbidden, NotFound, OAuthException, ServerError, TooManyRequests

from keywright.errors import UsageError
from keywright_openmod.simulator import (
    RedditSimulator,
    RedditSimulatorSettings,
    read_world,
    write_world,
)

from .reddit_service import ASYNCPRAW_WARNS, platform_of

pytestmark = [ASYNCPRAW_WARNS, pytest.mark.anyio]


def client_of(reddit: RedditSimulator, **changed: str) -> Reddit:
    chosen = reddit.settings
    settings: dict[str, Any] = {
        "client_id": chosen.client_id,
        "client_secret": chosen.client_secret,
        "username": chosen.username,
        "password": chosen.password,
        "user_agent": "keywright tests",
        "reddit_url": reddit.url,
        "oauth_url": reddit.url,
        "check_for_updates": False,
    }
    return Reddit(**settings | changed)


@pytest.fixture
async def client(reddit: RedditSimulator) -> AsyncIterator[Reddit]:
    async with client_of(reddit) as opened:
        yield opened


async def test_asyncpraw_logs_in_and_learns_who_it_is(reddit: RedditSimulator, client: Reddit) -> None:
    me: Any = await client.user.me()
    assert (me.name, f"t2_{me.id}") == (reddit.app.name, reddit.app.id)


async def test_a_wrong_password_is_refused(reddit: RedditSimulator) -> None:
    async with client_of(reddit, password="another") as client:
        with pytest.raises(OAuthException, match="invalid_grant"):
            await client.user.me()


async def test_an_expired_token_is_renewed(reddit: RedditSimulator, client: Reddit) -> None:
    await client.user.me()
    reddit.forget_tokens()
    await client.user.me(use_cache=False)
    assert [each.status for each in reddit.answered if each.path == "/api/v1/me"] == [200, 401, 200]


async def test_the_moderation_log_is_listed_newest_first_over_pages(
    reddit: RedditSimulator, client: Reddit
) -> None:
    author = reddit.world.join("author")
    posts = [reddit.world.post(author, "mysub", f"post {each}") for each in range(130)]
    made = [reddit.world.moderate(reddit.moderator, "removelink", each, "mysub").id for each in posts]
    here = await client.subreddit("mysub")
    assert [each.id async for each in here.mod.log(limit=None)] == made[::-1]
    assert [each.status for each in reddit.answered if each.path.endswith("/log")] == [200, 200]


async def test_only_moderators_read_the_log(reddit: RedditSimulator, client: Reddit) -> None:
    reddit.world.found("elsewhere")
    here = await client.subreddit("elsewhere")
    with pytest.raises(Forbidden):
        await anext(aiter(here.mod.log()))


async def test_a_deleted_post_an_orphaned_post_and_a_removed_post_differ(
    reddit: RedditSimulator, client: Reddit
) -> None:
    people = reddit.populate(3)
    posts = [reddit.world.post(each, "mysub", "title", "text") for each in people]
    reddit.world.delete(posts[0])
    reddit.world.delete_account(people[1])
    reddit.world.moderate(reddit.moderator, "removelink", posts[2], "mysub")
    found: list[Any] = [each async for each in client.info(fullnames=[each.id for each in posts])]
    assert [each.selftext for each in found] == ["[deleted]", "text", "text"]
    assert [each.author for each in found[:2]] == [None, None]
    assert found[2].author.name == people[2].name
    assert [each.removed_by_category for each in found] == ["deleted", None, "moderator"]


async def test_deleted_and_suspended_accounts_differ(reddit: RedditSimulator, client: Reddit) -> None:
    there, suspended, deleted = reddit.populate(3)
    reddit.world.suspend(suspended)
    reddit.world.delete_account(deleted)
    found: Any = await client.redditor(suspended.name, fetch=True)
    assert found.is_suspended
    with pytest.raises(NotFound):
        await client.redditor(deleted.name, fetch=True)
    ids = [there.id, suspended.id, deleted.id]
    names = [each.name async for each in client.redditors.partial_redditors(ids)]
    assert names == [there.name, suspended.name]


async def test_a_post_is_made_edited_and_listed(reddit: RedditSimulator, client: Reddit) -> None:
    target = await client.subreddit("mysub_log")
    made: Any = await target.submit("a title", selftext="a body")
    await made.edit("another body")
    assert reddit.bodies == ["another body"]
    me: Any = await client.user.me()
    listed: list[Any] = [each async for each in me.submissions.new()]
    assert [(each.title, each.selftext) for each in listed] == [("a title", "another body")]


async def test_edited_submissions_are_listed_by_the_time_of_the_edit(
    reddit: RedditSimulator, client: Reddit
) -> None:
    author = reddit.world.join("author")
    first, second = (reddit.world.post(author, "mysub", "title", "text") for _ in range(2))
    remark = reddit.world.comment(author, first, "remark")
    for each in (second, remark, first):
        reddit.world.edit(each, "changed")
    here = await client.subreddit("mysub")
    found = [each.fullname async for each in here.mod.edited()]
    assert found == [first.id, remark.id, second.id]


async def test_faults_can_be_set_and_cleared(reddit: RedditSimulator, client: Reddit) -> None:
    await client.user.me()
    reddit.faults.rate_limit(30)
    with pytest.raises(TooManyRequests) as limited:
        await client.user.me(use_cache=False)
    assert limited.value.retry_after == "30"
    reddit.faults.clear()
    reddit.faults.fail("/api/v1/me", 404)
    with pytest.raises(NotFound):
        await client.user.me(use_cache=False)
    await client.user.me(use_cache=False)


async def test_a_reply_can_be_lost_after_the_post_was_made(reddit: RedditSimulator, client: Reddit) -> None:
    target = await client.subreddit("mysub_log")
    reddit.faults.fail("/api/submit", 500, times=3, done=True)
    with pytest.raises(ServerError):
        await target.submit("a title", selftext="a body")
    assert len(reddit.extracts) == 3, "asyncpraw retries, which is why the service keeps it from retrying"


async def first_texts(seed: int) -> list[str]:
    async with RedditSimulator() as reddit:
        reddit.start_traffic(rate=100_000, seed=seed)
        while len(reddit.world.submissions) < 40:  # noqa: ASYNC110  # the world has no event to wait for
            await asyncio.sleep(0)
        return [each.title or each.body for each in list(reddit.world.submissions.values())[:40]]


async def test_traffic_is_the_same_for_the_same_seed() -> None:
    assert await first_texts(seed=1) == await first_texts(seed=1) != await first_texts(seed=2)


async def test_a_port_in_use_is_an_error_that_names_it(reddit: RedditSimulator) -> None:
    with pytest.raises(UsageError, match=str(reddit.port)):
        async with RedditSimulator(RedditSimulatorSettings(port=reddit.port)):
            pass


async def test_a_world_in_a_file_is_the_same_after_a_kill(tmp_path: Path) -> None:
    file = tmp_path / "world.json"

    async with RedditSimulator(on_change=lambda world: write_world(world, file)) as reddit:
        author = reddit.world.join("jane_doe")
        post = reddit.world.post(author, "mysub", "a title", "a text")
        comment = reddit.world.comment(author, post, "a remark")
        reddit.world.edit(comment, "another remark")
        reddit.world.moderate(reddit.moderator, "removelink", post, "mysub")
        reddit.world.moderate(reddit.moderator, "banuser", author, "mysub")
        reddit.world.delete(post)
        async with platform_of(reddit) as platform:
            made = await platform.submit("mysub_log", "an extract", "its body")
            await platform.edit(made, "its new body")
        before = reddit.world
    again = read_world(file)
    assert again is not None
    assert vars(again) == {**vars(before), "_clock": again._clock}
    assert again.post(again.users[author.id], "mysub", "more").id not in before.submissions
    async with RedditSimulator(world=read_world(file)) as reddit:
        assert reddit.bodies == ["its new body"]
        assert reddit.app.id == next(iter(before.users))


def test_a_file_that_is_not_a_world_is_an_error_that_names_it(tmp_path: Path) -> None:
    file = tmp_path / "world.json"
    assert read_world(file) is None
    file.write_text("{}")
    with pytest.raises(UsageError, match=r"world\.json is not the world"):
        read_world(file)
