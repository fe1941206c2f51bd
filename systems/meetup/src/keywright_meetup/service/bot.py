"""The bot as a process: it connects, serves the pages, runs its tasks, and ends cleanly."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Any, NamedTuple

from starlette.applications import Starlette

from keywright import AsyncDatabase, Keyring, aconnect
from keywright.errors import EngineError, StoredDataError
from keywright.tools.http import listening
from keywright_meetup import tokens
from keywright_meetup.account_links import begin_linking
from keywright_meetup.errors import RefusedChangeError
from keywright_meetup.event_sync import Synced
from keywright_meetup.schema import DiscordId, TaskLease
from keywright_meetup.schema import meetup as space
from keywright_meetup.service.authorization import OrganizerAuthorization
from keywright_meetup.service.configuration import Configuration
from keywright_meetup.service.discord_sync import DiscordSync, DiscordSynced
from keywright_meetup.service.expiry import check_expiry
from keywright_meetup.service.interactions import InteractionsEndpoint, endpoint_of
from keywright_meetup.service.janitor import clean
from keywright_meetup.service.meetup_api import MeetupApi
from keywright_meetup.service.meetup_sync import MeetupSync
from keywright_meetup.service.metrics import BotMetrics
from keywright_meetup.service.oauth import OAuthClient
from keywright_meetup.service.pages import REDIRECT_PATH, LinkingPages, link_to
from keywright_meetup.service.slash_commands import SlashCommands, register
from keywright_meetup.service.token_refresh import TokenRefresher
from keywright_service.backoff import Backoff
from keywright_service.discord_rest import DiscordGuild
from keywright_service.errors import HttpRefusedError, PlatformRefusedError, PlatformTroubleError
from keywright_service.health import FailingTasks, Health, TasksHealth
from keywright_service.process_lock import ProcessLock
from keywright_service.service import Service
from keywright_service.tasks import PeriodicTask, Recovery, Schedule, Work, daily, next_hour

__all__ = ["Bot", "SyncOutcome", "authorization", "invited", "registered", "sync_once"]

log = logging.getLogger("keywright.meetup")

SYNC = "sync"
SYNC_LIMIT = timedelta(seconds=360)
# Longer than the work of a task may take, so that there is time to end it.
HOLD = SYNC_LIMIT + timedelta(seconds=30)
RETRY = timedelta(hours=1)
SHUTDOWN_SECONDS = 10
START_SECONDS = 5.0

Clock = Callable[[], datetime]


def _utc() -> datetime:
    return datetime.now(UTC)


class SyncOutcome(NamedTuple):
    """The result of one sync, in both directions."""

    meetup: Synced
    discord: DiscordSynced

    @property
    def failures(self) -> dict[str, Exception]:
        return {**self.meetup.failures, **self.discord.failures}


class _Opened(NamedTuple):
    db: AsyncDatabase
    discord: DiscordGuild
    meetup: MeetupApi
    oauth: OAuthClient


@asynccontextmanager
async def _opened(chosen: Configuration, clock: Clock) -> AsyncIterator[_Opened]:
    async with AsyncExitStack() as stack:
        db = await stack.enter_async_context(_database(chosen))
        opened = _Opened(
            db,
            await stack.enter_async_context(_discord(chosen)),
            await stack.enter_async_context(MeetupApi(chosen.meetup.api_url)),
            await stack.enter_async_context(OAuthClient(chosen.provider, _redirect(chosen))),
        )
        await _seed(db, chosen, clock())
        yield opened


def _discord(chosen: Configuration) -> DiscordGuild:
    return DiscordGuild(
        chosen.discord_token,
        chosen.discord.guild,
        url=chosen.discord.api_url,
        audit_reason="Keywright: Meetup events",
    )


def _redirect(chosen: Configuration) -> str:
    return f"{chosen.pages.public_url.rstrip('/')}{REDIRECT_PATH}"


def _database(chosen: Configuration) -> aconnect:
    keyring = Keyring.from_env_if_set()
    return aconnect(chosen.redis.url, space.bind(prefix=chosen.redis.prefix, keyring=keyring))


async def _seed(db: AsyncDatabase, chosen: Configuration, now: datetime) -> None:
    """Store the organizer's tokens that were configured, where the database has none."""
    if chosen.access_token is None or chosen.refresh_token is None:
        return
    if await db.run(tokens.seed_organizer(chosen.access_token, chosen.refresh_token, now)):
        log.info("stored the organizer's tokens of the configuration")
    else:
        log.info("the organizer's tokens are those of the database; configured ones are tried if they fail")


