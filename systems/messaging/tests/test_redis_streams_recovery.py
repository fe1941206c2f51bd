"""Recovery of messages whose consumer died, stalled, closed or failed."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest

from keywright import Retry, Settings
from keywright.errors import UsageError
from keywright.testing import RedisServer, wait_until
from keywright_messaging import BrokerSettings, decode
from keywright_messaging.contract import retry_delay
from keywright_messaging.errors import BrokerUnreachableError
from keywright_messaging.redis_streams import RedisStreamsBroker, commands
from keywright_messaging.redis_streams import broker as broker_module
from keywright_messaging.redis_streams import consumer_names as naming
from keywright_messaging.redis_streams.schema import EventStream, GivenUp

from .broker_bench import next_one, receive, take

pytestmark = pytest.mark.anyio


Raw = Callable[..., Any]
"""Sends one command and returns the raw reply."""

HOUR = timedelta(hours=1)
MOMENT = timedelta(milliseconds=100)
SECOND = timedelta(seconds=1)
LAST = 5


@pytest.fixture
def raw(redis_url: str, keywright_server: RedisServer) -> Raw:
    return keywright_server.call


@asynccontextmanager
async def opened(url: str, **settings: Any) -> AsyncIterator[RedisStreamsBroker]:
    async with await RedisStreamsBroker.open(url, BrokerSettings(**settings)) as broker:
        yield broker


def left_by(raw: Raw, consumer: str, *streams: str, count: int = 1000, deliveries: int = 1) -> list[str]:
    """Let a consumer read all entries without settling them, for the given attempt; return the ids."""
    ids = []
    for stream in streams:
        entries = raw("XREADGROUP", "GROUP", "gateway", consumer, "COUNT", count, "STREAMS", stream, ">")
        found = [entry[0].decode() for entry in entries[0][1]]
        stamp = ("IDLE", 0, "RETRYCOUNT", deliveries, "JUSTID")
        raw("XCLAIM", stream, "gateway", consumer, 0, *found, *stamp)
        ids += found
    return ids


def row_of(raw: Raw, stream: str, identity: str) -> dict[str, Any]:
    (row,) = raw("XPENDING", stream, "gateway", identity, identity, 1)
    return dict(zip(("id", "consumer", "idle", "deliveries"), row, strict=True))


def consumers_of(raw: Raw, stream: str) -> set[str]:
    return {facts[1].decode() for facts in raw("XINFO", "CONSUMERS", stream, "gateway")}


def pending_of(raw: Raw, stream: str, group: str = "gateway") -> int:
    return int(raw("XPENDING", stream, group)[0])


async def test_the_entries_of_a_dead_consumer_are_taken_over(redis_url: str, raw: Raw) -> None:
    async with opened(redis_url, claim_after=MOMENT) as broker:
        await broker.declare("A")
        await broker.publish("A", 1)
        left_by(raw, "dead", "A")
        async with broker.consume("A") as consumer:
            delivery = await next_one(consumer)
            assert (delivery.data, delivery.attempt) == (1, 2)
            await delivery.acknowledge()
        assert pending_of(raw, "A") == 0


async def test_every_stream_is_searched_from_its_own_beginning(redis_url: str, raw: Raw) -> None:
    """A shared cursor skips older entries of the other streams: docs/resolutions.md#mistake-1."""
    async with opened(redis_url, claim_after=MOMENT) as broker:
        events = ["A", "B", "C"]
        await broker.declare(*events)
        for event in events:
            await broker.publish_many(event, [f"{event}{n}" for n in range(250)])
        left_by(raw, "dead", *reversed(events))
        async with broker.consume(*events, prefetch=1000) as consumer:
            found = await receive(consumer, 750)
        assert sorted(found) == sorted(f"{event}{n}" for event in events for n in range(250))


