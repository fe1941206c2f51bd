"""Packets of workers: from the broker to their shard, and from there to Discord.

A packet under a shard's id is sent by the process that runs the shard, and then acknowledged: a request that
Discord answers with an event when it has done so, or sent again if Discord refuses it for now. A `SEND` has
only the guild; the process that receives it publishes the packet under the id of the right shard, its own
included, so that both kinds wait in one queue, in order, until the shard is connected.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import msgspec
from websockets.exceptions import ConnectionClosed

from keywright.errors import EngineError
from keywright_discord.gateway.connection import ShardConnection
from keywright_discord.gateway.metrics import Monitor
from keywright_discord.gateway.opcodes import Op
from keywright_discord.gateway.requests import ANSWERS
from keywright_messaging import Broker, Consumer, Delivery
from keywright_messaging.encodings import encode
from keywright_messaging.errors import BrokerError, UndecodableError, UnwritableError
from keywright_service.waits import first_of, pause, unless

__all__ = [
    "SETTLE_SECONDS",
    "MalformedPacketError",
    "PacketSender",
    "SendRouter",
    "packet_of",
    "request_of",
    "shard_of",
]

log = logging.getLogger("keywright.gateway")

SEND = "SEND"
LARGEST_PACKET = 4096
LARGEST_ID = 2**64 - 1
LONGEST_REASON = 500
# Few, since a connection sends two per second, and another process cannot take over prefetched packets.
SHARD_PREFETCH = 10
ROUTER_PREFETCH = 100
PAUSE_SECONDS = 1.0
# How long a request may be unanswered before it counts as done: Discord ignores those that concern nothing.
ANSWER_SECONDS = 10.0
# The longest time for acknowledging the last packet on shutdown.
SETTLE_SECONDS = 5.0

SENDABLE = {
    Op.PRESENCE_UPDATE,
    Op.VOICE_STATE_UPDATE,
    Op.REQUEST_GUILD_MEMBERS,
    Op.REQUEST_SOUNDBOARD_SOUNDS,
    Op.REQUEST_CHANNEL_INFO,
}


# Raised when data of one encoding cannot be written in another.
UNWRITABLE = (TypeError, ValueError, OverflowError, RecursionError, UnwritableError)


class MalformedPacketError(Exception):
    """A malformed packet; it becomes a dead letter with this reason."""


class ShardPacket(msgspec.Struct, frozen=True):
    """A packet that a worker sends to Discord."""

    op: int
    d: dict[str, Any]


class SendRequest(msgspec.Struct, frozen=True):
    """A `SEND`: a packet for the shard of a guild."""

    guild: int
    packet: ShardPacket


def shard_of(guild: int, shards: int) -> int:
    """Return the shard of a guild."""
    return (guild >> 22) % shards


def packet_of(data: object) -> ShardPacket:
    """Return the packet in a message. Raise MalformedPacketError if a worker may not send it."""
    if not isinstance(data, dict):
        raise MalformedPacketError(f"a packet must be an object with op and d, not {_kind(data)}")
    op, d = data.get("op"), data.get("d")
    if type(op) is not int or op not in SENDABLE:
        raise MalformedPacketError(f"op must be one of {_listing()}, not {_shown(op)}")
    if not isinstance(d, dict):
        raise MalformedPacketError(f"d of a packet must be an object, not {_kind(d)}")
    return ShardPacket(op, d)


def request_of(data: object) -> SendRequest:
    """Return the request in a `SEND` message. Raise MalformedPacketError if it is malformed."""
    if not isinstance(data, dict):
        raise MalformedPacketError(f"a SEND must be an object with guild_id and packet, not {_kind(data)}")
    return SendRequest(_snowflake(data.get("guild_id")), packet_of(data.get("packet")))


class SendRouter:
    """Publishes the packets of `SEND` under the ids of their shards."""

    def __init__(self, broker: Broker, shards: int, monitor: Monitor) -> None:
        self._broker = broker
        self._shards = shards
        self._monitor = monitor
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        self._stopping.set()

    async def run(self) -> None:
        while not self._stopping.is_set():
            try:
                async with self._broker.consume(SEND, prefetch=ROUTER_PREFETCH) as consumer:
                    while batch := await _next(self._stopping, consumer, ROUTER_PREFETCH):
                        await self._route(consumer, batch)
            except (BrokerError, EngineError) as error:
                await _wait_out(self._stopping, error)

    async def _route(self, consumer: Consumer, batch: Sequence[Delivery]) -> None:
        packets: dict[int, list[msgspec.Raw]] = {}
        routed: list[Delivery] = []
        for delivery in batch:
            try:
                request = request_of(_data(delivery))
                body = self._body(request.packet)
            except Exception as error:  # noqa: BLE001  # no message may end the gateway
                await _bury(delivery, error, self._monitor)
            else:
                packets.setdefault(shard_of(request.guild, self._shards), []).append(body)
                routed.append(delivery)
        await asyncio.gather(
            *(self._broker.publish_many(str(shard), wanted) for shard, wanted in packets.items())
        )
        await consumer.acknowledge_all(routed)

    def _body(self, packet: ShardPacket) -> msgspec.Raw:
        """Return the packet as JSON. Raise MalformedPacketError if the broker's encoding cannot hold it."""
        try:
            body = msgspec.Raw(msgspec.json.encode(packet))
            encode(body, self._broker.settings.encoding)
        except UNWRITABLE as error:
            raise MalformedPacketError(f"it cannot be encoded: {error}") from error
        _check_size(bytes(body))
        return body


