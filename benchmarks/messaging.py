"""Messages: published until confirmed, consumed until acknowledged; on RabbitMQ, and on Redis against it.

Every side writes and reads the same JSON of about 250 bytes. RabbitMQ keeps messages on disk (durable queue,
persistent messages), Redis logs them with `appendfsync everysec`, its default. Queues are filled and emptied
outside the measured time; the number of messages left in a queue is checked after every turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack
from time import perf_counter
from typing import Any, TypeAlias

import aio_pika
import msgspec
from aio_pika.abc import AbstractExchange, AbstractIncomingMessage, AbstractQueue
from faststream.rabbit import Channel, RabbitBroker, RabbitExchange, RabbitQueue

from benchmarks.measuring import FULL, Contest, Effort, Result, Sampler
from benchmarks.workload import meetings
from keywright.testing import RedisServer
from keywright_messaging import Broker, BrokerSettings, Worker, open_broker, queue_name
from keywright_messaging.testing.rabbitmq import RabbitServer

GROUP = "bench"
EVENT = "MESSAGE_CREATE"
QUEUE = queue_name(GROUP, EVENT)
MESSAGES = 5_000
PREFETCH = 500
ROUNDS = 5
AIO_PIKA_TARGET = 1.5
FASTSTREAM_TARGET = 1.0
REDIS_TARGET = 5.0

Turn: TypeAlias = Callable[[], Awaitable[float]]
"""Prepares, processes MESSAGES messages, cleans up; returns the seconds of the middle part."""

PAYLOADS: list[dict[str, Any]] = msgspec.to_builtins(meetings(MESSAGES))
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


def measure(effort: Effort = FULL) -> Iterator[Result]:
    with ExitStack() as opened:
        server = opened.enter_context(RedisServer(options={"appendfsync": "everysec"}))
        rabbit = opened.enter_context(RabbitServer())
        runner = opened.enter_context(asyncio.Runner())
        sides = runner.run(_Sides.open(rabbit.url, server.url))
        opened.callback(lambda: runner.run(sides.close()))
        for subject, ours, peer, theirs, target in sides.contests():
            yield Contest(
                "messaging",
                subject,
                _sampler(runner, ours),
                peer,
                _sampler(runner, theirs),
                effort.rounds(ROUNDS),
            ).throughput(MESSAGES, at_least=target)


def _sampler(runner: asyncio.Runner, turn: Turn) -> Sampler:
    async def sample() -> list[float]:
        return [await turn()]

    return lambda: runner.run(sample())


class _Sides:
    """Every contestant, connected."""

    def __init__(self, amqp: _Keywright, redis: _Keywright, pika: _AioPika, stream: _FastStream) -> None:
        self.amqp = amqp
        self.redis = redis
        self.pika = pika
        self.stream = stream

    @classmethod
    async def open(cls, amqp_url: str, redis_url: str) -> _Sides:
        settings = BrokerSettings(group=GROUP)
        amqp = await open_broker(amqp_url, settings)
        await amqp.declare(EVENT)
        redis = await open_broker(redis_url, settings)
        await redis.declare(EVENT)
        pika = await _AioPika.open(amqp_url)
        return cls(
            _Keywright(amqp, pika.purge),
            _Keywright(redis, _drained(redis)),
            pika,
            await _FastStream.open(amqp_url, pika),
        )

    def contests(self) -> Iterator[tuple[str, Turn, str, Turn, float]]:
        amqp, redis, pika, stream = self.amqp, self.redis, self.pika, self.stream
        yield "AMQP publish_many", amqp.publish_many, "aio-pika, gathered", pika.publish, AIO_PIKA_TARGET
        yield "AMQP publish, gathered", amqp.publish, "aio-pika, gathered", pika.publish, AIO_PIKA_TARGET
        yield (
            "AMQP publish, gathered",
            amqp.publish,
            "FastStream, gathered",
            stream.publish,
            FASTSTREAM_TARGET,
        )
        yield "AMQP consume in batches", amqp.consume, "aio-pika iterator", pika.consume, AIO_PIKA_TARGET
        yield "AMQP worker", amqp.work, "FastStream subscriber", stream.consume, FASTSTREAM_TARGET
        yield "Redis publish_many", redis.publish_many, "aio-pika, gathered", pika.publish, REDIS_TARGET
        yield "Redis publish_many", redis.publish_many, "Keywright AMQP", amqp.publish_many, REDIS_TARGET
        yield "Redis consume in batches", redis.consume, "aio-pika iterator", pika.consume, REDIS_TARGET
        yield "Redis consume in batches", redis.consume, "Keywright AMQP", amqp.consume, REDIS_TARGET
        yield "Redis worker", redis.work, "FastStream subscriber", stream.consume, REDIS_TARGET

    async def close(self) -> None:
        await self.stream.close()
        await self.pika.close()
        await self.redis.broker.close()
        await self.amqp.broker.close()


class _Keywright:
    def __init__(self, broker: Broker, empty: Callable[[], Awaitable[int]]) -> None:
        self.broker = broker
        self._empty = empty

    async def publish_many(self) -> float:
        start = perf_counter()
        await self.broker.publish_many(EVENT, PAYLOADS)
        return await self._emptied(perf_counter() - start, MESSAGES)

    async def publish(self) -> float:
        start = perf_counter()
        await asyncio.gather(*(self.broker.publish(EVENT, payload) for payload in PAYLOADS))
        return await self._emptied(perf_counter() - start, MESSAGES)

    async def consume(self) -> float:
        await self.broker.publish_many(EVENT, PAYLOADS)
        start = perf_counter()
        async with self.broker.consume(EVENT, prefetch=PREFETCH) as consumer:
            left = MESSAGES
            while left:
                batch = await consumer.batch(PREFETCH)
                left -= len([delivery.data for delivery in batch])
                await consumer.acknowledge_all(batch)
            seconds = perf_counter() - start
        return await self._emptied(seconds, 0)

    async def work(self) -> float:
        await self.broker.publish_many(EVENT, PAYLOADS)
        worker, left, done = Worker(group=GROUP, concurrency=PREFETCH), MESSAGES, asyncio.Event()

        @worker.on(EVENT, concurrency=PREFETCH, prefetch=PREFETCH)
        async def handle(payload: dict[str, Any]) -> None:
            nonlocal left
            left -= 1
            if not left:
                done.set()

        start = perf_counter()
        serving = asyncio.create_task(worker.serve(self.broker))
        await done.wait()
        seconds = perf_counter() - start
        worker.stop()
        await serving
        return await self._emptied(seconds, 0)

    async def _emptied(self, seconds: float, expected: int) -> float:
        assert await self._empty() == expected
        return seconds


class _AioPika:
    """aio-pika as its documentation uses it: confirms, persistent messages, an iterator that acknowledges."""

    def __init__(
        self, connection: aio_pika.abc.AbstractConnection, exchange: AbstractExchange, queue: AbstractQueue
    ) -> None:
        self._connection = connection
        self._exchange = exchange
        self._queue = queue

    @classmethod
    async def open(cls, url: str) -> _AioPika:
        connection = await aio_pika.connect_robust(url)
        channel = await connection.channel()
        await channel.set_qos(prefetch_count=PREFETCH)
        return cls(connection, await channel.get_exchange(GROUP), await channel.get_queue(QUEUE))

    async def fill(self) -> None:
        await asyncio.gather(*(self._publish(payload) for payload in PAYLOADS))

    async def publish(self) -> float:
        start = perf_counter()
        await self.fill()
        seconds = perf_counter() - start
        assert await self.purge() == MESSAGES
        return seconds

    async def consume(self) -> float:
        await self.fill()
        left = MESSAGES
        start = perf_counter()
        async with self._queue.iterator() as messages:
            async for message in messages:
                left -= _handled(await _processed(message))
                if not left:
                    break
            seconds = perf_counter() - start
        assert await self.purge() == 0
        return seconds

    async def purge(self) -> int:
        return (await self._queue.purge()).message_count or 0

    async def close(self) -> None:
        await self._connection.close()

    async def _publish(self, payload: dict[str, Any]) -> None:
        message = aio_pika.Message(_encode(payload), delivery_mode=aio_pika.DeliveryMode.PERSISTENT)
        await self._exchange.publish(message, EVENT)


class _FastStream:
    """FastStream with a subscriber of plain data."""

    def __init__(self, broker: RabbitBroker, pika: _AioPika) -> None:
        self._broker = broker
        self._pika = pika
        self._exchange = RabbitExchange(GROUP, durable=True)
        self._left = 0
        self._done = asyncio.Event()
        self._subscriber = broker.subscriber(
            RabbitQueue(QUEUE, durable=True, routing_key=EVENT),
            self._exchange,
            channel=Channel(prefetch_count=PREFETCH),
        )
        self._subscriber(self._handle)

    @classmethod
    async def open(cls, url: str, pika: _AioPika) -> _FastStream:
        broker = RabbitBroker(url, logger=None)
        contestant = cls(broker, pika)
        await broker.connect()
        return contestant

    async def publish(self) -> float:
        start = perf_counter()
        await asyncio.gather(*(self._publish(payload) for payload in PAYLOADS))
        seconds = perf_counter() - start
        assert await self._pika.purge() == MESSAGES
        return seconds

    async def consume(self) -> float:
        await self._pika.fill()
        self._left = MESSAGES
        self._done.clear()
        start = perf_counter()
        await self._broker.start()
        await self._done.wait()
        seconds = perf_counter() - start
        await self._subscriber.stop()
        assert await self._pika.purge() == 0
        return seconds

    async def close(self) -> None:
        await self._broker.stop()

    async def _publish(self, payload: dict[str, Any]) -> None:
        await self._broker.publish(payload, exchange=self._exchange, routing_key=EVENT, persist=True)

    async def _handle(self, payload: dict[str, Any]) -> None:
        self._left -= 1
        if not self._left:
            self._done.set()


async def _processed(message: AbstractIncomingMessage) -> Any:
    async with message.process():
        return _decode(message.body)


def _handled(payload: object) -> int:
    return 1 if payload is not None else 0


def _drained(broker: Broker) -> Callable[[], Awaitable[int]]:
    """Count the messages of a queue that cannot be purged, by consuming up to a last one."""

    async def drain() -> int:
        await broker.publish(EVENT, {"last": True})
        drained = 0
        async with broker.consume(EVENT, prefetch=PREFETCH) as consumer:
            while True:
                batch = await consumer.batch(PREFETCH)
                await consumer.acknowledge_all(batch)
                drained += len(batch)
                if "last" in batch[-1].data:
                    return drained - 1

    return drain
