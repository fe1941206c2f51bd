"""The pages of the public log on a port, in a thread of their own, and entries to plant."""

from __future__ import annotations

import asyncio
import threading
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, Self

import httpx

from keywright import aconnect
from keywright.operations import commit
from keywright_openmod.log_index import listing, naming
from keywright_openmod.platform import Account
from keywright_openmod.public_log import bind_to_read
from keywright_openmod.schema import AnyCached, CacheHash, ExtractHash, LogEntry, extract_of
from keywright_openmod.service.log_pages import LogPages
from keywright_openmod.settings import OpenModSettings
from keywright_service.testing.http_server import HttpServer

from .newsroom import NOON, Newsroom


class LogServer:
    """Serves the log of a database on `url` until the end of the block."""

    def __init__(
        self, redis_url: str, *, settings: OpenModSettings | None = None, public_url: str | None = None
    ) -> None:
        self._redis_url = redis_url
        self._settings = settings
        self._public_url = public_url
        self._started = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True)

    def get(self, path: str, **parameters: str) -> httpx.Response:
        return self.client.get(path, params=parameters or None)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._started.wait(30)
        self.client = httpx.Client(base_url=self.url, timeout=30, verify=False)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.client.close()
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(30)

    async def _run(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        async with aconnect(self._redis_url, bind_to_read()) as db:
            pages = LogPages(db, subreddit="cats", settings=self._settings, public_url=self._public_url)
            async with HttpServer(pages.application()) as server:
                self.url = server.url
                self._started.set()
                await self._stop.wait()


def plant(
    room: Newsroom,
    post: str,
    *,
    action: str = "removecomment",
    moderator: str = "Mod",
    user: str = "Ann",
    thing: str = "t1_c1",
    subreddit: str = "cats",
    at: datetime = NOON,
    content: AnyCached | None = None,
    **more: Any,
) -> LogEntry:
    """Record an extract in the log as the recorder does, without a post on Reddit."""
    people = [Account(f"t2_{name.lower()}", name) for name in (moderator, user)]
    actor, target = (each.id for each in people)
    entry = LogEntry(at=at, subreddit=subreddit, type=action, actor=actor, target=target, thing=thing, **more)
    writes = listing(post, entry)[1] + [each for person in people for each in naming(person, None)[1]]
    writes.append(ExtractHash(post).put(extract_of(entry.action, actor, target, thing)))
    if content is not None:
        writes.append(CacheHash(thing).put(content))
    assert room.run(commit("plant", [], writes, subject=post))
    return entry


def minutes(number: float) -> timedelta:
    return timedelta(minutes=number)
