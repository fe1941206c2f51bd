"""The bot as a process: opens what it is configured for, serves the pages, runs its tasks, ends cleanly."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from keywright import AsyncDatabase, Keyring, aconnect
from keywright.errors import EngineError
from keywright_meetup import tokens
from keywright_meetup.account_links import begin_linking
from keywright_meetup.errors import RefusedChangeError
from keywright_meetup.event_sync import Synced
from keywright_meetup.schema import DiscordId, TaskLease
from keywright_meetup.schema import meetup as space
from keywright_meetup.service.configuration import Configuration
from keywright_meetup.service.discord_api import DiscordApi
from keywright_meetup.service.discord_sync import DiscordSync, DiscordSynced
from keywright_meetup.service.expiry import check_expiry
from keywright_meetup.service.janitor import clean
from keywright_meetup.service.meetup_api import MeetupApi
from keywright_meetup.service.meetup_sync import MeetupSync
from keywright_meetup.service.oauth import OAuthClient
from keywright_meetup.service.pages import REDIRECT_PATH, LinkingPages, link_to
from keywright_meetup.service.tasks import GRACE, Next, Task, Work, daily, every, holding, next_hour
from keywright_meetup.service.token_refresh import TokenRefresher
from keywright_service.addresses import listening
from keywright_service.errors import PlatformTroubleError
from keywright_service.http import json_response, serving, stopped_by_signals

__all__ = ["Bot", "SyncOutcome", "invited", "sync_once"]

log = logging.getLogger("keywright.meetup")

SYNC = "sync"
SYNC_LIMIT = timedelta(seconds=360)
RETRY = timedelta(hours=1)
SHUTDOWN_SECONDS = 10

Clock = Callable[[], datetime]


def _utc() -> datetime:
    return datetime.now(UTC)


class SyncOutcome(NamedTuple):
    """What one sync did, in both directions."""

    meetup: Synced
    discord: DiscordSynced

    @property
    def failures(self) -> dict[str, Exception]:
        return {**self.meetup.failures, **self.discord.failures}


class _Opened(NamedTuple):
    db: AsyncDatabase
    discord: DiscordApi
    meetup: MeetupApi
    oauth: OAuthClient


@asynccontextmanager
async def _opened(chosen: Configuration, clock: Clock) -> AsyncIterator[_Opened]:
    async with AsyncExitStack() as stack:
        db = await stack.enter_async_context(_database(chosen))
        redirect = f"{chosen.pages.public_url.rstrip('/')}{REDIRECT_PATH}"
        discord = DiscordApi(chosen.discord_token, chosen.discord.guild, url=chosen.discord.api_url)
        opened = _Opened(
            db,
            await stack.enter_async_context(discord),
            await stack.enter_async_context(MeetupApi(chosen.meetup.api_url)),
            await stack.enter_async_context(OAuthClient(chosen.provider, redirect)),
        )
        await _seed(db, chosen, clock())
        yield opened


def _database(chosen: Configuration) -> aconnect:
    keyring = Keyring.from_env_if_set()
    return aconnect(chosen.redis.url, space.bind(prefix=chosen.redis.prefix, keyring=keyring))


async def _seed(db: AsyncDatabase, chosen: Configuration, now: datetime) -> None:
    """Store the organizer's tokens that were configured, where the database has none."""
    if chosen.access_token is None or chosen.refresh_token is None:
        return
    if await db.run(tokens.seed_organizer(chosen.access_token, chosen.refresh_token, now)):
        log.info("stored the organizer's tokens of the configuration")


def _sync(chosen: Configuration, opened: _Opened, clock: Clock) -> Callable[[], Awaitable[SyncOutcome]]:
    refresher = TokenRefresher(opened.db, opened.oauth, clock)
    from_meetup = MeetupSync(opened.db, opened.meetup, refresher, chosen.meetup.groups, clock)
    to_discord = DiscordSync(opened.db, opened.discord, chosen.layout, clock)

    async def both() -> SyncOutcome:
        # Discord only after Meetup succeeded, whose cancellations must be known.
        return SyncOutcome(await from_meetup.run(), await to_discord.run())

    return both


async def sync_once(configuration: Configuration, clock: Clock = _utc) -> SyncOutcome:
    """One sync now, both ways; RefusedChangeError while another bot is at it."""
    async with (
        _opened(configuration, clock) as opened,
        holding(opened.db, TaskLease(SYNC), SYNC_LIMIT + GRACE) as held,
    ):
        if not held:
            remedy = "Wait for it; one whose process died is over within seven minutes."
            raise RefusedChangeError("a sync", "is under way already", remedy)
        try:
            async with asyncio.timeout(SYNC_LIMIT.total_seconds()):
                return await _sync(configuration, opened, clock)()
        except TimeoutError as error:
            raise PlatformTroubleError("the platforms", "a sync", "it took too long") from error


async def invited(configuration: Configuration, user: DiscordId) -> str:
    """The address with which a Discord user can link themselves; TakenError when they are linked."""
    async with _database(configuration) as db:
        linking = await db.run(begin_linking(user))
    return link_to(configuration.pages.public_url, linking)


