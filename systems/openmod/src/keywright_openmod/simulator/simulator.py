"""The simulated Reddit: a server on one port, and the controls for a test."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from types import TracebackType
from typing import Self

import msgspec

from keywright_openmod.simulator.api import AppCredentials, RedditApi
from keywright_openmod.simulator.faults import RedditFaults
from keywright_openmod.simulator.world import RedditWorld, SimulatedUser
from keywright_service.testing.http_faults import Answered
from keywright_service.testing.http_server import HttpServer

__all__ = ["RedditSimulator", "RedditSimulatorSettings"]

_PEOPLE = 8


class RedditSimulatorSettings(msgspec.Struct, frozen=True, kw_only=True):
    host: str = "127.0.0.1"
    port: int = 0
    subreddit: str = "mysub"
    target: str = "mysub_log"
    client_id: str = "simulated-app"
    client_secret: str = "simulated-secret"
    username: str = "openmod-app"
    password: str = "simulated-password"


class RedditSimulator:
    """A Reddit on this machine, for clients whose `reddit_url` and `oauth_url` are `url`.

    `async with RedditSimulator() as reddit:`. It has two subreddits: one that the account of the app and one
    moderator moderate, and one for the posts of the app. Everything runs in the event loop that entered it.
    """

    def __init__(
        self,
        settings: RedditSimulatorSettings | None = None,
        *,
        world: RedditWorld | None = None,
        on_change: Callable[[RedditWorld], None] | None = None,
    ) -> None:
        """`on_change` is called before a change by a request is answered, and after one by the traffic."""
        self.settings = settings or RedditSimulatorSettings()
        self.world = world or RedditWorld()
        self.app = self._person(self.settings.username)
        self.moderator = self._person("some_mod")
        if self.settings.subreddit not in self.world.subreddits:
            self.world.found(self.settings.subreddit, self.app, self.moderator)
            self.world.found(self.settings.target, self.app)
        self._on_change = on_change
        credentials = AppCredentials(
            self.settings.client_id,
            self.settings.client_secret,
            self.settings.username,
            self.settings.password,
        )
        self._api = RedditApi(self.world, credentials, self._changed)
        self.faults = RedditFaults(self._api)
        self._traffic: list[asyncio.Task[None]] = []
        self.port = self.settings.port

    @property
    def variables(self) -> dict[str, str]:
        """The environment variables of a service that uses this Reddit."""
        chosen = self.settings
        return {
            "OPENMOD_SUBREDDIT": chosen.subreddit,
            "OPENMOD_TARGET_SUBREDDIT": chosen.target,
            "REDDIT_URL": self.url,
            "REDDIT_OAUTH_URL": self.url,
            "REDDIT_CLIENT_ID": chosen.client_id,
            "REDDIT_CLIENT_SECRET": chosen.client_secret,
            "REDDIT_USERNAME": chosen.username,
            "REDDIT_PASSWORD": chosen.password,
        }

    async def __aenter__(self) -> Self:
        self._server = HttpServer(self.faults, host=self.settings.host, port=self.settings.port)
        await self._server.__aenter__()
        self.port = self._server.port
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._traffic:
            task.cancel()
        if self._traffic:
            await asyncio.wait(self._traffic)
        await self._server.__aexit__(kind, error, trace)

    @property
    def url(self) -> str:
        return f"http://{self.settings.host}:{self.port}"

    @property
    def extracts(self) -> list[str]:
        """The titles of the posts of the app, oldest first."""
        return [each.title for each in self.world.posts_in(self.settings.target) if each.author is self.app]

    @property
    def bodies(self) -> list[str]:
        """The present bodies of the same posts."""
        return [each.body for each in self.world.posts_in(self.settings.target) if each.author is self.app]

    @property
    def answered(self) -> list[Answered]:
        """Every request since the start, oldest first."""
        return self.faults.answered

    def forget_tokens(self) -> None:
        """Invalidate every token, as after an hour."""
        self._api.forget_tokens()

    def populate(self, number: int = _PEOPLE) -> list[SimulatedUser]:
        """Create accounts."""
        return [self.world.join(f"person_{place}") for place in range(number)]

    def start_traffic(self, *, rate: float, seed: int = 0) -> None:
        """Perform random actions in the background, at this rate per second, until the simulator stops."""
        if not any(each.id not in (self.app.id, self.moderator.id) for each in self.world.users.values()):
            self.populate()
            self._changed()
        chance = random.Random(seed)

        async def happen() -> None:
            while True:
                self.world.everyday(chance, self.settings.subreddit)
                self._changed()
                await asyncio.sleep(1 / rate)

        self._traffic.append(asyncio.create_task(happen()))

    def _changed(self) -> None:
        if self._on_change is not None:
            self._on_change(self.world)

    def _person(self, name: str) -> SimulatedUser:
        return self.world.user_named(name) or self.world.join(name)
