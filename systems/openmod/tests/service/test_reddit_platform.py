"""Reddit as a Platform: certain answers, errors to retry, refusals."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest

from keywright import Secret
from keywright_openmod.platform import Account, Comment, Post
from keywright_openmod.service.connection import RateLimitedError, RedditConnection
from keywright_openmod.service.credentials import Credentials
from keywright_openmod.service.reddit import RedditPlatform
from keywright_openmod.simulator import RedditSimulator
from keywright_service.errors import PlatformError, PlatformRefusedError, PlatformTroubleError

from ..reddit_service import ASYNCPRAW_WARNS, platform_of

pytestmark = [ASYNCPRAW_WARNS, pytest.mark.anyio]


async def test_existing_deleted_and_suspended_accounts_are_distinguished(
    reddit: RedditSimulator, platform: RedditPlatform
) -> None:
    there, suspended, deleted = reddit.populate(3)
    admin = reddit.world.join("an_admin", employee=True)
    reddit.world.suspend(suspended)
    reddit.world.delete_account(deleted)
    assert await platform.account(there.id) == Account(there.id, there.name)
    assert await platform.account_named(there.name.upper()) == Account(there.id, there.name)
    assert await platform.account(admin.id) == Account(admin.id, "an_admin", is_admin=True)
    for gone in (suspended, deleted):
        assert await platform.account(gone.id) is None
        assert await platform.account_named(gone.name) is None
    assert await platform.account("t2_zzzzz") is None
    assert await platform.account_named("no/such/name") is None


async def test_posts_and_comments_exist_until_their_author_deletes_them(
    reddit: RedditSimulator, platform: RedditPlatform
) -> None:
    author, leaver = reddit.populate(2)
    post = reddit.world.post(author, "mysub", "title", "text")
    link = reddit.world.post(leaver, "mysub", "link", link="https://example.org/")
    comment = reddit.world.comment(author, post, "remark")
    reddit.world.moderate(reddit.moderator, "removelink", post, "mysub")
    reddit.world.delete_account(leaver)
    assert await platform.thing(post.id) == Post(
        id=post.id,
        author=author.id,
        title="title",
        url=f"https://www.reddit.com{post.permalink}",
        body="text",
        permalink=post.permalink,
        created_at=datetime.fromtimestamp(int(post.created), UTC),
    )
    left = await platform.thing(link.id)
    assert isinstance(left, Post)
    assert (left.author, left.body, left.url) == (None, None, "https://example.org/")
    found = await platform.thing(comment.id)
    assert isinstance(found, Comment)
    assert found.body == "remark"
    for each in (post, link, comment):
        reddit.world.delete(each)
        assert await platform.thing(each.id) is None
    assert await platform.thing("t3_zzzzz") is None


@pytest.mark.parametrize("status", [500, 503, 429, 418, 401])
async def test_an_error_of_reddit_is_never_treated_as_a_deletion(
    status: int, reddit: RedditSimulator, platform: RedditPlatform
) -> None:
    author = reddit.world.join("author")
    post = reddit.world.post(author, "mysub", "title")
    await platform.me()
    await platform.thing(post.id)
    for path in ("/about", "/api/info", "account_ids"):
        reddit.faults.fail(path, status, times=100)
    for question in (platform.account(author.id), platform.thing(post.id)):
        with pytest.raises(PlatformError):
            await question


async def test_a_reply_without_its_proof_is_an_error(
    reddit: RedditSimulator, platform: RedditPlatform
) -> None:
    author = reddit.world.join("author")
    post = reddit.world.post(author, "mysub", "title")
    await platform.me()
    await platform.thing(post.id)
    reddit.faults.fail("account_ids", 404)
    with pytest.raises(PlatformTroubleError):
        await platform.account(author.id)
    reddit.faults.fail("/about", 404, times=2)
    with pytest.raises(PlatformTroubleError, match="account of this program"):
        await platform.account(author.id)
    reddit.world.submissions.clear()
    reddit.world.subreddits.clear()
    with pytest.raises(PlatformTroubleError, match="lacks the subreddit"):
        await platform.thing(post.id)


async def test_a_forbidden_account_is_not_treated_as_deleted(
    reddit: RedditSimulator, platform: RedditPlatform
) -> None:
    author = reddit.world.join("author")
    reddit.faults.fail("/user/author", 403)
    with pytest.raises(PlatformRefusedError):
        await platform.account(author.id)


async def test_no_request_is_sent_before_a_rate_limit_ends(
    reddit: RedditSimulator, platform: RedditPlatform
) -> None:
    await platform.me()
    reddit.faults.rate_limit(60)
    for _ in range(5):
        with pytest.raises(RateLimitedError) as limited:
            await platform.me()
        assert 50 < limited.value.seconds <= 60
    assert [each.status for each in reddit.answered].count(429) == 1


async def test_a_server_that_never_answers_is_an_error(reddit: RedditSimulator) -> None:
    async with platform_of(reddit, timeout_seconds=0.2) as platform:
        await platform.me()
        reddit.faults.fail("/api/v1/me", None, times=10)
        with pytest.raises(PlatformTroubleError):
            await platform.me()


@pytest.mark.parametrize("status", [500, 502, None])
async def test_a_submission_whose_reply_is_lost_is_sent_once_and_found(
    status: int | None, reddit: RedditSimulator
) -> None:
    async with platform_of(reddit, timeout_seconds=1.0) as platform:
        await platform.me()
        reddit.faults.fail("/api/submit", status, done=True)
        with pytest.raises(PlatformTroubleError):
            await platform.submit("mysub_log", "title", "a body with marker-1 in it")
        (made,) = reddit.world.posts_in("mysub_log")
        assert await platform.find_submission("MySub_Log", "marker-1") == made.id
        assert await platform.find_submission("mysub", "marker-1") is None
        assert await platform.find_submission("mysub_log", "marker-2") is None


async def test_own_posts_are_found_over_pages_and_then_read_incrementally(
    reddit: RedditSimulator, platform: RedditPlatform
) -> None:
    for number in range(250):
        reddit.world.post(reddit.app, "mysub_log", "title", f"marker-{number}.")
    assert await platform.find_submission("mysub_log", "marker-0.")
    assert await platform.find_submission("mysub_log", "marker-none.") is None
    reddit.world.post(reddit.app, "mysub_log", "title", "marker-new.")
    assert await platform.find_submission("mysub_log", "marker-new.")
    assert [each.path for each in reddit.answered].count(f"/user/{reddit.app.name}/submitted") == 5


async def test_a_closed_subreddit_refuses_a_post(reddit: RedditSimulator, platform: RedditPlatform) -> None:
    reddit.world.subreddit("mysub_log").closed = True
    with pytest.raises(PlatformRefusedError, match="SUBREDDIT_NOTALLOWED"):
        await platform.submit("mysub_log", "title", "body")


async def test_an_edit_distinguishes_a_deleted_post_from_a_foreign_one(
    reddit: RedditSimulator, platform: RedditPlatform
) -> None:
    own = reddit.world.post(reddit.app, "mysub_log", "title", "body")
    foreign = reddit.world.post(reddit.moderator, "mysub_log", "title", "body")
    assert await platform.edit(own.id, "changed")
    assert own.body == "changed"
    with pytest.raises(PlatformRefusedError):
        await platform.edit(foreign.id, "changed")
    reddit.world.delete(own)
    assert not await platform.edit(own.id, "again")


async def test_concurrent_lookups_share_requests(reddit: RedditSimulator, platform: RedditPlatform) -> None:
    author = reddit.world.join("author")
    posts = [reddit.world.post(author, "mysub", f"post {number}") for number in range(150)]
    found = await platform.things([each.id for each in posts])
    assert [each.title for each in found.values() if isinstance(each, Post)] == [p.title for p in posts]
    assert [each.path for each in reddit.answered].count("/api/info") == 2


async def test_a_cancelled_lookup_does_not_cancel_the_others(
    reddit: RedditSimulator, platform: RedditPlatform
) -> None:
    people = reddit.populate(3)
    asked = [asyncio.create_task(platform.account(each.id)) for each in people]
    await asyncio.sleep(0)
    asked[0].cancel()
    assert [each and each.name for each in await asyncio.gather(*asked[1:])] == ["person_1", "person_2"]


async def test_refused_credentials_are_not_in_the_message(reddit: RedditSimulator) -> None:
    wrong = Credentials(
        client_id=reddit.settings.client_id,
        client_secret=Secret("not-the-secret"),
        username=reddit.settings.username,
        password=Secret("not-the-password"),
        url=reddit.url,
        oauth_url=reddit.url,
    )
    async with RedditConnection(wrong) as connection:
        with pytest.raises(PlatformRefusedError) as refused:
            await RedditPlatform(connection, "mysub").me()
    assert "not-the" not in str(refused.value)
    assert "not-the" not in repr(wrong)
