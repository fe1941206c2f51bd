"""Receiving: two channels for each consumer, one for its queues and one for their suspects."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from itertools import count
from typing import Any

from aiormq.abc import AbstractChannel
from aiormq.exceptions import AMQPChannelError, AMQPError

from keywright.errors import UsageError
from keywright_messaging.amqp.connection import AmqpConnection, AmqpConnectionLostError
from keywright_messaging.amqp.delivery import AmqpDelivery, ConsumerChannel
from keywright_messaging.amqp.reconnector import Reconnector
from keywright_messaging.amqp.rerouter import Rerouter
from keywright_messaging.amqp.topology import AmqpQueue, AmqpTopology, refusal
from keywright_messaging.contract import Consumer, Delivery, check_batch, mark_settled
from keywright_messaging.errors import BrokerError

__all__ = ["AmqpConsumer"]

_log = logging.getLogger(__name__)

# How often the limits of several queues are looked at, and queues without consumers are polled.
_BALANCE_SECONDS = 0.05
# Suspects are rare, and those that this process moved are asked for at once.
_TURNS_A_SUSPECT_POLL = 20


class AmqpConsumer(Consumer):
    """The deliveries of some queues, in the order of their arrival; suspects come first, one at a time.

    At most `prefetch` deliveries of all its queues are unsettled, and one of all suspects. Two consumers of a
    quorum queue do not keep its order, so there it is `prefetch` for each queue, of which at most `prefetch`
    are handed out.
    """

    def __init__(
        self,
        reconnector: Reconnector,
        topology: AmqpTopology,
        rerouter: Rerouter,
        queues: Sequence[AmqpQueue],
        prefetch: int,
        *,
        shared_limit: bool,
    ) -> None:
        self._reconnector = reconnector
        self._topology = topology
        self._rerouter = rerouter
        self._queues = tuple(queues)
        self._prefetch = prefetch
        self._shared_limit = shared_limit
        self._attaching = asyncio.Lock()
        self._connection: AmqpConnection | None = None
        self._opened: list[AbstractChannel] = []
        self._changed = asyncio.Event()
        self._arrived: deque[AmqpDelivery] = deque()
        self._suspects: deque[AmqpDelivery] = deque()
        self._make_channels()
        self._moves: set[asyncio.Task[None]] = set()
        self._balancing: asyncio.Task[None] | None = None
        self._failure: BrokerError | None = None
        self.closed = False

    async def open(self) -> None:
        if self.closed:
            raise UsageError("this consumer was closed. Make another one with consume().")
        self._reconnector.add(self)
        try:
            await self._reconnector.run(self.attach)
        except BaseException:
            await self.close()
            raise
        if self._failure is not None:
            await self.close()
            raise self._failure

    async def batch(self, at_most: int) -> Sequence[AmqpDelivery]:
        check_batch(at_most)
        while True:
            if self.closed:
                raise StopAsyncIteration
            if self._suspects:
                self._suspect_channel.handed_out += 1
                return [self._suspects.popleft()]
            arrived, channel = self._arrived, self._channel
            room = min(at_most, len(arrived), self._prefetch - channel.handed_out)
            if room > 0:
                channel.handed_out += room
                return [arrived.popleft() for _ in range(room)]
            if self._failure is not None:
                raise self._failure
            self._changed.clear()
            await self._changed.wait()

    async def acknowledge_all(self, deliveries: Sequence[Delivery]) -> None:
        own = [delivery for delivery in deliveries if isinstance(delivery, AmqpDelivery)]
        if len(own) < len(deliveries):
            raise UsageError(
                "these deliveries came from different brokers. Acknowledge each with its own consumer."
            )
        mark_settled(own)
        tags: dict[ConsumerChannel, list[int]] = {}
        for delivery in own:
            tags.setdefault(delivery.channel, []).append(delivery.tag)
        for channel, settled in tags.items():
            channel.release(settled)
            channel.flush()

    async def close(self) -> None:
        if self.closed:
            return
        self.closed = True
        self._changed.set()
        self._reconnector.remove(self)
        async with self._attaching:
            connection, opened = self._connection, self._opened
            if connection is not None:
                await self._finish_moves(connection, opened)
            self.detach()
            if connection is not None:
                for channel in opened:
                    await connection.release(channel)

    async def attach(self, connection: AmqpConnection) -> None:
        async with self._attaching:
            if self._connection is connection or self.closed:
                return
            self._connection, self._opened = connection, []
            try:
                await self._set_up(connection)
            except BrokerError as exc:
                self.fail(exc)

    def detach(self) -> None:
        """Forget the connection; its unsettled deliveries are void."""
        self._stop_balancing()
        for channel in (self._channel, self._suspect_channel):
            channel.flush()
            channel.disconnect()
        self._connection, self._opened = None, []
        self._arrived.clear()
        self._suspects.clear()

    def _stop_balancing(self) -> None:
        if self._balancing is not None:
            self._balancing.cancel()
            self._balancing = None

    def fail(self, error: BrokerError) -> None:
        self._failure = error
        self._changed.set()

    async def _set_up(self, connection: AmqpConnection) -> None:
        for queue in self._queues:
            await self._topology.declare_on(connection, queue)
            await self._topology.declare_suspects_on(connection, queue)
        self._make_channels()
        await self._consume(connection, self._channel)
        await self._consume(connection, self._suspect_channel)
        if len(self._queues) > 1:
            self._balancing = asyncio.create_task(self._balance(connection, self._channel, self._opened[0]))

    def _make_channels(self) -> None:
        rerouter, changed = self._rerouter, self._changed.set
        names = {queue: queue.name for queue in self._queues}
        suspects = {queue: queue.suspects for queue in self._queues}
        self._channel = ConsumerChannel(
            names, self._prefetch, rerouter, self._arrives, changed, divided=self._shared_limit
        )
        self._suspect_channel = ConsumerChannel(suspects, 1, rerouter, self._suspect_arrives, changed)

    async def _consume(self, connection: AmqpConnection, receiver: ConsumerChannel) -> None:
        channel = await connection.open_consumer_channel(receiver)
        self._opened.append(channel)
        receiver.connect(connection, channel.number)
        if not receiver.is_polled:
            await channel.basic_qos(prefetch_count=receiver.consumer_limit)
            for tag, name in receiver.names.items():
                try:
                    await connection.consume(channel, name, tag=tag.decode())
                except AMQPChannelError as exc:
                    raise refusal("queue", name, exc) from exc
        connection.watch(channel)
        receiver.poll()

    async def _balance(
        self, connection: AmqpConnection, receiver: ConsumerChannel, channel: AbstractChannel
    ) -> None:
        """Move the second consumer to the queue that needs it, and poll queues without consumers."""
        moves = 0
        with suppress(AmqpConnectionLostError, AMQPError):
            for turn in count():
                await asyncio.sleep(_BALANCE_SECONDS)
                if turn % _TURNS_A_SUSPECT_POLL == 0:
                    self._suspect_channel.poll()
                receiver.poll()
                shares = receiver.shares
                if shares is None or (needy := shares.needy()) is None:
                    continue
                if shares.extra is not None:
                    await connection.during(channel.basic_cancel(shares.extra.decode()))
                    receiver.remove_consumer(shares.extra)
                    shares.cancelled()
                moves += 1
                tag = b"%b+%d" % (needy, moves)
                receiver.add_consumer(tag, needy)
                await connection.during(channel.basic_qos(prefetch_count=shares.moved(needy, tag)))
                await connection.during(connection.consume(channel, receiver.names[needy], tag=tag.decode()))

    async def _finish_moves(self, connection: AmqpConnection, opened: Sequence[AbstractChannel]) -> None:
        """Stop receiving and wait for moves in progress: an interrupted one duplicates its message."""
        self._stop_balancing()
        with suppress(AmqpConnectionLostError, AMQPError):
            for receiver, channel in zip((self._channel, self._suspect_channel), opened, strict=False):
                receiver.stop_polling()
                for tag in receiver.consumer_tags:
                    await connection.during(channel.basic_cancel(tag, nowait=True))
        # With a limit: a server that is short of memory takes no messages.
        with suppress(TimeoutError):
            async with asyncio.timeout(self._reconnector.seconds):
                while self._moves and not connection.lost.done():
                    waited: list[asyncio.Future[Any]] = [connection.lost, *self._moves]
                    await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        for move in tuple(self._moves):
            move.cancel()

    def _arrives(self, delivery: AmqpDelivery) -> None:
        if delivery.redelivered:
            self._move(delivery, alone=False)
        else:
            self._arrived.append(delivery)
            self._changed.set()

    def _suspect_arrives(self, delivery: AmqpDelivery) -> None:
        if delivery.redelivered:
            self._move(delivery, alone=True)
        else:
            self._suspects.append(delivery)
            self._changed.set()

    def _move(self, delivery: AmqpDelivery, *, alone: bool) -> None:
        if self.closed:
            return
        move = asyncio.get_running_loop().create_task(self._recount(delivery, alone=alone))
        self._moves.add(move)
        move.add_done_callback(self._moves.discard)

    async def _recount(self, delivery: AmqpDelivery, *, alone: bool) -> None:
        delivery.settled = True
        try:
            await self._rerouter.recount(delivery, alone=alone)
        except BrokerError as exc:
            # It stays unsettled, so the server delivers it again on the next connection.
            _log.warning("the redelivered message %s could not be moved: %s", delivery.id, exc)
            return
        if delivery.channel.alive:
            delivery.channel.settle((delivery.tag,))
        self._suspect_channel.poll()