class Bot:
    """One process. `run` it; `stop` ends it, as SIGTERM and SIGINT do. Any number may run."""

    def __init__(
        self, configuration: Configuration, *, clock: Clock = _utc, grace: float = SHUTDOWN_SECONDS
    ) -> None:
        self.configuration = configuration
        self.address: tuple[str, int] | None = None
        """Host and port of the pages, once they are served."""
        self.tasks: list[Task] = []
        self._clock = clock
        self._grace = grace
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """End cleanly: requests are answered and tasks under way finished, or cut off after a while."""
        self._stopping.set()

    async def run(self, *, handle_signals: bool = False) -> None:
        """Until `stop`, or an error that trying again cannot help, which is raised."""
        async with AsyncExitStack() as stack:
            if handle_signals:
                stack.enter_context(stopped_by_signals(self.stop, log))
            host, port = self.configuration.listening
            bound = stack.enter_context(listening(host, port, remedy="Change pages.address."))
            opened = await stack.enter_async_context(_opened(self.configuration, self._clock))
            self.tasks = self._tasks(opened)
            await self._serve(bound, self._pages(opened))

    def _tasks(self, opened: _Opened) -> list[Task]:
        chosen, clock, db = self.configuration, self._clock, opened.db
        both = _sync(chosen, opened, clock)
        refresher = TokenRefresher(db, opened.oauth, clock)

        async def sync() -> None:
            outcome = await both()
            _log_sync(outcome)
            _tell(outcome.failures)

        async def cleaning() -> None:
            _tell((await clean(db, opened.discord, clock())).failures)

        async def expiry() -> None:
            _tell((await check_expiry(db, opened.discord, clock())).failures)

        async def users() -> datetime:
            began = clock()
            await refresher.refresh_users()
            return next_hour(began)  # counted from the end, an hour would be missed now and then

        def task(
            name: str,
            work: Work,
            following: Next,
            *,
            retry: timedelta = RETRY,
            first: datetime | None = None,
        ) -> Task:
            return Task(
                name,
                work,
                db=db,
                clock=clock,
                following=following,
                retry=retry,
                limit=SYNC_LIMIT,
                first=first,
            )

        def often(name: str, work: Work, period: timedelta) -> Task:
            return task(name, work, every(period), retry=min(RETRY, period))

        evening = daily(chosen.expiry_at)
        return [
            task("tokens", refresher.refresh_when_due, every(RETRY)),
            often(SYNC, sync, chosen.sync_every),
            often("cleaning", cleaning, chosen.clean_every),
            task("expiry", expiry, evening, first=evening(clock())),
            task("users", users, next_hour),
        ]

    def _pages(self, opened: _Opened) -> Starlette:
        pages = LinkingPages(
            opened.db,
            opened.oauth,
            opened.meetup,
            public_url=self.configuration.pages.public_url,
            name_of=opened.discord.name_of,
            community=self.configuration.pages.community,
        )

        async def health(request: Request) -> Response:
            """503 only where starting anew might help: Meetup's outages are told, and waited out."""
            told = {"ok": await _reachable(opened.db), "tasks": [each.health for each in self.tasks]}
            return json_response(told, 200 if told["ok"] else 503)

        return pages.application(Route("/health", health))

    async def _serve(self, bound: socket.socket, app: Starlette) -> None:
        running = [asyncio.create_task(each.run(self._stopping)) for each in self.tasks]
        stopping = asyncio.create_task(self._stopping.wait())
        host, port = bound.getsockname()[:2]
        self.address = (host, port)
        log.info("listening on http://%s:%d", host, port)
        try:
            async with serving(app, bound) as answering:
                await asyncio.wait([answering, stopping, *running], return_when=asyncio.FIRST_COMPLETED)
        finally:
            self.stop()
            _, late = await asyncio.wait(running, timeout=self._grace)
            for task in late:
                task.cancel()
            ended = await asyncio.gather(stopping, *running, return_exceptions=True)
        log.info("stopped")
        for error in ended:
            if isinstance(error, Exception):
                raise error


def _tell(failures: Mapping[Any, Exception]) -> None:
    """Make what failed the trouble of a task that has done all the rest."""
    if failures:
        subject, failure = next(iter(failures.items()))
        first = f"could not be done, of which the first is {subject}: {str(failure).rstrip('.')}"
        raise RefusedChangeError(f"a part of it ({len(failures)})", first, "See the log for all.")


def _log_sync(outcome: SyncOutcome) -> None:
    meetup, discord = outcome
    log.info(
        "sync: %d events added, %d changed, %d removed; %d channels and roles made, %d members added; "
        "%d failures",
        len(meetup.added),
        len(meetup.changed),
        len(meetup.removed),
        discord.made,
        discord.added,
        len(outcome.failures),
    )


async def _reachable(db: AsyncDatabase) -> bool:
    try:
        await db.run(TaskLease(SYNC).holder())
    except EngineError:
        return False
    return True
