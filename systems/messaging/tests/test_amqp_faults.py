"""Faults of RabbitMQ: refusals, deleted queues, strange messages, connections that end at any moment."""

from __future__ import annotations

import asyncio
import contextlib
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import aio_pika
import pytest

from keywright_messaging import BrokerSettings
from keywright_messaging.amqp import AmqpBroker, reconnector
from keywright_messaging.amqp.calls import Replies
from keywright_messaging.amqp.connection import AmqpConnection, BrokerAddress
from keywright_messaging.amqp.frames import PERSISTENT, SMALLEST_FRAME, content, publish_method
from keywright_messaging.contract import LONGEST_REASON
from keywright_messaging.errors import BrokerError, BrokerUnreachableError
from keywright_messaging.testing.rabbitmq import RabbitServer
from keywright_service.backoff import Backoff

from .broker_bench import next_one, receive, until

pytestmark = pytest.mark.anyio


SOON = timedelta(milliseconds=20)
LARGE = 200_000


def grant(server: RabbitServer, url: str, *, write: str) -> None:
    vhost = url.rpartition("/")[2]
    rights = f'<<"guest">>, <<"{vhost}">>, <<".*">>, <<"{write}">>, <<".*">>, <<"keywright">>'
    server.evaluate(f"rabbit_auth_backend_internal:set_permissions({rights})")


async def opened(url: str, **settings: Any) -> AmqpBroker:
    return await AmqpBroker.open(url, BrokerSettings(**settings))


def supervisors() -> list[str]:
    """Return the tasks that keep connections to the server."""
    return [task.get_name() for task in asyncio.all_tasks() if "amqp" in task.get_name()]


async def delete_queue(url: str, name: str) -> None:
    async with await aio_pika.connect(url) as connection:
        await (await connection.channel()).queue_delete(name)


async def test_publishing_without_write_permission_is_an_error(
    keywright_rabbitmq: RabbitServer, amqp_url: str
) -> None:
    async with await opened(amqp_url) as broker:
        await broker.declare("A")
        await asyncio.to_thread(grant, keywright_rabbitmq, amqp_url, write="^(?!gateway$)")
        with pytest.raises(BrokerError, match=r"ACCESS_REFUSED.*Grant"):
            async with asyncio.timeout(20):
                await broker.publish("A", 1)
        await asyncio.to_thread(grant, keywright_rabbitmq, amqp_url, write=".*")


