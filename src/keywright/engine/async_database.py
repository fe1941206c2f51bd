"""The asyncio engine: every command is sent by `await db.run(call)`.

Calls issued in the same turn of the event loop share one batch: they are queued, and a callback at
the end of the turn packs the queue into one write.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeAlias, TypeVar, overload

from keywright.engine.address import Address
from keywright.engine.async_cache import AsyncCache
from keywright.engine.async_connections import AsyncBatchConnection, AsyncConnectionPool, Outcome
from keywright.engine.capabilities import Server, probe_call, read_probe
from keywright.engine.connections import CLOSED, BrokenConnectionError
from keywright.engine.database import CLUSTER_SLOTS, REPLICATION
from keywright.engine.deadlines import check_durability, deadline_of, makes_wait, wait_command, without_pauses
from keywright.engine.delivery import MOST_BYTES, MOST_WIRES, Delivery, Shipment
from keywright.engine.messages import Message, wanted
from keywright.engine.nodes import (
    At,
    NodeReader,
    impatient,
    is_up_to_date,
    readers_of,
    replica_candidates,
    require_reads,
)
from keywright.engine.pubsub import Subscription
from keywright.engine.read_only import require_reading
from keywright.engine.replies import UNREADABLE
from keywright.engine.reply_cache import NO_CACHE, CacheStats
from keywright.engine.retry import NEVER
from keywright.engine.scan import KeyPage, NamePage, ScanPage
from keywright.engine.settings import Settings
from keywright.engine.telemetry import Observer, report
from keywright.engine.topology import Node, Topology, brief, described, known_nodes
from keywright.engine.translation import raise_failed
from keywright.engine.wire_format import Packed, is_demoted
from keywright.errors import ConnectionLostError, EngineError, KeywrightError, UsageError
from keywright.keyspace.call import Call, Command
from keywright.keyspace.channel import Channel, ChannelPattern, Published
from keywright.keyspace.context import Context
from keywright.keyspace.key import Key
from keywright.keyspace.space import Keyspace
from keywright.keyspace.wires import Reply, Wire

T = TypeVar("T")
K = TypeVar("K", bound=Key)

CLOSING_SECONDS = 0.1

Item: TypeAlias = tuple[Sequence[Wire], asyncio.Future[list[Reply]]]
Items: TypeAlias = list[Item]


class AsyncDatabase:
    """An open database for asyncio. One event loop; close it, or use it as an async context manager."""

    is_still = False  # others write while tools read

    def __init__(
        self, address: Address, context: Context, settings: Settings, observers: Sequence[Observer] = ()
    ) -> None:
        self.address = address
        self._shown = address.shown
        self._resp3 = address.protocol == 3
        self.context = context
        self.settings = settings
        self._observers = tuple(observers)
        self._loop = asyncio.get_running_loop()
        self._home = AsyncConnectionPool(address, settings)
        self._nodes: dict[Node, AsyncConnectionPool] = {}
        self._topology: Topology | None = None
        self._stale_topology = False
        self._server: Server | None = None
        self._queue: deque[Item] = deque()
        self._flush_due = False
        self._bytes_in_flight = 0
        self._calls_in_flight = 0
        self._tasks: set[asyncio.Task[Delivery]] = set()
        self._on_close: list[Any] = []
        self._closed = False
        self._cache: AsyncCache | None = None
        self._closing: asyncio.Future[None] = self._loop.create_future()

    async def run(self, call: Call[T], *, at: At | None = None) -> T:
        """Run a call and return its value. Raise a KeywrightError if it fails.

        Cancelling it stops the waiting; commands already sent may still be applied. `at` is as in
        `Database.run`.
        """
        context = self.context
        exchange: Callable[[Sequence[Wire]], Awaitable[list[Reply]]] = self._exchange
        if at is not None:
            exchange = partial(self._exchange_at, readers_of(at))
        replies: list[Reply] | None = None  # those to be read
        try:
            if at is None and isinstance(call, Command):
                command: Command[T] = call
                one = [command.lower(context)]
                replies = await (self._through_cache(one) if context.cached else self._enqueue(one))
                return command.read(replies[0], context)
            rounds = call.rounds(context)
            wires = next(rounds)
            while True:
                replies = None
                replies = await exchange(wires)
                wires = rounds.send(replies)
        except StopIteration as stop:
            value: T = stop.value
            return value
        except RuntimeError:
            self._require_loop()
            raise
        except UNREADABLE as error:
            raise_failed(call, error, answered=replies is not None)

    def scan(self, kind: type[K], **variables: object) -> AsyncIterator[K]:
        """Yield every stored key of one class, page by page, optionally with some variables fixed."""
        return self._pages(lambda cursor: KeyPage(kind, variables, cursor, self.context))

    def name(self, key: Key | Channel[Any]) -> bytes:
        """Return the full name of a key or channel, with prefix and version, for use with other clients."""
        return self.context.name(key)

    def names(self, space: Keyspace) -> AsyncIterator[bytes]:
        """Yield every stored name with the prefix of a keyspace, declared or not, page by page."""
        return self._pages(lambda cursor: NamePage(space, cursor, self.context))

    @overload
    def subscribe(
        self, channel: Channel[T] | ChannelPattern[T], /, *more: Channel[T] | ChannelPattern[T]
    ) -> Subscription[Published[T]]: ...

    @overload
    def subscribe(self, *channels: bytes, patterns: Iterable[bytes] = ()) -> Subscription[Message]: ...

    def subscribe(self, *channels: Any, patterns: Iterable[bytes] = ()) -> Subscription[Any]:
        """Subscribe to channels: `async with db.subscribe(News("art"), News.matching()) as messages:`.

        Messages of declared channels are decoded: each has its `channel` and its `message`. Names as bytes,
        and globs in `patterns`, give messages as bytes. Messages that are published while a connection is
        made again are lost, which `interruptions` of the subscription counts.
        """
        return Subscription(
            self._listening_places, self.settings, self.context, wanted(channels, patterns, self.context)
        )

    async def nodes(self, *, prefer_replica: bool = False) -> list[NodeReader]:
        """Return a reader for each primary, for `run(call, at=…)`; see `Database.nodes`."""
        readers = [NodeReader(primary, self.address.shown) for primary in await self._primaries()]
        if prefer_replica:
            for reader in readers:
                reader.replica = await self._replica_of(reader.primary)
        return readers

    async def server(self) -> Server:
        """Return the product, version and features of the server; it is asked once."""
        if self._server is None:
            self._server = read_probe(await self.run(probe_call().attempt()))
        return self._server

    def cache_stats(self) -> CacheStats:
        """Return what the cache of classes declared with `cached=` holds and has done."""
        return NO_CACHE if self._cache is None else self._cache.stats_now()

    async def settle_cache(self, within_seconds: float = 5.0) -> bool:
        """Wait until changes are tracked and every one that was acknowledged before is known.

        See `Database.settle_cache`.
        """
        if not self.context.caches() or self.settings.caching is None:
            return False
        return await self._caching().settle(within_seconds)

    async def close(self) -> None:
        """Close every connection, and the embedded server if one was started.

        Calls in flight fail, with OutcomeUnknownError if a command may have been applied.
        """
        self._closed = True
        self._require_loop()
        if not self._closing.done():
            self._closing.set_result(None)
        if self._cache is not None:
            await self._cache.close()
        for pool in (self._home, *self._nodes.values()):
            await pool.close()
        if self._queue:
            _fail(list(self._queue), ConnectionLostError(self.address.shown, CLOSED))
            self._queue.clear()
        await asyncio.sleep(0)  # tasks that wait for a connection get their error
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=CLOSING_SECONDS)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        while self._on_close:
            self._on_close.pop()()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<AsyncDatabase {self.address.shown}>"

    def _require_loop(self) -> None:
        if asyncio.get_running_loop() is not self._loop:
            raise UsageError(
                f"{self!r} belongs to another event loop. Open it in the loop that uses it: "
                f"`async with aconnect(…) as db:` inside the coroutine that asyncio.run() runs."
            )

    async def _pages(self, make: Callable[[int], ScanPage[T]]) -> AsyncIterator[T]:
        for node in await self._primaries():
            cursor = 0
            while True:
                page = make(cursor)
                cursor, found = page.read(await self._deliver_to(node, page.wire, self.settings))
                for each in found:
                    yield each
                if cursor == 0:
                    break

    async def _exchange(self, wires: Sequence[Wire]) -> list[Reply]:
        sent, pause, merge = without_pauses(wires)
        if pause:
            await asyncio.sleep(pause)
        if not sent:
            return merge([])
        return merge(await (self._through_cache(sent) if self.context.cached else self._enqueue(sent)))

    async def _through_cache(self, wires: Sequence[Wire]) -> list[Reply]:
        if self.settings.caching is None:
            return await self._enqueue(wires)
        if self._closed:
            raise ConnectionLostError(self.address.shown, CLOSED)
        if self.context.sharded:
            await self._routes()
        return await self._caching().exchange(list(wires), self._enqueue)

    def _caching(self) -> AsyncCache:
        if self._cache is None:
            self._cache = AsyncCache(
                self.address, self.settings, self.context, lambda: self._topology, self._primaries
            )
        return self._cache

    async def _exchange_at(self, readers: Sequence[NodeReader], wires: Sequence[Wire]) -> list[Reply]:
        """Send wires to chosen nodes, in a batch and on a connection of their own.

        Replies that come alone on a connection are parsed in one go.
        """
        sent, pause, merge = without_pauses(wires)
        if pause:
            await asyncio.sleep(pause)
        if not sent:
            return merge([])
        require_reads(sent)
        if self.settings.read_only:
            require_reading(sent)
        await self._routes()
        start = time.perf_counter()
        delivery = Delivery(sent, self.settings, self._shown, self._topology, readers, resend_late=True)
        if len(readers) == 1 and len(sent) <= MOST_WIRES:
            await self._ship(Shipment(readers[0].node, False, range(len(sent)), sent), delivery, alone=True)
        await self._finish(delivery, alone=True)
        if self._observers:
            report(self._observers, sent, delivery.replies, time.perf_counter() - start)
        return merge(delivery.replies)

    def _enqueue(self, wires: Sequence[Wire]) -> asyncio.Future[list[Reply]]:
        if self.settings.read_only:
            require_reading(wires)
        future: asyncio.Future[list[Reply]] = self._loop.create_future()
        if self._closed:
            future.set_exception(ConnectionLostError(self.address.shown, CLOSED))
            return future
        if makes_wait(wires):
            task = self._spawn([(wires, future)], wires, self._from_the_start(wires, alone=True))
            # Nobody would take the item that a forgotten wait still pops.
            future.add_done_callback(lambda done: task.cancel() if done.cancelled() else None)
            return future
        self._queue.append((wires, future))
        if not self._flush_due:
            self._flush_due = True
            self._loop.call_soon(self._flush)
        return future

    def _flush(self) -> None:
        """Send the queued calls, as far as the bounds on calls in flight allow."""
        self._flush_due = False
        while self._queue and self._has_room():
            items, wires = self._next_batch()
            if not wires:
                return  # all of them were cancelled
            connection = self._home.ready
            if connection is None or self.context.sharded or self.settings.durability:
                self._spawn(items, wires, self._from_the_start(wires))
            else:
                self._send_now(connection, items, wires)

    def _has_room(self) -> bool:
        return (
            self._calls_in_flight < self.settings.most_calls_in_flight
            and self._bytes_in_flight < self.settings.most_bytes_in_flight
        )

    def _next_batch(self) -> tuple[Items, Sequence[Wire]]:
        items: Items = []
        count = 0
        while self._queue and (not items or count + len(self._queue[0][0]) <= MOST_WIRES):
            item = self._queue.popleft()
            if item[1].cancelled():
                continue
            items.append(item)
            count += len(item[0])
        if len(items) == 1:
            return items, items[0][0]
        return items, [wire for wires, _ in items for wire in wires]

    def _send_now(self, connection: AsyncBatchConnection, items: Items, wires: Sequence[Wire]) -> None:
        """Write at once, since the connection is open, and answer from its callback: the common case."""
        try:
            packed = Packed(wires, resp3=self._resp3)
            chunks, size = packed.sized_chunks()
        except Exception:  # noqa: BLE001  # one of the calls cannot be sent: the delivery finds out which
            self._spawn(items, wires, self._from_the_start(wires))
            return
        if size > MOST_BYTES:
            self._spawn(items, wires, self._from_the_start(wires))
            return
        count, start = len(wires), time.perf_counter()
        self._bytes_in_flight += size
        self._calls_in_flight += count

        def answered(outcome: Outcome) -> None:
            self._bytes_in_flight -= size
            self._calls_in_flight -= count
            if packed.plain and not isinstance(outcome, BrokenConnectionError) and not outcome[1]:
                replies = packed.sound(packed.replies(outcome[0]))
                _hand_out(items, replies)
                if self._observers:
                    report(self._observers, wires, replies, time.perf_counter() - start)
            else:
                self._spawn(items, wires, self._from_here(wires, connection, packed, outcome, start))
            if self._queue and not self._flush_due:
                self._flush()

        decoder = None if self._observers else packed.decoder  # they count the bytes of replies
        connection.post(chunks, packed.count, self.settings.timeout_seconds, answered, decoder)

    async def _from_the_start(self, wires: Sequence[Wire], *, alone: bool = False) -> Delivery:
        await self._routes()
        delivery = Delivery(wires, self.settings, self._shown, self._topology)
        await self._finish(delivery, alone=alone)
        return delivery

    async def _from_here(
        self,
        wires: Sequence[Wire],
        connection: AsyncBatchConnection,
        packed: Packed,
        outcome: Outcome,
        started: float,
    ) -> Delivery:
        """Continue a batch that had errors, a transaction, or a connection that broke."""
        delivery = Delivery(wires, self.settings, self._shown, self._topology, started=started)
        whole = Shipment(None, False, range(len(wires)), wires)
        self._take(whole, connection, packed, outcome, delivery)
        await self._finish(delivery)
        return delivery

    async def _finish(self, delivery: Delivery, *, alone: bool = False) -> None:
        while delivery.pending:
            if self._closed:
                delivery.retry = NEVER
            pause = delivery.next_attempt()
            if pause is None:
                break
            if pause:
                await asyncio.wait([self._closing], timeout=pause)
            if delivery.stale_topology:
                await self._refresh(delivery)
            shipments = (self._ship(each, delivery, alone=alone) for each in delivery.shipments())
            await asyncio.gather(*shipments)  # the nodes work at the same time
        if delivery.stale_topology:
            self._stale_topology = True
        if delivery.attempt and self._cache is not None:
            self._cache.detours += 1

    async def _deliver_to(
        self, node: Node | None, wire: Wire, settings: Settings, *, alone: bool = False
    ) -> Reply:
        """Return the reply of one node to a command that has no key."""
        start = time.perf_counter()
        reader = NodeReader(node, self.address.shown)
        delivery = Delivery([wire], settings, reader.label, None, [reader])
        await self._finish(delivery, alone=alone)
        if self._observers:
            report(self._observers, delivery.wires, delivery.replies, time.perf_counter() - start)
        return delivery.replies[0]

    async def _ship(self, shipment: Shipment, delivery: Delivery, *, alone: bool) -> None:
        try:
            if self._closed:
                raise ConnectionLostError(self.address.shown, CLOSED)
            pool = self._pool_of(shipment.node)
            seconds = delivery.time_left()
            connection = await (pool.borrow(seconds) if alone else pool.shared(seconds))
        except KeywrightError as error:
            delivery.refused(shipment, error)
            return
        durability = self.settings.durability
        extra = b"" if durability is None else wait_command(shipment.wires, durability)
        try:
            packed = Packed(shipment.wires, asking=shipment.asking, extra=extra, resp3=self._resp3)
            buffer = packed.buffer
        except Exception as error:  # noqa: BLE001  # raised to the caller of `run`
            delivery.unsendable(shipment, error)
            if alone:
                await pool.give_back(connection)
            return
        self._bytes_in_flight += len(buffer)
        try:
            outcome = await connection.send(buffer, packed.count, delivery.reply_seconds(packed))
        finally:
            self._bytes_in_flight -= len(buffer)
            if alone:
                await pool.give_back(connection)
        self._take(shipment, connection, packed, outcome, delivery)

    def _take(
        self,
        shipment: Shipment,
        connection: AsyncBatchConnection,
        packed: Packed,
        outcome: Outcome,
        delivery: Delivery,
    ) -> None:
        broken = outcome if isinstance(outcome, BrokenConnectionError) else None
        raw = outcome.raw if isinstance(outcome, BrokenConnectionError) else outcome[0]
        if is_demoted(raw):
            self._pool_of(shipment.node).leave(connection)
        replies = packed.replies(raw, asking=shipment.asking)
        if self.settings.durability and packed.extra:
            confirmed = raw[-1] if broken is None else None
            replies = check_durability(replies, confirmed, shipment.wires, self.settings.durability)
        clean = isinstance(outcome, tuple) and not outcome[1] and packed.is_sound(replies)
        if clean and len(shipment.indexes) == len(delivery.wires):
            delivery.complete(replies, packed)
            return
        delivery.answered(shipment, replies)
        if broken is None:
            return
        if broken.silent:
            delivery.overdue(shipment, len(replies), deadline_of(packed, delivery.settings))
        else:
            delivery.lost(shipment, len(replies), broken.reason, sent=broken.sent)

    def _pool_of(self, node: Node | None) -> AsyncConnectionPool:
        if node is None:
            return self._home
        pool = self._nodes.get(node)
        if pool is None:
            there = self.address.at(node.host, node.port)
            if node.replica:
                pool = AsyncConnectionPool(there, impatient(self.settings), readonly=self.context.sharded)
            else:
                pool = AsyncConnectionPool(there, self.settings)
            self._nodes[node] = pool
        return pool

    async def _primaries(self) -> Iterable[Node | None]:
        self._require_loop()
        await self._routes()
        return [None] if self._topology is None else self._topology.primaries

    async def _replica_of(self, primary: Node | None) -> Node | None:
        """Return a replica of a primary that can be reached and is up to date, or None."""
        once = self.settings._replace(retry=NEVER)
        listed = await self._deliver_to(None, REPLICATION, once) if self._topology is None else None
        for replica in replica_candidates(primary, self._topology, listed):
            if is_up_to_date(await self._deliver_to(replica, REPLICATION, once)):
                return replica
        return None

    async def _listening_places(self, slot: int | None, again: bool) -> list[AsyncConnectionPool]:
        """Return the pools that a subscription may use; none once the database is closed.

        A slot is at one node, which may be another one after a connection was lost.
        """
        if self._closed:
            return []
        self._stale_topology = self._stale_topology or (again and self._topology is not None)
        nodes = await self._primaries()
        if slot is not None and self._topology is not None:
            nodes = [self._topology.owner(slot)]
        return [self._pool_of(node) for node in nodes]

    async def _routes(self) -> None:
        if self.context.sharded and self._topology is None:
            self._topology = await self._asked_topology(
                known_nodes(self.address), self.settings._replace(retry=NEVER)
            )
        elif self._stale_topology:
            await self._refreshed(0)

    async def _refresh(self, delivery: Delivery) -> None:
        delivery.stale_topology = False
        delivery.topology = await self._refreshed(delivery.attempt)

    async def _refreshed(self, attempt: int) -> Topology:
        """Return the topology as any node describes it that answers; the known one if none does."""
        assert self._topology is not None
        self._stale_topology = False
        with suppress(EngineError):  # the next failure of a delivery asks again
            self._topology = await self._asked_topology(self._topology.sources, brief(self.settings, attempt))
        return self._topology

    async def _asked_topology(self, nodes: Iterable[Node | None], settings: Settings) -> Topology:
        trouble: KeywrightError = ConnectionLostError(self.address.shown, "no node of the cluster answered")
        for node in nodes:
            # Alone: a missed deadline closes the connection, and the shared one carries batches of others.
            reply = await self._deliver_to(node, CLUSTER_SLOTS, settings, alone=True)
            answer = described(reply, node, self.address)
            if isinstance(answer, Topology):
                return answer
            trouble = answer or trouble
        raise trouble

    def _spawn(
        self, items: Items, wires: Sequence[Wire], work: Coroutine[Any, Any, Delivery]
    ) -> asyncio.Task[Delivery]:
        """Answer a batch from its delivery. Every waiting call gets a reply or an error, whatever happens."""
        start = time.perf_counter()
        self._calls_in_flight += len(wires)
        task = self._loop.create_task(work)
        self._tasks.add(task)

        def over(task: asyncio.Task[Delivery]) -> None:
            self._tasks.discard(task)
            self._calls_in_flight -= len(wires)
            if task.cancelled():
                _fail(items, ConnectionLostError(self.address.shown, CLOSED))
            elif error := task.exception():
                _fail(items, error)
            else:
                replies = task.result().replies
                _hand_out(items, replies)
                if self._observers:
                    report(self._observers, wires, replies, time.perf_counter() - start)
            if self._queue and not self._flush_due:
                self._flush()

        task.add_done_callback(over)
        return task


def _hand_out(items: Items, replies: list[Reply]) -> None:
    if len(items) == 1:
        if not items[0][1].done():
            items[0][1].set_result(replies)
        return
    start = 0
    for wires, future in items:
        end = start + len(wires)
        if not future.done():
            future.set_result(replies[start:end])
        start = end


def _fail(items: Items, error: BaseException) -> None:
    for _, future in items:
        if not future.done():
            future.set_exception(error)
