"""Both engines as a program runs them, many calls at once; and the keys that their tests write."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Protocol, TypeVar

import msgspec

from keywright import (
    AsyncDatabase,
    Call,
    Counter,
    Database,
    Id,
    Key,
    Keyspace,
    List,
    Observer,
    Set,
    Settings,
    Stream,
    Value,
    aconnect,
    connect,
)
from keywright.engine.nodes import At, NodeReader

T = TypeVar("T")
K = TypeVar("K", bound=Key)

bench = Keyspace("bench", "One key of each sort that a fault may hit.")


class Note(msgspec.Struct):
    text: str


class Word(Value[str], key="word:<word>", space=bench):
    """Written again without harm."""

    word: Id


class Number(Value[int], key="number:<number>", space=bench):
    """A value that may not decode."""

    number: Id


class Tally(Counter, key="tally:<tally>", space=bench):
    """Must not be added to twice."""

    tally: Id


class Queue(List[str], key="queue:<queue>", space=bench):
    """Must not be pushed to twice."""

    queue: Id


class Log(Stream[Note], key="log:<log>", space=bench):
    """Must not be appended to twice."""

    log: Id


class Group(Set[str], key="group:{<room>}:<group>", space=bench):
    """Sets of a room share a slot."""

    room: Id
    group: Id


class Engine(Protocol):
    """An open database of either kind, on which several calls may be under way."""

    def run(self, call: Call[T], *, at: At | None = None) -> T: ...

    def nodes(self, *, prefer_replica: bool = False) -> list[NodeReader]: ...

    def scan(self, kind: type[K]) -> list[K]: ...

    def start(self, call: Call[T]) -> Future[T]: ...

    def close(self) -> None: ...


class Blocking:
    """The blocking engine, with threads for calls that were only started."""

    def __init__(
        self,
        url: str,
        settings: Settings | None = None,
        observers: Sequence[Observer] = (),
        **options: Any,
    ) -> None:
        self.database: Database = connect(url, settings=settings, observers=observers, **options)
        self._threads = ThreadPoolExecutor(8)

    def run(self, call: Call[T], *, at: At | None = None) -> T:
        return self.database.run(call, at=at)

    def nodes(self, *, prefer_replica: bool = False) -> list[NodeReader]:
        return self.database.nodes(prefer_replica=prefer_replica)

    def scan(self, kind: type[K]) -> list[K]:
        return list(self.database.scan(kind))

    def start(self, call: Call[T]) -> Future[T]:
        return self._threads.submit(self.database.run, call)

    def close(self) -> None:
        self._threads.shutdown()
        self.database.close()

    def __repr__(self) -> str:
        return repr(self.database)


class Asyncio:
    """The asyncio engine on a loop that runs in a thread, so it notices what happens between calls."""

    def __init__(
        self,
        url: str,
        settings: Settings | None = None,
        observers: Sequence[Observer] = (),
        **options: Any,
    ) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever)
        self._thread.start()
        try:
            self.database: AsyncDatabase = self.wait(_opened(url, settings, observers, options))
        except BaseException:
            self._stop()
            raise

    def run(self, call: Call[T], *, at: At | None = None) -> T:
        return self.wait(self.database.run(call, at=at))

    def nodes(self, *, prefer_replica: bool = False) -> list[NodeReader]:
        return self.wait(self.database.nodes(prefer_replica=prefer_replica))

    def scan(self, kind: type[K]) -> list[K]:
        async def all_keys() -> list[K]:
            return [key async for key in self.database.scan(kind)]

        return self.wait(all_keys())

    def start(self, call: Call[T]) -> Future[T]:
        return asyncio.run_coroutine_threadsafe(self.database.run(call), self.loop)

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result()

    def close(self) -> None:
        self.wait(self.database.close())
        self._stop()

    def _stop(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()

    def __repr__(self) -> str:
        return repr(self.database)


async def _opened(
    url: str, settings: Settings | None, observers: Sequence[Observer], options: dict[str, Any]
) -> AsyncDatabase:
    return await aconnect(url, settings=settings, observers=observers, **options)