async def test_a_message_that_the_server_refuses_does_not_hold_up_the_others(
    keywright_rabbitmq: RabbitServer,
) -> None:
    # A server of its own: RabbitMQ 4 reads the size when it starts.
    with RabbitServer(options={"max_message_size": str(LARGE // 2)}) as server:
        async with await opened(server.url) as broker, broker.consume("A") as consumer:
            items = [0, 1, "x" * LARGE, 3, 4]
            publishing = [asyncio.create_task(broker.publish("A", item)) for item in items]
            async with asyncio.timeout(20):
                outcomes = await asyncio.gather(*publishing, return_exceptions=True)
            assert [isinstance(outcome, str) for outcome in outcomes] == [True, True, False, True, True]
            assert "larger than configured max size" in str(outcomes[2])
            found = set[Any]()
            while len(found) < 4:
                found.update(await receive(consumer, 1))
            assert found == {0, 1, 3, 4}


@pytest.mark.parametrize("retry", [False, True])
async def test_queues_behind_a_queue_may_be_deleted_when_they_are_empty(amqp_url: str, retry: bool) -> None:
    async with await opened(amqp_url, retry_after=SOON) as broker, broker.consume("A") as consumer:
        for number in range(2):
            await broker.publish("A", number)
            await (await next_one(consumer)).reject("no", retry=retry)
            if retry:
                assert await receive(consumer, 1) == [number]
                await delete_queue(amqp_url, "gateway:A::retry:20")
            else:
                assert [letter.body for letter in await broker.dead_letters("A")] == [b"%d" % number]
                await delete_queue(amqp_url, "gateway:A::dead")


async def test_a_deleted_exchange_is_declared_again_under_its_publisher(amqp_url: str) -> None:
    async with await opened(amqp_url) as broker, broker.consume("A") as consumer:
        await broker.declare("A")
        async with await aio_pika.connect(amqp_url) as connection:
            await (await connection.channel()).exchange_delete("gateway")
        await broker.publish("A", 1)
        assert await receive(consumer, 1) == [1]


STRANGE_HEADERS = b"\x06weightd" + struct.pack(">d", 1e300) + b"\x05bytesS\x00\x00\x00\x02\xff\xfe"
NO_TEXT = b"\xff" * 250


async def publish_strange(url: str) -> None:
    """Publish a message with headers, correlation id and message id that our client does not write."""
    connection = await AmqpConnection.open(BrokerAddress(url), "strange", 5)
    channel = await connection.open_consumer_channel(Replies())
    headers = struct.pack(">I", len(STRANGE_HEADERS)) + STRANGE_HEADERS
    identity = bytes([len(NO_TEXT)]) + NO_TEXT
    flags = 1 << 13 | 1 << 12 | 1 << 10 | 1 << 7
    number = channel.number
    connection.write(
        publish_method(number, "gateway", "A", mandatory=False)
        + content(number, flags, headers + PERSISTENT + identity * 2, b'"odd"', connection.frame_body)
    )
    await connection.release(channel)
    await connection.close()


async def test_a_message_with_strange_properties_can_be_rejected_and_keeps_its_headers(amqp_url: str) -> None:
    async with await opened(amqp_url, retry_after=SOON) as broker, broker.consume("A") as consumer:
        await publish_strange(amqp_url)
        for attempt in (1, 2, 3):
            delivery = await next_one(consumer)
            assert (delivery.data, delivery.attempt, delivery.id) == ("odd", attempt, "?" * 250)
            await delivery.reject("no", retry=attempt < 3)
        (letter,) = await broker.dead_letters("A")
        assert (letter.body, letter.attempts) == (b'"odd"', 3)
        async with await aio_pika.connect(amqp_url) as connection:
            queue = await (await connection.channel()).get_queue("gateway:A::dead")
            buried = await queue.get()
            assert (buried.headers["weight"], buried.headers["bytes"]) == (1e300, b"\xff\xfe")
            assert not any(name.startswith("x-death") for name in buried.headers)


async def test_a_message_with_strange_properties_is_moved_when_its_consumer_was_lost(amqp_url: str) -> None:
    async with await opened(amqp_url) as broker:
        await broker.declare("A")
        await publish_strange(amqp_url)
        for attempt in (1, 2):
            async with broker.consume("A", prefetch=1) as consumer:
                delivery = await next_one(consumer)
                assert (delivery.data, delivery.attempt) == ("odd", attempt)


async def publish_with_header(url: str, size: int) -> None:
    async with await aio_pika.connect(url) as connection:
        exchange = await (await connection.channel()).get_exchange("gateway")
        await exchange.publish(aio_pika.Message(b'"poison"', headers={"x": "a" * size}), routing_key="A")


@pytest.mark.parametrize("size", [126_000, 130_850, 131_000])
async def test_a_message_whose_headers_fill_a_frame_becomes_a_dead_letter_and_the_next_is_received(
    amqp_url: str, size: int
) -> None:
    async with (
        asyncio.timeout(20),
        await opened(amqp_url, retry_after=SOON) as broker,
        broker.consume("A") as consumer,
    ):
        await publish_with_header(amqp_url, size)
        for attempt in (1, 2):
            delivery = await next_one(consumer)
            assert (delivery.data, delivery.attempt) == ("poison", attempt)
            await delivery.reject("ü" * LONGEST_REASON, retry=attempt == 1)
        (letter,) = await broker.dead_letters("A")
        assert (letter.body, letter.event, letter.attempts) == (b'"poison"', "A", 2)
        assert letter.reason == "ü" * LONGEST_REASON
        await broker.publish("A", "next")
        assert await receive(consumer, 1) == ["next"]


async def test_a_message_whose_headers_fill_a_frame_is_moved_when_its_consumer_was_lost(
    amqp_url: str,
) -> None:
    async with asyncio.timeout(20), await opened(amqp_url) as broker:
        await broker.declare("A")
        await publish_with_header(amqp_url, 131_000)
        for attempt in (1, 2):
            async with broker.consume("A", prefetch=1) as consumer:
                delivery = await next_one(consumer)
                assert (delivery.data, delivery.attempt) == ("poison", attempt)


async def test_a_dead_letter_fits_into_the_smallest_frames_of_the_protocol(
    keywright_rabbitmq: RabbitServer, amqp_url: str
) -> None:
    before = keywright_rabbitmq.evaluate("application:get_env(rabbit, frame_max, none)")
    major, minor, *_ = keywright_rabbitmq.evaluate("rabbit_misc:version()").strip('"').split(".")
    # RabbitMQ 4.1 and later close a connection whose frames are smaller than 8 KiB.
    smallest = 8192 if (int(major), int(minor)) >= (4, 1) else SMALLEST_FRAME
    keywright_rabbitmq.evaluate(f"application:set_env(rabbit, frame_max, {smallest})")
    try:
        async with asyncio.timeout(20), await opened(amqp_url) as broker, broker.consume("A") as consumer:
            await broker.publish("A", 1)
            await (await next_one(consumer)).reject("ü" * LONGEST_REASON)
            (letter,) = await broker.dead_letters("A")
            assert len(letter.reason) > 100
            assert set(letter.reason) == {"ü"}
    finally:
        keywright_rabbitmq.evaluate(f"application:set_env(rabbit, frame_max, {before})")


@pytest.mark.parametrize(("stable_seconds", "counted"), [(3600.0, [1, 2, 3]), (0.0, [])])
async def test_connections_that_do_not_last_are_followed_by_growing_pauses(
    amqp_url: str, monkeypatch: pytest.MonkeyPatch, stable_seconds: float, counted: list[int]
) -> None:
    pauses: list[int] = []

    class Noted(Backoff):
        def pause(self, failures: int, random: Callable[[], float] = lambda: 1.0) -> float:
            pauses.append(failures)
            return super().pause(failures, random) / 100

    monkeypatch.setattr(reconnector, "_BACKOFF", Noted())
    monkeypatch.setattr(reconnector, "_STABLE_SECONDS", stable_seconds)
    async with asyncio.timeout(20), await opened(amqp_url) as broker, broker.consume("A") as consumer:
        for number in range(3):
            (await broker._reconnector._current()).lose("a test")
            await broker.publish("A", number)
            assert await receive(consumer, 1) == [number]
    assert pauses == counted


async def test_a_broker_can_be_closed_at_any_moment_after_its_connection_was_lost(amqp_url: str) -> None:
    for turns in range(25):
        broker = await opened(amqp_url)
        connection = broker._reconnector._connection
        assert connection is not None
        connection._transport.abort()
        for _ in range(turns):
            await asyncio.sleep(0)
        async with asyncio.timeout(10):
            await broker.close()
        assert supervisors() == []


async def test_consumers_may_come_and_go_at_the_same_time(amqp_url: str) -> None:
    async with await opened(amqp_url) as broker:

        async def come_and_go(event: str) -> None:
            for number in range(15):
                async with broker.consume(event) as consumer:
                    await broker.publish(event, number)
                    async with asyncio.timeout(10):
                        assert await receive(consumer, 1) == [number]

        await asyncio.gather(*(come_and_go(event) for event in "ABCDEF"))


MEMORY_ALARM = "{resource_limit, memory, node()}"


async def test_a_consumer_can_be_closed_while_the_server_takes_no_messages(
    keywright_rabbitmq: RabbitServer, amqp_url: str
) -> None:
    async with await opened(amqp_url) as broker, broker.consume("A") as consumer:
        await broker.publish("A", 1)
        await next_one(consumer)
    broker = await opened(f"{amqp_url}?heartbeat=2", connect_timeout=timedelta(seconds=1))
    keywright_rabbitmq.evaluate(f"rabbit_alarm:set_alarm({{{MEMORY_ALARM}, []}})")
    try:
        consumer = broker.consume("A")
        opening = asyncio.create_task(consumer.open())
        await until(lambda: consumer._moves)
        async with asyncio.timeout(20):
            await asyncio.wait({opening})
            await consumer.close()
        if not opening.cancelled() and opening.exception() is not None:
            assert isinstance(opening.exception(), BrokerUnreachableError)
        async with asyncio.timeout(20):
            await broker.close()
    finally:
        keywright_rabbitmq.evaluate(f"rabbit_alarm:clear_alarm({MEMORY_ALARM})")
    async with await opened(amqp_url) as broker, broker.consume("A") as consumer:
        assert await receive(consumer, 1) == [1]


EXCHANGE_DECLARE = b"\x00\x28\x00\x0a"


class Gate:
    """A proxy to the server that, when shut, lets clients log in and then drops them."""

    def __init__(self, url: str) -> None:
        self._target = urlsplit(url)
        self._shut = False
        self._ways: set[asyncio.StreamWriter] = set()
        self._passing: set[asyncio.Task[None]] = set()
        self._accepted: list[asyncio.StreamWriter] = []
        self.dropped = 0

    @asynccontextmanager
    async def open(self) -> AsyncIterator[str]:
        async with await asyncio.start_server(self._accept, "127.0.0.1") as server:
            port = server.sockets[0].getsockname()[1]
            try:
                yield self._target._replace(netloc=f"guest:guest@127.0.0.1:{port}").geturl()
            finally:
                server.close()
                await turns()  # what was accepted just now has its task
                for passing in self._passing:
                    passing.cancel()
                await asyncio.gather(*self._passing, return_exceptions=True)
                for writer in self._accepted:
                    writer.transport.abort()  # also where its task had no time to begin
                await turns()

    def shut(self) -> None:
        self._shut = True
        for way in self._ways:
            way.transport.abort()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        passing = asyncio.create_task(self._pass(reader, writer))
        self._accepted.append(writer)
        self._passing.add(passing)
        passing.add_done_callback(self._passing.discard)

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ways = {writer}
        try:
            back, forth = await asyncio.open_connection(self._target.hostname, self._target.port)
            ways.add(forth)
            self._ways |= ways
            with contextlib.suppress(OSError):
                await asyncio.gather(self._pump(reader, forth), self._pump(back, writer))
        finally:
            for way in ways:
                way.transport.abort()

    async def _pump(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        while data := await source.read(65_536):
            if self._shut and EXCHANGE_DECLARE in data:
                self.dropped += 1
                break
            target.write(data)
        for way in self._ways:
            way.transport.abort()


async def turns() -> None:
    """Let the loop call what is due, and what follows from that."""
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_publish_is_given_up_in_time_though_the_server_accepts_connections(
    amqp_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reconnector, "_BACKOFF", Backoff(0.1, 0.2))
    gate = Gate(amqp_url)
    async with gate.open() as url:
        broker = await opened(url, connect_timeout=timedelta(seconds=2))
        await broker.declare("A")
        gate.shut()
        publishing = asyncio.create_task(broker.publish("A", 1))
        with pytest.raises(BrokerUnreachableError):
            async with asyncio.timeout(15):
                await publishing
        assert gate.dropped > 1
        await broker.close()


async def test_a_close_that_is_cut_short_still_ends_the_connection(amqp_url: str) -> None:
    gate = Gate(amqp_url)
    async with gate.open() as url:
        broker = await opened(url)
        await broker.declare("A")
        gate.shut()
        publishing = asyncio.create_task(broker.publish("A", 1))
        await asyncio.sleep(0)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(broker.close(), 0.1)
        with pytest.raises(BrokerError):
            async with asyncio.timeout(10):
                await publishing
        assert supervisors() == []
