"""The contract of acknowledging, rejecting and dead letters, for every broker."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from keywright.errors import UsageError
from keywright_messaging import decode

from .broker_bench import (
    EVENT,
    Bench,
    dead_letters_of,
    has_nothing,
    next_one,
    receive,
    take,
)

pytestmark = pytest.mark.anyio


SOON = timedelta(milliseconds=20)


async def test_the_unacknowledged_come_back_after_a_close_with_a_larger_attempt(bench: Bench) -> None:
    async with bench.declared() as broker:
        await broker.publish_many(EVENT, range(6))
        async with broker.consume(EVENT) as first:
            taken = await take(first, 6)
            await taken[0].acknowledge()
            await taken[3].acknowledge()
        async with broker.consume(EVENT) as second:
            again = await take(second, 4)
            assert sorted(delivery.data for delivery in again) == [1, 2, 4, 5]
            assert {delivery.id for delivery in again} == {taken[index].id for index in (1, 2, 4, 5)}
            assert all(delivery.attempt > 1 for delivery in again)
            await second.acknowledge_all(again)
        assert await has_nothing(broker, EVENT)


async def test_prefetched_messages_that_were_not_taken_are_redelivered(bench: Bench) -> None:
    async with bench.declared() as broker:
        await broker.publish_many(EVENT, range(50))
        async with broker.consume(EVENT, prefetch=50) as first:
            await receive(first, 1)
        async with bench.opened() as other, other.consume(EVENT) as second:
            assert sorted(await receive(second, 49)) == list(range(1, 50))


async def test_closing_the_broker_gives_the_unsettled_back(bench: Bench) -> None:
    async with bench.declared() as keeper:
        async with bench.opened() as broker:
            consumer = broker.consume(EVENT)
            await consumer.open()
            await broker.publish(EVENT, "again")
            await next_one(consumer)
        async with keeper.consume(EVENT) as second:
            assert await receive(second, 1) == ["again"]


async def test_settling_after_the_close_does_not_remove_the_message(bench: Bench) -> None:
    async with bench.declared() as broker:
        await broker.publish_many(EVENT, ["a", "b"])
        async with broker.consume(EVENT) as first:
            acknowledged, rejected = await take(first, 2)
        await acknowledged.acknowledge()
        await rejected.reject("too late")
        async with broker.consume(EVENT) as second:
            assert sorted(await receive(second, 2)) == ["a", "b"]
        assert await broker.dead_letters(EVENT) == []


@pytest.mark.parametrize("prefetch", [1, 3])
async def test_at_most_the_prefetch_is_unsettled(bench: Bench, prefetch: int) -> None:
    async with bench.declared() as broker, broker.consume(EVENT, prefetch=prefetch) as consumer:
        await broker.publish_many(EVENT, range(10))
        held = await take(consumer, prefetch)
        received = [delivery.data for delivery in held]
        while len(received) < 10:
            waiting = asyncio.create_task(next_one(consumer))
            await broker.publish(EVENT, "a round trip")
            await asyncio.sleep(0)
            assert not waiting.done()
            await held.pop(0).acknowledge()
            held.append(await waiting)
            received.append(held[-1].data)
        assert received == list(range(10))


async def test_the_prefetch_bounds_a_batch(bench: Bench) -> None:
    async with bench.declared() as broker, broker.consume(EVENT, prefetch=4) as consumer:
        await broker.publish_many(EVENT, range(20))
        received: list[int] = []
        while len(received) < 20:
            batch = await consumer.batch(100)
            assert 1 <= len(batch) <= 4
            received.extend(delivery.data for delivery in batch)
            await consumer.acknowledge_all(batch)
        assert received == list(range(20))


async def test_a_batch_is_at_most_as_large_as_asked(bench: Bench) -> None:
    async with bench.declared() as broker, broker.consume(EVENT) as consumer:
        await broker.publish_many(EVENT, range(20))
        received: list[int] = []
        while len(received) < 20:
            batch = await consumer.batch(6)
            assert 1 <= len(batch) <= 6
            received.extend(delivery.data for delivery in batch)
        assert received == list(range(20))


async def test_deliveries_acknowledged_together_are_not_redelivered(bench: Bench) -> None:
    async with bench.declared() as broker:
        await broker.publish_many(EVENT, range(10))
        async with broker.consume(EVENT) as consumer:
            taken = await take(consumer, 10)
            await consumer.acknowledge_all(taken[::2])
            await consumer.acknowledge_all([])
        async with broker.consume(EVENT) as consumer:
            assert sorted(await receive(consumer, 5)) == [1, 3, 5, 7, 9]
        assert await has_nothing(broker, EVENT)


async def test_a_consumer_is_an_iterator(bench: Bench) -> None:
    async with bench.declared() as broker, broker.consume(EVENT) as consumer:
        await broker.publish_many(EVENT, range(3))
        received = []
        async for delivery in consumer:
            received.append(delivery.data)
            await delivery.acknowledge()
            if len(received) == 3:
                break
        assert received == [0, 1, 2]


async def test_settling_twice_is_an_error(bench: Bench) -> None:
    async with bench.declared() as broker, broker.consume(EVENT) as consumer:
        await broker.publish_many(EVENT, range(3))
        acknowledged, rejected, together = await take(consumer, 3)
        await acknowledged.acknowledge()
        with pytest.raises(UsageError):
            await acknowledged.acknowledge()
        with pytest.raises(UsageError):
            await acknowledged.reject("changed my mind")
        await rejected.reject("no")
        with pytest.raises(UsageError):
            await rejected.acknowledge()
        await consumer.acknowledge_all([together])
        with pytest.raises(UsageError):
            await consumer.acknowledge_all([together])
        assert [letter.reason for letter in await dead_letters_of(broker, EVENT, 1)] == ["no"]


async def test_acknowledging_a_settled_delivery_among_others_acknowledges_none(bench: Bench) -> None:
    async with bench.declared() as broker:
        async with broker.consume(EVENT) as consumer:
            await broker.publish_many(EVENT, range(3))
            settled, other, doubled = await take(consumer, 3)
            await settled.acknowledge()
            with pytest.raises(UsageError, match=settled.id):
                await consumer.acknowledge_all([other, settled])
            with pytest.raises(UsageError, match=doubled.id):
                await consumer.acknowledge_all([doubled, doubled])
            await other.acknowledge()
        async with broker.consume(EVENT) as consumer:
            assert await receive(consumer, 1) == [2]
        assert await has_nothing(broker, EVENT)


async def test_a_rejected_message_is_a_dead_letter_that_says_why(bench: Bench) -> None:
    async with bench.declared() as broker:
        await broker.publish(EVENT, {"bad": 1})
        async with broker.consume(EVENT) as consumer:
            delivery = await next_one(consumer)
            await delivery.reject("ValueError: za dużo, 100 %")
        (letter,) = await dead_letters_of(broker, EVENT, 1)
        assert (letter.event, letter.reason, letter.attempts) == (EVENT, "ValueError: za dużo, 100 %", 1)
        assert decode(letter.body) == {"bad": 1}
        assert abs(datetime.now(UTC) - letter.at) < timedelta(minutes=5)
        assert await has_nothing(broker, EVENT)


async def test_dead_letters_are_listed_oldest_first_up_to_a_limit_and_stay(bench: Bench) -> None:
    async with bench.declared() as broker:
        await broker.publish_many(EVENT, range(5))
        async with broker.consume(EVENT) as consumer:
            for delivery in await take(consumer, 5):
                await delivery.reject(f"reason {delivery.data}")
        for _ in range(2):
            letters = await dead_letters_of(broker, EVENT, 5)
            assert [letter.reason for letter in letters] == [f"reason {number}" for number in range(5)]
        few = await broker.dead_letters(EVENT, limit=2)
        assert [letter.reason for letter in few] == ["reason 0", "reason 1"]


async def test_an_unknown_event_has_no_dead_letters(bench: Bench) -> None:
    async with bench.opened() as broker:
        assert await broker.dead_letters("NEVER") == []


async def test_dead_letters_of_a_subgroup_are_its_own(bench: Bench) -> None:
    async with bench.declared() as broker:
        await broker.declare(EVENT, subgroup="stats")
        await broker.publish(EVENT, 1)
        async with broker.consume(EVENT, subgroup="stats") as consumer:
            await (await next_one(consumer)).reject("only here")
        letters = await dead_letters_of(broker, EVENT, 1, subgroup="stats")
        assert [letter.reason for letter in letters] == ["only here"]
        assert await broker.dead_letters(EVENT) == []


async def test_a_retried_message_comes_again_with_the_next_attempt(bench: Bench) -> None:
    async with bench.declared(retry_after=SOON) as broker, broker.consume(EVENT) as consumer:
        identity = await broker.publish(EVENT, {"try": "again"})
        for attempt in (1, 2, 3):
            delivery = await next_one(consumer)
            assert (delivery.attempt, delivery.data, delivery.event) == (attempt, {"try": "again"}, EVENT)
            assert delivery.id == identity
            if attempt < 3:
                await delivery.reject("not yet", retry=True)
        await delivery.acknowledge()
        assert await broker.dead_letters(EVENT) == []


async def test_a_retried_message_waits_while_others_pass(bench: Bench) -> None:
    settings = {"retry_after": timedelta(seconds=1)}
    async with bench.declared(**settings) as broker, broker.consume(EVENT, prefetch=1) as consumer:
        await broker.publish(EVENT, "first")
        await (await next_one(consumer)).reject("not yet", retry=True)
        await broker.publish_many(EVENT, ["second", "third"])
        assert [(await receive(consumer, 1))[0] for _ in range(3)] == ["second", "third", "first"]


async def test_a_retry_comes_only_to_the_queue_that_rejected(bench: Bench) -> None:
    async with bench.declared(retry_after=SOON) as broker:
        await broker.declare(EVENT, subgroup="stats")
        await broker.publish(EVENT, "once")
        async with broker.consume(EVENT) as own, broker.consume(EVENT, subgroup="stats") as copy:
            await (await next_one(own)).reject("not yet", retry=True)
            assert await receive(own, 1) == ["once"]
            assert await receive(copy, 1) == ["once"]
        assert await has_nothing(broker, EVENT, subgroup="stats")


async def test_a_retry_survives_the_consumer_that_asked_for_it(bench: Bench) -> None:
    async with bench.declared(retry_after=SOON) as keeper:
        async with bench.opened(retry_after=SOON) as broker, broker.consume(EVENT) as consumer:
            await broker.publish(EVENT, "kept")
            await (await next_one(consumer)).reject("not yet", retry=True)
        async with keeper.consume(EVENT) as later:
            delivery = await next_one(later)
            assert delivery.data == "kept"
            assert delivery.attempt >= 2  # more if it came back to the first consumer before that was closed


async def test_after_the_last_attempt_a_retry_is_a_dead_letter(bench: Bench) -> None:
    async with bench.declared(max_attempts=3, retry_after=SOON) as broker:
        async with broker.consume(EVENT) as consumer:
            await broker.publish(EVENT, "poison")
            for attempt in (1, 2, 3):
                delivery = await next_one(consumer)
                assert delivery.attempt == attempt
                await delivery.reject(f"failed {attempt}", retry=True)
        (letter,) = await dead_letters_of(broker, EVENT, 1)
        assert (letter.reason, letter.attempts, decode(letter.body)) == ("failed 3", 3, "poison")
        assert await has_nothing(broker, EVENT)


async def test_with_one_attempt_the_first_failure_is_final(bench: Bench) -> None:
    async with bench.declared(max_attempts=1) as broker, broker.consume(EVENT) as consumer:
        await broker.publish(EVENT, 1)
        await (await next_one(consumer)).reject("no second chance", retry=True)
        (letter,) = await dead_letters_of(broker, EVENT, 1)
        assert (letter.reason, letter.attempts) == ("no second chance", 1)


async def test_a_message_that_every_consumer_dies_of_becomes_a_dead_letter(bench: Bench) -> None:
    async with bench.declared(max_attempts=3) as broker:
        await broker.publish(EVENT, "killer")
        for attempt in (1, 2, 3):
            async with broker.consume(EVENT) as consumer:
                assert (await next_one(consumer)).attempt == attempt
        async with broker.consume(EVENT) as consumer:
            (letter,) = await dead_letters_of(broker, EVENT, 1)
            assert (letter.attempts, decode(letter.body), letter.event) == (3, "killer", EVENT)
            await broker.publish(EVENT, "harmless")
            assert await receive(consumer, 1) == ["harmless"]
