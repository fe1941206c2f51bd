"""The tasks, as facts about a program: what it returns, and what is left when its connection is cut.

Every fact is found in the same way for every client, by functions of its program and by a client of redis-py
that reads and changes what is stored.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import multiprocessing
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import redis

from benchmarks.peers.program import EXPIRY_SECONDS, Program, Session
from keywright.testing import Proxy

__all__ = ["FAULTS", "Facts", "facts"]

BATCH = 1_000
RUNS = 5
ROUNDS = 20
WRITES = 10
FAULTS = ("no expiry", "a word for a number", "another type", "an unknown key", "half a relation")


@dataclass(frozen=True)
class Facts:
    """What was found out about one client."""

    same: bool
    """The session that was read equals the one that was written, time zone and microseconds included."""
    seconds_left: int
    immortal: int
    """How many of the cuts left a session without an expiry."""
    cuts: int
    """How many commands writing a session and giving a book another author take: so many cuts were tried."""
    related: bool
    """After a book got another author, all three looks at the relation agree."""
    halves: int
    """How many of the cuts left sides of a relation that contradict each other."""
    races: int
    """How many of ROUNDS rounds of two writers of one book did the same."""
    lost_reply: str
    """What one addition did whose reply was lost: the counter, and the error that the caller got."""
    write_ms: float
    """Processor time of the client for BATCH sessions, the median of RUNS."""
    read_ms: float
    renamed: bool
    """A session with visits was read by the declaration that has views."""
    found: tuple[str, ...] | None
    """The planted faults that the audit named, out of FAULTS; None where the program has none."""
    false_alarms: tuple[str, ...]


async def facts(program: Program, url: str) -> Facts:
    """Run all tasks on an empty server."""
    raw: redis.Redis = redis.Redis.from_url(url, decode_responses=True)
    with raw, Proxy(url) as proxy:
        run = _Run(program, url, raw, proxy)
        same, seconds_left = await run.typed()
        save_cuts, immortal = await run.cut(run.save, run.is_immortal)
        related = await run.related()
        assign_cuts, halves = await run.cut(run.assign, run.is_half)
        races = await run.raced()
        lost_reply = await run.counted()
        write_ms, read_ms = await run.batch()
        renamed = await run.renamed()
        found, false_alarms = await run.audited()
    return Facts(
        same,
        seconds_left,
        immortal,
        save_cuts + assign_cuts,
        related,
        halves,
        races,
        lost_reply,
        write_ms,
        read_ms,
        renamed,
        found,
        false_alarms,
    )


@dataclass(frozen=True)
class _Run:
    program: Program
    url: str
    raw: redis.Redis
    proxy: Proxy

    def opened(self, url: str) -> AbstractAsyncContextManager[Any]:
        return _opened(self.program, url)

    async def typed(self) -> tuple[bool, int]:
        self.raw.flushall()
        async with self.opened(self.url) as db:
            await self.save(db)
            same = await _done(self.program.load(db, "t1")) == Session.sample(7)
        return same, self.raw.ttl(self.program.session_key("t1"))

    async def save(self, db: Any) -> None:
        await _done(self.program.save(db, "t1", Session.sample(7)))

    async def is_immortal(self) -> bool:
        name = self.program.session_key("t1")
        return bool(self.raw.exists(name)) and self.raw.ttl(name) == -1

    async def related(self) -> bool:
        self.raw.flushall()
        async with self.opened(self.url) as db:
            await _done(self.program.assign(db, "b1", "ann"))
            await _done(self.program.assign(db, "b1", "bob"))
            return await self._sides(db) == ("bob", set(), {"b1"})

    async def assign(self, db: Any) -> None:
        await _done(self.program.assign(db, "b1", "bob"))

    async def is_half(self) -> bool:
        async with self.opened(self.url) as db:
            sides = await self._sides(db)
        return sides not in (("ann", {"b1"}, set()), ("bob", set(), {"b1"}))

    async def _sides(self, db: Any) -> tuple[Any, Any, Any]:
        author = await _done(self.program.author_of(db, "b1"))
        return author, await self._books(db, "ann"), await self._books(db, "bob")

    async def _books(self, db: Any, author: str) -> Any:
        try:
            return await _done(self.program.books_of(db, author))
        except KeyError:  # walrus: an index that names a book which does not exist
            return {"?"}

    async def cut(
        self, act: Callable[[Any], Awaitable[None]], is_broken: Callable[[], Awaitable[bool]]
    ) -> tuple[int, int]:
        """Cut the connection after 0, 1, 2… commands of an act. Return the cuts, and how many broke it."""
        commands = await self._commands_of(act)
        broken = 0
        for number in range(commands):
            await self._prepare()
            with contextlib.suppress(
                Exception
            ):  # each client has errors of its own, and some raise when closed
                async with self._warm() as db:
                    self.proxy.refuse()  # a process that has died opens no connection again
                    self.proxy.cut_after_commands(number)
                    await act(db)
            self.proxy.heal()
            broken += await is_broken()
        return commands, broken

    async def _commands_of(self, act: Callable[[Any], Awaitable[None]]) -> int:
        await self._prepare()
        async with self._warm() as db:
            before = self.proxy.commands
            await act(db)
            return self.proxy.commands - before

    async def _prepare(self) -> None:
        self.raw.flushall()
        async with self.opened(self.url) as db:
            await _done(self.program.assign(db, "b1", "ann"))

    @asynccontextmanager
    async def _warm(self) -> AsyncIterator[Any]:
        """Open a client through the proxy, with all connections that it will use."""
        async with self.opened(self.proxy.url) as db:
            await _done(self.program.assign(db, "b0", "cid"))
            yield db

    async def raced(self) -> int:
        """Let two processes give one book another author at the same time."""
        broken = 0
        module = inspect.getmodulename(str(self.program.__file__)) or ""
        with multiprocessing.get_context("spawn").Pool(2) as writers:
            for _ in range(ROUNDS):
                await self._prepare()
                works = [(module, self.url, author) for author in ("ann", "bob")]
                await asyncio.to_thread(writers.starmap, write, works, 1)
                broken += await self.is_half()
        return broken

    async def counted(self) -> str:
        """Add one, with the client's own retries, and lose the reply of the server, which has added it."""
        self.raw.flushall()
        error = "no error"
        async with _opened(self.program, self.proxy.url, retries=True) as db:
            await _done(self.program.count(db))
            self.proxy.cut_before_reply()
            try:
                await _done(self.program.count(db))
            except Exception as raised:  # noqa: BLE001  # each client has errors of its own
                error = type(raised).__name__
        self.proxy.heal()
        return f"{int(str(self.raw.get('visits'))) - 1}, {error}"

    async def batch(self) -> tuple[float, float]:
        self.raw.flushall()
        sessions = {f"t{number}": Session.sample(number) for number in range(BATCH)}
        written, read = [], []
        async with self.opened(self.url) as db:
            for _ in range(RUNS):
                started = time.process_time()
                await _done(self.program.save_many(db, sessions))
                written.append(time.process_time() - started)
                started = time.process_time()
                found = await _done(self.program.load_many(db, sessions))
                read.append(time.process_time() - started)
                if len(found) != BATCH:
                    raise RuntimeError(f"read {len(found)} sessions of {BATCH}")
        return 1000 * statistics.median(written), 1000 * statistics.median(read)

    async def renamed(self) -> bool:
        self.raw.flushall()
        async with self.opened(self.url) as db:
            await self.save(db)
            views = await _done(self.program.views_of(db, "t1"))
        return bool(views == Session.sample(7).visits)

    async def audited(self) -> tuple[tuple[str, ...] | None, tuple[str, ...]]:
        """Plant one fault of each type among healthy data, and compare the names that the program reports."""
        if self.program.faulty is None:
            return None, ()
        self.raw.flushall()
        async with self.opened(self.url) as db:
            for number in range(6):
                await _done(self.program.save(db, f"t{number}", Session.sample(number)))
                await _done(self.program.assign(db, f"b{number}", "ann"))
            await _done(self.program.assign(db, "b9", "bob"))
            planted = self._planted()
            found = await _done(self.program.faulty(db, self.url))
        named = tuple(fault for fault, names in planted.items() if names & found)
        return named, tuple(sorted(found - set().union(*planted.values())))

    def _planted(self) -> dict[str, set[str]]:
        immortal, garbled, other = (self.program.session_key(f"t{number}") for number in range(3))
        self.raw.persist(immortal)
        self.raw.hset(garbled, "visits", "many")
        self.raw.delete(other)
        self.raw.set(other, "not a hash", ex=EXPIRY_SECONDS)
        self.raw.set("leftover:1", "of another program")
        self.raw.delete(self.program.books_key("bob"))
        books = {str(name) for name in self.raw.scan_iter("*b9*")}
        sides = books | {self.program.books_key("bob")}
        return dict(zip(FAULTS, ({immortal}, {garbled}, {other}, {"leftover:1"}, sides), strict=True))


def write(module: str, url: str, author: str) -> None:
    """Give a book its author again and again: the work of one process."""
    program: Any = import_module(f"benchmarks.peers.{module}")

    async def written() -> None:
        async with _opened(program, url) as db:
            for _ in range(WRITES):
                await _done(program.assign(db, "b1", author))

    asyncio.run(written())


@asynccontextmanager
async def _opened(program: Program, url: str, *, retries: bool = False) -> AsyncIterator[Any]:
    opening = program.opened(url, retries=retries)
    if isinstance(opening, AbstractContextManager):
        with opening as db:
            yield db
    else:
        async with opening as db:
            yield db


async def _done(result: Any) -> Any:
    return await result if inspect.isawaitable(result) else result
