"""The contract of calls and replies, for every broker."""

from __future__ import annotations

import asyncio
import contextlib
from datetime import timedelta

import msgspec
import pytest

from keywright.errors import UsageError
from keywright_messaging.errors import CallTimeoutError, UndecodableError

from .broker_bench import (
    EVENT,
    Bench,
    answer_doubled,
    next_one,
    receive,
    take,
)

pytestmark = pytest.mark.anyio


class Question(msgspec.Struct):
    guild: str


class Answer(msgspec.Struct):
    members: int


async def test_a_call_is_answered(bench: Bench) -> None:
    async with bench.declared() as caller, bench.opened() as callee, callee.consume(EVENT) as consumer:
        calling = asyncio.create_task(caller.call(EVENT, 21))
        await answer_doubled(await next_one(consumer))
        assert await calling == {"doubled": 42}


async def test_concurrent_calls_get_their_own_answers_in_any_order(bench: Bench) -> None:
    async with bench.declared() as caller, bench.opened() as callee, callee.consume(EVENT) as consumer:
        calls = [asyncio.create_task(caller.call(EVENT, number)) for number in range(20)]
        for delivery in reversed(await take(consumer, 20)):
            await answer_doubled(delivery)
        assert await asyncio.gather(*calls) == [{"doubled": number * 2} for number in range(20)]


async def test_an_answer_is_converted_to_the_type_asked_for(bench: Bench) -> None:
    async with bench.declared() as broker, broker.consume(EVENT) as consumer:
        calling = asyncio.create_task(broker.call(EVENT, Question("1"), reply=Answer))
        delivery = await next_one(consumer)
        assert delivery.convert(Question) == Question("1")
        await delivery.reply(Answer(7))
        assert await calling == Answer(7)


async def test_an_answer_of_another_type_is_an_error(bench: Bench) -> None:
    async with bench.declared() as broker, broker.consume(EVENT) as consumer:
        calling = asyncio.create_task(broker.call(EVENT, 1, reply=Answer))
        await (await next_one(consumer)).reply({"members": "many"})
        with pytest.raises(UndecodableError):
            await calling


async def test_an_answer_may_be_null(bench: Bench) -> None:
    async with bench.declared() as broker, broker.consume(EVENT) as consumer:
        calling = asyncio.create_task(broker.call(EVENT, 1))
        await (await next_one(consumer)).reply(None)
        assert await calling is None


async def test_a_call_without_an_answer_times_out_and_the_message_stays(bench: Bench) -> None:
    async with bench.declared() as broker:
        with pytest.raises(CallTimeoutError) as late:
            await broker.call(EVENT, "unheard", within=timedelta(milliseconds=100))
        assert (late.value.event, late.value.seconds) == (EVENT, 0.1)
        async with broker.consume(EVENT) as consumer:
            assert await receive(consumer, 1) == ["unheard"]


async def test_the_time_of_a_call_is_that_of_the_settings_unless_it_says_otherwise(bench: Bench) -> None:
    async with bench.declared(call_timeout=timedelta(milliseconds=150)) as broker:
        with pytest.raises(CallTimeoutError) as late:
            await broker.call(EVENT, 1)
        assert late.value.seconds == 0.15


async def test_a_reply_without_a_caller_is_dropped(bench: Bench) -> None:
    async with bench.declared() as broker, broker.consume(EVENT) as consumer:
        await broker.publish(EVENT, "not a call")
        delivery = await next_one(consumer)
        await delivery.reply("to nobody")
        await delivery.acknowledge()
        with pytest.raises(CallTimeoutError):
            await broker.call(EVENT, 1, within=timedelta(milliseconds=50))
        late = await next_one(consumer)
        await late.reply("too late")
        await late.acknowledge()
        calling = asyncio.create_task(broker.call(EVENT, 2))
        await answer_doubled(await next_one(consumer))
        assert await calling == {"doubled": 4}, "the late answer went to no other call"


async def test_replying_does_not_acknowledge(bench: Bench) -> None:
    async with bench.declared() as broker:
        async with broker.consume(EVENT) as consumer:
            calling = asyncio.create_task(broker.call(EVENT, 1))
            await (await next_one(consumer)).reply("answered")
            assert await calling == "answered"
        async with broker.consume(EVENT) as consumer:
            assert await receive(consumer, 1) == [1]


async def test_a_call_with_a_timeout_of_zero_fails_and_the_next_is_answered(bench: Bench) -> None:
    async with bench.declared() as broker, broker.consume(EVENT) as consumer:
        with pytest.raises(CallTimeoutError) as late:
            await broker.call(EVENT, "none", within=timedelta(0))
        assert late.value.seconds == 0
        calling = asyncio.create_task(broker.call(EVENT, 1))
        while (delivery := await next_one(consumer)).data == "none":
            await delivery.acknowledge()
        await answer_doubled(delivery)
        assert await calling == {"doubled": 2}


async def test_a_broker_closes_whatever_moment_of_its_first_call_it_is(bench: Bench) -> None:
    """A connection that is being opened must not swallow its cancellation."""
    for microseconds in range(0, 3_000, 100):
        async with asyncio.timeout(20), bench.declared() as broker:
            with contextlib.suppress(CallTimeoutError):
                await broker.call(EVENT, "none", within=timedelta(microseconds=microseconds))


async def test_an_answer_above_the_limit_is_refused(bench: Bench) -> None:
    async with bench.declared(max_body_bytes=1_000) as broker, broker.consume(EVENT) as consumer:
        calling = asyncio.create_task(broker.call(EVENT, 1))
        delivery = await next_one(consumer)
        with pytest.raises(UsageError):
            await delivery.reply("x" * 1_000)
        await delivery.reply("short")
        assert await calling == "short"