def _refresher(chosen: Configuration, opened: _Opened, clock: Clock) -> TokenRefresher:
    return TokenRefresher(opened.db, opened.oauth, clock, configured=chosen.refresh_token)


def _sync(
    chosen: Configuration, opened: _Opened, refresher: TokenRefresher, clock: Clock
) -> Callable[[], Awaitable[SyncOutcome]]:
    from_meetup = MeetupSync(opened.db, opened.meetup, refresher, chosen.meetup.groups, clock)
    to_discord = DiscordSync(opened.db, opened.discord, chosen.layout, clock)

    async def both() -> SyncOutcome:
        # Discord only after Meetup succeeded, whose cancellations must be known.
        return SyncOutcome(await from_meetup.run(), await to_discord.run())

    return both


async def sync_once(configuration: Configuration, clock: Clock = _utc) -> SyncOutcome:
    """Run one sync in both directions. Raise RefusedChangeError while another bot runs one."""
    async with (
        _opened(configuration, clock) as opened,
        ProcessLock(opened.db, TaskLease(SYNC), HOLD).held() as held,
    ):
        if not held:
            remedy = "Wait for it; one whose process died is over within seven minutes."
            raise RefusedChangeError("a sync", "is under way already", remedy)
        try:
            async with asyncio.timeout(SYNC_LIMIT.total_seconds()):
                refresher = _refresher(configuration, opened, clock)
                return await _sync(configuration, opened, refresher, clock)()
        except TimeoutError as error:
            raise PlatformTroubleError("the platforms", "a sync", "it took too long") from error


async def invited(configuration: Configuration, user: DiscordId) -> str:
    """Return the address with which a Discord user links themselves. Raise TakenError if they are linked."""
    async with _database(configuration) as db:
        linking = await db.run(begin_linking(user))
    return link_to(configuration.pages.public_url, linking)


@asynccontextmanager
async def authorization(configuration: Configuration) -> AsyncIterator[OrganizerAuthorization]:
    """Open what an organizer's authorization needs."""
    async with _database(configuration) as db, MeetupApi(configuration.meetup.api_url) as meetup:
        redirect = _redirect(configuration)
        async with OAuthClient(configuration.provider, redirect) as oauth:
            yield OrganizerAuthorization(db, oauth, meetup, _utc)


async def registered(configuration: Configuration) -> tuple[bool, str]:
    """Register commands and endpoint at Discord. Return whether the commands are new, and the endpoint.

    The bot must be running: Discord tries the endpoint.
    """
    endpoint = endpoint_of(configuration.pages.public_url)
    async with _discord(configuration) as api:
        application = await api.application()
        new = await register(api, int(application.id))
        if application.interactions_endpoint_url != endpoint:
            try:
                await api.set_interactions_endpoint(endpoint)
            except HttpRefusedError as error:
                if error.status != HTTPStatus.BAD_REQUEST:
                    raise
                remedy = (
                    "Start the bot, and let its proxy pass requests to this address on to it, over https."
                )
                raise PlatformRefusedError("Discord", endpoint, error.reason, remedy) from error
    return new, endpoint


class PublicHealth(FailingTasks, frozen=True):
    """What anybody may see of the bot's health."""

    authorization_needed: bool


class BotHealth(TasksHealth, frozen=True):
    """The tasks of the bot, and whether an organizer must authorize it (again)."""

    authorization_needed: bool

    def public(self) -> Health:
        failing = [each.name for each in self.tasks if not each.ok]
        return PublicHealth(self.ok, failing, self.authorization_needed)


