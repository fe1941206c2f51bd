"""The service in this event loop, with the simulated Reddit and a real Redis."""

from __future__ import annotations

import socket
from contextlib import AsyncExitStack
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

from ..reddit_service import (
    ASYNCPRAW_WARNS,
    configured,
    database,
    eventually,
    eventually_true,
    published,
    serving,
    settled,
)

pytestmark = [ASYNCPRAW_WARNS, pytest.mark.anyio]

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


def removed(reddit: RedditSimulator, author: SimulatedUser, title: str = "a title") -> SimulatedSubmission:
    """Make a post and let a moderator remove it."""
    post = reddit.world.post(author, "mysub", title, f"the text of {title}")
    reddit.world.moderate(reddit.moderator, "removelink", post, "mysub")
    return post


async def due(db: AsyncDatabase, queue: DueQueue[str], member: str) -> datetime:
    found = await db.run(queue.score(member))
    assert found is not None
    return found


async def erased(db: AsyncDatabase, user: SimulatedUser) -> None:
    """Wait until an account is erased."""

    async def unenrolled() -> bool:
        return not await db.run(EnforcementSet().has(user.id))

    await eventually_true(unenrolled, "the account is erased")


async def extracts_of(db: AsyncDatabase, thing: str) -> list[str]:
    return await db.run(ModActionSet(thing).members())


async def test_moderation_is_published_and_submissions_are_tracked(
    redis_url: str, reddit: RedditSimulator, db: AsyncDatabase
) -> None:
    author, other = reddit.populate(2)
    async with serving(configured(reddit, redis_url)):
        post = removed(reddit, author)
        comment = reddit.world.comment(other, post, "a remark")
        reddit.world.moderate(reddit.moderator, "banuser", other, "mysub")
        reddit.world.moderate(reddit.moderator, "lock", post, "mysub")
        await published(reddit, 2)

        async def tracked() -> bool:
            return set(await db.run(TrackingSet(other.id).members())) == {comment.id, other.id}

        await eventually_true(tracked, "the banned user and their comment are tracked")
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


async def test_a_restart_continues_at_the_stored_position(
    redis_url: str, reddit: RedditSimulator, db: AsyncDatabase
) -> None:
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


async def test_the_first_start_reads_back_as_far_as_configured(
    redis_url: str, reddit: RedditSimulator, db: AsyncDatabase
) -> None:
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


async def test_an_edit_reaches_the_public_extract(
    redis_url: str, reddit: RedditSimulator, db: AsyncDatabase
) -> None:
    async with serving(configured(reddit, redis_url)):
        post = removed(reddit, reddit.world.join("jane_doe"))
        await published(reddit, 1)
        await settled(db)
        reddit.world.edit(post, "another text")
        await eventually(lambda: "another text" in reddit.bodies[0], "the extract shows the new text")


async def test_outages_and_rate_limits_lose_and_duplicate_nothing(
    redis_url: str, reddit: RedditSimulator, db: AsyncDatabase
) -> None:
    author = reddit.world.join("jane_doe")
    async with serving(configured(reddit, redis_url)) as service:
        removed(reddit, author, "before")
        await published(reddit, 1)
        with reddit.faults.outage():
            removed(reddit, author, "during an outage")
            await eventually(
                lambda: any(not job.health.ok for job in service.jobs), "a task reports the outage"
            )
        await published(reddit, 2)
        reddit.faults.rate_limit(1)
        removed(reddit, author, "during a rate limit")
        await published(reddit, 3)
        for path in ("/api/submit", "/submitted", "/api/info", "/log"):
            reddit.faults.fail(path, 502, times=2, done=True)
        posts = [removed(reddit, author, f"with lost replies {number}") for number in range(5)]
        await published(reddit, 8)
        await settled(db)
        await eventually(lambda: all(job.health.ok for job in service.jobs), "every task works again")
    assert len(reddit.extracts) == 8
    for post in posts:
        assert len(await extracts_of(db, post.id)) == 1


