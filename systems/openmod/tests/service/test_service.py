"""The service in this event loop, against the simulated Reddit and a real Redis."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

import httpx
import pytest
import redis

from keywright import AsyncDatabase, DueQueue
from keywright_openmod.schema import CacheHash, EnforcementSet, ExtractHash, ModActionSet, TrackingSet
from keywright_openmod.service.schema import PendingEvents, ThingChecks
from keywright_openmod.service.service import OpenModService, enforce_once
from keywright_openmod.simulator import RedditSimulator, SimulatedSubmission, SimulatedUser
from keywright_service.errors import PlatformRefusedError

from ..reddit_service import ASYNCPRAW_WARNS, configured, database, eventually, eventually_true, serving

pytestmark = ASYNCPRAW_WARNS

Story = Callable[[RedditSimulator, AsyncDatabase], Awaitable[None]]
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


def told(story: Story, redis_url: str) -> None:
    async def session() -> None:
        async with RedditSimulator() as reddit, database(redis_url) as db:
            await story(reddit, db)

    asyncio.run(session())


def removed(reddit: RedditSimulator, author: SimulatedUser, title: str = "a title") -> SimulatedSubmission:
    """A post that is made and removed."""
    post = reddit.world.post(author, "mysub", title, f"the text of {title}")
    reddit.world.moderate(reddit.moderator, "removelink", post, "mysub")
    return post


async def published(reddit: RedditSimulator, number: int) -> None:
    await eventually(lambda: len(reddit.extracts) >= number, f"{number} extracts")


async def settled(db: AsyncDatabase) -> None:
    async def nothing_pending() -> bool:
        return await db.run(PendingEvents().size()) == 0

    await eventually_true(nothing_pending, "no event is pending")


async def due(db: AsyncDatabase, queue: DueQueue[str], member: str) -> datetime:
    found = await db.run(queue.score(member))
    assert found is not None
    return found


async def extracts_of(db: AsyncDatabase, thing: str) -> list[str]:
    return await db.run(ModActionSet(thing).members())


def test_moderation_becomes_public_and_submissions_are_tracked(redis_url: str) -> None:
    async def story(reddit: RedditSimulator, db: AsyncDatabase) -> None:
        author, other = reddit.populate(2)
        async with serving(configured(reddit, redis_url)):
            post = removed(reddit, author)
            comment = reddit.world.comment(other, post, "a remark")
            reddit.world.moderate(reddit.moderator, "banuser", other, "mysub")
            reddit.world.moderate(reddit.moderator, "lock", post, "mysub")
            await published(reddit, 2)

            async def tracked() -> bool:
                return set(await db.run(TrackingSet(other.id).members())) == {comment.id, other.id}

            await eventually_true(tracked, "what the banned person wrote, and the person, are tracked")
            await settled(db)
        assert sorted(reddit.extracts) == [
            "u/some_mod banned a user from r/mysub",
            "u/some_mod removed a post from r/mysub",
        ]
        assert await db.run(TrackingSet(author.id).members()) == [post.id]
        assert await db.run(EnforcementSet().has(author.id))
        assert await db.run(ThingChecks().has(comment.id))
        (extract,) = await extracts_of(db, post.id)
        assert any("the text of a title" in each for each in reddit.bodies)
        assert await db.run(ExtractHash(extract).get())

    told(story, redis_url)


def test_a_restart_goes_on_where_it_was(redis_url: str) -> None:
    async def story(reddit: RedditSimulator, db: AsyncDatabase) -> None:
        author = reddit.world.join("jane_doe")
        async with serving(configured(reddit, redis_url)):
            removed(reddit, author, "first")
            await published(reddit, 1)
        second = removed(reddit, author, "second")
        async with serving(configured(reddit, redis_url)):
            await published(reddit, 2)
            await settled(db)
        assert len(reddit.extracts) == 2
        assert len(await extracts_of(db, second.id)) == 1

    told(story, redis_url)


def test_what_happened_before_the_first_start_is_read_as_far_back_as_is_wanted(redis_url: str) -> None:
    async def story(reddit: RedditSimulator, db: AsyncDatabase) -> None:
        author = reddit.world.join("jane_doe")
        for days, title in ((3, "old"), (1, "recent")):
            post = removed(reddit, author, title)
            post.created -= days * 86_400
        reddit.world.log[:] = [
            type(each)(each.id, each.action, each.moderator, each.subreddit, each.target, each.target.created)
            for each in reddit.world.log
            if isinstance(each.target, SimulatedSubmission)
        ]
        async with serving(configured(reddit, redis_url, OPENMOD_BACKFILL="48h")):
            await published(reddit, 1)
            await settled(db)
        (body,) = reddit.bodies
        assert "recent" in body

    told(story, redis_url)


def test_an_edit_reaches_the_public_extract(redis_url: str) -> None:
    async def story(reddit: RedditSimulator, db: AsyncDatabase) -> None:
        async with serving(configured(reddit, redis_url)):
            post = removed(reddit, reddit.world.join("jane_doe"))
            await published(reddit, 1)
            await settled(db)
            reddit.world.edit(post, "another text")
            await eventually(lambda: "another text" in reddit.bodies[0], "the extract tells the new text")

    told(story, redis_url)


def test_through_outages_and_rate_limits_nothing_is_lost_or_doubled(redis_url: str) -> None:
    async def story(reddit: RedditSimulator, db: AsyncDatabase) -> None:
        author = reddit.world.join("jane_doe")
        async with serving(configured(reddit, redis_url)) as service:
            removed(reddit, author, "before")
            await published(reddit, 1)
            with reddit.faults.outage():
                removed(reddit, author, "during an outage")
                await eventually(
                    lambda: any(not job.health.ok for job in service.jobs), "a job tells of the outage"
                )
            await published(reddit, 2)
            reddit.faults.rate_limit(1)
            removed(reddit, author, "during a rate limit")
            await published(reddit, 3)
            for path in ("/api/submit", "/submitted", "/api/info", "/log"):
                reddit.faults.fail(path, 502, times=2, done=True)
            posts = [removed(reddit, author, f"with lost answers {number}") for number in range(5)]
            await published(reddit, 8)
            await settled(db)
            await eventually(lambda: all(job.health.ok for job in service.jobs), "every job works again")
        assert len(reddit.extracts) == 8
        for post in posts:
            assert len(await extracts_of(db, post.id)) == 1

    told(story, redis_url)


def test_a_deleted_submission_is_forgotten_and_its_extract_redacted(redis_url: str) -> None:
    async def story(reddit: RedditSimulator, db: AsyncDatabase) -> None:
        author = reddit.world.join("jane_doe")
        async with serving(configured(reddit, redis_url)):
            post = removed(reddit, author)
            await published(reddit, 1)
            await settled(db)
            reddit.world.delete(post)
            await db.run(ThingChecks().schedule(post.id, LONG_AGO))
            await eventually(lambda: "the text" not in reddit.bodies[0], "the extract is redacted")

            async def forgotten() -> bool:
                return not await db.run(ThingChecks().has(post.id))

            await eventually_true(forgotten, "the deletion is dealt with")
        assert author.name not in reddit.bodies[0]
        assert await extracts_of(db, post.id) == []
        assert await db.run(CacheHash(post.id).get()) is None
        assert await db.run(TrackingSet(author.id).members()) == []

    told(story, redis_url)


@pytest.mark.parametrize("end", ["delete_account", "suspend"])
def test_an_account_that_is_gone_is_forgotten_and_its_extracts_redacted(redis_url: str, end: str) -> None:
    async def story(reddit: RedditSimulator, db: AsyncDatabase) -> None:
        leaver, stayer = reddit.world.join("leaver"), reddit.world.join("stayer")
        async with serving(configured(reddit, redis_url)):
            gone, there = removed(reddit, leaver, "going"), removed(reddit, stayer, "staying")
            await published(reddit, 2)
            await settled(db)
            getattr(reddit.world, end)(leaver)
            for each in (leaver, stayer):
                await db.run(EnforcementSet().schedule(each.id, LONG_AGO))

            async def forgotten() -> bool:
                return not await db.run(EnforcementSet().has(leaver.id))

            await eventually_true(forgotten, "the account is forgotten")
        assert not any(leaver.name in each for each in reddit.bodies)
        assert any(stayer.name in each for each in reddit.bodies)
        assert await extracts_of(db, gone.id) == []
        assert len(await extracts_of(db, there.id)) == 1
        assert await db.run(CacheHash(leaver.id).get()) is None
        assert await due(db, EnforcementSet(), stayer.id) > datetime.now(UTC)

    told(story, redis_url)


@pytest.mark.parametrize("status", [500, 429, 403, 404])
def test_no_failure_of_reddit_purges_anything(redis_url: str, status: int) -> None:
    async def story(reddit: RedditSimulator, db: AsyncDatabase) -> None:
        author = reddit.world.join("jane_doe")
        configuration = configured(reddit, redis_url)
        async with serving(configuration):
            post = removed(reddit, author)
            await published(reddit, 1)
            await settled(db)
        before = list(reddit.bodies)
        for people in (author, reddit.moderator):
            await db.run(EnforcementSet().schedule(people.id, LONG_AGO))
        await db.run(ThingChecks().schedule(post.id, LONG_AGO))
        for path in ("account_ids", "/about", "/api/info"):
            reddit.faults.fail(path, status, times=1000)
        done = await enforce_once(configuration)
        assert (done.forgotten, done.kept) == (0, 0)
        assert len(done.troubles) >= 2
        assert reddit.bodies == before
        assert await db.run(TrackingSet(author.id).members()) == [post.id]
        soon = datetime.now(UTC) + timedelta(minutes=11)
        assert LONG_AGO < await due(db, EnforcementSet(), author.id) < soon
        assert LONG_AGO < await due(db, ThingChecks(), post.id) < soon

    told(story, redis_url)


def test_checks_stay_at_their_time_of_day(redis_url: str) -> None:
    async def story(reddit: RedditSimulator, db: AsyncDatabase) -> None:
        configuration = configured(reddit, redis_url)
        async with serving(configuration):
            post = removed(reddit, reddit.world.join("jane_doe"))
            await published(reddit, 1)
            await settled(db)
        late = datetime.now(UTC).replace(microsecond=0) - timedelta(days=2, minutes=7)
        await db.run(ThingChecks().schedule(post.id, late))
        assert (await enforce_once(configuration)).kept == 1
        assert await due(db, ThingChecks(), post.id) == late + timedelta(days=3)

    told(story, redis_url)


def test_an_event_that_is_refused_stays_and_does_not_stop_the_others(redis_url: str) -> None:
    async def story(reddit: RedditSimulator, db: AsyncDatabase) -> None:
        author = reddit.world.join("jane_doe")
        reddit.world.subreddit("mysub_log").closed = True
        async with serving(configured(reddit, redis_url)):
            removed(reddit, author)
            later = reddit.world.post(author, "mysub", "untouched")

            async def tracked() -> bool:
                return await db.run(TrackingSet(author.id).has(later.id))

            await eventually_true(tracked, "the other event is handled")

            async def alone() -> list[str] | None:
                found = await db.run(PendingEvents().members())
                return found if len(found) == 1 else None

            (event,) = await eventually_true(alone, "the refused one is left")
            reddit.world.subreddit("mysub_log").closed = False
            await db.run(PendingEvents().schedule(event, LONG_AGO))
            await published(reddit, 1)

    told(story, redis_url)


def test_a_key_of_another_program_stops_nothing_but_what_needs_it(redis_url: str) -> None:
    async def story(reddit: RedditSimulator, db: AsyncDatabase) -> None:
        stuck, leaver, author = (reddit.world.join(name) for name in ("stuck", "leaver", "author"))
        with redis.Redis.from_url(redis_url) as client:
            client.set(f"user:{stuck.id}", "of another program")
        async with serving(configured(reddit, redis_url)) as service:
            for each in (stuck, leaver):
                reddit.world.delete_account(each)
                await db.run(EnforcementSet().schedule(each.id, LONG_AGO))

            async def forgotten() -> bool:
                return not await db.run(EnforcementSet().has(leaver.id))

            await eventually_true(forgotten, "the other account is forgotten")
            (accounts,) = [job for job in service.jobs if job.name == "accounts"]
            await eventually(lambda: f"user:{stuck.id}" in (accounts.health.trouble or ""), "health says why")
            removed(reddit, author)
            await published(reddit, 1)
        assert await db.run(EnforcementSet().has(stuck.id))

    told(story, redis_url)


def test_data_of_an_earlier_version_is_brought_up_to_date_and_watched(redis_url: str) -> None:
    async def story(reddit: RedditSimulator, db: AsyncDatabase) -> None:
        author = reddit.world.join("jane_doe")
        post = reddit.world.post(author, "mysub", "title")
        old = reddit.world.post(reddit.app, "mysub_log", "an extract", "an old body")
        audit = {
            "type": "removelink",
            "actor": reddit.moderator.name,
            "thingId": post.id,
            "permalink": post.permalink,
            "createdAt": "1700000000000",
        }
        await db.run(TrackingSet(author.id).add(post.id, LONG_AGO))
        await db.run(ModActionSet(post.id).add(old.id, LONG_AGO))
        store_raw(redis_url, f"audit:{old.id}", audit)
        async with serving(configured(reddit, redis_url)):

            async def enrolled() -> bool:
                return await db.run(ThingChecks().has(post.id)) and await db.run(
                    EnforcementSet().has(author.id)
                )

            await eventually_true(enrolled, "what was kept is looked at from now on")
        found = await db.run(ExtractHash(old.id).get())
        assert found is not None
        assert (found.actor, found.target) == (reddit.moderator.id, author.id)

    told(story, redis_url)


def store_raw(redis_url: str, key: str, members: dict[str, str]) -> None:
    with redis.Redis.from_url(redis_url) as client:
        client.hset(key, mapping=members)


def test_health_tells_of_every_job_and_of_what_is_pending(redis_url: str) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]

    async def story(reddit: RedditSimulator, db: AsyncDatabase) -> None:
        configuration = configured(reddit, redis_url, OPENMOD_HEALTH_ADDRESS=f":{port}")
        async with serving(configuration) as service, httpx.AsyncClient() as client:
            await eventually(lambda: service.address, "it listens")
            url = f"http://127.0.0.1:{port}/health"

            async def healthy() -> bool:
                return (await client.get(url)).status_code == 200

            await eventually_true(healthy, "it is healthy")
            shown = (await client.get(url)).json()
            assert set(shown["jobs"]) >= {"log", "posts", "comments", "edits", "events", "accounts"}
            with reddit.faults.outage():

                async def unhealthy() -> bool:
                    return (await client.get(url)).status_code == 503

                await eventually_true(unhealthy, "it tells of the outage")
            await eventually_true(healthy, "it recovers")

    told(story, redis_url)


def test_started_during_an_outage_it_waits_and_can_be_stopped(redis_url: str) -> None:
    async def story(reddit: RedditSimulator, db: AsyncDatabase) -> None:
        with reddit.faults.outage():
            async with serving(configured(reddit, redis_url)) as service:
                await eventually(lambda: service.jobs and not service.jobs[0].health.ok, "it tells of it")
                removed(reddit, reddit.world.join("jane_doe"))
            async with serving(configured(reddit, redis_url)) as service:
                await eventually(lambda: service.jobs and not service.jobs[0].health.ok, "it tells of it")
                reddit.faults.clear()
                await published(reddit, 1)

    told(story, redis_url)


@pytest.mark.cluster
def test_on_a_cluster_it_does_the_same(cluster_url: str) -> None:
    async def story(reddit: RedditSimulator, db: AsyncDatabase) -> None:
        author = reddit.world.join("jane_doe")
        async with serving(configured(reddit, cluster_url)):
            post = removed(reddit, author)
            await published(reddit, 1)
            await settled(db)
            assert len(await extracts_of(db, post.id)) == 1
            reddit.world.delete_account(author)
            await db.run(EnforcementSet().schedule(author.id, LONG_AGO))

            async def forgotten() -> bool:
                return not await db.run(EnforcementSet().has(author.id))

            await eventually_true(forgotten, "the account is forgotten")
        assert "jane" not in reddit.bodies[0]

    told(story, cluster_url)


def test_wrong_credentials_end_it_at_the_start(redis_url: str) -> None:
    async def story(reddit: RedditSimulator, db: AsyncDatabase) -> None:
        with pytest.raises(PlatformRefusedError, match="password"):
            await OpenModService(configured(reddit, redis_url, REDDIT_PASSWORD="another")).run()

    told(story, redis_url)
