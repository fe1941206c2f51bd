"""Dead letters that are counted, replayed and dropped: one suite, run against every broker."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from keywright.testing import Raw, RedisServer
from keywright_messaging import Broker, BrokerSettings, open_broker
from keywright_messaging.contract import LETTERS_AT_ONCE
from keywright_messaging.errors import BrokerUnreachableError
from keywright_messaging.testing.rabbitmq import RabbitServer

from .broker_bench import EVENT, Bench, dead_letters_of, has_nothing, next_one, receive

pytestmark = pytest.mark.anyio


async def bury(broker: Broker, count: int, subgroup: str | None = None) -> None:
    """Publish numbers, and reject them for good in one group."""
    await broker.publish_many(EVENT, range(count))
    async with broker.consume(EVENT, subgroup=subgroup, prefetch=count) as consumer:
        for _ in range(count):
            await (await next_one(consumer)).reject("broken")
    await asyncio.wait_for(_all_buried(broker, count, subgroup), 20)


async def _all_buried(broker: Broker, count: int, subgroup: str | None) -> None:
    while await broker.count_dead_letters(EVENT, subgroup=subgroup) < count:  # noqa: ASYNC110
        await asyncio.sleep(0.02)  # the progress of another process has no event


async def test_replayed_dead_letters_are_delivered_again_in_order_as_new(bench: Bench) -> None:
    async with bench.declared() as broker:
        await bury(broker, 3)
        assert await broker.replay_dead_letters(EVENT) == 3
        assert await broker.count_dead_letters(EVENT) == 0
        async with broker.consume(EVENT) as consumer:
            first = await next_one(consumer)
            assert (first.data, first.attempt) == (0, 1)
            await first.acknowledge()
            assert await receive(consumer, 2) == [1, 2]
        assert await has_nothing(broker, EVENT)


async def test_the_oldest_dead_letters_are_replayed_or_dropped_first(bench: Bench) -> None:
    async with bench.declared() as broker:
        await bury(broker, 4)
        assert await broker.replay_dead_letters(EVENT, limit=1) == 1
        assert await broker.drop_dead_letters(EVENT, limit=1) == 1
        assert [letter.body for letter in await broker.dead_letters(EVENT)] == [b"2", b"3"]
        assert await broker.drop_dead_letters(EVENT) == 2
        async with broker.consume(EVENT) as consumer:
            assert await receive(consumer, 1) == [0]
        assert await has_nothing(broker, EVENT)
        assert await broker.replay_dead_letters(EVENT) == await broker.drop_dead_letters(EVENT) == 0
        assert await broker.count_dead_letters("NEVER") == await broker.drop_dead_letters("NEVER") == 0


async def test_many_dead_letters_are_replayed_once_each(bench: Bench) -> None:
    many = 2 * LETTERS_AT_ONCE + 1
    async with bench.declared() as broker:
        await bury(broker, many)
        assert await broker.replay_dead_letters(EVENT) == many
        async with broker.consume(EVENT) as consumer:
            assert await receive(consumer, many) == list(range(many))


async def test_a_replay_reaches_the_group_of_the_dead_letters_only(bench: Bench) -> None:
    async with bench.declared() as broker:
        await broker.declare(EVENT, subgroup="log")
        await bury(broker, 2, subgroup="log")
        async with broker.consume(EVENT) as consumer:
            assert await receive(consumer, 2) == [0, 1]
        assert await broker.replay_dead_letters(EVENT, subgroup="log") == 2
        async with broker.consume(EVENT, subgroup="log") as consumer:
            assert await receive(consumer, 2) == [0, 1]
        assert await has_nothing(broker, EVENT)


async def test_a_letter_that_fails_again_is_not_replayed_again(bench: Bench) -> None:
    async with bench.declared() as broker:
        await bury(broker, 1)
        assert await broker.replay_dead_letters(EVENT) == 1
        async with broker.consume(EVENT) as consumer:
            await (await next_one(consumer)).reject("still broken")
        [letter] = await dead_letters_of(broker, EVENT, 1)
        assert (letter.body, letter.reason, letter.attempts) == (b"0", "still broken", 1)


async def test_a_replay_after_the_stream_was_trimmed_has_the_body(redis_url: str, raw: Raw) -> None:
    async with await open_broker(redis_url, BrokerSettings()) as broker:
        await broker.declare(EVENT)
        await bury(broker, 1)
        raw("XTRIM", EVENT, "MAXLEN", 0)
        assert await broker.replay_dead_letters(EVENT) == 1
        async with broker.consume(EVENT) as consumer:
            assert await receive(consumer, 1) == [0]


async def test_dead_letters_stay_when_redis_is_away(redis_url: str) -> None:
    with RedisServer() as server:
        async with await open_broker(
            server.url, BrokerSettings(connect_timeout=timedelta(seconds=0.2))
        ) as broker:
            await broker.declare(EVENT)
            await bury(broker, 2)
            server.kill()
            with pytest.raises(BrokerUnreachableError):
                await broker.replay_dead_letters(EVENT)
            server.start()
            assert await broker.replay_dead_letters(EVENT) == 2


async def test_dead_letters_stay_when_rabbitmq_dies_between_publish_and_removal(
    amqp_url: str, keywright_rabbitmq: RabbitServer
) -> None:
    async with await open_broker(amqp_url, BrokerSettings()) as broker:
        await broker.declare(EVENT)
        await bury(broker, 50)
        replaying = asyncio.create_task(broker.replay_dead_letters(EVENT))
        await asyncio.to_thread(keywright_rabbitmq.kill)
        await asyncio.to_thread(keywright_rabbitmq.start)
        await asyncio.wait([replaying])
        if replaying.exception() is not None:
            await broker.replay_dead_letters(EVENT)
        found: set[int] = set()
        async with broker.consume(EVENT) as consumer:
            while len(found) < 50:
                found |= set(await receive(consumer, 1))
        assert found == set(range(50))
