"""Processes that die after a step: a reply of Redis or an answer of Discord arrives, and nobody is there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any, cast

import httpx

from keywright import AsyncDatabase, Call, Secret
from keywright_service.discord_rest import DiscordGuild
from keywright_service.http_client import ClientOptions

from .meetup_bots import Opened

__all__ = ["Work", "die_at"]


class Death(BaseException):
    """The process ends here."""


class Fuse:
    """Burns after so many steps, once and for all."""

    def __init__(self, steps: int) -> None:
        self.left = steps

    def step(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise Death

    @property
    def burnt(self) -> bool:
        return self.left < 0


class MortalTransport(httpx.AsyncBaseTransport):
    """HTTP whose answers arrive in a process that is dead by then, once the fuse has burnt."""

    def __init__(self, fuse: Fuse) -> None:
        self._fuse = fuse
        self._inner = httpx.AsyncHTTPTransport(verify=False)  # there is no TLS, and its set-up takes long

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        response = await self._inner.handle_async_request(request)
        await response.aread()
        self._fuse.step()
        return response

    async def aclose(self) -> None:
        await self._inner.aclose()


class MortalDatabase:
    """A database whose replies arrive in a process that is dead by then."""

    def __init__(self, db: AsyncDatabase, fuse: Fuse) -> None:
        self._db = db
        self._fuse = fuse

    async def run(self, call: Call[Any]) -> Any:
        reply = await self._db.run(call)
        self._fuse.step()
        return reply


Work = Callable[[Opened], Awaitable[Any]]


async def die_at(opened: Opened, step: int, work: Work) -> bool:
    """Run in a process that dies after so many steps. Return whether it came to that."""
    fuse, guild = Fuse(step), opened.around.discord
    token, url = Secret(guild.token), guild.api_url
    db = cast("AsyncDatabase", MortalDatabase(opened.db, fuse))
    options = ClientOptions(transport=MortalTransport(fuse))
    async with DiscordGuild(token, guild.guild.id, url=url, options=options) as discord:
        with suppress(Death):
            await work(replace(opened, db=db, discord=discord))
    return fuse.burnt
