"""A process of the service: opens what the configuration names, runs its jobs, and ends cleanly when told."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from typing import NamedTuple

from keywright import AsyncDatabase, aconnect, recover
from keywright.errors import KeywrightError
from keywright_openmod.enforcement import Enforcer
from keywright_openmod.recorder import Recorder
from keywright_openmod.service.configuration import Configuration
from keywright_openmod.service.connection import RedditConnection
from keywright_openmod.service.deletions import DeletionChecker, schedule_missing_checks
from keywright_openmod.service.feed_poller import FeedPoller
from keywright_openmod.service.feeds import reddit_feeds
from keywright_openmod.service.health import Health, serving_health
from keywright_openmod.service.jobs import Job
from keywright_openmod.service.processor import EventProcessor
from keywright_openmod.service.reddit import RedditPlatform
from keywright_openmod.service.schema import PendingEvents, bind
from keywright_openmod.upgrade import upgrade_all
from keywright_service.http import stopped_by_signals

__all__ = ["Enforced", "OpenModService", "enforce_once"]

log = logging.getLogger("keywright.openmod")

GRACE_SECONDS = 20.0
UPGRADES_A_SECOND = 200.0
# Of the hold on an event. No question lasts as long as the claim that it is asked under, so that no other
# process begins to publish what this one may still be publishing.
CLAIMED_FOR = 0.6
ASKED_FOR = 0.4

Step = Callable[[], Awaitable[timedelta | None]]


class Enforced(NamedTuple):
    """What became of everything that was due: accounts and submissions."""

    kept: int
    forgotten: int
    troubles: tuple[KeywrightError, ...]


class _Opened(NamedTuple):
    db: AsyncDatabase
    connection: RedditConnection
    platform: RedditPlatform
    recorder: Recorder


@asynccontextmanager
async def _opened(configuration: Configuration) -> AsyncIterator[_Opened]:
    async with AsyncExitStack() as stack:
        bindings = bind(configuration.redis.prefix)
        db = await stack.enter_async_context(aconnect(configuration.redis.url, *bindings))
        connection = await stack.enter_async_context(
            RedditConnection(configuration.credentials, patience=configuration.hold * ASKED_FOR)
        )
        platform = RedditPlatform(connection, configuration.subreddit)
        recorder = Recorder(db, platform, configuration.installation, hold=configuration.hold)
        yield _Opened(db, connection, platform, recorder)


async def enforce_once(configuration: Configuration) -> Enforced:
    """Check every account and submission that is due, and forget what is gone."""
    async with _opened(configuration) as opened:
        enforcer = Enforcer(opened.db, opened.platform)
        finder = DeletionChecker(opened.db, opened.platform, opened.recorder)
        kept, forgotten, troubles, more = 0, 0, [], True
        while more:
            accounts = await enforcer.run_batch()
            things = await finder.run_batch()
            kept += accounts.active + things.existing
            forgotten += accounts.erased + things.erased
            troubles += [*accounts.troubles, *things.troubles]
            more = accounts.more or things.more
        return Enforced(kept, forgotten, tuple(troubles))


class OpenModService:
    """One process. `run` it; `stop` ends it, as SIGTERM and SIGINT do. Any number may run."""

    def __init__(self, configuration: Configuration, *, only_enforce: bool = False) -> None:
        self.configuration = configuration
        self.address: tuple[str, int] | None = None
        """Where health is told, once it is."""
        self.jobs: list[Job] = []
        self._only_enforce = only_enforce
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """End cleanly: what is being handled is finished, what is not stays pending."""
        self._stopping.set()

    async def run(self, *, handle_signals: bool = False) -> None:
        """Until `stop`, or an error that trying again cannot help, which is raised."""
        async with AsyncExitStack() as stack:
            if handle_signals:
                stack.enter_context(stopped_by_signals(self.stop, log))
            opened = await stack.enter_async_context(_opened(self.configuration))
            await stack.enter_async_context(self._health(opened.db))
            if await self._welcomed(opened.platform):
                self.jobs = self._jobs(opened)
                await self._serve()

    async def _welcomed(self, platform: RedditPlatform) -> bool:
        """Wait until Reddit knows us; a refusal is raised, since no job could do anything."""

        async def introduced() -> None:
            log.info("acting as u/%s", (await platform.me()).name)

        start = Job("start", introduced, retry=self.configuration.retry, ends_when_refused=True)
        self.jobs = [start]
        starting = asyncio.create_task(start.run(self._stopping))
        stopped = asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait([starting, stopped], return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopped.cancel()
            starting.cancel()
            await asyncio.wait([starting, stopped])
        if not starting.cancelled():
            starting.result()
        return not self._stopping.is_set()

    def _jobs(self, opened: _Opened) -> list[Job]:
        steps: dict[str, Step] = {"accounts": self._accounts(opened), "deletions": self._deletions(opened)}
        if opened.db.context.sharded:
            steps["journal"] = self._journal(opened)
        if not self._only_enforce:
            steps |= {"survey": _survey(opened), **self._events(opened)}
        return [Job(name, step, retry=self.configuration.retry) for name, step in steps.items()]

    def _events(self, opened: _Opened) -> dict[str, Step]:
        chosen = self.configuration
        idle = min(chosen.poll, chosen.retry)
        processor = EventProcessor(opened.db, opened.recorder, idle=idle, hold=chosen.hold * CLAIMED_FOR)
        pollers = {
            feed.name: FeedPoller(
                opened.db, feed, chosen.subreddit, backfill=chosen.backfill, every=chosen.poll
            )
            for feed in reddit_feeds(opened.connection, chosen.subreddit)
            if feed.name in chosen.watch
        }
        return {"events": processor.process_batch, **{name: poller.poll for name, poller in pollers.items()}}

    def _accounts(self, opened: _Opened) -> Step:
        enforcer = Enforcer(opened.db, opened.platform)

        async def step() -> timedelta:
            batch = await enforcer.run_batch()
            if batch.erased:
                log.info("forgot %d accounts that are gone", batch.erased)
            return self._after(batch.troubles, more=batch.more)

        return step

    def _deletions(self, opened: _Opened) -> Step:
        finder = DeletionChecker(opened.db, opened.platform, opened.recorder)

        async def step() -> timedelta:
            checked = await finder.run_batch()
            return self._after(checked.troubles, more=checked.more)

        return step

    def _journal(self, opened: _Opened) -> Step:
        async def step() -> timedelta:
            """Finish what a process that died left half written across the slots of a cluster."""
            await opened.db.run(recover())
            return self.configuration.enforce

        return step

    def _after(self, troubles: tuple[KeywrightError, ...], *, more: bool) -> timedelta:
        """When to look again. What had trouble has its own time; the job slows down for it."""
        if troubles:
            raise troubles[0]
        return timedelta() if more else self.configuration.enforce

    async def _serve(self) -> None:
        log.info("watching r/%s: %s", self.configuration.subreddit, ", ".join(job.name for job in self.jobs))
        running = [asyncio.create_task(job.run(self._stopping), name=job.name) for job in self.jobs]
        stopping = asyncio.create_task(self._stopping.wait())
        waiting = {*running, stopping}
        try:
            while not self._stopping.is_set():
                done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                if any(task.exception() for task in done):
                    break
        finally:
            self._stopping.set()
            await _ended(running)
            stopping.cancel()
        log.info("stopped")
        for task in running:
            if not task.cancelled() and (error := task.exception()):
                raise error

    @asynccontextmanager
    async def _health(self, db: AsyncDatabase) -> AsyncIterator[None]:
        address = self.configuration.health.address
        if address is None:
            yield
            return

        async def health() -> Health:
            pending = await db.run(PendingEvents().size())
            return Health.of({job.name: job.health for job in self.jobs}, pending)

        async with serving_health(health, address) as self.address:
            yield


def _survey(opened: _Opened) -> Step:
    async def step() -> None:
        """Once: bring older data up to date, and have everything that is kept looked at."""
        progress = await upgrade_all(opened.db, opened.platform, per_second=UPGRADES_A_SECOND)
        if progress.upgraded or progress.left:
            log.info("upgraded %d extracts, left %d", progress.upgraded, len(progress.left))
        await schedule_missing_checks(opened.db)

    return step


async def _ended(running: list[asyncio.Task[None]]) -> None:
    """Let what is under way finish; what takes longer is cut off, and taken up again at the next start."""
    _, slow = await asyncio.wait(running, timeout=GRACE_SECONDS)
    for task in slow:
        log.warning("%s did not finish in time", task.get_name())
        task.cancel()
    if slow:
        await asyncio.wait(slow)