async def test_a_deleted_submission_is_erased_and_its_extract_redacted(
    redis_url: str, reddit: RedditSimulator, db: AsyncDatabase
) -> None:
    author = reddit.world.join("jane_doe")
    async with serving(configured(reddit, redis_url)):
        post = removed(reddit, author)
        await published(reddit, 1)
        await settled(db)
        reddit.world.delete(post)
        await db.run(ThingChecks().schedule(post.id, LONG_AGO))
        await eventually(lambda: "the text" not in reddit.bodies[0], "the extract is redacted")

        async def unscheduled() -> bool:
            return not await db.run(ThingChecks().has(post.id))

        await eventually_true(unscheduled, "the submission is erased")
    assert author.name not in reddit.bodies[0]
    assert await extracts_of(db, post.id) == []
    assert await db.run(CacheHash(post.id).get()) is None
    assert await db.run(TrackingSet(author.id).members()) == []


@pytest.mark.parametrize("end", ["delete_account", "suspend"])
async def test_a_deleted_or_suspended_account_is_erased_and_its_extracts_redacted(
    redis_url: str, end: str, reddit: RedditSimulator, db: AsyncDatabase
) -> None:
    leaver, stayer = reddit.world.join("leaver"), reddit.world.join("stayer")
    async with serving(configured(reddit, redis_url)):
        gone, there = removed(reddit, leaver, "going"), removed(reddit, stayer, "staying")
        await published(reddit, 2)
        await settled(db)
        getattr(reddit.world, end)(leaver)
        # In one command, so that one batch checks both.
        await db.run(EnforcementSet().schedule_many({leaver.id: LONG_AGO, stayer.id: LONG_AGO}))
        await erased(db, leaver)
    assert not any(leaver.name in each for each in reddit.bodies)
    assert any(stayer.name in each for each in reddit.bodies)
    assert await extracts_of(db, gone.id) == []
    assert len(await extracts_of(db, there.id)) == 1
    assert await db.run(CacheHash(leaver.id).get()) is None
    assert await due(db, EnforcementSet(), stayer.id) > datetime.now(UTC)


@pytest.mark.parametrize("status", [500, 429, 403, 404])
async def test_no_failure_of_reddit_purges_anything(
    redis_url: str, status: int, reddit: RedditSimulator, db: AsyncDatabase
) -> None:
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
    assert (done.erased, done.kept) == (0, 0)
    assert len(done.troubles) >= 2
    assert reddit.bodies == before
    assert await db.run(TrackingSet(author.id).members()) == [post.id]
    soon = datetime.now(UTC) + timedelta(minutes=11)
    assert LONG_AGO < await due(db, EnforcementSet(), author.id) < soon
    assert LONG_AGO < await due(db, ThingChecks(), post.id) < soon


async def test_checks_keep_their_time_of_day(
    redis_url: str, reddit: RedditSimulator, db: AsyncDatabase
) -> None:
    configuration = configured(reddit, redis_url)
    async with serving(configuration):
        post = removed(reddit, reddit.world.join("jane_doe"))
        await published(reddit, 1)
        await settled(db)
    late = datetime.now(UTC).replace(microsecond=0) - timedelta(days=2, minutes=7)
    await db.run(ThingChecks().schedule(post.id, late))
    assert (await enforce_once(configuration)).kept == 1
    assert await due(db, ThingChecks(), post.id) == late + timedelta(days=3)


async def test_a_refused_event_stays_pending_and_does_not_block_the_others(
    redis_url: str, reddit: RedditSimulator, db: AsyncDatabase
) -> None:
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

        (event,) = await eventually_true(alone, "only the refused event is left")
        reddit.world.subreddit("mysub_log").closed = False
        await db.run(PendingEvents().schedule(event, LONG_AGO))
        await published(reddit, 1)


