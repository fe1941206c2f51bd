"""The cache of an asyncio database: a task for each node reads the changes that it reports.

A hit does not wait, so a task of many hits would keep the event loop from reading what has arrived. A call
first looks whether anything has, and lets the loop read it; so does every 64th call, for the other tasks.
"""

from __future__ import annotations

import asyncio
import logging
import select
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress

from keywright.engine.address import Address
from keywright.engine.async_connections import AsyncBatchConnection, AsyncConnectionPool
from keywright.engine.client_cache import ClientCache, is_left, is_served, only_reads
from keywright.engine.reply_cache import CacheStats
from keywright.engine.settings import Settings
from keywright.engine.topology import Node, Topology
from keywright.engine.tracking_link import (
    REFUSED_PAUSE_SECONDS,
    LostTrackingError,
    RefusedTrackingError,
    TrackingLink,
    in_resp3,
)
from keywright.errors import ConnectionLostError, KeywrightError
from keywright.keyspace.context import Context
from keywright.keyspace.wires import Reply, Wire

__all__ = ["AsyncCache"]

log = logging.getLogger("keywright.engine")

HITS_A_TURN = 64
# The loop reads a socket in the turn after the one that finds it readable.
TURNS_TO_READ = 8
CANCEL_SECONDS = 0.1

Deliver = Callable[[list[Wire]], Awaitable[list[Reply]]]


class AsyncCache(ClientCache):
    """What an asyncio database keeps, and the tasks that read what its nodes report."""

    def __init__(
        self,
        address: Address,
        settings: Settings,
        context: Context,
        topology: Callable[[], Topology | None],
        primaries: Callable[[], Awaitable[Iterable[Node | None]]],
    ) -> None:
        assert settings.caching is not None  # or there is no cache
        super().__init__(settings.caching, context, topology)
        self.settings = settings
        self._address = in_resp3(address)
        self._primaries = primaries
        self._lines: dict[Node | None, AsyncLine] = {}
        self._changes: set[asyncio.Future[None]] = set()
        self._finding: asyncio.Task[None] | None = None
        self._turn = 0
        self._closed = False

    async def exchange(self, wires: list[Wire], deliver: Deliver) -> list[Reply]:
        """Return the replies to a batch: kept ones, and those that `deliver` brings."""
        if not only_reads(wires):
            self.forget_written(wires)
            try:
                return await deliver(wires)
            finally:
                self.forget_written(wires)
        if self.classes != len(self.context.cached) or not self._lines:
            self._track_more()
        if not await self._caught_up(wires):
            return await deliver(wires)
        lookup = self.look(wires)
        if not lookup.sent:
            return lookup.replies
        detours = self.detours
        try:
            answers = await deliver(lookup.sent)
        except BaseException:
            self.replies.abandon(lookup)
            raise
        return self.replies.land(lookup, answers, straight=detours == self.detours)

    async def settle(self, seconds: float) -> bool:
        """Wait until every node reports changes and has been asked again since. Return whether it is so."""
        if self.classes != len(self.context.cached) or not self._lines:
            self._track_more()
        try:
            async with asyncio.timeout(seconds):
                while not self._is_served():
                    await self._change()
                asked = [(line, link, line.ask_again(link)) for line, link in self._linked()]
                while any(line.link is link and link.answered < count for line, link, count in asked):
                    await self._change()
                return all(line.link is link for line, link, _ in asked)
        except TimeoutError:
            return False

    def watch(self, nodes: Iterable[Node | None]) -> None:
        """Have a line to each of these nodes."""
        if self._closed:
            return
        for node in nodes:
            if node not in self._lines:
                self._lines[node] = AsyncLine(self, node, self._address)

    def leave(self, node: Node | None) -> bool:
        """Give up the line to a node that is not a primary any more. Return whether it is so."""
        if not is_left(node, self._lines):
            return False
        self._lines.pop(node, None)
        self.changed()
        return True

    def stats_now(self) -> CacheStats:
        return self.stats(tracking=self._is_served())

    def changed(self) -> None:
        """Let those who wait for a change look again."""
        changes, self._changes = self._changes, set()
        for change in changes:
            if not change.done():
                change.set_result(None)

    async def close(self) -> None:
        self._closed = True
        pending = {line.task for line in self._lines.values()}
        if self._finding is not None:
            pending.add(self._finding)
        while pending:
            for task in pending:
                task.cancel()  # again if need be: redis-py may lose a cancellation in Python 3.11
            _, pending = await asyncio.wait(pending, timeout=CANCEL_SECONDS)
        self.changed()

    def _linked(self) -> list[tuple[AsyncLine, TrackingLink]]:
        return [(line, line.link) for line in self._lines.values() if line.link is not None]

    def _is_served(self) -> bool:
        return is_served(self._lines.values())

    async def _change(self) -> None:
        change = asyncio.get_running_loop().create_future()
        self._changes.add(change)
        try:
            await change
        finally:
            self._changes.discard(change)

    async def _caught_up(self, wires: list[Wire]) -> bool:
        """Let the loop read what has arrived of the nodes of these wires. Return False if it does not."""
        self._turn += 1
        if self._turn % HITS_A_TURN == 0:
            await asyncio.sleep(0)
        for _ in range(TURNS_TO_READ):
            lines = [self._lines.get(link.node) for link in self.links(wires)]
            if not any(line is not None and line.has_unread() for line in lines):
                return True
            await asyncio.sleep(0)
        return False

    def _track_more(self) -> None:
        """Follow the names of all cached classes, also of those that were met just now."""
        if self.classes != len(self.context.cached):
            self.learn_prefixes()
            for line in self._lines.values():
                line.give_up()
        if not self._closed and (self._finding is None or self._finding.done()):
            self._finding = asyncio.create_task(self._find())

    async def _find(self) -> None:
        with suppress(KeywrightError):  # the next read tries again, and has its own error
            self.watch(await self._primaries())