async def test_entries_of_a_live_consumer_are_not_taken_over(redis_url: str) -> None:
    settings: dict[str, Any] = {"claim_after": SECOND}
    async with (
        opened(redis_url, **settings) as one,
        opened(redis_url, **settings) as two,
        one.consume("A") as slow,
    ):
        await one.publish_many("A", [1, 2])
        held = await take(slow, 2)
        async with two.consume("A") as other:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(other.batch(1), 2.5)
            await slow.acknowledge_all(held)
            await one.publish("A", "later")
            assert [each.data for each in await take_from(slow, other)] == ["later"]


async def take_from(*consumers: Any) -> list[Any]:
    """Return the batch of the consumer that is first."""
    waiting = [asyncio.create_task(consumer.batch(1)) for consumer in consumers]
    done, late = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    for task in late:
        task.cancel()
    await asyncio.gather(*late, return_exceptions=True)
    return [each for task in done for each in task.result()]


async def test_an_entry_taken_over_by_another_is_not_settled_by_the_first(redis_url: str, raw: Raw) -> None:
    async with opened(redis_url, claim_after=SECOND) as broker, broker.consume("A") as consumer:
        identity = await broker.publish("A", 1)
        delivery = await next_one(consumer)

        def lost() -> bool:
            # Again and again: a consumer that stood still for longer than `claim_after` would take it back.
            raw("XCLAIM", "A", "gateway", "thief", 0, identity, "JUSTID")
            return not delivery.queue.held  # type: ignore[attr-defined]  # a StreamDelivery

        await asyncio.to_thread(wait_until, lost, "the loss is noticed")
        await delivery.acknowledge()
        assert row_of(raw, "A", identity)["consumer"] == b"thief"


async def test_a_restarted_client_gets_its_own_entries_at_once_and_first(redis_url: str, raw: Raw) -> None:
    async with opened(redis_url, client="worker", claim_after=HOUR) as broker:
        await broker.declare("A")
        await broker.publish_many("A", [1, 2])
        left_by(raw, "worker", "A")
        await broker.publish("A", 3)
        async with broker.consume("A") as consumer:
            found = await take(consumer, 3)
            assert [(each.data, each.attempt) for each in found] == [(1, 2), (2, 2), (3, 1)]


async def test_a_process_without_a_name_takes_the_first_free_slot_of_its_host(
    redis_url: str, raw: Raw
) -> None:
    async with (
        opened(redis_url) as one,
        opened(redis_url) as two,
        one.consume("A"),
        two.consume("A"),
        one.consume("A"),
    ):
        names = [broker._names.of(0) for broker in (one, two)]
        assert [name.rpartition("-")[2] for name in names] == ["0", "1"]
        assert one._names.of(1) == f"{names[0]}.2"
        assert len(raw("KEYS", "gateway:consumer:*")) == 2
    assert raw("KEYS", "gateway:consumer:*") == []
    async with opened(redis_url) as again, again.consume("A"):
        assert again._names.of(0) == names[0]