class PacketSender:
    """Sends the packets under one shard's id, in order, while the shard is connected."""

    def __init__(self, broker: Broker, shard: int, connection: ShardConnection, monitor: Monitor) -> None:
        self._broker = broker
        self._shard = shard
        self._connection = connection
        self._monitor = monitor
        self._stopping = asyncio.Event()
        self._requests: set[asyncio.Task[None]] = set()

    def stop(self) -> None:
        """Stop after the current packet has been acknowledged; then `run` returns."""
        self._stopping.set()

    async def run(self) -> None:
        while not self._stopping.is_set():
            await unless(self._stopping, self._connection.is_ready.wait())
            if self._stopping.is_set():
                return
            try:
                # Only while it is ready: on leaving, prefetched packets return to the queue.
                async with self._broker.consume(str(self._shard), prefetch=SHARD_PREFETCH) as consumer:
                    try:
                        await self._serve(consumer)
                    finally:
                        await self._abandon_requests()
            except (BrokerError, EngineError) as error:
                await _wait_out(self._stopping, error)

    async def _serve(self, consumer: Consumer) -> None:
        while batch := await _next(self._stopping, consumer, 1, self._connection.is_down):
            try:
                packet, frame = self._frame(batch[0])
            except Exception as error:  # noqa: BLE001  # no message may end the gateway
                await _bury(batch[0], error, self._monitor)
                continue
            if packet.op in ANSWERS:
                outcome = self._connection.requests.expect(packet.op, packet.d)
                if not await self._sent(frame, packet.op):
                    outcome.cancel()
                    return
                following = asyncio.create_task(self._follow(batch[0], packet, frame, outcome))
                self._requests.add(following)
                following.add_done_callback(self._requests.discard)
            elif await self._sent(frame, packet.op):
                await batch[0].acknowledge()
            else:
                return

    async def _sent(self, frame: str | bytes, op: int) -> bool:
        """Send a packet when the limits allow it. Return False if the shard is disconnected or stopped."""
        await first_of(self._connection.allowance(op), self._connection.is_down.wait(), self._stopping.wait())
        if self._stopping.is_set() or self._connection.is_down.is_set():
            return False
        try:
            await self._connection.send(frame, op)
        except ConnectionClosed:
            return False
        return True

    async def _follow(
        self,
        delivery: Delivery,
        packet: ShardPacket,
        frame: str | bytes,
        outcome: asyncio.Future[float | None],
    ) -> None:
        """Acknowledge a request when it was answered; send it again when Discord refused it for now."""
        while True:
            try:
                async with asyncio.timeout(ANSWER_SECONDS):
                    seconds = await outcome
            except TimeoutError:
                seconds = None
            if seconds is None:
                try:
                    await delivery.acknowledge()
                except (BrokerError, EngineError) as error:
                    log.warning("a request under %s will be repeated: %s", delivery.event, error)
                return
            log.warning(
                "shard %d: Discord refuses op %d for %.1f s; it is sent again",
                self._shard,
                packet.op,
                seconds,
            )
            self._monitor.rate_limited(self._shard, packet.op)
            await asyncio.sleep(seconds)
            outcome = self._connection.requests.expect(packet.op, packet.d)
            if not await self._sent(frame, packet.op):
                outcome.cancel()
                return

    async def _abandon_requests(self) -> None:
        """Leave requests without an outcome unacknowledged: the broker delivers them again."""
        for task in self._requests:
            task.cancel()
        if self._requests:
            await asyncio.wait(self._requests)

    def _frame(self, delivery: Delivery) -> tuple[ShardPacket, str | bytes]:
        packet = packet_of(_data(delivery))
        try:
            frame = self._connection.frame(packet.op, packet.d)
        except UNWRITABLE as error:
            raise MalformedPacketError(f"it cannot be encoded: {error}") from error
        _check_size(frame)
        return packet, frame


