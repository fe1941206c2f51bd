"""The streams broker on the wire: names, fields, groups, channels, retention."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from keywright import check
from keywright.errors import KeywrightError, UsageError, WrongTypeError
from keywright.operations import slot_of
from keywright.testing import Raw, RedisServer, wait_until
from keywright_messaging import BrokerSettings
from keywright_messaging.contract import LONGEST_REASON
from keywright_messaging.errors import BrokerError, BrokerUnreachableError, CallTimeoutError
from keywright_messaging.redis_streams import RedisStreamsBroker
from keywright_messaging.redis_streams.schema import EventStream, streams
from keywright_messaging.redis_streams.trimmer import trim

from .broker_bench import next_one, receive, take, until

pytestmark = pytest.mark.anyio


HOUR = timedelta(hours=1)
MOMENT = timedelta(milliseconds=200)


@asynccontextmanager
async def opened(url: str, **settings: Any) -> AsyncIterator[RedisStreamsBroker]:
    async with await RedisStreamsBroker.open(url, BrokerSettings(**settings)) as broker:
        yield broker


def groups_of(raw: Raw, stream: str) -> list[str]:
    return [group[b"name"].decode() for group in raw("XINFO", "GROUPS", stream)]


def pending_of(raw: Raw, stream: str, group: str = "gateway") -> int:
    return int(raw("XPENDING", stream, group)["pending"])


def kept(caller: Any) -> list[bytes]:
    """Return the channels of replies that are kept for calls without an id."""
    return [channel for calls in caller._unnamed.values() for early in calls for channel in early]


def test_the_keyspace_is_proved_sound() -> None:
    assert check(streams) == []


@pytest.mark.parametrize("name", ["", "a:b", "a{b}", "a\n", "ü" * 101, "x" * 201])
async def test_an_ambiguous_name_is_refused(redis_url: str, name: str) -> None:
    async with opened(redis_url) as broker:
        for refused in (
            lambda: broker.publish(name, 1),
            lambda: broker.publish_many(name, [1]),
            lambda: broker.declare("A", subgroup=name),
            lambda: broker.call(name, 1),
            lambda: broker.dead_letters(name),
        ):
            with pytest.raises(UsageError):
                await refused()
        with pytest.raises(UsageError):
            broker.consume(name)
    for settings in (BrokerSettings(group=name), BrokerSettings(client=name)):
        with pytest.raises(UsageError):
            await RedisStreamsBroker.open(redis_url, settings)


async def test_a_name_of_200_bytes_with_odd_characters_is_fine(redis_url: str) -> None:
    event = "ü*[?" + "x" * 195
    async with opened(redis_url, group="a b*") as broker, broker.consume(event) as consumer:
        calling = asyncio.create_task(broker.call(event, 20))
        delivery = await next_one(consumer)
        await delivery.reply(delivery.data + 1)
        assert await calling == 21


async def test_publishing_appends_an_entry_with_the_one_field_data(redis_url: str, raw: Raw) -> None:
    async with opened(redis_url) as broker:
        first = await broker.publish("MESSAGE_CREATE", {"content": "hi"})
        (second,) = await broker.publish_many("MESSAGE_CREATE", [msgspec.Raw(b'{"n":1}')])
    assert raw("XRANGE", "MESSAGE_CREATE", "-", "+") == [
        (first.encode(), {b"data": b'{"content":"hi"}'}),
        (second.encode(), {b"data": b'{"n":1}'}),
    ]
    assert raw("KEYS", "*") == [b"MESSAGE_CREATE"]


async def test_a_prefix_keeps_two_bots_on_one_server_apart(redis_url: str, raw: Raw) -> None:
    async with opened(redis_url, prefix="one") as one, opened(redis_url, prefix="two") as two:
        await one.declare("A")
        await two.declare("A")
        await one.publish("A", 1)
        async with two.consume("A") as consumer:
            await two.publish("A", 2)
            assert await receive(consumer, 1) == [2]
        async with one.consume("A") as consumer:
            delivery = await next_one(consumer)
            await delivery.reject("no")
        assert await two.dead_letters("A") == []
        assert len(await one.dead_letters("A")) == 1
    assert all(key.startswith((b"one:", b"two:")) for key in raw("KEYS", "*"))


async def test_entries_of_another_client_are_delivered(redis_url: str, raw: Raw) -> None:
    raw("XADD", "A", "1-1", "data", b"\x81\xa1a\x01")
    raw("XADD", "A", "1-2", "data", b"2", "timeout_at", time.time_ns() - 1)
    raw("XADD", "A", "1-3", "timeout_at", time.time_ns() + 10**12, "data", b"3")
    raw("XADD", "A", "1-4", "other", b"x")
    async with opened(redis_url) as broker, broker.consume("A") as consumer:
        packed, late, timely, foreign = await take(consumer, 4)
        assert (packed.data, late.data, timely.data, foreign.body) == ({"a": 1}, 2, 3, b"")
        assert [each.id for each in (packed, late)] == ["1-1", "1-2"]
        assert [each.wants_reply for each in (packed, late, timely)] == [True, False, True]


async def test_an_entry_with_a_malformed_deadline_does_not_stop_the_consumer(
    redis_url: str, raw: Raw
) -> None:
    raw("XADD", "A", "1-1", "data", b"1", "timeout_at", b"9" * 5000)
    raw("XADD", "A", "1-2", "data", b"2")
    async with asyncio.timeout(10), opened(redis_url) as broker, broker.consume("A") as consumer:
        assert await receive(consumer, 2) == [1, 2]


async def test_a_long_reason_of_a_dead_letter_is_cut(redis_url: str, raw: Raw) -> None:
    raw("XADD", "A", "1-1", "data", b"1")
    async with opened(redis_url) as broker, broker.consume("A") as consumer:
        await (await next_one(consumer)).reject("x" * 1_000_000)
        [dead] = await broker.dead_letters("A")
        assert dead.reason == "x" * LONGEST_REASON


async def test_groups_and_subgroups_are_consumer_groups(redis_url: str, raw: Raw) -> None:
    async with opened(redis_url, group="gateway") as broker:
        await broker.declare("A", "B")
        await broker.declare("A", subgroup="log")
        await broker.declare("A", subgroup="log")
    assert sorted(groups_of(raw, "A")) == ["gateway", "gateway:log"]
    assert groups_of(raw, "B") == ["gateway"]


async def test_a_group_reads_entries_older_than_itself(redis_url: str, raw: Raw) -> None:
    raw("XADD", "A", "*", "data", b"1")
    async with opened(redis_url) as broker, broker.consume("A") as consumer:
        assert await receive(consumer, 1) == [1]


async def test_streams_that_do_not_exist_yet_can_be_consumed(redis_url: str) -> None:
    """XREADGROUP fails as a whole with NOGROUP when one of its streams has no group."""
    async with opened(redis_url) as broker, broker.consume("A", "B", "C") as consumer:
        await broker.publish("C", 3)
        assert await receive(consumer, 1) == [3]


@pytest.mark.parametrize("deletion", [("DEL", "B"), ("XGROUP", "DESTROY", "B", "gateway"), ("FLUSHALL",)])
async def test_a_stream_or_group_deleted_under_the_reader_is_made_again(
    redis_url: str, raw: Raw, deletion: tuple[str, ...]
) -> None:
    async with opened(redis_url) as broker, broker.consume("A", "B") as consumer:
        await broker.publish("B", 1)
        assert await receive(consumer, 1) == [1]
        raw(*deletion)
        await broker.publish("A", "after")
        await broker.publish("B", "after")
        found: list[Any] = []
        while found.count("after") < 2:
            found += await receive(consumer, 1)


async def test_entries_held_when_their_group_was_deleted_are_redelivered_and_free_their_room(
    redis_url: str, raw: Raw
) -> None:
    async with opened(redis_url) as broker, broker.consume("A", prefetch=3) as consumer:
        await broker.publish_many("A", [1, 2])
        old = await take(consumer, 2)
        raw("XGROUP", "DESTROY", "A", "gateway")
        again = await take(consumer, 2)
        assert [each.data for each in again] == [1, 2]
        await consumer.acknowledge_all([*old, *again])
        await broker.publish_many("A", [3, 4, 5])
        assert [each.data for each in await take(consumer, 3)] == [3, 4, 5]


async def test_acknowledging_settles_and_does_not_delete(redis_url: str, raw: Raw) -> None:
    async with opened(redis_url) as broker:
        await broker.declare("A", subgroup="other")
        async with broker.consume("A", "B") as consumer:
            await broker.publish_many("A", range(60))
            await broker.publish_many("B", range(40))
            taken = await take(consumer, 100)
            before = raw.calls_of("xack")
            await consumer.acknowledge_all(taken)
        assert raw.calls_of("xack") - before == 2
        assert (pending_of(raw, "A"), pending_of(raw, "B")) == (0, 0)
        assert raw("XLEN", "A") == 60
        async with broker.consume("A", subgroup="other") as consumer:
            assert await receive(consumer, 60) == list(range(60))


@pytest.mark.parametrize("events", [["A"], ["A", "B", "C"]])
async def test_at_most_the_prefetch_is_handed_out_and_little_more_is_fetched(
    redis_url: str, raw: Raw, events: list[str]
) -> None:
    async with opened(redis_url) as broker, broker.consume(*events, prefetch=4) as consumer:
        for event in events:
            await broker.publish_many(event, range(50))
        out = await take(consumer, 4)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(consumer.batch(1), 0.3)
        assert sum(pending_of(raw, event) for event in events) <= 4 + len(events) - 1
        await out[0].acknowledge()
        assert len(await consumer.batch(10)) == 1


async def test_a_busy_stream_does_not_hold_up_the_others(redis_url: str) -> None:
    async with opened(redis_url) as broker:
        await broker.declare("BUSY", *(f"E{n}" for n in range(20)))
        await broker.publish_many("BUSY", range(3000))
        async with broker.consume("BUSY", *(f"E{n}" for n in range(20)), prefetch=100) as consumer:
            found = await receive(consumer, 100)
            await broker.publish("E7", "here")
            for _ in range(4):
                found += await receive(consumer, 100)
            assert "here" in found
            for _ in range(25):
                found += await receive(consumer, 100)
            found += await receive(consumer, 1)
            assert [each for each in found if each != "here"] == list(range(3000))


async def test_a_reply_goes_to_the_channel_of_event_colon_id(redis_url: str) -> None:
    async with opened(redis_url) as broker, broker.consume("A") as consumer:
        identity = await broker.publish("A", 1)
        channel = f"A:{identity}".encode()
        async with broker._database.engine.subscribe(channel) as messages:
            delivery = await next_one(consumer)
            await delivery.reply({"x": 2})
            assert await anext(messages) == (channel, b'{"x":2}')


async def test_a_foreign_consumer_can_answer_a_call(redis_url: str, raw: Raw) -> None:
    async with opened(redis_url) as broker:
        calling = asyncio.create_task(broker.call("A", 1))
        read = await asyncio.to_thread(raw, "XREAD", "BLOCK", 20_000, "STREAMS", "A", "0")
        identity = read[0][1][0][0].decode()
        raw("PUBLISH", f"A{identity}", b'"no colon"')
        raw("PUBLISH", f"A:{identity}", b'"answer"')
        assert await calling == "answer"


async def test_a_call_is_published_only_when_the_server_has_confirmed_the_subscription(
    redis_url: str, raw: Raw
) -> None:
    async with opened(redis_url) as broker:
        seen: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        async def publish() -> str:
            seen.set_result(raw("PUBSUB", "NUMPAT"))
            return "0-1"

        calling = asyncio.create_task(broker._caller.call("A", publish, timedelta(seconds=60)))
        assert await seen == 1
        calling.cancel()


async def test_a_reply_that_is_faster_than_the_id_of_its_message_is_not_missed(
    redis_url: str, raw: Raw
) -> None:
    async with opened(redis_url) as broker:
        caller = broker._caller

        async def publish() -> str:
            identity = await broker.publish("A", 1)
            for reply in (f"A:{identity}", "A:7-7"):
                raw("PUBLISH", reply, b"early")
            await asyncio.to_thread(wait_until, lambda: len(kept(caller)) == 2, "both replies arrived")
            return identity

        assert await caller.call("A", publish, timedelta(seconds=20)) == b"early"
        assert (kept(caller), caller._waiting) == ([], {})


async def test_calls_go_on_after_their_connection_was_lost(redis_url: str, raw: Raw) -> None:
    async with opened(redis_url) as broker, broker.consume("A") as consumer:

        async def answer() -> None:
            async for delivery in consumer:
                await delivery.reply(delivery.data)
                await delivery.acknowledge()

        answering = asyncio.create_task(answer())
        assert await broker.call("A", 1) == 1
        subscription = broker._caller._subscription
        assert subscription is not None
        raw("CLIENT", "KILL", "TYPE", "pubsub")
        await asyncio.to_thread(wait_until, lambda: subscription.interruptions == 1, "noticed")
        assert await broker.call("A", 2) == 2
        answering.cancel()


async def test_entries_that_a_group_has_not_read_survive_the_retention(redis_url: str, raw: Raw) -> None:
    async with opened(redis_url, retention=MOMENT) as broker:
        await broker.declare("A")
        await broker.publish_many("A", range(300))
        await broker.publish("UNREAD", 1)
        await asyncio.to_thread(wait_until, lambda: raw("XLEN", "UNREAD") == 0, "the trimmer has passed")
        async with broker.consume("A", prefetch=500) as consumer:
            assert await receive(consumer, 300) == list(range(300))
            await asyncio.to_thread(wait_until, lambda: raw("XLEN", "A") == 0, "what is settled is trimmed")
            await broker.publish("A", "later")
            assert await receive(consumer, 1) == ["later"]


async def test_a_stream_is_cut_where_its_slowest_group_stands(redis_url: str, raw: Raw) -> None:
    for number in range(1, 1001):
        raw("XADD", "A", f"{number}-1", "data", b"%d" % number)
    raw("XGROUP", "CREATE", "A", "fast", "$")
    raw("XGROUP", "CREATE", "A", "slow", "600-1")
    raw("XREADGROUP", "GROUP", "slow", "c", "COUNT", 10, "STREAMS", "A", ">")
    async with opened(redis_url, retention=None) as broker:

        async def cut(retention: timedelta) -> tuple[int, str]:
            removed = await broker._database.engine.run(trim(EventStream("A"), retention))
            return removed, raw("XRANGE", "A", "-", "+", "COUNT", 1)[0][0].decode()

        age = timedelta(milliseconds=time.time_ns() // 1_000_000)
        assert (await cut(age + HOUR))[0] == 0
        assert await cut(HOUR) == (600, "601-1")
        raw("XACK", "A", "slow", "601-1", "602-1", "604-1")
        assert await cut(HOUR) == (2, "603-1")
        raw("XGROUP", "CREATE", "A", "new", "0")
        assert (await cut(HOUR))[0] == 0
        raw("XGROUP", "DESTROY", "A", "slow")
        raw("XGROUP", "SETID", "A", "new", "$")
        raw("XADD", "A", "*", "data", b"young")
        assert (await cut(HOUR))[0] == 398


async def test_a_stream_that_a_group_never_reads_is_bounded_by_its_max_length(
    redis_url: str, raw: Raw
) -> None:
    raw("XGROUP", "CREATE", "A", "gateway", "0", "MKSTREAM")
    short = timedelta(milliseconds=1)
    async with opened(redis_url, retention=short, max_length=200) as broker:
        await broker.publish_many("A", range(5000))
        # Roughly: whole nodes of 100 entries.
        await asyncio.to_thread(wait_until, lambda: raw("XLEN", "A") <= 300, "it is trimmed")
        async with broker.consume("A") as consumer:
            newest = await receive(consumer, 200)
        assert newest[-1] <= 4999


async def test_publishing_does_not_trim(redis_url: str, raw: Raw) -> None:
    raw("XADD", "A", "1-1", "data", b"old")
    async with opened(redis_url, retention=HOUR) as broker:
        await broker.publish("A", 1)
        await broker.publish_many("A", [1] * 500)
    assert raw("XLEN", "A") == 502


async def test_streams_of_different_slots_of_a_cluster_are_consumed_together(cluster_url: str) -> None:
    events = ["MESSAGE_CREATE", "SEND", "0", "GUILD_CREATE"]
    assert len({slot_of(event.encode()) for event in events}) == 4
    async with opened(cluster_url) as broker, broker.consume(*events, prefetch=2) as consumer:
        for event in events:
            await broker.publish_many(event, [f"{event}{n}" for n in range(5)])
        found = [item for _ in range(20) for item in await receive(consumer, 1)]
        for event in events:
            assert [each for each in found if each.startswith(event)] == [f"{event}{n}" for n in range(5)]


@pytest.mark.parametrize("prefix", ["", "bot", "{bot}"])
async def test_on_a_cluster_a_message_is_given_up_in_one_slot_or_two(
    cluster_url: str, raw_cluster: Raw, prefix: str
) -> None:
    async with opened(cluster_url, prefix=prefix) as broker, broker.consume("A", "B") as consumer:
        await broker.publish("A", 1)
        await (await next_one(consumer)).reject("no")
        (letter,) = await broker.dead_letters("A")
        assert (letter.reason, letter.body, letter.attempts) == ("no", b"1", 1)
        name = f"{prefix}:A" if prefix else "A"
        assert raw_cluster("XPENDING", name, "gateway")["pending"] == 0
        await broker.publish("B", 2)
        assert await receive(consumer, 1) == [2]


async def test_a_server_that_is_not_there_is_unreachable() -> None:
    with RedisServer() as server:
        url = server.url
    with pytest.raises(BrokerUnreachableError, match=r"redis\.sock"):
        await RedisStreamsBroker.open(url, BrokerSettings(connect_timeout=MOMENT))


async def test_a_wrong_password_is_an_error_without_retry() -> None:
    with RedisServer(password="secret") as server:
        url = server.url.replace("secret", "wrong")
        with pytest.raises(BrokerError, match="WRONGPASS") as caught:
            await RedisStreamsBroker.open(url, BrokerSettings(connect_timeout=HOUR))
        assert "wrong@" not in str(caught.value)


async def test_publishing_waits_for_the_server_only_so_long(
    redis_url: str, keywright_server: RedisServer
) -> None:
    async with opened(redis_url, connect_timeout=MOMENT) as broker:
        keywright_server.kill()
        with pytest.raises(BrokerUnreachableError):
            await broker.publish("A", 1)
        with pytest.raises(BrokerUnreachableError):
            await broker.publish_many("A", [1, 2])
        keywright_server.start()
        await broker.publish("A", 1)


async def test_a_stream_name_with_another_redis_type_is_an_error(redis_url: str, raw: Raw) -> None:
    raw("SET", "A", "text")
    async with opened(redis_url) as broker:
        with pytest.raises(WrongTypeError):
            async with broker.consume("A"):
                raise AssertionError("entered")
        with pytest.raises(KeywrightError):
            await broker.publish("A", 1)
        async with broker.consume("B") as consumer:
            raw("DEL", "B")
            raw("SET", "B", "text")
            with pytest.raises(KeywrightError):
                await consumer.batch(1)


async def test_a_body_that_is_too_large_is_refused_before_it_is_sent(redis_url: str, raw: Raw) -> None:
    async with opened(redis_url, max_body_bytes=10) as broker:
        with pytest.raises(UsageError, match="limit of 10"):
            await broker.publish("A", "x" * 9)
        await broker.publish("A", "x" * 8)
    assert raw("XLEN", "A") == 1


async def test_a_closed_broker_says_so(redis_url: str) -> None:
    async with opened(redis_url) as broker:
        consumer = broker.consume("A")
        await consumer.open()
        waiting = asyncio.create_task(consumer.batch(1))
        publishing = [asyncio.create_task(broker.publish("A", n)) for n in range(100)]
        await asyncio.sleep(0)
    assert all([await each for each in publishing])
    with pytest.raises((StopAsyncIteration, RuntimeError)):
        await waiting
    with pytest.raises(UsageError, match="closed"):
        await broker.publish("A", 1)


async def test_a_close_ends_though_others_go_on_publishing(redis_url: str) -> None:
    async with opened(redis_url) as broker:
        published = 0

        async def publish() -> None:
            nonlocal published
            while True:
                await broker.publish("A", 1)
                published += 1

        publishing = [asyncio.create_task(publish()) for _ in range(20)]
        await until(lambda: published >= 100)
        async with asyncio.timeout(10):
            await broker.close()
        for outcome in await asyncio.gather(*publishing, return_exceptions=True):
            assert isinstance(outcome, UsageError)
            assert "closed" in str(outcome)


async def test_a_consumer_that_is_closed_while_it_opens_does_not_read(redis_url: str, raw: Raw) -> None:
    async with opened(redis_url, claim_after=HOUR) as broker:
        await broker.declare("A")
        for turns in range(12):
            consumer = broker.consume("A")
            opening = asyncio.create_task(consumer.open())
            for _ in range(turns):
                await asyncio.sleep(0)
            await consumer.close()
            await asyncio.gather(opening, return_exceptions=True)
        await broker.publish("A", 1)
        async with broker.consume("A") as consumer, asyncio.timeout(10):
            assert await receive(consumer, 1) == [1]


async def test_replies_to_others_are_not_kept_while_calls_overlap(redis_url: str, raw: Raw) -> None:
    async with opened(redis_url) as broker:
        caller = broker._caller
        ids = iter(range(1, 1000))
        named: list[asyncio.Event] = []

        async def call() -> None:
            async def publish() -> str:
                named.append(asyncio.Event())
                await named[-1].wait()
                return f"0-{next(ids)}"

            with contextlib.suppress(CallTimeoutError):
                await caller.call("A", publish, timedelta(seconds=20))

        calls = [asyncio.create_task(call())]
        for number in range(5):
            calls.append(asyncio.create_task(call()))
            await asyncio.to_thread(wait_until, lambda n=number: len(named) == n + 2, "the next one began")
            raw("PUBLISH", f"A:7-{number}", b"to another process")
            await asyncio.to_thread(wait_until, lambda n=number: f"7-{n}" in str(kept(caller)), "it arrived")
            named[number].set()
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        assert len(kept(caller)) <= 2
        for each in calls:
            each.cancel()


async def test_a_server_that_waits_for_its_replicas_is_waited_for(redis_url: str, raw: Raw) -> None:
    async with opened(redis_url) as broker, broker.consume("A") as consumer:
        raw("CONFIG", "SET", "min-replicas-to-write", 1)
        try:
            publishing = asyncio.create_task(broker.publish("A", 1))
            await asyncio.sleep(0.1)
        finally:
            raw("CONFIG", "SET", "min-replicas-to-write", 0)
        await publishing
        assert await receive(consumer, 1) == [1]
