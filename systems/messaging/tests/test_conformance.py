"""The contract of publishing and consuming: one suite, run against every broker."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from keywright.errors import UsageError
from keywright_messaging import BrokerSettings, Delivery, Encoding, open_broker
from keywright_messaging.errors import BrokerUnreachableError, UndecodableError, UnroutableError

from .broker_bench import (
    EVENT,
    Bench,
    answer_doubled,
    dead_letters_of,
    has_nothing,
    next_one,
    receive,
    take,
)

pytestmark = pytest.mark.anyio


DATA: list[Any] = [
    {"id": "175928847299117063", "content": "spectacles is awesome", "nested": {"list": [1, -2, 3.5, None]}},
    {"unicode": "żółć 🦀 \u0000 \u2028", "empty": {}, "none": None, "yes": True, "no": False},
    [],
    "text",
    2**53,
    None,
]


class Question(msgspec.Struct):
    guild: str


@dataclass
class Post:
    id: int
    content: str


@pytest.mark.parametrize("encoding", list(Encoding))
async def test_published_data_arrives_unchanged_in_every_encoding(bench: Bench, encoding: Encoding) -> None:
    async with bench.declared(encoding=encoding) as broker, broker.consume(EVENT) as consumer:
        await broker.publish_many(EVENT, DATA)
        assert await receive(consumer, len(DATA)) == DATA


async def test_a_consumer_reads_encodings_that_it_does_not_write(bench: Bench) -> None:
    async with bench.declared() as reader, reader.consume(EVENT) as consumer:
        for encoding in Encoding:
            async with bench.opened(encoding=encoding) as writer:
                await writer.publish(EVENT, {"written": encoding.value})
        assert await receive(consumer, len(Encoding)) == [{"written": each.value} for each in Encoding]


async def test_raw_data_is_json_already_encoded(bench: Bench) -> None:
    async with bench.declared() as broker, broker.consume(EVENT) as consumer:
        await broker.publish(EVENT, msgspec.Raw(b'{"a": [1, 2]}'))
        delivery = await next_one(consumer)
        assert (delivery.body, delivery.data) == (b'{"a": [1, 2]}', {"a": [1, 2]})


async def test_a_struct_is_published_and_converted_back(bench: Bench) -> None:
    async with bench.declared() as broker, broker.consume(EVENT) as consumer:
        await broker.publish(EVENT, Question("12"))
        await broker.publish(EVENT, Post(1, "two"))
        first, second = await take(consumer, 2)
        assert first.convert(Question) == Question("12")
        assert second.convert(Post) == Post(1, "two")
        with pytest.raises(UndecodableError):
            first.convert(Post)


async def test_a_delivery_names_its_event_and_its_id_and_counts_from_one(bench: Bench) -> None:
    async with bench.declared() as broker, broker.consume(EVENT) as consumer:
        identity = await broker.publish(EVENT, 1)
        delivery = await next_one(consumer)
        assert (delivery.event, delivery.id, delivery.attempt) == (EVENT, identity, 1)


async def test_the_order_is_that_of_publishing(bench: Bench) -> None:
    async with bench.declared() as broker, broker.consume(EVENT, prefetch=7) as consumer:
        await broker.publish_many(EVENT, range(100))
        for number in range(100, 150):
            await broker.publish(EVENT, number)
        assert [number for _ in range(50) for number in await receive(consumer, 3)] == list(range(150))


async def test_messages_published_after_the_declaration_wait_for_a_later_consumer(bench: Bench) -> None:
    async with bench.declared() as broker:
        await broker.publish_many(EVENT, range(5))
        async with bench.opened() as later, later.consume(EVENT) as consumer:
            assert await receive(consumer, 5) == list(range(5))


async def test_declaring_again_changes_nothing(bench: Bench) -> None:
    async with bench.declared() as broker:
        await broker.publish(EVENT, "kept")
        await broker.declare(EVENT)
        await broker.declare(EVENT, "ANOTHER")
        async with broker.consume(EVENT) as consumer:
            assert await receive(consumer, 1) == ["kept"]


async def test_a_consumer_declares_its_queues_when_it_is_entered(bench: Bench) -> None:
    async with bench.opened() as broker:
        consumer = broker.consume(EVENT)
        if not bench.keeps_undeclared:
            with pytest.raises(UnroutableError):
                await broker.publish(EVENT, "before")
        async with consumer:
            await broker.publish(EVENT, "after")
            assert await receive(consumer, 1) == ["after"]


async def test_a_message_without_a_queue_is_refused_or_kept(bench: Bench) -> None:
    async with bench.opened() as broker:
        if bench.keeps_undeclared:
            await broker.publish("NOBODY", 1)
            async with broker.consume("NOBODY") as consumer:
                assert await receive(consumer, 1) == [1]
            return
        with pytest.raises(UnroutableError) as refused:
            await broker.publish("NOBODY", 1)
        assert (refused.value.group, refused.value.event) == (bench.group, "NOBODY")
        with pytest.raises(UnroutableError):
            await broker.publish_many("NOBODY", [1, 2])
        await broker.declare(EVENT)
        assert await broker.publish(EVENT, "the broker still works")


async def test_a_subgroup_reads_every_message_once_more(bench: Bench) -> None:
    async with bench.declared() as broker:
        await broker.declare(EVENT, subgroup="stats")
        await broker.publish_many(EVENT, range(10))
        async with broker.consume(EVENT) as own, broker.consume(EVENT, subgroup="stats") as copy:
            assert await receive(own, 10) == list(range(10))
            assert await receive(copy, 10) == list(range(10))


async def test_settling_in_the_group_does_not_affect_a_subgroup(bench: Bench) -> None:
    async with bench.declared() as broker:
        await broker.declare(EVENT, subgroup="stats")
        await broker.publish(EVENT, "bad")
        async with broker.consume(EVENT) as own:
            await (await next_one(own)).reject("bad")
        assert await broker.dead_letters(EVENT, subgroup="stats") == []
        async with broker.consume(EVENT, subgroup="stats") as copy:
            assert await receive(copy, 1) == ["bad"]
        assert len(await dead_letters_of(broker, EVENT, 1)) == 1


async def test_two_consumers_share_a_queue_and_none_doubles(bench: Bench) -> None:
    total = 200
    received: list[int] = []
    everything = asyncio.Event()

    async def work(broker: Any) -> None:
        async with broker.consume(EVENT, prefetch=10) as consumer:
            while True:
                received.extend(await receive(consumer, 1))
                if len(received) >= total:
                    everything.set()

    async with bench.declared() as first, bench.opened() as second:
        workers = [asyncio.create_task(work(broker)) for broker in (first, second)]
        await first.publish_many(EVENT, range(total))
        await everything.wait()
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
        assert sorted(received) == list(range(total))
        assert await has_nothing(first, EVENT)


async def test_both_consumers_of_a_queue_receive(bench: Bench) -> None:
    async with (
        bench.declared() as broker,
        bench.opened() as other,
        broker.consume(EVENT, prefetch=1) as one,
        other.consume(EVENT, prefetch=1) as two,
    ):
        await broker.publish_many(EVENT, ["a", "b"])
        first, second = await asyncio.gather(next_one(one), next_one(two))
        assert {first.data, second.data} == {"a", "b"}
        await first.acknowledge()
        await second.acknowledge()


async def test_ids_are_unique(bench: Bench) -> None:
    async with bench.declared() as broker, bench.opened() as other:
        ids = await broker.publish_many(EVENT, range(100))
        ids += await other.publish_many(EVENT, range(100))
        ids.append(await broker.publish(EVENT, 1))
        assert all(isinstance(identity, str) and identity for identity in ids)
        assert len(set(ids)) == 201


async def test_publish_many_without_items_returns_no_ids(bench: Bench) -> None:
    async with bench.declared() as broker:
        assert await broker.publish_many(EVENT, []) == []
        assert await has_nothing(broker, EVENT)


async def test_many_are_published_from_a_generator_in_order(bench: Bench) -> None:
    async with bench.declared() as broker, broker.consume(EVENT, prefetch=500) as consumer:
        ids = await broker.publish_many(EVENT, ({"n": number} for number in range(2_000)))
        received: list[Delivery] = []
        while len(received) < 2_000:
            batch = await consumer.batch(500)
            received.extend(batch)
            await consumer.acknowledge_all(batch)
        assert [delivery.data["n"] for delivery in received] == list(range(2_000))
        assert [delivery.id for delivery in received] == ids


async def test_a_thousand_concurrent_publishes_all_arrive(bench: Bench) -> None:
    async with bench.declared() as broker, broker.consume(EVENT, prefetch=1_000) as consumer:
        await asyncio.gather(*(broker.publish(EVENT, number) for number in range(1_000)))
        assert sorted(await receive(consumer, 1_000)) == list(range(1_000))


async def test_a_body_above_the_limit_is_refused_and_not_sent(bench: Bench) -> None:
    async with bench.declared(max_body_bytes=1_000) as broker:
        with pytest.raises(UsageError):
            await broker.publish(EVENT, "x" * 1_000)
        with pytest.raises(UsageError):
            await broker.call(EVENT, "x" * 1_000)
        with pytest.raises(UsageError):
            await broker.publish_many(EVENT, ["x" * 1_000])
        await broker.publish(EVENT, "x" * 998)
        async with broker.consume(EVENT) as consumer:
            assert await receive(consumer, 1) == ["x" * 998]


async def test_a_large_body_arrives(bench: Bench) -> None:
    async with bench.declared() as broker, broker.consume(EVENT) as consumer:
        large = {"members": ["x" * 100] * 40_000}
        await broker.publish(EVENT, large)
        assert await receive(consumer, 1) == [large]


async def test_data_that_cannot_be_encoded_is_refused_and_not_sent(bench: Bench) -> None:
    async with bench.declared() as broker:
        with pytest.raises(UsageError):
            await broker.publish(EVENT, object())
        assert await has_nothing(broker, EVENT)


@pytest.mark.parametrize("name", ["", "a:b"])
async def test_names_that_would_be_ambiguous_are_refused(bench: Bench, name: str) -> None:
    async with bench.opened() as broker:
        with pytest.raises(UsageError):
            await broker.declare(name)
        with pytest.raises(UsageError):
            await broker.declare(EVENT, subgroup=name)
        with pytest.raises(UsageError):
            await broker.publish(name, 1)
        with pytest.raises(UsageError):
            await broker.publish_many(name, [1])
        with pytest.raises(UsageError):
            await broker.call(name, 1)
        with pytest.raises(UsageError):
            broker.consume(name)
        with pytest.raises(UsageError):
            broker.consume(EVENT, subgroup=name)
        with pytest.raises(UsageError):
            await broker.dead_letters(name)
    with pytest.raises(UsageError):
        async with bench.opened(group=name):
            pass


async def test_a_consumer_needs_an_event_and_a_prefetch(bench: Bench) -> None:
    async with bench.opened() as broker:
        with pytest.raises(UsageError):
            broker.consume()
        with pytest.raises(UsageError):
            broker.consume(EVENT, prefetch=0)


async def call_over(bench: Bench, event: str) -> None:
    async with bench.declared(event) as broker, broker.consume(event) as consumer:
        calling = asyncio.create_task(broker.call(event, 4))
        delivery = await next_one(consumer)
        assert delivery.event == event
        await answer_doubled(delivery)
        assert await calling == {"doubled": 8}


@pytest.mark.parametrize("event", ["a b", "0", "with.dots-and_more", "#", "e" * 100])
async def test_an_event_may_have_any_plain_name(bench: Bench, event: str) -> None:
    await call_over(bench, event)


@pytest.mark.parametrize("event", ["żółw", "*", "{tag}", "a\nb", "e" * 300, "ż" * 200])
async def test_an_event_with_an_odd_name_works_or_is_refused(bench: Bench, event: str) -> None:
    with contextlib.suppress(UsageError):
        await call_over(bench, event)


async def test_one_consumer_reads_several_events(bench: Bench) -> None:
    events = [f"EVENT_{number}" for number in range(8)]
    async with bench.opened() as broker, broker.consume(*events) as consumer:
        for number in range(5):
            for event in events:
                await broker.publish(event, number)
        taken = await take(consumer, 40)
        await consumer.acknowledge_all(taken)
        for event in events:
            assert [each.data for each in taken if each.event == event] == list(range(5))
    async with bench.opened() as broker:
        assert await has_nothing(broker, *events)


async def test_an_event_named_twice_is_consumed_once(bench: Bench) -> None:
    async with bench.declared() as broker, broker.consume(EVENT, EVENT) as consumer:
        await broker.publish_many(EVENT, range(3))
        assert await receive(consumer, 3) == [0, 1, 2]


async def test_events_do_not_mix(bench: Bench) -> None:
    async with bench.declared(EVENT, "OTHER") as broker, broker.consume("OTHER") as consumer:
        await broker.publish(EVENT, "not for it")
        await broker.publish("OTHER", "for it")
        assert await receive(consumer, 1) == ["for it"]
        async with broker.consume(EVENT) as rest:
            assert await receive(rest, 1) == ["not for it"]


async def test_a_waiting_batch_ends_when_the_consumer_is_closed(bench: Bench) -> None:
    async with bench.declared() as broker:
        consumer = broker.consume(EVENT)
        await consumer.open()

        async def read() -> list[Any]:
            return [delivery.data async for delivery in consumer]

        reading = asyncio.create_task(read())
        await broker.publish(EVENT, 1)
        await asyncio.sleep(0.05)
        await consumer.close()
        assert await reading in ([], [1])
        with pytest.raises(StopAsyncIteration):
            await consumer.batch(1)


async def test_a_waiting_batch_ends_when_the_broker_is_closed(bench: Bench) -> None:
    async with bench.opened() as broker:
        consumer = broker.consume(EVENT)
        await consumer.open()

        async def read() -> list[Any]:
            return [delivery.data async for delivery in consumer]

        reading = asyncio.create_task(read())
        await asyncio.sleep(0.05)
        await broker.close()
        assert await reading == []


async def test_closing_twice_is_fine(bench: Bench) -> None:
    async with bench.opened() as broker:
        async with broker.consume(EVENT) as consumer:
            await consumer.close()
            await consumer.close()
        await broker.close()
        await broker.close()


async def test_a_closed_broker_refuses_to_publish(bench: Bench) -> None:
    async with bench.declared() as keeper:
        async with bench.opened() as broker:
            await broker.close()
            with pytest.raises(UsageError):
                await broker.publish(EVENT, 1)
        assert await has_nothing(keeper, EVENT)


async def test_a_close_waits_for_running_publishes(bench: Bench) -> None:
    async with bench.declared() as keeper:
        broker = await open_broker(bench.url, msgspec.structs.replace(keeper.settings))
        publishing = [asyncio.create_task(broker.publish(EVENT, number)) for number in range(50)]
        await asyncio.sleep(0)
        await broker.close()
        assert len(set(await asyncio.gather(*publishing))) == 50
        async with keeper.consume(EVENT) as consumer:
            assert sorted(await receive(consumer, 50)) == list(range(50))


async def test_a_cancelled_batch_loses_no_messages(bench: Bench) -> None:
    async with bench.declared() as broker:
        async with broker.consume(EVENT) as consumer:
            waiting = asyncio.create_task(consumer.batch(1))
            await asyncio.sleep(0.02)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            await broker.publish_many(EVENT, range(3))
            assert await receive(consumer, 3) == [0, 1, 2]
        assert await has_nothing(broker, EVENT)


async def test_a_consumer_can_publish_the_messages_it_consumes(bench: Bench) -> None:
    async with bench.declared(EVENT, "NEXT") as broker, broker.consume(EVENT, "NEXT") as consumer:
        await broker.publish(EVENT, 0)
        for number in range(10):
            delivery = await next_one(consumer)
            assert delivery.data == number
            await broker.publish("NEXT", number + 1)
            await delivery.acknowledge()


async def test_an_undecodable_body_is_handed_out_and_can_be_rejected(bench: Bench) -> None:
    async with bench.declared() as broker, broker.consume(EVENT) as consumer:
        await broker.publish(EVENT, msgspec.Raw(b"{not json"))
        delivery = await next_one(consumer)
        with pytest.raises(UndecodableError):
            _ = delivery.data
        await delivery.reject("undecodable")
        (letter,) = await dead_letters_of(broker, EVENT, 1)
        assert letter.body == b"{not json"


async def test_a_broker_that_runs_answers_a_ping_and_a_closed_one_does_not(bench: Bench) -> None:
    async with bench.opened() as broker:
        await broker.ping()
    with pytest.raises((UsageError, BrokerUnreachableError)):
        await broker.ping()


@pytest.mark.parametrize("name", ["a:b", ":", "a:"])
async def test_a_colon_in_a_name_is_refused_with_the_reason(bench: Bench, name: str) -> None:
    with pytest.raises(UsageError, match="Colons separate group, subgroup and event"):
        await open_broker(bench.url, BrokerSettings(group=name))
    async with bench.opened() as broker:
        with pytest.raises(UsageError, match=r"cannot name a subgroup: .* Colons separate"):
            await broker.declare(EVENT, subgroup=name)


async def test_letters_beyond_ascii_name_groups_where_the_protocol_allows_it(bench: Bench) -> None:
    if bench.kind == "rabbitmq":
        with pytest.raises(UsageError, match=r"ASCII letters, .* to which AMQP 0-9-1 limits names"):
            await open_broker(bench.url, BrokerSettings(group="Ärger"))
        return
    async with (
        await open_broker(bench.url, BrokerSettings(group="Ärger")) as broker,
        broker.consume(EVENT, subgroup="łąka") as consumer,
    ):
        await broker.publish(EVENT, "ü")
        assert await receive(consumer, 1) == ["ü"]
