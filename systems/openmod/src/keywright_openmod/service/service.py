"""The process of the service: opens Redis and Reddit, runs the tasks, and stops cleanly."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from typing import NamedTuple

from starlette.applications import Starlette

from keywright import AsyncDatabase, aconnect, recover
from keywright.errors import EngineError, KeywrightError, StoredDataError
from keywright.tools.http import listening, origin_of
from keywright_openmod.enforcement import Enforcer
from keywright_openmod.public_log import bind_to_read
from keywright_openmod.recorder import Recorder
from keywright_openmod.service.configuration import OpenModConfiguration
from keywright_openmod.service.connection import RedditConnection
from keywright_openmod.service.deletions import DeletionChecker, schedule_missing_checks
from keywright_openmod.service.feed_poller import FeedPoller
from keywright_openmod.service.feeds import reddit_feeds
from keywright_openmod.service.log_pages import LogPages
from keywright_openmod.service.metrics import OpenModMetrics
from keywright_openmod.service.processor import EventProcessor
from keywright_openmod.service.reddit import RedditPlatform
from keywright_openmod.service.schema import PendingEvents, bind
from keywright_openmod.upgrade import upgrade_all
from keywright_service.backoff import Backoff
from keywright_service.configuration import host_and_port
from keywright_service.errors import PlatformRefusedError, PlatformTroubleError
from keywright_service.health import FailingTasks, Health, Trouble
from keywright_service.service import Service
from keywright_service.tasks import PeriodicTask, Recovery, TaskHealth, Work
from keywright_service.waits import unless

__all__ = ["EnforcementResult", "OpenModHealth", "OpenModService", "enforce_once"]

log = logging.getLogger("keywright.openmod")

GRACE_SECONDS = 20.0
LONGEST_PAUSE_SECONDS = 60.0
LONGEST_REFUSED_SECONDS = 600.0
UPGRADES_A_SECOND = 200.0
MOST_NAMED = 20
# Fractions of the hold on an event. No request lasts as long as the claim of its event, so that no other
# process begins to publish an extract that this one may still be publishing.
CLAIM_FRACTION = 0.6
REQUEST_FRACTION = 0.4


class EnforcementResult(NamedTuple):
    """The numbers of accounts and submissions that were due, and errors."""

    kept: int
    erased: int
    troubles: tuple[KeywrightError, ...]


class _Opened(NamedTuple):
    db: AsyncDatabase
    connection: RedditConnection
    platform: RedditPlatform
    recorder: Recorder


@asynccontextmanager
async def _opened(configuration: OpenModConfiguration) -> AsyncIterator[_Opened]:
    async with AsyncExitStack() as stack:
        bindings = bind(configuration.redis.prefix)
        db = await stack.enter_async_context(aconnect(configuration.redis.url, *bindings))
        connection = await stack.enter_async_context(
            RedditConnection(configuration.credentials, patience=configuration.hold * REQUEST_FRACTION)
        )
        platform = RedditPlatform(connection, configuration.subreddit)
        recorder = Recorder(db, platform, configuration.installation, hold=configuration.hold)
        yield _Opened(db, connection, platform, recorder)


async def enforce_once(configuration: OpenModConfiguration) -> EnforcementResult:
    """Check every account and submission that is due, and erase deleted ones."""
    async with _opened(configuration) as opened:
        enforcer = Enforcer(opened.db, opened.platform)
        checker = DeletionChecker(opened.db, opened.platform, opened.recorder)
        kept, erased, troubles, more = 0, 0, [], True
        while more:
            accounts = await enforcer.run_batch()
            things = await checker.run_batch()
            kept += accounts.active + things.existing
            erased += accounts.erased + things.erased
            troubles += [*accounts.troubles, *things.troubles]
            more = accounts.more or things.more
        return EnforcementResult(kept, erased, tuple(troubles))


class OpenModHealth(Health, frozen=True):
    """The health of each task, and the number of pending events."""

    jobs: Mapping[str, TaskHealth]
    pending: int

    def public(self) -> Health:
        return FailingTasks(self.ok, [name for name, each in self.jobs.items() if not each.ok])


class OpenModService(Service):
    """One process; several may run. On a stop, events that are being handled are finished."""

    def __init__(self, configuration: OpenModConfiguration, *, only_enforce: bool = False) -> None:
        super().__init__()
        self.configuration = configuration
        self.jobs: list[PeriodicTask] = []
        self.metrics = OpenModMetrics()
        self.metrics.watch_tasks(lambda: self.jobs)
        self.log_address: tuple[str, int] | None = None
        """Host and port of the public log, once it listens."""
        self._only_enforce = only_enforce
        retry = configuration.retry.total_seconds()
        self._recovery = Recovery(
            Backoff(retry, LONGEST_PAUSE_SECONDS),
            refused=Backoff(retry, LONGEST_REFUSED_SECONDS),
            # Any other error ends the service.
            survives=(PlatformTroubleError, PlatformRefusedError, StoredDataError, EngineError),
        )

    async def start(self, opened: AsyncExitStack) -> None:
        parts = await opened.enter_async_context(_opened(self.configuration))
        await self._serve_health(opened, parts.db)
        await self._serve_log(opened)
        await unless(self.stopping, self._introduce(parts.platform))
        if not self.stopping.is_set():
            self.jobs = self._jobs(parts)
            names = ", ".join(job.name for job in self.jobs)
            log.info("watching r/%s: %s", self.configuration.subreddit, names)
            await self.run_tasks(opened, self.jobs, grace=GRACE_SECONDS)

    async def _introduce(self, platform: RedditPlatform) -> None:
        """Wait until Reddit accepts the credentials and has the subreddits.

        A refusal is raised, as no task could do anything.
        """

        async def introduced() -> None:
            log.info("acting as u/%s", (await platform.me()).name)
            await platform.check_subreddit(self.configuration.subreddit, "OPENMOD_SUBREDDIT")
            target = self.configuration.installation.target_subreddit
            await platform.check_subreddit(target, "OPENMOD_TARGET_SUBREDDIT")

        survives = (PlatformTroubleError, StoredDataError, EngineError)
        start = PeriodicTask("start", introduced, None, recovery=self._recovery._replace(survives=survives))
        self.jobs = [start]
        await start.run(self.stopping)

    def _jobs(self, parts: _Opened) -> list[PeriodicTask]:
        work: dict[str, Work] = {"accounts": self._accounts(parts), "deletions": self._deletions(parts)}
        if parts.db.context.sharded:
            work["journal"] = self._journal(parts)
        if not self._only_enforce:
            work |= {"survey": _survey(parts, self.configuration.subreddit), **self._events(parts)}
        return [PeriodicTask(name, each, None, recovery=self._recovery) for name, each in work.items()]

    def _events(self, parts: _Opened) -> dict[str, Work]:
        chosen = self.configuration
        idle = min(chosen.poll, chosen.retry)
        processor = EventProcessor(
            parts.db, parts.recorder, idle=idle, hold=chosen.hold * CLAIM_FRACTION, metrics=self.metrics
        )
        pollers = {
            feed.name: FeedPoller(
                parts.db, feed, chosen.subreddit, backfill=chosen.backfill, every=chosen.poll
            )
            for feed in reddit_feeds(parts.connection, chosen.subreddit)
            if feed.name in chosen.watch
        }
        return {"events": processor.process_batch, **{name: poller.poll for name, poller in pollers.items()}}

    def _accounts(self, parts: _Opened) -> Work:
        enforcer = Enforcer(parts.db, parts.platform)

        async def step() -> timedelta:
            batch = await enforcer.run_batch()
            self.metrics.erased(batch.erased)
            if batch.erased:
                log.info("erased %d deleted accounts", batch.erased)
            return self._after(batch.troubles, more=batch.more)

        return step

    def _deletions(self, parts: _Opened) -> Work:
        checker = DeletionChecker(parts.db, parts.platform, parts.recorder)

        async def step() -> timedelta:
            batch = await checker.run_batch()
            return self._after(batch.troubles, more=batch.more)

        return step

    def _journal(self, parts: _Opened) -> Work:
        async def step() -> timedelta:
            """Recover commits across slots of processes that died."""
            recovered = await parts.db.run(recover())
            for fault in recovered.set_aside:
                log.warning("a commit was not recovered: %s", fault)
            return self.configuration.enforce

        return step

    def _after(self, troubles: tuple[KeywrightError, ...], *, more: bool) -> timedelta:
        """Return the pause until the next batch, or raise an error, so that the task backs off."""
        if troubles:
            raise troubles[0]
        return timedelta() if more else self.configuration.enforce

    async def _serve_health(self, opened: AsyncExitStack, db: AsyncDatabase) -> None:
        address, token = self.configuration.health.address, self.configuration.health_token
        if address is None:
            return

        async def count_pending() -> int:
            return await db.run(PendingEvents().size())

        async def report() -> Health:
            try:
                pending = await count_pending()
            except EngineError as error:
                return Trouble(ok=False, trouble=str(error))
            jobs = {job.name: job.health for job in self.jobs}
            return OpenModHealth(all(each.ok for each in jobs.values()), jobs, pending)

        host, port = host_and_port("health.address", address)
        remedy = "Set OPENMOD_HEALTH_ADDRESS to another address."
        bound = opened.enter_context(listening(host, port, remedy=remedy))
        routes = self.endpoints(self.metrics, report=report, check=count_pending, health_token=token)
        await self.serve(opened, Starlette(routes=routes), bound)

    async def _serve_log(self, opened: AsyncExitStack) -> None:
        chosen = self.configuration.public_log
        if chosen.address is None or self._only_enforce:
            return
        host, port = host_and_port("public_log.address", chosen.address)
        remedy = "Set OPENMOD_LOG_ADDRESS to another address."
        bound = opened.enter_context(listening(host, port, remedy=remedy))
        # A connection of its own: visitors neither renew expiries nor hold up the events.
        redis = self.configuration.redis
        db = await opened.enter_async_context(aconnect(redis.url, bind_to_read(redis.prefix)))
        pages = LogPages(
            db,
            subreddit=self.configuration.subreddit,
            settings=self.configuration.installation,
            public_url=None if chosen.url is None else origin_of(chosen.url),
        )
        await self.serve(opened, pages.application(), bound)
        self.log_address = bound.getsockname()[:2]


def _survey(parts: _Opened, subreddit: str) -> Work:
    async def step() -> None:
        """Upgrade v1 data, enrol and list what earlier versions did not, and schedule missing checks."""
        done = await upgrade_all(parts.db, parts.platform, subreddit=subreddit, per_second=UPGRADES_A_SECOND)
        if done.upgraded or done.enrolled or done.listed:
            log.info(
                "survey: upgraded %d extracts, enrolled %d accounts for checks, listed %d in the log",
                done.upgraded,
                done.enrolled,
                done.listed,
            )
        if done.left:
            more = f" and {len(done.left) - MOST_NAMED} more" if len(done.left) > MOST_NAMED else ""
            log.warning(
                "survey: the records of these extracts cannot be read: %s%s. "
                "Look at each with `keywright openmod show`, and correct or delete its audit.",
                ", ".join(done.left[:MOST_NAMED]),
                more,
            )
        await schedule_missing_checks(parts.db)

    return step