async def _next(
    stopping: asyncio.Event, consumer: Consumer, at_most: int, down: asyncio.Event | None = None
) -> Sequence[Delivery]:
    """Return the next deliveries; none on shutdown or when the consumer was closed."""
    taken: list[Delivery] = []

    async def take() -> None:
        with suppress(StopAsyncIteration):
            taken.extend(await consumer.batch(at_most))

    taking = asyncio.create_task(take())
    ends = [asyncio.create_task(event.wait()) for event in (stopping, down) if event is not None]
    try:
        await asyncio.wait([taking, *ends], return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (taking, *ends):
            task.cancel()
        await asyncio.wait([taking])
    if not taking.cancelled():
        taking.result()  # raises an error of the broker
    return () if stopping.is_set() or (down is not None and down.is_set()) else taken


async def _bury(delivery: Delivery, error: Exception, monitor: Monitor) -> None:
    """Move a packet to the dead letters; an error of another kind than MalformedPacketError is named."""
    known = isinstance(error, MalformedPacketError)
    reason = (str(error) if known else f"{type(error).__name__}: {error}")[:LONGEST_REASON]
    log.warning("a packet under %s was not sent: %s", delivery.event, reason)
    monitor.dead_letter(delivery.event)
    await delivery.reject(reason)


async def _wait_out(stopping: asyncio.Event, error: Exception) -> None:
    log.warning("packets cannot be received, trying on: %s", error)
    await pause(stopping, PAUSE_SECONDS)


def _data(delivery: Delivery) -> object:
    try:
        return delivery.data
    except UndecodableError as error:
        raise MalformedPacketError(str(error)) from error


def _check_size(frame: str | bytes) -> None:
    size = len(frame.encode() if isinstance(frame, str) else frame)
    if size > LARGEST_PACKET:
        raise MalformedPacketError(f"it has {size:,} bytes; Discord accepts {LARGEST_PACKET:,}")


def _snowflake(found: object) -> int:
    if isinstance(found, str) and found.isascii() and found.isdigit() and len(found) <= 20:
        found = int(found)
    if type(found) is int and 0 <= found <= LARGEST_ID:
        return found
    raise MalformedPacketError(f"guild_id must be a snowflake, not {_kind(found)}")


def _shown(op: object) -> str:
    """Return an opcode for a message. Python refuses to print integers of more than 4,300 digits."""
    return str(op) if type(op) is int and abs(op) <= LARGEST_ID else _kind(op)


def _kind(found: object) -> str:
    return "missing" if found is None else f"a {type(found).__name__}"


def _listing() -> str:
    return ", ".join(str(int(op)) for op in sorted(SENDABLE))