class AsyncLine(asyncio.Protocol):
    """The connection to one node that reports changes, and the task that keeps it."""

    def __init__(self, cache: AsyncCache, node: Node | None, address: Address) -> None:
        self.link: TrackingLink | None = None
        self._cache = cache
        self._node = node
        self._there = address if node is None else address.at(node.host, node.port)
        self._pool = AsyncConnectionPool(self._there, cache.settings)
        self._connection: AsyncBatchConnection | None = None
        self._poller: select.poll | None = None
        self._end: asyncio.Future[None] | None = None
        self._wanted = 0
        self._seen: Topology | None = None
        self.task = asyncio.create_task(self._keep())

    def has_unread(self) -> bool:
        """Return whether something has arrived that the loop has not read."""
        return self._poller is not None and bool(self._poller.poll(0))

    def ask_again(self, link: TrackingLink) -> int:
        """Have the node asked after any question that is under way. Return the number of that question."""
        wanted = self._wanted = link.asked + 2
        self._ask(link)
        return wanted

    def give_up(self, error: Exception | None = None) -> None:
        """Vouch for nothing any more, and have the connection closed."""
        self._poller = None
        if self.link is not None:
            self._cache.withdraw(self.link)
            self.link = None
        if self._end is not None and not self._end.done():
            if error is None:
                self._end.set_result(None)
            else:
                self._end.set_exception(error)
        self._cache.changed()

    def data_received(self, data: bytes) -> None:
        link = self.link
        if link is None:
            return
        was_established = link.established
        try:
            link.feed(data)
        except (LostTrackingError, RefusedTrackingError) as error:
            self.give_up(error)
            return
        if link.established and not was_established:
            self._cache.refusal = None
            self._cache.serve(link)
        if link.topology is not None and link.topology is not self._seen:
            self._seen = link.topology
            self._cache.watch(link.topology.primaries)
        if self._wanted > link.asked:
            self._ask(link)
        self._cache.changed()

    def connection_lost(self, exc: Exception | None) -> None:
        self.give_up()
        if self._connection is not None:
            self._connection.former.connection_lost(exc)

    def _ask(self, link: TrackingLink) -> None:
        if not link.waiting and self._connection is not None:
            self._connection.transport.write(link.question())

    async def _keep(self) -> None:
        attempt = 0
        try:
            while not self._cache.leave(self._node):
                try:
                    connection = await self._pool.borrow(self._cache.settings.timeout_seconds)
                    established = await self._listen(connection)
                    attempt = 1 if established else attempt + 1
                    pause = self._cache.settings.retry.pause(attempt)
                except ConnectionLostError:
                    attempt += 1
                    pause = self._cache.settings.retry.pause(attempt)
                except (KeywrightError, RefusedTrackingError) as error:
                    pause = REFUSED_PAUSE_SECONDS
                    self._refused(str(error))
                await asyncio.sleep(pause)
        finally:
            await self._pool.close()

    async def _listen(self, connection: AsyncBatchConnection) -> bool:
        """Follow the reports on a connection until it is lost. Return whether it ever vouched for keys."""
        link = TrackingLink(self._cache.replies, self._node, self._cache.prefixes, self._there)
        self.link, self._connection, self._seen = link, connection, None
        self._end = end = asyncio.get_running_loop().create_future()
        self._poller = poller = select.poll()
        poller.register(connection.transport.get_extra_info("socket").fileno(), select.POLLIN)
        connection.transport.set_protocol(self)
        try:
            connection.transport.write(link.greeting())
            while not end.done():
                seconds = link.due()
                if seconds <= 0 and not link.waiting:
                    self._ask(link)
                    continue
                await asyncio.wait([end], timeout=min(seconds, link.interval))  # an answer does not wake it
            await end
        except LostTrackingError:
            pass
        finally:
            self.give_up()
            self._connection = None
            connection.close()
            await self._pool.give_back(connection)
        return link.answered > 0

    def _refused(self, reason: str) -> None:
        if self._cache.refusal is None:
            log.warning("nothing is cached: %s does not report changes: %s", self._there.shown, reason)
        self._cache.refusal = reason
        self._cache.changed()