async def test_a_process_that_lost_its_slot_takes_another_and_keeps_its_deliveries(
    redis_url: str, raw: Raw, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(naming, "HOLD", MOMENT * 5)
    async with opened(redis_url, claim_after=MOMENT * 10) as broker, broker.consume("A") as consumer:
        identity = await broker.publish("A", 1)
        delivery = await next_one(consumer)
        first = broker._names.of(0)
        raw("SET", f"gateway:consumer:{first}", "another process")
        second = first.replace("-0", "-1")
        await asyncio.to_thread(
            wait_until, lambda: row_of(raw, "A", identity)["consumer"] == second.encode(), "moved along"
        )
        await delivery.acknowledge()
        assert pending_of(raw, "A") == 0


async def test_two_consumers_of_one_process_have_names_of_their_own(redis_url: str, raw: Raw) -> None:
    async with (
        opened(redis_url, client="me") as broker,
        broker.consume("A", prefetch=1) as one,
        broker.consume("A", prefetch=1) as two,
    ):
        await broker.publish_many("A", [1, 2])
        found = [*await take(one, 1), *await take(two, 1)]
        assert sorted(each.data for each in found) == [1, 2]
        assert consumers_of(raw, "A") == {"me", "me.2"}


async def test_closing_returns_unsettled_entries_and_counts_the_taken_ones(redis_url: str) -> None:
    async with opened(redis_url, claim_after=HOUR) as broker:
        async with broker.consume("A") as consumer:
            await broker.publish_many("A", [1, 2, 3])
            taken = await take(consumer, 1)
        with pytest.raises(StopAsyncIteration):
            await consumer.batch(1)
        await taken[0].acknowledge()
        with pytest.raises(UsageError):
            await taken[0].acknowledge()
        async with opened(redis_url, claim_after=HOUR) as other, other.consume("A") as consumer:
            found = await take(consumer, 3)
            assert sorted((each.data, each.attempt) for each in found) == [(1, 2), (2, 1), (3, 1)]


async def test_after_a_lost_connection_unsettled_entries_are_redelivered_and_not_counted(
    redis_url: str, raw: Raw
) -> None:
    async with opened(redis_url, claim_after=HOUR) as broker, broker.consume("A") as consumer:
        identity = await broker.publish("A", 1)
        old = await next_one(consumer)
        for _ in range(LAST + 1):
            await asyncio.to_thread(wait_until, lambda: b"blocked_clients:1" in raw("INFO"), "it waits")
            raw("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
            again = await next_one(consumer)
            assert (again.id, again.attempt) == (identity, 1)
        await old.acknowledge()
        assert pending_of(raw, "A") == 1
        await again.acknowledge()
        assert pending_of(raw, "A") == 0


async def test_consuming_goes_on_after_the_server_was_killed(
    redis_url: str, keywright_server: RedisServer
) -> None:
    async with opened(redis_url, claim_after=HOUR) as broker, broker.consume("A", "B") as consumer:
        await broker.publish("A", 1)
        held = await next_one(consumer)
        await asyncio.to_thread(keywright_server.kill)
        settling = asyncio.create_task(held.acknowledge())
        await asyncio.to_thread(keywright_server.start)
        await settling
        await broker.publish("B", 2)
        found: list[Any] = []
        while 2 not in found:
            found += await receive(consumer, 1)
        assert set(found) <= {1, 2}


def test_a_retry_waits_twice_as_long_each_time_up_to_a_minute() -> None:
    settings = BrokerSettings(retry_after=SECOND)
    seconds = [retry_delay(settings, attempt).total_seconds() for attempt in range(1, 9)]
    assert seconds == [1, 2, 4, 8, 16, 32, 60, 60]
    assert retry_delay(settings, 10_000) == timedelta(minutes=1)


async def test_a_rejected_message_becomes_idle_enough_when_its_retry_is_due(redis_url: str, raw: Raw) -> None:
    async with opened(redis_url, claim_after=HOUR, retry_after=timedelta(seconds=20)) as broker:
        async with broker.consume("A") as consumer:
            identity = await broker.publish("A", 1)
            await (await next_one(consumer)).reject("busy", retry=True)
        row = row_of(raw, "A", identity)
    due_in = HOUR - timedelta(milliseconds=row["idle"])
    assert row["deliveries"] == 1
    assert timedelta(0) < due_in <= timedelta(seconds=20)
    assert raw("KEYS", "*:dead") == []


async def test_a_retry_survives_the_consumer_that_asked_for_it(redis_url: str) -> None:
    settings: dict[str, Any] = {"claim_after": HOUR, "retry_after": MOMENT}
    async with opened(redis_url, **settings) as broker, broker.consume("A") as consumer:
        await broker.publish("A", 1)
        await (await next_one(consumer)).reject("busy", retry=True)
    async with opened(redis_url, **settings) as broker, broker.consume("A") as consumer:
        again = await next_one(consumer)
        assert (again.data, again.attempt) == (1, 2)


async def test_a_delay_beyond_claim_after_is_kept_while_the_consumer_is_alive(redis_url: str) -> None:
    # A consumer that a busy machine stops for longer than `claim_after` is taken for dead, rightly.
    settings: dict[str, Any] = {"claim_after": SECOND, "retry_after": SECOND * 2}
    async with opened(redis_url, **settings) as broker, broker.consume("A") as consumer:
        await broker.publish("A", 1)
        loop = asyncio.get_running_loop()
        start = loop.time()
        await (await next_one(consumer)).reject("busy", retry=True)
        async with opened(redis_url, **settings) as other, other.consume("A") as second:
            (again,) = await take_from(consumer, second)
        assert again.attempt == 2
        assert loop.time() - start >= 2 * SECOND.total_seconds()


async def test_a_message_that_failed_too_often_is_a_dead_letter_beside_its_stream(
    redis_url: str, raw: Raw
) -> None:
    async with opened(redis_url, retry_after=timedelta(milliseconds=5), max_attempts=3) as broker:
        async with broker.consume("A", subgroup="log") as consumer:
            identity = await broker.publish("A", {"n": 1})
            for attempt in (1, 2, 3):
                delivery = await next_one(consumer)
                assert delivery.attempt == attempt
                await delivery.reject("ValueError: no", retry=True)
        (letter,) = await broker.dead_letters("A", subgroup="log")
        assert (letter.reason, letter.attempts, decode(letter.body)) == ("ValueError: no", 3, {"n": 1})
        assert await broker.dead_letters("A") == []
    ((_, written),) = raw("XRANGE", "{A}:gateway:log:dead", "-", "+")
    fields = dict(zip(written[::2], written[1::2], strict=True))
    assert fields[b"id"].decode() == identity
    assert set(fields) == {b"data", b"reason", b"attempts", b"id", b"at"}
    assert pending_of(raw, "A", "gateway:log") == 0
    assert raw("XLEN", "A") == 1


async def test_a_message_that_ended_its_worker_every_time_is_buried_before_another_delivery(
    redis_url: str, raw: Raw
) -> None:
    async with opened(redis_url, claim_after=MOMENT, max_attempts=LAST) as broker:
        await broker.declare("A")
        await broker.publish("A", "poison")
        left_by(raw, "dead", "A", deliveries=LAST)
        async with broker.consume("A") as consumer:
            await asyncio.to_thread(wait_until, lambda: raw("KEYS", "*:dead"), "it is given up")
            await broker.publish("A", "fine")
            assert await receive(consumer, 1) == ["fine"]
        (letter,) = await broker.dead_letters("A")
        assert (decode(letter.body), letter.attempts) == ("poison", LAST)
        assert "never settled" in letter.reason


async def test_an_outage_while_something_is_given_up_does_not_end_the_consumer(
    redis_url: str, raw: Raw, keywright_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broker_module, "ENGINE", Settings(retry=Retry(attempts=2)))
    async with opened(redis_url, claim_after=MOMENT, connect_timeout=MOMENT) as broker:
        await broker.declare("A")
        await broker.publish("A", "poison")
        left_by(raw, "dead", "A", deliveries=LAST)
        burying, tried = commands.bury, asyncio.Event()

        def bury(*arguments: Any) -> Any:
            if not tried.is_set():
                keywright_server.kill()
            tried.set()
            return burying(*arguments)

        monkeypatch.setattr(commands, "bury", bury)
        async with broker.consume("A") as consumer:
            await tried.wait()
            for _ in range(3):  # by then the burial, which began before, has failed as well
                with pytest.raises(BrokerUnreachableError):
                    await broker.publish("A", "lost")
            await asyncio.to_thread(keywright_server.start)
            await asyncio.to_thread(wait_until, lambda: raw("KEYS", "*:dead"), "it is given up")
            while True:
                with contextlib.suppress(BrokerUnreachableError):
                    await broker.publish("A", "fine")
                    break
            assert (await next_one(consumer)).data == "fine"


@pytest.mark.parametrize("consumer_name", ["dead", "me"])
async def test_last_attempts_come_one_at_a_time(redis_url: str, raw: Raw, consumer_name: str) -> None:
    """Otherwise the neighbours of a message that ends its process would use up their attempts with it."""
    async with opened(redis_url, client="me", claim_after=MOMENT, max_attempts=LAST) as broker:
        await broker.declare("A")
        await broker.publish_many("A", range(3))
        left_by(raw, consumer_name, "A", deliveries=LAST - 1)
        async with broker.consume("A") as consumer:
            for number in range(3):
                (delivery,) = await consumer.batch(10)
                assert (delivery.data, delivery.attempt) == (number, LAST)
                others = [row[3] for row in raw("XPENDING", "A", "gateway", "-", "+", 10)[1:]]
                assert others == [LAST - 1] * (2 - number)
                await delivery.acknowledge()
        assert await broker.dead_letters("A") == []


async def test_with_one_attempt_a_message_is_never_delivered_twice(redis_url: str, raw: Raw) -> None:
    async with opened(redis_url, client="me", claim_after=MOMENT, max_attempts=1) as broker:
        await broker.declare("A")
        await broker.publish("A", 1)
        left_by(raw, "me", "A")
        async with broker.consume("A") as consumer:
            await broker.publish("A", 2)
            assert await receive(consumer, 1) == [2]
            await asyncio.to_thread(wait_until, lambda: raw("KEYS", "*:dead"), "it is given up")


async def test_giving_up_twice_leaves_one_dead_letter(redis_url: str, raw: Raw) -> None:
    async with opened(redis_url) as broker:
        await broker.declare("A")
        identity = await broker.publish("A", 1)
        left_by(raw, "dead", "A")
        letter = GivenUp(
            data=b"1", reason="no", attempts=1, id=identity, at=broker._database.engine.context.now()
        )
        for _ in range(2):
            await broker._database.run(commands.bury(EventStream("A"), "gateway", letter))
        assert len(await broker.dead_letters("A")) == 1


async def test_a_pending_entry_that_was_deleted_is_let_go(redis_url: str, raw: Raw) -> None:
    async with opened(redis_url, claim_after=MOMENT) as broker:
        await broker.declare("A")
        await broker.publish_many("A", [1, 2])
        first, second = left_by(raw, "dead", "A")
        raw("XCLAIM", "A", "gateway", "dead", 0, second, "RETRYCOUNT", LAST, "JUSTID")
        raw("XDEL", "A", first, second)
        async with broker.consume("A") as consumer:
            await asyncio.to_thread(wait_until, lambda: pending_of(raw, "A") == 0, "both are let go")
            await broker.publish("A", 3)
            assert await receive(consumer, 1) == [3]
        assert await broker.dead_letters("A") == []


@pytest.mark.parametrize("retry", [True, False])
async def test_rejecting_a_message_whose_group_was_deleted_does_nothing(
    redis_url: str, raw: Raw, retry: bool
) -> None:
    async with opened(redis_url) as broker, broker.consume("A") as consumer:
        await broker.publish("A", 1)
        delivery = await next_one(consumer)
        raw("XGROUP", "DESTROY", "A", "gateway")
        await delivery.reject("no", retry=retry)
        assert await receive(consumer, 1) == [1]


@pytest.mark.parametrize("prefetch", [1, 2, 3])
async def test_a_busy_consumer_still_takes_over_from_the_dead(
    redis_url: str, raw: Raw, prefetch: int
) -> None:
    async with opened(redis_url, claim_after=MOMENT) as broker:
        await broker.declare("A")
        await broker.publish("A", "left")
        left_by(raw, "dead", "A")
        await broker.publish_many("A", range(2000))
        async with broker.consume("A", prefetch=prefetch) as consumer:
            for _ in range(150):
                delivery = await next_one(consumer)
                await asyncio.sleep(0.01)  # its work
                await delivery.acknowledge()
                if delivery.data == "left":
                    return
    raise AssertionError("it was left for as long as there was anything else")
