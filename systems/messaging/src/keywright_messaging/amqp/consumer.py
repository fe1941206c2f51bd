"""Receiving: two channels a consumer, one for its queues and one for their suspects."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from aiormq.abc import AbstractChannel, DeliveredMessage
from aiormq.exceptions import AMQPChannelError, AMQPError

from keywright.errors import UsageError
from keywright_messaging.amqp.connection import Connection
from keywright_messaging.amqp.dead_letters import Rerouting
from keywright_messaging.amqp.delivery import AmqpDelivery, Inlet
from keywright_messaging.amqp.link import Link, LinkLostError
from keywright_messaging.amqp.topology import Queue, Topology, refusal
from keywright_messaging.contract import Consumer, Delivery
from keywright_messaging.errors import BrokerError

__all__ = ["AmqpConsumer"]

_log = logging.getLogger(__name__)


class AmqpConsumer(Consumer):
    """The deliveries of some queues, in the order of their arrival; suspects come first, each alone.

    The server holds at most `prefetch` deliveries of all its classic queues together unsettled. Quorum queues
    know no common limit: there it is `prefetch` for each queue, of which at most `prefetch` are handed out.
    """

    def __init__(
        self,
        connection: Connection,
        topology: Topology,
        rerouting: Rerouting,
        queues: Sequence[Queue],
        prefetch: int,
        *,
        shared_limit: bool,
    ) -> None:
        self._connection = connection
        self._topology = topology
        self._rerouting = rerouting
        self._queues = tuple(queues)
        self._prefetch = prefetch
        self._shared_limit = shared_limit
        self._attaching = asyncio.Lock()
        self._link: Link | None = None
        self._channels: list[AbstractChannel] = []
        self._news = asyncio.Event()
        self._arrived: deque[AmqpDelivery] = deque()
        self._suspects: deque[AmqpDelivery] = deque()
        self._crowd = self._make_inlet(alone=False)
        self._loners = self._make_inlet(alone=True)
        self._moves: set[asyncio.Task[None]] = set()
        self._failure: BrokerError | None = None
        self.closed = False

    async def open(self) -> None:
        if self.closed:
            raise UsageError("this consumer was closed. Make another one with consume().")
        self._connection.add(self)
        try:
            await self._connection.run(self.attach)
        except BaseException:
            await self.close()
            raise
        if self._failure is not None:
            await self.close()
            raise self._failure

    async def batch(self, at_most: int) -> Sequence[AmqpDelivery]:
        if at_most < 1:
            raise UsageError(f"a batch of {at_most} cannot be waited for. Ask for one or more.")
        while True:
            if self.closed:
                raise StopAsyncIteration
            if self._suspects:
                self._loners.handed_out += 1
                return [self._suspects.popleft()]
            if taken := self._take(at_most):
                return taken
            if self._failure is not None:
                raise self._failure
            self._news.clear()
            await self._news.wait()

    async def acknowledge_all(self, deliveries: Sequence[Delivery]) -> None:
        own = [delivery for delivery in deliveries if isinstance(delivery, AmqpDelivery)]
        if len(own) < len(deliveries):
            raise UsageError(
                "these deliveries came from different brokers. Acknowledge each where it came from."
            )
        tags: dict[Inlet, list[int]] = {}
        for delivery in own:
            delivery.check_unsettled()
            tags.setdefault(delivery.inlet, []).append(delivery.tag)
        for delivery in own:
            delivery.mark_settled()
        for inlet, settled in tags.items():
            inlet.release(settled)
            inlet.flush()

    async def close(self) -> None:
        if self.closed:
            return
        self.closed = True
        self._news.set()
        self._connection.remove(self)
        async with self._attaching:
            link, channels = self._link, self._channels
            if link is not None:
                await self._finish_moves(link, channels)
            self._void()
            if link is not None:
                for channel in channels:
                    await link.release(channel)

    async def attach(self, link: Link) -> None:
        async with self._attaching:
            if self._link is not link and not self.closed:
                await self._set_up(link)

    def detach(self) -> None:
        self._void()

    def fail(self, error: BrokerError) -> None:
        self._failure = error
        self._news.set()

    async def _finish_moves(self, link: Link, channels: Sequence[AbstractChannel]) -> None:
        """Receive no more, and let what is being moved arrive: cut short, it would be in two places."""
        with suppress(LinkLostError, AMQPError):
            for channel in channels:
                for number in range(len(self._queues)):
                    await link.during(channel.basic_cancel(str(number), nowait=True))
        # Not for ever: a server that is short of memory takes no messages.
        with suppress(TimeoutError):
            async with asyncio.timeout(self._connection.seconds):
                while self._moves and not link.lost.done():
                    waited: list[asyncio.Future[Any]] = [link.lost, *self._moves]
                    await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        for move in tuple(self._moves):
            move.cancel()

    def _make_inlet(self, *, alone: bool) -> Inlet:
        arrive = self._suspect_arrives if alone else self._arrives
        return Inlet(self._queues, self._rerouting, arrive, self._news.set)

    def _void(self) -> None:
        for inlet in (self._crowd, self._loners):
            inlet.flush()
            inlet.disconnect()
        self._link, self._channels = None, []
        self._arrived.clear()
        self._suspects.clear()

    async def _set_up(self, link: Link) -> None:
        self._link, self._channels = link, []
        try:
            await self._declare(link)
            await self._receive(link)
        except BrokerError as exc:
            self.fail(exc)

    async def _declare(self, link: Link) -> None:
        for queue in self._queues:
            await self._topology.declare_on(link, queue)
            await self._topology.declare_suspects_on(link, queue)

    async def _receive(self, link: Link) -> None:
        self._crowd = self._make_inlet(alone=False)
        self._loners = self._make_inlet(alone=True)
        await self._consume(link, self._crowd, [queue.name for queue in self._queues], self._prefetch)
        await self._consume(link, self._loners, [queue.suspects for queue in self._queues], 1)

    async def _consume(self, link: Link, inlet: Inlet, names: Sequence[str], prefetch: int) -> None:
        channel = await link.open_tapped(inlet)
        self._channels.append(channel)
        inlet.connect(link, channel.number or 0)
        await channel.basic_qos(prefetch_count=prefetch, global_=self._shared_limit)
        for tag, name in zip(inlet.consumer_tags, names, strict=True):
            try:
                await channel.basic_consume(name, _never, consumer_tag=tag)
            except AMQPChannelError as exc:
                raise refusal("queue", name, exc) from exc
        link.watch(channel)

    def _take(self, at_most: int) -> list[AmqpDelivery]:
        room = min(at_most, len(self._arrived), self._prefetch - self._crowd.handed_out)
        if room <= 0:
            return []
        self._crowd.handed_out += room
        return [self._arrived.popleft() for _ in range(room)]

    def _arrives(self, delivery: AmqpDelivery) -> None:
        if delivery.redelivered:
            self._move(delivery, alone=False)
        else:
            self._arrived.append(delivery)
            self._news.set()

    def _suspect_arrives(self, delivery: AmqpDelivery) -> None:
        if delivery.redelivered:
            self._move(delivery, alone=True)
        else:
            self._suspects.append(delivery)
            self._news.set()

    def _move(self, delivery: AmqpDelivery, *, alone: bool) -> None:
        if self.closed:
            return
        move = asyncio.get_running_loop().create_task(self._recount(delivery, alone=alone))
        self._moves.add(move)
        move.add_done_callback(self._moves.discard)

    async def _recount(self, delivery: AmqpDelivery, *, alone: bool) -> None:
        delivery.mark_settled()
        try:
            await self._rerouting.recount(delivery, alone=alone)
        except BrokerError as exc:
            # It stays unsettled, and comes again with the next connection.
            _log.warning("the redelivered message %s could not be moved: %s", delivery.id, exc)
            return
        if delivery.inlet.alive:
            delivery.inlet.settle((delivery.tag,))


async def _never(message: DeliveredMessage) -> None:
    """aiormq wants a callback; the tap takes the deliveries before it sees them."""
    raise AssertionError(f"a delivery of {message.routing_key!r} passed the tap")