async def test_a_key_of_another_program_blocks_only_operations_on_it(
    redis_url: str, reddit: RedditSimulator, db: AsyncDatabase
) -> None:
    stuck, leaver, author = (reddit.world.join(name) for name in ("stuck", "leaver", "author"))
    with redis.Redis.from_url(redis_url) as client:
        client.set(f"user:{stuck.id}", "of another program")
    async with serving(configured(reddit, redis_url)) as service:
        for each in (stuck, leaver):
            reddit.world.delete_account(each)
            await db.run(EnforcementSet().schedule(each.id, LONG_AGO))
        await erased(db, leaver)
        (accounts,) = [job for job in service.jobs if job.name == "accounts"]
        await eventually(
            lambda: f"user:{stuck.id}" in (accounts.health.trouble or ""), "health names the key"
        )
        removed(reddit, author)
        await published(reddit, 1)
    assert await db.run(EnforcementSet().has(stuck.id))


async def test_v1_data_is_upgraded_and_checked_after_a_start(
    redis_url: str, reddit: RedditSimulator, db: AsyncDatabase
) -> None:
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
            return await db.run(ThingChecks().has(post.id)) and await db.run(EnforcementSet().has(author.id))

        await eventually_true(enrolled, "stored data is checked from now on")
    found = await db.run(ExtractHash(old.id).get())
    assert found is not None
    assert (found.actor, found.target) == (reddit.moderator.id, author.id)


def store_raw(redis_url: str, key: str, members: dict[str, str]) -> None:
    with redis.Redis.from_url(redis_url) as client:
        client.hset(key, mapping=members)


async def test_health_lists_every_task_and_the_number_of_pending_events(
    redis_url: str, reddit: RedditSimulator, db: AsyncDatabase
) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]

    token = "a-long-random-token"
    configuration = configured(
        reddit, redis_url, OPENMOD_HEALTH_ADDRESS=f":{port}", OPENMOD_HEALTH_TOKEN=token
    )
    async with serving(configuration) as service, httpx.AsyncClient() as client:
        await eventually(lambda: service.address, "the service listens")
        url = f"http://127.0.0.1:{port}/health"

        async def healthy() -> bool:
            return (await client.get(url)).status_code == 200

        await eventually_true(healthy, "the service is healthy")
        assert (await client.get(url)).json() == {"ok": True, "failing": []}
        shown = (await client.get(url, headers={"Authorization": f"Bearer {token}"})).json()
        assert "pending" in shown
        assert set(shown["jobs"]) >= {"log", "posts", "comments", "edits", "events", "accounts"}
        with reddit.faults.outage():

            async def unhealthy() -> bool:
                return (await client.get(url)).status_code == 503

            await eventually_true(unhealthy, "the service reports the outage")
            shown = (await client.get(url)).json()
            assert set(shown) == {"ok", "failing"}
            assert shown["failing"]
        await eventually_true(healthy, "the service recovers")
        assert (await client.get(url.replace("/health", "/ready"))).status_code == 200
        metrics = (await client.get(url.replace("/health", "/metrics"))).text
    assert 'service_task_ok{task="events"} 1.0' in metrics
    assert "openmod_extracts_published_total 0.0" in metrics


async def test_the_public_log_has_a_listener_of_its_own(
    redis_url: str, reddit: RedditSimulator, db: AsyncDatabase
) -> None:
    """A deletion on Reddit, once it is noticed, is gone from the log with the next request."""
    configuration = configured(reddit, redis_url, OPENMOD_HEALTH_ADDRESS=":0", OPENMOD_LOG_ADDRESS=":0")
    async with serving(configuration) as service, httpx.AsyncClient() as client:
        await eventually(lambda: service.log_address, "the log listens")
        assert service.address is not None
        assert service.log_address is not None
        health, pages = (f"http://{host}:{port}" for host, port in (service.address, service.log_address))
        for path in ("/health", "/ready", "/metrics"):
            assert (await client.get(f"{pages}{path}")).status_code == 404
        assert (await client.get(f"{health}/api/actions")).status_code == 404
        post = removed(reddit, reddit.world.join("jane_doe"), "a title of hers")

        async def listed() -> bool:
            return "a title of hers" in (await client.get(pages)).text

        await eventually_true(listed, "the action is in the log")
        (extract,) = await extracts_of(db, post.id)
        (action,) = (await client.get(f"{pages}/api/actions?user=jane_doe")).json()["actions"]
        assert (action["id"], action["thing"]) == (extract, post.id)
        reddit.world.delete(post)
        await db.run(ThingChecks().schedule(post.id, LONG_AGO))

        async def missing() -> bool:
            return (await client.get(f"{pages}/entry/{extract}")).status_code == 404

        await eventually_true(missing, "the entry is gone")
        assert not await listed()
        assert (await client.get(f"{pages}/api/actions")).json() == {"actions": [], "next": None}


