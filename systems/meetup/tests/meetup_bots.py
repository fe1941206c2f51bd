"""A bot's surroundings for its tests: both simulators, a database, a clock, and people who are linked."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Self, TypeVar, cast

import httpx

from keywright import AsyncDatabase, Call, Secret, aconnect
from keywright.testing import ManualClock, wait_until
from keywright_meetup import account_links, tokens
from keywright_meetup.event_sync import Synced
from keywright_meetup.service.bot import Bot, invited, registered
from keywright_meetup.service.configuration import Configuration, load
from keywright_meetup.service.discord_sync import DiscordSync, DiscordSynced, GuildLayout
from keywright_meetup.service.meetup_api import MeetupApi
from keywright_meetup.service.meetup_sync import MeetupSync
from keywright_meetup.service.oauth import OAuthClient, Provider
from keywright_meetup.service.token_refresh import TokenRefresher
from keywright_meetup.simulator import MeetupSimulator, SimulatedDiscord, SimulatedEvent
from keywright_meetup.simulator.town import bot_variables
from keywright_service.discord_rest import DiscordGuild
from keywright_service.http_client import ClientOptions

T = TypeVar("T")

GROUP = "rpg-zurich"


async def no_sleep(seconds: float) -> None:
    """Take the place of a pause between attempts."""
    await asyncio.sleep(0)


SLEEPLESS = ClientOptions(sleep=no_sleep)


@dataclass
class Person:
    meetup: int
    discord: int


@dataclass
class Surroundings:
    """Both simulators are empty at first, apart from an organizer whose tokens are stored by `opened`."""

    redis_url: str
    meetup: MeetupSimulator
    discord: SimulatedDiscord
    clock: ManualClock
    layout: GuildLayout = field(default_factory=GuildLayout)
    linked: list[Person] = field(default_factory=list)

    def person(self, name: str, *, linked: bool = True) -> Person:
        someone = Person(self.meetup.world.join(name), self.discord.guild.join(name))
        if linked:
            self.linked.append(someone)
        return someone

    def announce(
        self,
        title: str = "Dragon Hunt",
        description: str = "[new adventure]",
        *,
        days: float = 3,
        **given: Any,
    ) -> SimulatedEvent:
        time = self.clock() + timedelta(days=days)
        return self.meetup.world.announce(GROUP, title, time, description, **given)

    def provider(self) -> Provider:
        return Provider(
            client_id=self.meetup.client_id,
            client_secret=Secret(self.meetup.client_secret),
            authorize_url=self.meetup.authorize_url,
            token_url=self.meetup.token_url,
        )

    def configuration(self, **changed: str) -> Configuration:
        return load(environment=self.environment(**changed))

    def environment(self, **changed: str) -> dict[str, str]:
        """Return the environment variables of a bot."""
        return {
            **bot_variables(self.meetup, self.discord, GROUP),
            "PAGES_URL": "http://127.0.0.1:8090",
            "PAGES_ADDRESS": "127.0.0.1:0",
            "REDIS_URL": self.redis_url,
            **changed,
        }

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Opened]:
        async with (
            aconnect(self.redis_url) as db,
            DiscordGuild(
                Secret(self.discord.token),
                self.discord.guild.id,
                url=self.discord.api_url,
                options=ClientOptions(attempts=3),
            ) as discord,
            MeetupApi(self.meetup.api_url, options=SLEEPLESS) as meetup,
            OAuthClient(self.provider(), "http://127.0.0.1/link/redirect", options=SLEEPLESS) as oauth,
        ):
            opened = Opened(self, db, discord, meetup, oauth)
            await opened.prepare()
            yield opened


@dataclass
class Opened:
    around: Surroundings
    db: AsyncDatabase
    discord: DiscordGuild
    meetup: MeetupApi
    oauth: OAuthClient

    async def prepare(self) -> None:
        """Store the organizer's tokens, and the links of people who are to be linked."""
        if (await self.db.run(tokens.organizer())).access_token is None:
            access, refresh = self.around.meetup.oauth.grant(self.around.meetup.world.join("Organizer"))
            due = self.around.clock() + tokens.REFRESH_EVERY
            await self.db.run(tokens.store_organizer(Secret(access), Secret(refresh), due))
        for someone in self.around.linked:
            await self.db.run(account_links.link(someone.meetup, someone.discord))

    @property
    def refresher(self) -> TokenRefresher:
        return TokenRefresher(self.db, self.oauth, self.around.clock)

    async def sync_meetup(self) -> Synced:
        return await MeetupSync(self.db, self.meetup, self.refresher, [GROUP], self.around.clock).run()

    async def sync_discord(self) -> DiscordSynced:
        return await DiscordSync(self.db, self.discord, self.around.layout, self.around.clock).run()

    async def sync(self) -> tuple[Synced, DiscordSynced]:
        return await self.sync_meetup(), await self.sync_discord()


@contextmanager
def surroundings(redis_url: str) -> Iterator[Surroundings]:
    clock = ManualClock()
    with MeetupSimulator() as meetup, SimulatedDiscord(clock=lambda: clock().timestamp()) as discord:
        meetup.world.groups.add(GROUP)
        yield Surroundings(redis_url, meetup, discord, clock)


class RunningBot:
    """A whole bot in a thread of its own, with its pages on a port: `with RunningBot(around) as bot:`."""

    def __init__(self, around: Surroundings, *, grace: float = 10.0, **environment: str) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{probe.getsockname()[1]}"
        self.url = f"http://{address}"
        addresses = {"PAGES_URL": self.url, "PAGES_ADDRESS": address}
        self.configuration = around.configuration(**addresses, **environment)
        self._around = around
        self._grace = grace
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True)

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.bot = Bot(self.configuration, clock=self._around.clock, grace=self._grace)
        await self.bot.run()

    def __enter__(self) -> Self:
        self._thread.start()
        wait_until(self._listens, "a bot that serves its pages")
        return self

    def __exit__(self, *exc: object) -> None:
        self._loop.call_soon_threadsafe(self.bot.stop)
        self._thread.join()

    def listen(self) -> Self:
        """Have Discord send interactions here, as `keywright meetup register` does."""
        asyncio.run(registered(self.configuration))
        return self

    def invite(self, user: int) -> str:
        """Return the address with which a Discord user links themselves."""
        return asyncio.run(invited(self.configuration, user))

    def _listens(self) -> bool:
        try:
            return httpx.get(f"{self.url}/health").status_code == 200
        except httpx.TransportError:
            return False


class _Meddled:
    def __init__(self, db: AsyncDatabase, calls: int, meddle: Callable[[], Awaitable[None]]) -> None:
        self._db = db
        self._left = calls
        self._meddle = meddle

    async def run(self, call: Call[T]) -> T:
        reply = await self._db.run(call)
        self._left -= 1
        if not self._left:
            await self._meddle()
        return reply


def between(db: AsyncDatabase, calls: int, meddle: Callable[[], Awaitable[None]]) -> AsyncDatabase:
    """Return a database on which another process meddles, once, after so many calls."""
    return cast("AsyncDatabase", _Meddled(db, calls, meddle))