class Bot(Service):
    """One process. Any number may run."""

    def __init__(
        self, configuration: Configuration, *, clock: Clock = _utc, grace: float = SHUTDOWN_SECONDS
    ) -> None:
        super().__init__()
        self.configuration = configuration
        self.tasks: list[PeriodicTask] = []
        self.metrics = BotMetrics()
        self.metrics.watch_tasks(lambda: self.tasks)
        self._clock = clock
        self._grace = grace

    async def start(self, opened: AsyncExitStack) -> None:
        host, port = self.configuration.listening
        bound = opened.enter_context(listening(host, port, remedy="Change pages.address."))
        parts = await opened.enter_async_context(_opened(self.configuration, self._clock))
        self._refresher = _refresher(self.configuration, parts, self._clock)
        public_url = self.configuration.pages.public_url
        commands = SlashCommands(parts.db, parts.discord, self._clock, public_url)
        self._interactions = InteractionsEndpoint(
            parts.discord, commands.answer, self._clock, count=self.metrics.interaction
        )
        opened.push_async_callback(self._interactions.close, self._grace)
        await self._check_token()
        self.tasks = self._tasks(parts)
        await self.run_tasks(opened, self.tasks, grace=self._grace)
        await self.serve(opened, self._pages(parts), bound)

    async def _check_token(self) -> None:
        """Raise HttpRefusedError if Discord does not accept the token. An outage does not stop the start."""
        try:
            async with asyncio.timeout(START_SECONDS):
                await self._interactions.application()
        except (PlatformTroubleError, TimeoutError) as error:
            log.warning("the token was not checked: %s", str(error) or "Discord does not answer")

    def _tasks(self, parts: _Opened) -> list[PeriodicTask]:
        chosen, clock, db = self.configuration, self._clock, parts.db
        refresher = self._refresher
        both = _sync(chosen, parts, refresher, clock)

        async def sync() -> None:
            outcome = await both()
            _log_sync(outcome)
            self.metrics.synced(*outcome)
            _raise_first(outcome.failures)

        async def cleaning() -> None:
            _raise_first((await clean(db, parts.discord, clock())).failures)

        async def expiry() -> None:
            _raise_first((await check_expiry(db, parts.discord, clock())).failures)

        async def commands() -> None:
            application = await parts.discord.application()
            await register(parts.discord, int(application.id))
            here = endpoint_of(chosen.pages.public_url)
            if application.interactions_endpoint_url != here:
                log.warning("Discord does not send interactions to %s: run keywright meetup register", here)

        async def users() -> datetime:
            began = clock()
            await refresher.refresh_users()
            return next_hour(began)  # counted from the end, an hour would be missed now and then

        def task(
            name: str,
            work: Work,
            schedule: Schedule,
            *,
            retry: timedelta = RETRY,
            first: datetime | None = None,
        ) -> PeriodicTask:
            return PeriodicTask(
                name,
                work,
                schedule,
                lock=ProcessLock(db, TaskLease(name), HOLD),
                limit=SYNC_LIMIT,
                recovery=Recovery(Backoff.constant(retry.total_seconds()), log_every=True),
                first=first,
                clock=clock,
            )

        def often(name: str, work: Work, period: timedelta) -> PeriodicTask:
            return task(name, work, period, retry=min(RETRY, period))

        evening = daily(chosen.expiry_at)
        return [
            task("tokens", refresher.refresh_when_due, RETRY),
            often(SYNC, sync, chosen.sync_every),
            often("cleaning", cleaning, chosen.clean_every),
            task("expiry", expiry, evening, first=evening(clock())),
            task("users", users, next_hour),
            task("commands", commands, timedelta(days=1)),
        ]

    def _pages(self, parts: _Opened) -> Starlette:
        pages = LinkingPages(
            parts.db,
            parts.oauth,
            parts.meetup,
            public_url=self.configuration.pages.public_url,
            find_user=parts.discord.find_user,
            organizer=OrganizerAuthorization(parts.db, parts.oauth, parts.meetup, self._clock),
            community=self.configuration.pages.community,
        )

        async def check() -> None:
            await parts.db.run(TaskLease(SYNC).holder())

        async def report() -> Health:
            """Report a failure only if a restart might help: outages of Meetup are shown, and waited out."""
            tasks = [each.health for each in self.tasks]
            try:
                return BotHealth(True, tasks, await self._refresher.needs_authorization())
            except StoredDataError:  # tokens that cannot be read are of no use
                return BotHealth(True, tasks, True)
            except EngineError:
                return BotHealth(False, tasks, False)

        token = self.configuration.health_token
        monitoring = self.endpoints(
            self.metrics, report=report, check=check, health_token=token, metrics_token=token
        )
        # The pages are public: metrics are not shown without a token.
        return pages.application(self._interactions.route(), *monitoring[: None if token else 2])


def _raise_first(failures: Mapping[Any, Exception]) -> None:
    """Raise the first failure of a task that has done the rest of its work."""
    if failures:
        subject, failure = next(iter(failures.items()))
        first = f"could not be done, of which the first is {subject}: {str(failure).rstrip('.')}"
        raise RefusedChangeError(f"a part of it ({len(failures)})", first, "See the log for all.")


def _log_sync(outcome: SyncOutcome) -> None:
    meetup, discord = outcome
    log.info(
        "sync: %d events added, %d changed, %d removed; %d channels and roles made, %d members added, "
        "%d removed by hand; %d failures",
        len(meetup.added),
        len(meetup.changed),
        len(meetup.removed),
        discord.made,
        discord.added,
        discord.removed,
        len(outcome.failures),
    )
