"""The blocking engine: every command is sent by `db.run(call)`."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Self, TypeVar, overload

from keywright.engine.address import Address
from keywright.engine.blocking_cache import BlockingCache, drop_after_fork
from keywright.engine.blocking_pubsub import BlockingSubscription
from keywright.engine.capabilities import Server, probe_call, read_probe
from keywright.engine.connections import CLOSED, BrokenConnectionError, ConnectionPool
from keywright.engine.deadlines import check_durability, deadline_of, wait_command, without_pauses
from keywright.engine.delivery import MOST_WIRES, Delivery, Shipment
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
from keywright.engine.read_only import require_reading
from keywright.engine.replies import UNREADABLE
from keywright.engine.reply_cache import NO_CACHE, CacheStats
from keywright.engine.retry import NEVER
from keywright.engine.scan import KeyPage, NamePage, ScanPage
from keywright.engine.settings import Settings
from keywright.engine.telemetry import Observer, observe
from keywright.engine.topology import Node, Topology, brief, described, known_nodes
from keywright.engine.translation import raise_failed
from keywright.engine.wire_format import Packed, is_demoted
from keywright.errors import ConnectionLostError, EngineError, KeywrightError
from keywright.keyspace.call import Call, Command, Plain
from keywright.keyspace.channel import Channel, ChannelPattern, Published
from keywright.keyspace.context import Context
from keywright.keyspace.key import Key
from keywright.keyspace.misuse import explained
from keywright.keyspace.space import Keyspace
from keywright.keyspace.wires import Effect, Operation, Reply, Wire

T = TypeVar("T")
K = TypeVar("K", bound=Key)

CLUSTER_SLOTS = Plain(Operation("topology", b"CLUSTER", Effect.READ), (b"SLOTS",)).wire
REPLICATION = Plain(Operation("replication", b"INFO", Effect.READ), (b"replication",)).wire


class Database:
    """An open database. Safe to share between threads; close it, or use it as a context manager."""

    def __init__(
        self, address: Address, context: Context, settings: Settings, observers: Sequence[Observer] = ()
    ) -> None:
        self.address = address
        self._shown = address.shown
        self._resp3 = address.protocol == 3
        self.context = context
        self.settings = settings
        self._observers = tuple(observers)
        self._home = ConnectionPool(address, settings)
        self._nodes: dict[Node, ConnectionPool] = {}
        self._topology: Topology | None = None
        self._stale_topology = False
        self._server: Server | None = None
        self._on_close: list[Any] = []
        self._closed = False
        self._cache: BlockingCache | None = None
        self._making = threading.Lock()

    def run(self, call: Call[T], *, at: At | None = None) -> T:
        """Run a call and return its value. Raise a KeywrightError if it fails.

        `at` sends a call that only reads to chosen nodes: to one of `nodes()` whatever its keys are, or,
        given all of them, to those that have its keys. Raise UsageError if the call writes.
        """
        context = self.context
        readers = () if at is None else readers_of(at)
        replies: list[Reply] | None = None  # those to be read
        try:
            if isinstance(call, Command):
                command: Command[T] = call
                replies = self._deliver([command.lower(context)], readers)
                return command.read(replies[0], context)
            rounds = call.rounds(context)
            wires = next(rounds)
            while True:
                replies = None
                replies = self._exchange(wires, readers)
                wires = rounds.send(replies)
        except StopIteration as stop:
            value: T = stop.value
            return value
        except UNREADABLE as error:
            raise_failed(call, error, answered=replies is not None)

    def scan(self, kind: type[K], **variables: object) -> Iterator[K]:
        """Yield every stored key of one class, page by page, optionally with some variables fixed.

        Never blocks the server (SCAN). A key that exists all along is seen at least once, unless its slot
        moves to another node meanwhile.
        """
        return self._pages(lambda cursor: KeyPage(kind, variables, cursor, self.context))

    def name(self, key: Key | Channel[Any]) -> bytes:
        """Return the full name of a key or channel, with prefix and version, for use with other clients."""
        return self.context.name(key)

    def names(self, space: Keyspace) -> Iterator[bytes]:
        """Yield every stored name with the prefix of a keyspace, declared or not, page by page.

        A keyspace bound without prefix and version yields every name.
        """
        return self._pages(lambda cursor: NamePage(space, cursor, self.context))

    @overload
    def subscribe(
        self, channel: Channel[T] | ChannelPattern[T], /, *more: Channel[T] | ChannelPattern[T]
    ) -> BlockingSubscription[Published[T]]: ...

    @overload
    def subscribe(
        self, *channels: bytes, patterns: Iterable[bytes] = ()
    ) -> BlockingSubscription[Message]: ...

    def subscribe(self, *channels: Any, patterns: Iterable[bytes] = ()) -> BlockingSubscription[Any]:
        """Subscribe to channels: `with db.subscribe(News("art"), News.matching()) as messages:`.

        Messages of declared channels are decoded: each has its `channel` and its `message`. Names as bytes,
        and globs in `patterns`, give messages as bytes. Messages that are published while a connection is
        made again are lost, which `interruptions` of the subscription counts.
        """
        return BlockingSubscription(
            self._listening_places, self.settings, self.context, wanted(channels, patterns, self.context)
        )

    def nodes(self, *, prefer_replica: bool = False) -> list[NodeReader]:
        """Return a reader for each primary, for `run(call, at=…)`: several on a cluster, else one.

        With `prefer_replica` a reader is at a replica that follows its primary, where one can be reached.
        Its replies may be slightly stale. When it goes away, its reader continues at the primary.
        """
        readers = [NodeReader(primary, self.address.shown) for primary in self._primaries()]
        if prefer_replica:
            for reader in readers:
                reader.replica = self._replica_of(reader.primary)
        return readers

    def server(self) -> Server:
        """Return the product, version and features of the server; it is asked once."""
        if self._server is None:
            self._server = read_probe(self.run(probe_call().attempt()))
        return self._server

    def cache_stats(self) -> CacheStats:
        """Return what the cache of classes declared with `cached=` holds and has done."""
        return NO_CACHE if self._cache is None else self._cache.stats_now()

    @explained
    def settle_cache(self, within_seconds: float = 5.0) -> bool:
        """Wait until changes are tracked and every one that was acknowledged before is known.

        Return False if that is not so in time, or if the bound keyspaces have no cached class. Nothing needs
        to call it: reads go to the server until changes are tracked.
        """
        if not self.context.caches() or self.settings.caching is None:
            return False
        return self._caching().settle(within_seconds)

    def close(self) -> None:
        """Close every connection, and the embedded server if one was started.

        Calls in flight in other threads may end; their connections are closed then.
        """
        self._closed = True
        if self._cache is not None:
            self._cache.close()
        for pool in (self._home, *self._nodes.values()):
            pool.close()
        while self._on_close:
            self._on_close.pop()()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Database {self.address.shown}>"

    def _pages(self, make: Callable[[int], ScanPage[T]]) -> Iterator[T]:
        for node in self._primaries():
            cursor = 0
            while True:
                page = make(cursor)
                cursor, found = page.read(self._deliver_to(node, page.wire, self.settings))
                yield from found
                if cursor == 0:
                    break

    def _exchange(self, wires: Sequence[Wire], readers: Sequence[NodeReader]) -> list[Reply]:
        sent, pause, merge = without_pauses(wires)
        if pause:
            time.sleep(pause)
        return merge(self._deliver(sent, readers) if sent else [])

    def _deliver(self, wires: Sequence[Wire], readers: Sequence[NodeReader]) -> list[Reply]:
        if self.settings.read_only:
            require_reading(wires)
        if readers:
            require_reads(wires)
        elif self.context.cached and self.settings.caching is not None:
            if self.context.sharded:
                self._routes()
            return self._caching().exchange(list(wires), self._sent)
        return self._sent(wires, readers)

    def _sent(self, wires: Sequence[Wire], readers: Sequence[NodeReader] = ()) -> list[Reply]:
        if not self._observers:
            return self._delivered(wires, readers)
        return observe(self._observers, wires, lambda: self._delivered(wires, readers))

    def _caching(self) -> BlockingCache:
        cache = self._cache
        if cache is None:
            with self._making:
                if self._cache is None:
                    self._cache = BlockingCache(
                        self.address, self.settings, self.context, lambda: self._topology, self._primaries
                    )
                    drop_after_fork(self)
                cache = self._cache
        return cache

    def _delivered(self, wires: Sequence[Wire], readers: Sequence[NodeReader]) -> list[Reply]:
        topology = self._routes()
        delivery = Delivery(wires, self.settings, self._shown, topology, readers, resend_late=bool(readers))
        if (topology is None or len(readers) == 1) and len(wires) <= MOST_WIRES:
            node = readers[0].node if readers else None
            self._ship_all([Shipment(node, False, range(len(wires)), wires)], delivery)
        return self._finished(delivery)

    def _deliver_to(self, node: Node | None, wire: Wire, settings: Settings) -> Reply:
        """Return the reply of one node to a command that has no key."""
        reader = NodeReader(node, self.address.shown)
        delivery = Delivery([wire], settings, reader.label, None, [reader])
        return observe(self._observers, delivery.wires, lambda: self._finished(delivery))[0]

    def _finished(self, delivery: Delivery) -> list[Reply]:
        while delivery.pending:
            if self._closed:
                delivery.retry = NEVER
            pause = delivery.next_attempt()
            if pause is None:
                break
            if pause:
                time.sleep(pause)
            if delivery.stale_topology:
                self._refresh(delivery)
            self._ship_all(delivery.shipments(), delivery)
        if delivery.stale_topology:
            self._stale_topology = True
        if delivery.attempt and self._cache is not None:
            self._cache.detours += 1
        return delivery.replies

    def _ship_all(self, shipments: list[Shipment], delivery: Delivery) -> None:
        """Write to every node first, then read from each: the nodes work at the same time."""
        if len(shipments) == 1:
            only = self._send(shipments[0], delivery)
            if only is not None:
                self._receive(shipments[0], *only, delivery)
            return
        sent: deque[tuple[Shipment, ConnectionPool, Any, Packed]] = deque()
        try:
            for shipment in shipments:
                way = self._send(shipment, delivery)
                if way is not None:
                    sent.append((shipment, *way))
            while sent:
                self._receive(*sent.popleft(), delivery)
        finally:
            for _, pool, connection, _ in sent:
                pool.drop(connection)

    def _send(self, shipment: Shipment, delivery: Delivery) -> tuple[ConnectionPool, Any, Packed] | None:
        durability = self.settings.durability
        extra = b"" if durability is None else wait_command(shipment.wires, durability)
        try:
            packed = Packed(shipment.wires, asking=shipment.asking, extra=extra, resp3=self._resp3)
        except Exception as error:  # noqa: BLE001  # raised to the caller of `run`
            delivery.unsendable(shipment, error)
            return None
        try:
            if self._closed:
                raise ConnectionLostError(self.address.shown, CLOSED)
            pool = self._pool_of(shipment.node)
            connection = pool.take(delivery.time_left)
        except KeywrightError as error:
            delivery.refused(shipment, error)
            return None
        try:
            connection.transmit(packed.chunks(), delivery.reply_seconds(packed))
        except BrokenConnectionError as broken:
            self._broken(shipment, pool, connection, packed, delivery, broken)
            return None
        except BaseException:
            pool.drop(connection)
            raise
        return pool, connection, packed

    def _receive(
        self, shipment: Shipment, pool: ConnectionPool, connection: Any, packed: Packed, delivery: Delivery
    ) -> None:
        try:
            decoder = None if self._observers else packed.decoder  # they count the bytes of replies
            raw, errors = connection.collect(packed.count, delivery.reply_seconds(packed), decoder)
        except BrokenConnectionError as broken:
            self._broken(shipment, pool, connection, packed, delivery, broken)
            return
        except BaseException:
            pool.drop(connection)
            raise
        if errors and is_demoted(raw):
            pool.drop(connection)
            pool.leave()
        else:
            pool.give(connection)
        replies = packed.replies(raw, asking=shipment.asking)
        if self.settings.durability and packed.extra:
            replies = check_durability(replies, raw[-1], shipment.wires, self.settings.durability)
        if not errors and packed.is_sound(replies) and len(shipment.indexes) == len(delivery.wires):
            delivery.complete(replies, packed)
        else:
            delivery.answered(shipment, replies)

    def _broken(
        self,
        shipment: Shipment,
        pool: ConnectionPool,
        connection: Any,
        packed: Packed,
        delivery: Delivery,
        broken: BrokenConnectionError,
    ) -> None:
        pool.drop(connection)
        replies = packed.replies(broken.raw, asking=shipment.asking)
        if self.settings.durability and packed.extra:
            replies = check_durability(replies, None, shipment.wires, self.settings.durability)
        delivery.answered(shipment, replies)
        if broken.silent:
            delivery.overdue(shipment, len(replies), deadline_of(packed, delivery.settings))
        else:
            delivery.lost(shipment, len(replies), broken.reason, sent=broken.sent)

    def _pool_of(self, node: Node | None) -> ConnectionPool:
        if node is None:
            return self._home
        pool = self._nodes.get(node)
        if pool is None:
            there = self.address.at(node.host, node.port)
            if node.replica:
                pool = ConnectionPool(there, impatient(self.settings), readonly=self.context.sharded)
            else:
                pool = ConnectionPool(there, self.settings)
            self._nodes[node] = pool
        return pool

    def _primaries(self) -> Iterable[Node | None]:
        topology = self._routes()
        return [None] if topology is None else topology.primaries

    def _listening_places(self, slot: int | None, again: bool) -> list[ConnectionPool]:
        """Return the pools that a subscription may use; none once the database is closed.

        A slot is at one node, which may be another one after a connection was lost.
        """
        if self._closed:
            return []
        self._stale_topology = self._stale_topology or (again and self._topology is not None)
        nodes = self._primaries()
        if slot is not None and self._topology is not None:
            nodes = [self._topology.owner(slot)]
        return [self._pool_of(node) for node in nodes]

    def _replica_of(self, primary: Node | None) -> Node | None:
        """Return a replica of a primary that can be reached and is up to date, or None."""
        once = self.settings._replace(retry=NEVER)
        listed = self._deliver_to(None, REPLICATION, once) if self._topology is None else None
        for replica in replica_candidates(primary, self._topology, listed):
            if is_up_to_date(self._deliver_to(replica, REPLICATION, once)):
                return replica
        return None

    def _routes(self) -> Topology | None:
        if self.context.sharded and self._topology is None:
            self._topology = self._asked_topology(
                known_nodes(self.address), self.settings._replace(retry=NEVER)
            )
        elif self._stale_topology:
            self._refreshed(0)
        return self._topology

    def _refresh(self, delivery: Delivery) -> None:
        delivery.stale_topology = False
        delivery.topology = self._refreshed(delivery.attempt)

    def _refreshed(self, attempt: int) -> Topology:
        """Return the topology as any node describes it that answers; the known one if none does."""
        assert self._topology is not None
        self._stale_topology = False
        with suppress(EngineError):  # the next failure of a delivery asks again
            self._topology = self._asked_topology(self._topology.sources, brief(self.settings, attempt))
        return self._topology

    def _asked_topology(self, nodes: Iterable[Node | None], settings: Settings) -> Topology:
        trouble: KeywrightError = ConnectionLostError(self.address.shown, "no node of the cluster answered")
        for node in nodes:
            answer = described(self._deliver_to(node, CLUSTER_SLOTS, settings), node, self.address)
            if isinstance(answer, Topology):
                return answer
            trouble = answer or trouble
        raise trouble
