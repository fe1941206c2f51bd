"""The properties of the RabbitMQ broker alone; the conformance suite has those of every broker."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, TypeVar

import aio_pika
import aiormq
import msgspec
import pytest
from aio_pika.abc import AbstractChannel
from pamqp.common import FieldTable

from keywright.errors import UsageError
from keywright_messaging import Broker, BrokerSettings, Consumer, Delivery, open_broker
from keywright_messaging.errors import (
    BrokerError,
    BrokerUnreachableError,
    CallTimeoutError,
    QueueMismatchError,
    UnroutableError,
)
from keywright_messaging.testing.rabbitmq import RabbitServer

from .broker_bench import receive

pytestmark = pytest.mark.anyio


T = TypeVar("T")

SOON = timedelta(milliseconds=20)
QUORUM: FieldTable = {"x-queue-type": "quorum"}
LIMITED: FieldTable = {"x-max-length": 5}


async def eventually(probe: Callable[[], Awaitable[T | None]], what: str) -> T:
    """Poll until the result is true."""
    for _ in range(1500):
        if found := await probe():
            return found
        await asyncio.sleep(0.02)
    raise AssertionError(f"not in time: {what}")


@asynccontextmanager
async def raw(url: str) -> AsyncIterator[AbstractChannel]:
    """Open a channel of aio-pika, another client."""
    async with await aio_pika.connect(url) as connection:
        yield await connection.channel()


async def received_all(consumer: Consumer, missing: set[Any]) -> None:
    """Return when each of these was received at least once; after a crash some are received twice."""
    while missing:
        batch = await consumer.batch(500)
        missing = missing - {delivery.data for delivery in batch}
        await consumer.acknowledge_all(batch)


async def cut(server: RabbitServer) -> None:
    await asyncio.to_thread(server.close_connections)


async def test_exchange_and_queue_are_declared_as_the_published_clients_do(amqp_url: str) -> None:
    async with await open_broker(amqp_url) as broker, raw(amqp_url) as channel:
        await broker.declare("MESSAGE_CREATE")
        await broker.declare("MESSAGE_CREATE", subgroup="logger")
        await channel.declare_exchange("gateway", "direct", durable=True)
        await channel.declare_queue("gateway:MESSAGE_CREATE", durable=True)
        await channel.declare_queue("gateway:logger:MESSAGE_CREATE", durable=True)
        for arguments in (LIMITED, QUORUM):
            async with raw(amqp_url) as other:
                with pytest.raises(aio_pika.exceptions.ChannelPreconditionFailed):
                    await other.declare_queue("gateway:MESSAGE_CREATE", durable=True, arguments=arguments)


async def test_a_queue_that_another_client_declared_is_used_unchanged(amqp_url: str) -> None:
    async with raw(amqp_url) as channel:
        exchange = await channel.declare_exchange("gateway", "direct", durable=True)
        queue = await channel.declare_queue("gateway:A", durable=True)
        await queue.bind(exchange, "A")
        await exchange.publish(aio_pika.Message(b'"waiting"'), "A")
    async with await open_broker(amqp_url) as broker, broker.consume("A") as consumer:
        assert await receive(consumer, 1) == ["waiting"]


async def test_a_message_is_persistent_and_labelled(amqp_url: str) -> None:
    async with await open_broker(amqp_url) as broker, raw(amqp_url) as channel:
        await broker.declare("A")
        identity = await broker.publish("A", {"id": "1"})
        message = await (await channel.get_queue("gateway:A")).get()
        assert message.delivery_mode == aio_pika.DeliveryMode.PERSISTENT
        assert (message.content_type, message.message_id) == ("application/json", identity)
        assert (message.exchange, message.routing_key) == ("gateway", "A")
        assert message.body == b'{"id":"1"}'


async def test_a_message_without_any_property_is_consumed(amqp_url: str) -> None:
    async with await open_broker(amqp_url) as broker:
        await broker.declare("A")
        connection = await aiormq.connect(amqp_url)
        channel = await connection.channel(publisher_confirms=False)
        body = msgspec.msgpack.encode({"id": "1", "roles": [1, 2]})
        await channel.basic_publish(body, exchange="gateway", routing_key="A")
        async with broker.consume("A") as consumer:
            delivery = await anext(consumer)
            assert delivery.data == {"id": "1", "roles": [1, 2]}
            assert (delivery.content_type, delivery.attempt, delivery.wants_reply) == (None, 1, False)
            await delivery.acknowledge()
        await connection.close()


@pytest.mark.parametrize("size", [0, 1, 131_064, 131_065, 700_000])
async def test_a_body_of_any_size_comes_through(amqp_url: str, size: int) -> None:
    async with await open_broker(amqp_url) as broker, broker.consume("A") as consumer:
        await broker.publish("A", "x" * size)
        assert await receive(consumer, 1) == ["x" * size]


async def test_an_empty_body_is_delivered_and_can_be_given_up(amqp_url: str) -> None:
    async with (
        await open_broker(amqp_url) as broker,
        broker.consume("A") as consumer,
        raw(amqp_url) as channel,
    ):
        exchange = await channel.get_exchange("gateway")
        await exchange.publish(aio_pika.Message(b""), "A")
        delivery = await anext(consumer)
        assert delivery.body == b""
        await delivery.reject("empty")
        assert [letter.body for letter in await broker.dead_letters("A")] == [b""]


async def test_confirmed_messages_survive_a_crash_of_the_server(
    keywright_rabbitmq: RabbitServer, amqp_url: str
) -> None:
    async with asyncio.timeout(60), await open_broker(amqp_url) as broker:
        await broker.declare("A")
        await broker.publish_many("A", range(2000))
        keywright_rabbitmq.kill()
    keywright_rabbitmq.start()
    async with await open_broker(amqp_url) as broker, broker.consume("A") as consumer:
        assert set(await receive(consumer, 2000)) == set(range(2000))


async def test_a_mismatch_names_the_queue_and_the_others_go_on(amqp_url: str) -> None:
    async with await open_broker(amqp_url) as broker, raw(amqp_url) as channel:
        await channel.declare_queue("gateway:A", durable=True, arguments=LIMITED)
        with pytest.raises(QueueMismatchError, match=r"'gateway:A'.*PRECONDITION_FAILED.*x-max-length"):
            await broker.declare("A")
        with pytest.raises(QueueMismatchError, match="'gateway:A'"):
            await broker.consume("A", "B").open()
        async with broker.consume("B") as consumer:
            await broker.publish("B", 1)
            assert await receive(consumer, 1) == [1]


async def test_a_consumer_without_read_permission_fails_and_the_broker_goes_on(
    keywright_rabbitmq: RabbitServer, amqp_url: str
) -> None:
    vhost = amqp_url.rpartition("/")[2]
    grant = f'<<"guest">>, <<"{vhost}">>, <<".*">>, <<".*">>, <<"^(gateway|amq.gen.*)$">>, <<"keywright">>'
    keywright_rabbitmq.evaluate(f"rabbit_auth_backend_internal:set_permissions({grant})")

    async with await open_broker(amqp_url) as broker:
        with pytest.raises(BrokerError, match=r"'gateway:A'.*ACCESS_REFUSED.*Grant"):
            await broker.consume("A").open()
        await broker.declare("B")
        assert await broker.publish("B", 1)


async def test_a_consumer_whose_opening_was_cancelled_holds_no_messages(amqp_url: str) -> None:
    async with await open_broker(amqp_url, BrokerSettings(max_attempts=1000)) as broker:
        await broker.declare("A")
        await broker.publish("A", 1)
        for milliseconds in range(30):  # opening takes about so long: cancel it at every stage
            consumer = broker.consume("A")
            opening = asyncio.create_task(consumer.open())
            await asyncio.sleep(milliseconds / 1000)
            opening.cancel()
            await asyncio.wait({opening})
            await consumer.close()
        async with broker.consume("A") as consumer:
            assert await receive(consumer, 1) == [1]


async def test_a_foreign_exchange_is_refused_when_the_broker_is_opened(amqp_url: str) -> None:
    async with raw(amqp_url) as channel:
        await channel.declare_exchange("gateway", "fanout", durable=True)
        with pytest.raises(QueueMismatchError, match="the exchange 'gateway'"):
            await open_broker(amqp_url)


async def test_a_queue_that_changed_during_an_outage_ends_its_consumer_and_no_other(amqp_url: str) -> None:
    async with (
        await open_broker(amqp_url) as broker,
        broker.consume("A") as torn,
        broker.consume("B") as whole,
    ):
        connection = await aiormq.connect(amqp_url)
        channel = await connection.channel()
        await channel.queue_delete("gateway:A", nowait=True)
        await channel.queue_declare("gateway:A", durable=True, arguments=LIMITED)
        with pytest.raises(QueueMismatchError, match="'gateway:A'"):
            await torn.batch(1)
        await broker.publish("B", 1)
        assert await receive(whole, 1) == [1]
        await connection.close()


async def test_a_deleted_queue_is_declared_again_under_its_consumer(amqp_url: str) -> None:
    async with (
        await open_broker(amqp_url) as broker,
        broker.consume("A") as consumer,
        raw(amqp_url) as channel,
    ):
        await channel.queue_delete("gateway:A")
        waiting = asyncio.create_task(receive(consumer, 1))

        async def published() -> bool:
            try:
                await broker.publish("A", "after")
            except UnroutableError:
                return False
            return True

        await eventually(published, "the queue is there again")
        assert await waiting == ["after"]


async def test_consumers_go_on_after_a_restart_of_the_server(
    keywright_rabbitmq: RabbitServer, amqp_url: str
) -> None:
    async with await open_broker(amqp_url) as broker, broker.consume("A", "B", prefetch=10) as consumer:
        await broker.publish("A", "before")
        assert await receive(consumer, 1) == ["before"]
        waiting = asyncio.create_task(received_all(consumer, {"during", "after"}))
        await asyncio.to_thread(keywright_rabbitmq.kill)
        during = asyncio.create_task(broker.publish("A", "during"))
        await asyncio.to_thread(keywright_rabbitmq.start)
        await during
        await broker.publish("B", "after")
        await waiting


async def test_messages_in_flight_when_the_connection_is_cut_all_arrive(
    keywright_rabbitmq: RabbitServer, amqp_url: str
) -> None:
    async with await open_broker(amqp_url) as broker:
        await broker.declare("A")
        publishing = asyncio.create_task(broker.publish_many("A", range(20_000)))
        for _ in range(2):
            await asyncio.sleep(0)
            await cut(keywright_rabbitmq)
        assert len(set(await publishing)) == 20_000
    async with await open_broker(amqp_url) as other, other.consume("A", prefetch=1000) as consumer:
        await received_all(consumer, set(range(20_000)))


async def test_unsettled_messages_are_redelivered_and_the_former_delivery_is_void(
    keywright_rabbitmq: RabbitServer, amqp_url: str
) -> None:
    async with await open_broker(amqp_url) as broker, broker.consume("A") as consumer:
        await broker.publish("A", 1)
        old = await anext(consumer)
        await cut(keywright_rabbitmq)
        again = await anext(consumer)
        assert (again.data, again.attempt, again.id) == (1, 2, old.id)
        await old.acknowledge()
        with pytest.raises(UsageError, match="settled already"):
            await old.reject("twice")
        await again.acknowledge()
        await broker.publish("A", 2)
        assert await receive(consumer, 1) == [2]


async def test_a_publish_that_waits_too_long_says_so_without_the_password(
    keywright_rabbitmq: RabbitServer, amqp_url: str
) -> None:
    broker = await open_broker(amqp_url, BrokerSettings(connect_timeout=timedelta(seconds=3)))
    await broker.declare("A")
    await asyncio.to_thread(keywright_rabbitmq.stop)
    with pytest.raises(BrokerUnreachableError) as caught:
        await broker.publish("A", 1)
    for text in (str(caught.value), repr(caught.value), repr(broker)):
        assert "guest" not in text
        assert str(keywright_rabbitmq.port) in text
    await broker.close()


async def test_an_unreachable_address_is_an_error_without_the_password() -> None:
    with pytest.raises(BrokerUnreachableError, match=r"127\.0\.0\.1:1/bots") as caught:
        await open_broker("amqp://me:hunter2@127.0.0.1:1/bots")
    assert "hunter2" not in repr(caught.value) + repr(caught.value.__cause__)


async def test_a_wrong_password_is_an_error_that_does_not_show_it(amqp_url: str) -> None:
    with pytest.raises(BrokerUnreachableError, match="ACCESS_REFUSED") as caught:
        await open_broker(amqp_url.replace("guest:guest", "guest:hunter2"))
    assert "hunter2" not in repr(caught.value) + repr(caught.value.__cause__)


async def test_a_message_that_always_kills_its_consumer_becomes_a_dead_letter_alone(
    keywright_rabbitmq: RabbitServer, amqp_url: str
) -> None:
    """Its prefetched neighbours are all handled, though they are redelivered as often."""

    async def live_once(broker: Broker, handled: set[int]) -> int:
        """Handle messages until the killer arrives; leave all prefetched messages unsettled."""
        async with broker.consume("A", prefetch=50) as consumer:
            async for delivery in consumer:
                if delivery.data == "killer":
                    return delivery.attempt
                handled.add(delivery.data)
                await delivery.acknowledge()
        raise AssertionError("the consumer ended by itself")

    handled = set[int]()
    async with await open_broker(amqp_url) as broker:
        await broker.declare("A")
        await broker.publish("A", "killer")
        await broker.publish_many("A", range(40))
        assert [await live_once(broker, handled) for _ in range(5)] == [1, 2, 3, 4, 5]
        survivor = asyncio.create_task(live_once(broker, handled))
        letters = await eventually(lambda: broker.dead_letters("A"), "it is a dead letter")
        await eventually(lambda: asyncio.sleep(0, len(handled) == 40), "the others are handled")
        survivor.cancel()
        assert [(letter.body, letter.attempts) for letter in letters] == [(b'"killer"', 5)]
        assert "without settling" in letters[0].reason
        assert handled == set(range(40))


@pytest.mark.parametrize("most", [1, 2])
async def test_few_attempts_still_leave_a_redelivered_message_one_alone(amqp_url: str, most: int) -> None:
    attempts = []
    async with await open_broker(amqp_url, BrokerSettings(max_attempts=most)) as broker:
        await broker.declare("A")
        await broker.publish("A", "killer")
        for _ in range(2):
            async with broker.consume("A") as consumer:
                attempts.append((await anext(consumer)).attempt)
        async with broker.consume("A"):
            (letter,) = await eventually(lambda: broker.dead_letters("A"), "it is a dead letter")
    assert (attempts, letter.attempts) == ([1, most], most)


async def test_a_retry_waits_in_the_broker_and_survives_its_process(amqp_url: str) -> None:
    settings = BrokerSettings(retry_after=SOON, max_attempts=99)

    async with await open_broker(amqp_url, settings) as broker, broker.consume("A") as consumer:
        await broker.publish("A", 1)
        await (await anext(consumer)).reject("later", retry=True)
    attempts = [1]
    for _ in range(4):
        async with await open_broker(amqp_url, settings) as broker, broker.consume("A") as consumer:
            delivery = await anext(consumer)
            assert delivery.data == 1
            attempts.append(delivery.attempt)
            await delivery.reject("later", retry=True)
    # A message that comes back before its consumer is closed is delivered once more, and counted.
    assert attempts == sorted(set(attempts))


async def test_a_longer_delay_does_not_hold_up_a_shorter_one(amqp_url: str) -> None:
    slow = BrokerSettings(retry_after=timedelta(seconds=50))
    quick = BrokerSettings(retry_after=SOON)
    async with await open_broker(amqp_url, slow) as patient, await open_broker(amqp_url, quick) as broker:
        async with patient.consume("A") as consumer:
            await patient.publish("A", "slow")
            await (await anext(consumer)).reject("later", retry=True)
        async with broker.consume("A") as consumer:
            await broker.publish("A", "quick")
            await (await anext(consumer)).reject("later", retry=True)
            again = await anext(consumer)
            assert (again.data, again.attempt) == ("quick", 2)
            await again.acknowledge()


async def test_dead_letters_are_read_in_order_and_stay(amqp_url: str) -> None:
    async with await open_broker(amqp_url) as broker, broker.consume("A", "dead") as consumer:
        assert await broker.dead_letters("A") == []
        await broker.publish_many("A", range(10))
        for number in range(10):
            await (await anext(consumer)).reject(f"bad {number}")
        for limit in (3, 100, 100):
            letters = await broker.dead_letters("A", limit=limit)
            assert [letter.body for letter in letters] == [b"%d" % n for n in range(min(limit, 10))]
        assert [letter.reason for letter in letters] == [f"bad {number}" for number in range(10)]
        assert {(letter.event, letter.attempts) for letter in letters} == {("A", 1)}
        await broker.publish("dead", "an event may be called so")
        assert await receive(consumer, 1) == ["an event may be called so"]
        assert len(await broker.dead_letters("A")) == 10


async def test_quorum_queues_are_declared_and_used_when_asked_for(amqp_url: str) -> None:
    settings = BrokerSettings(quorum=True, max_attempts=3)
    async with await open_broker(amqp_url, settings) as broker, raw(amqp_url) as channel:
        await broker.declare("A", "B")
        await channel.declare_queue("gateway:A", durable=True, arguments=QUORUM)
        await broker.publish_many("A", range(100))
        async with broker.consume("A", "B", prefetch=20) as consumer:
            assert await receive(consumer, 100) == list(range(100))
        await broker.publish("A", "killer")
        for attempt in (1, 2, 3):
            async with broker.consume("A", "B") as consumer:
                assert (await anext(consumer)).attempt == attempt
        async with broker.consume("A", "B"):
            (letter,) = await eventually(lambda: broker.dead_letters("A"), "it is a dead letter")
        assert (letter.attempts, letter.body) == (3, b'"killer"')


async def test_a_mismatch_of_quorum_and_classic_is_an_error(amqp_url: str) -> None:
    async with await open_broker(amqp_url) as classic:
        await classic.declare("A")
    async with await open_broker(amqp_url, BrokerSettings(quorum=True)) as quorum:
        with pytest.raises(QueueMismatchError, match="quorum on or off"):
            await quorum.declare("A")


async def test_an_event_without_a_queue_is_an_error_and_other_messages_are_kept(amqp_url: str) -> None:
    async with await open_broker(amqp_url) as broker:
        await broker.declare("A")
        results = await asyncio.gather(
            *(broker.publish(event, 1) for event in "AZAZZA"), return_exceptions=True
        )
        assert [isinstance(result, UnroutableError) for result in results] == [e == "Z" for e in "AZAZZA"]
        with pytest.raises(UnroutableError, match=r"declare\('Z'\)"):
            await broker.publish_many("Z", range(10))
        async with broker.consume("A") as consumer:
            assert await receive(consumer, 3) == [1, 1, 1]


async def test_concurrent_calls_get_their_own_replies_in_any_order(amqp_url: str) -> None:
    async with await open_broker(amqp_url) as broker, broker.consume("A") as consumer:
        calls = [asyncio.create_task(broker.call("A", number, reply=int)) for number in range(20)]
        questions: list[Delivery] = []
        while len(questions) < 20:
            questions += await consumer.batch(20)
        for question in reversed(questions):
            assert question.wants_reply
            await question.reply(question.data * 2)
        await consumer.acknowledge_all(questions)
        assert await asyncio.gather(*calls) == [number * 2 for number in range(20)]


async def test_a_call_without_an_answer_times_out_and_a_late_answer_is_dropped(amqp_url: str) -> None:
    async with await open_broker(amqp_url) as broker, broker.consume("A") as consumer:
        with pytest.raises(CallTimeoutError, match="'A'"):
            await broker.call("A", "slow", within=SOON)
        late = await anext(consumer)
        await late.reply("too late")
        await late.acknowledge()
        call = asyncio.create_task(broker.call("A", "next"))
        question = await anext(consumer)
        await question.reply("in time")
        await question.acknowledge()
        assert await call == "in time"
        with pytest.raises(UnroutableError):
            await broker.call("Z", 1)


async def test_an_answer_to_a_caller_that_left_is_dropped(amqp_url: str) -> None:
    async with await open_broker(amqp_url) as broker, broker.consume("A") as consumer:
        async with await open_broker(amqp_url) as caller:
            with pytest.raises(CallTimeoutError):
                await caller.call("A", 1, within=SOON)
        question = await anext(consumer)
        await question.reply("nobody")
        await question.acknowledge()


async def test_calls_are_answered_after_a_reconnect(keywright_rabbitmq: RabbitServer, amqp_url: str) -> None:
    async with await open_broker(amqp_url) as broker, broker.consume("A") as consumer:
        await cut(keywright_rabbitmq)
        call = asyncio.create_task(broker.call("A", 1, within=timedelta(seconds=30)))
        question = await anext(consumer)
        await question.reply("answer")
        await question.acknowledge()
        assert await call == "answer"


async def test_a_foreign_caller_is_answered_as_it_expects(amqp_url: str) -> None:
    async with (
        await open_broker(amqp_url) as broker,
        broker.consume("A") as consumer,
        raw(amqp_url) as channel,
    ):
        answers = await channel.declare_queue(exclusive=True)
        exchange = await channel.get_exchange("gateway")
        await exchange.publish(
            aio_pika.Message(b'"who?"', reply_to=answers.name, correlation_id="01ARZ3"), "A"
        )
        question = await anext(consumer)
        assert question.wants_reply
        await question.reply({"me": True})
        await question.acknowledge()
        answer = await answers.get(no_ack=True)
        assert (answer.body, answer.correlation_id) == (b'{"me":true}', "01ARZ3")


async def test_a_foreign_service_answers_our_call(amqp_url: str) -> None:
    async with await open_broker(amqp_url) as broker, raw(amqp_url) as channel:
        await broker.declare("A")
        call = asyncio.create_task(broker.call("A", 21))
        queue = await channel.get_queue("gateway:A")
        question = await eventually(lambda: queue.get(fail=False), "the question arrives")
        assert question.reply_to
        answer = aio_pika.Message(msgspec.msgpack.encode(42), correlation_id=question.correlation_id)
        await channel.default_exchange.publish(answer, question.reply_to)
        assert await call == 42


async def test_acknowledging_the_later_deliveries_leaves_the_earlier_one(amqp_url: str) -> None:
    async with await open_broker(amqp_url) as broker:
        async with broker.consume("A") as consumer:
            await broker.publish_many("A", range(5))
            deliveries: list[Delivery] = []
            while len(deliveries) < 5:
                deliveries += await consumer.batch(5)
            await consumer.acknowledge_all(deliveries[2:])
            await deliveries[0].acknowledge()
            with pytest.raises(UsageError, match="settled already"):
                await consumer.acknowledge_all(deliveries[:2])
        async with broker.consume("A") as consumer, raw(amqp_url) as channel:
            assert await receive(consumer, 1) == [1]
            queue = await channel.declare_queue("gateway:A", durable=True)
            assert queue.declaration_result.message_count == 0


async def test_at_most_the_prefetch_is_unsettled_over_all_events(amqp_url: str) -> None:
    async with await open_broker(amqp_url) as broker, broker.consume("A", "B", prefetch=3) as consumer:
        await broker.publish_many("A", range(5))
        await broker.publish_many("B", range(5))
        held: list[Delivery] = []
        while len(held) < 3:
            held += await consumer.batch(10)
        assert len(held) == 3
        following = asyncio.create_task(consumer.batch(10))
        await broker.publish("A", "a round trip later")
        assert not following.done()
        await held[0].acknowledge()
        assert len(await following) == 1


# Counted by the channels: a queue answers before it handles acknowledgements that arrived earlier.
# Only of one virtual host: channels of other tests may still be closing.
UNSETTLED = (
    "lists:sum([N || [{_, V}, {_, N}] <- rabbit_channel:info_all([vhost, messages_unacknowledged]),"
    ' V =:= <<"%s">>])'
)
NOT_MOVED = (
    'lists:sum([N || Q <- rabbit_amqqueue:list(), E <- [<<"gateway:A">>, <<"gateway:B">>],'
    " [{_, {resource, _, queue, F}}, {_, N}] <- [rabbit_amqqueue:info(Q, [name, messages])], E =:= F])"
)
CHANNEL_LIMITS = (
    "lists:max([0 | [X || [{_, V}, {_, X}] <- rabbit_channel:info_all([vhost, global_prefetch_count]),"
    ' V =:= <<"%s">>]])'
)


async def counted(server: RabbitServer, amqp_url: str, what: str) -> int:
    """Return a number of the virtual host of a URL."""
    return int(await asyncio.to_thread(server.evaluate, what % amqp_url.rpartition("/")[2]))


@pytest.mark.parametrize("prefetch", [2, 3, 10, 40], ids=["fewer than events", "as many", "10", "40"])
async def test_the_server_has_at_most_the_prefetch_unsettled_without_a_limit_of_the_channel(
    keywright_rabbitmq: RabbitServer, amqp_url: str, prefetch: int
) -> None:
    """A limit for a whole channel (global_qos) is denied by RabbitMQ 4.3."""
    events = ("A", "B", "C")
    async with await open_broker(amqp_url) as broker:
        await broker.declare(*events)
        for event in events:
            await broker.publish_many(event, [f"{event}{number}" for number in range(60)])
        async with broker.consume(*events, prefetch=prefetch) as consumer:
            received: dict[str, list[str]] = {event: [] for event in events}
            while sum(map(len, received.values())) < 180:
                held = await consumer.batch(20)
                assert await counted(keywright_rabbitmq, amqp_url, UNSETTLED) <= prefetch
                for delivery in held:
                    received[delivery.event].append(delivery.data)
                await consumer.acknowledge_all(held)
            assert received == {event: [f"{event}{number}" for number in range(60)] for event in events}
            assert await counted(keywright_rabbitmq, amqp_url, CHANNEL_LIMITS) == 0


async def test_a_busy_event_may_use_the_part_of_the_prefetch_that_others_do_not_need(amqp_url: str) -> None:
    async with await open_broker(amqp_url) as broker, broker.consume("A", "B", "C", prefetch=30) as consumer:
        for event in ("A", "C"):
            await broker.publish_many(event, range(100))
            held: list[Delivery] = []
            while len(held) < 20:  # a third of one half is its own, and the other half
                held += await consumer.batch(30)
            assert [delivery.data for delivery in held] == list(range(20))
            await consumer.acknowledge_all(held)
            await receive(consumer, 80)


async def test_suspects_of_several_events_are_unsettled_one_at_a_time(
    keywright_rabbitmq: RabbitServer, amqp_url: str
) -> None:
    """A worker that dies with one of them must not use up the attempts of the others."""
    async with await open_broker(amqp_url, BrokerSettings(max_attempts=2)) as broker:
        await broker.declare("A", "B")
        await broker.publish("A", "a")
        await broker.publish("B", "b")
        async with broker.consume("A", "B") as first:
            assert len([await anext(first), await anext(first)]) == 2
        async with broker.consume("A", "B") as second:
            one = await anext(second)

            async def are_moved() -> bool:
                return await asyncio.to_thread(keywright_rabbitmq.evaluate, NOT_MOVED) == "0"

            await eventually(are_moved, "both are suspects")
            assert await counted(keywright_rabbitmq, amqp_url, UNSETTLED) == 1
            await one.acknowledge()
            other = await anext(second)
            assert {one.data, other.data} == {"a", "b"}
            assert (one.attempt, other.attempt) == (2, 2)
            await other.acknowledge()


@pytest.mark.parametrize("name", ["", "a:b", ":", "é", "a\n"])
async def test_names_that_would_blur_the_queue_names_are_refused(amqp_url: str, name: str) -> None:
    refused = r"cannot name an? (?:group|subgroup|event): give ASCII letters"
    with pytest.raises(UsageError, match=refused):
        await open_broker(amqp_url, BrokerSettings(group=name))
    async with await open_broker(amqp_url) as broker:
        with pytest.raises(UsageError, match=refused):
            await broker.declare(name)
        with pytest.raises(UsageError, match=refused):
            await broker.publish(name, 1)
        with pytest.raises(UsageError, match=refused):
            broker.consume("A", subgroup=name)


async def test_a_queue_name_may_be_as_long_as_its_retry_queues_leave_room_for(amqp_url: str) -> None:
    async with await open_broker(amqp_url, BrokerSettings(retry_after=timedelta(minutes=2))) as broker:
        longest = "e" * 234  # with "gateway:" it is 242 bytes
        async with broker.consume(longest) as consumer:
            await broker.publish(longest, 1)
            await (await anext(consumer)).reject("later", retry=True)
        with pytest.raises(UsageError, match="room for 242 bytes"):
            await broker.declare(longest + "e")


async def test_a_body_above_the_limit_is_refused_before_it_is_sent(amqp_url: str) -> None:
    async with await open_broker(amqp_url, BrokerSettings(max_body_bytes=100)) as broker:
        with pytest.raises(UsageError, match="larger than the limit of 100"):
            await broker.publish("A", "x" * 100)


async def test_closing_a_broker_waits_for_publishes_in_progress(amqp_url: str) -> None:
    broker = await open_broker(amqp_url)
    await broker.declare("A")
    publishing = asyncio.create_task(broker.publish_many("A", range(5000)))
    await asyncio.sleep(0)
    await broker.close()
    await broker.close()
    assert len(await publishing) == 5000
    with pytest.raises(UsageError, match="closed"):
        await broker.publish("A", 1)