async def test_without_an_address_the_log_is_not_served_nor_by_a_process_that_only_enforces(
    redis_url: str, reddit: RedditSimulator
) -> None:
    async with serving(configured(reddit, redis_url)) as service:
        await eventually(lambda: service.started, "it runs")
        assert service.log_address is None
    enforcing = OpenModService(configured(reddit, redis_url, OPENMOD_LOG_ADDRESS=":0"), only_enforce=True)
    async with AsyncExitStack() as opened:
        await enforcing.start(opened)
        assert enforcing.log_address is None
        enforcing.stop()


@pytest.mark.parametrize("setting", ["OPENMOD_SUBREDDIT", "OPENMOD_TARGET_SUBREDDIT"])
async def test_a_subreddit_that_does_not_exist_ends_the_service_at_the_start(
    redis_url: str, reddit: RedditSimulator, setting: str
) -> None:
    service = OpenModService(configured(reddit, redis_url, **{setting: "misspelt"}))
    with pytest.raises(PlatformRefusedError, match=rf"r/misspelt.*does not exist.*Correct {setting}"):
        await service.run()


async def test_metrics_count_events_by_outcome_and_published_extracts(
    redis_url: str, reddit: RedditSimulator, db: AsyncDatabase
) -> None:
    async with serving(configured(reddit, redis_url)) as service:
        removed(reddit, reddit.world.join("jane_doe"))
        published = "openmod_extracts_published_total 1.0"
        await eventually(lambda: published in service.metrics.exposition().decode(), "it is published")
        assert 'openmod_events_total{outcome="recorded"}' in service.metrics.exposition().decode()


async def test_started_during_an_outage_the_service_waits_and_can_be_stopped(
    redis_url: str, reddit: RedditSimulator, db: AsyncDatabase
) -> None:
    with reddit.faults.outage():
        async with serving(configured(reddit, redis_url)) as service:
            await eventually(
                lambda: service.jobs and not service.jobs[0].health.ok, "the service reports the outage"
            )
            removed(reddit, reddit.world.join("jane_doe"))
        async with serving(configured(reddit, redis_url)) as service:
            await eventually(
                lambda: service.jobs and not service.jobs[0].health.ok, "the service reports the outage"
            )
            reddit.faults.clear()
            await published(reddit, 1)


@pytest.mark.cluster
async def test_the_service_works_on_a_cluster(cluster_url: str, reddit: RedditSimulator) -> None:
    author = reddit.world.join("jane_doe")
    async with database(cluster_url) as db, serving(configured(reddit, cluster_url)):
        post = removed(reddit, author)
        await published(reddit, 1)
        await settled(db)
        assert len(await extracts_of(db, post.id)) == 1
        reddit.world.delete_account(author)
        await db.run(EnforcementSet().schedule(author.id, LONG_AGO))
        await erased(db, author)
    assert "jane" not in reddit.bodies[0]


async def test_wrong_credentials_end_the_service_at_the_start(
    redis_url: str, reddit: RedditSimulator
) -> None:
    with pytest.raises(PlatformRefusedError, match="password"):
        await OpenModService(configured(reddit, redis_url, REDDIT_PASSWORD="another")).run()
