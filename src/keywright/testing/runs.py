"""Both engines behind one callable, and redis-py beside them; the fixtures are in `plugin`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, Protocol, TypeVar, cast

from keywright import AsyncDatabase, Binding, Call, Context, Database, Key, aconnect, connect

T = TypeVar("T")


class Run(Protocol):
    """An open database of either engine; calling it runs a call."""

    @property
    def context(self) -> Context:
        """Return the context of the database."""
        ...

    def __call__(self, call: Call[T]) -> T: ...

    def scan(self, kind: type[Key], **variables: object) -> list[Key]:
        """Return all keys of a class with these variables."""
        ...


OpenRun = Callable[..., Run]
"""From a URL and bindings to an open database."""


class SyncRun:
    def __init__(self, database: Database) -> None:
        self.database = database
        self.context = database.context

    def __call__(self, call: Call[T]) -> T:
        return self.database.run(call)

    def scan(self, kind: type[Key], **variables: object) -> list[Key]:
        return list(self.database.scan(kind, **variables))


class AsyncRun:
    def __init__(self, database: AsyncDatabase, loop: asyncio.Runner) -> None:
        self.database = database
        self.loop = loop
        self.context = database.context

    def __call__(self, call: Call[T]) -> T:
        return self.loop.run(self.database.run(call))

    def scan(self, kind: type[Key], **variables: object) -> list[Key]:
        async def found() -> list[Key]:
            return [key async for key in self.database.scan(kind, **variables)]

        return self.loop.run(found())


def sync_opener(opened: ExitStack) -> OpenRun:
    def opening(url: str, *bindings: Binding) -> Run:
        return SyncRun(opened.enter_context(connect(url, *bindings)))

    return opening


def async_opener(opened: ExitStack) -> OpenRun:
    loop = opened.enter_context(asyncio.Runner())

    def opening(url: str, *bindings: Binding) -> Run:
        async def database() -> AsyncDatabase:
            return await aconnect(url, *bindings)

        running = AsyncRun(loop.run(database()), loop)
        opened.callback(lambda: loop.run(running.database.close()))
        return running

    return opening


class Raw:
    """The stored data as redis-py sees it: one command at a time, replies mostly as bytes."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def __call__(self, *words: str | bytes | float) -> Any:
        return self._client.execute_command(*words)

    def names(self) -> set[bytes]:
        """Return every key name of the server or the cluster."""
        return set(cast("Iterator[bytes]", self._client.scan_iter()))

    def expires_at(self, name: str | bytes) -> float:
        """Return the moment when a key expires, in seconds since 1970; on Redis 6.2 to a few milliseconds."""
        with self._client.pipeline(transaction=True) as both:
            both.pttl(name)
            both.time()
            left, (seconds, microseconds) = both.execute()
        return float(seconds + microseconds / 1_000_000 + left / 1000)

    def calls_of(self, command: str) -> int:
        """Return how often a command ran since the statistics were reset, in scripts too."""
        stats = self._client.info("commandstats")
        return int(stats.get(f"cmdstat_{command}", {"calls": 0})["calls"])
