"""Pub/sub: confirmed before anything else happens, and again after every lost connection."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from keywright import (
    AsyncDatabase,
    Channel,
    Context,
    Keyspace,
    Plain,
    Retry,
    Settings,
    Subscription,
    aconnect,
)
from keywright.engine.pubsub import MOST_UNREAD, Message
from keywright.errors import ConnectionLostError, ServerRefusedError, VariableError
from keywright.testing import RedisServer, wait_until
from keywright.testing.runs import Raw

WITHIN = 20.0

press = Keyspace("press", "Channels that a newspaper publishes on.")
NEWS = Channel("news:<place>:<topic>", press, place=Plain(), topic=Plain())


def _on(url: str, work: Callable[[AsyncDatabase], Coroutine[Any, Any, Any]], *bindings: Any) -> Any:
    async def opened() -> Any:
        async with asyncio.timeout(WITHIN), aconnect(url, *bindings) as database:
            return await work(database)

    return asyncio.run(opened())


async def _until_lost(messages: Subscription) -> None:
    """Wait until the connection of now is gone; another may be there already."""
    feed = messages._feed
    await asyncio.to_thread(wait_until, lambda: messages._feed is not feed, "the connection is given up")


@pytest.mark.parametrize("url", ["redis_url", "cluster_url"])
def test_what_is_published_after_entering_arrives(url: str, request: pytest.FixtureRequest) -> None:
    async def work(database: AsyncDatabase) -> list[Message]:
        async with database.subscribe(b"news:rome:art", patterns=[b"news:*:sport"]) as messages:
            for place, topic in (("rome", "art"), ("oslo", "art"), ("oslo", "sport")):
                await database.run(NEWS.publish(topic.encode(), place, topic))
            return [await anext(messages), await anext(messages)]

    found = _on(request.getfixturevalue(url), work)
    assert found == [Message(b"news:rome:art", b"art"), Message(b"news:oslo:sport", b"sport")]


def test_on_a_cluster_every_node_passes_on_what_any_node_was_told(cluster_url: str) -> None:
    """The topics lie in different slots, so they are published through different nodes."""
    topics = [f"topic{number}" for number in range(12)]

    async def work(database: AsyncDatabase) -> set[bytes]:
        async with database.subscribe(patterns=[b"news:rome:topic*"]) as messages:
            await asyncio.gather(*(database.run(NEWS.publish(b"x", "rome", topic)) for topic in topics))
            return {(await anext(messages)).channel for _ in topics}

    assert _on(cluster_url, work) == {b"news:rome:" + topic.encode() for topic in topics}


def test_publishing_counts_those_who_listen(redis_url: str) -> None:
    async def work(database: AsyncDatabase) -> tuple[int, int]:
        alone = await database.run(NEWS.publish(b"x", "rome", "art"))
        async with database.subscribe(b"news:rome:art"):
            return alone, await database.run(NEWS.publish(b"x", "rome", "art"))

    assert _on(redis_url, work) == (0, 1)


def test_more_channels_may_be_added_and_are_confirmed(redis_url: str) -> None:
    async def work(database: AsyncDatabase) -> list[bytes]:
        async with database.subscribe() as messages:
            await messages.add(b"a", patterns=[b"b*"])
            await messages.add(b"a")
            for channel in (b"a", b"b1"):
                assert messages.active
                raw = await aconnect(redis_url)
                async with raw:
                    await raw.run(Channel("<name>", press, name=Plain()).publish(b"x", channel.decode()))
            return [(await anext(messages)).channel, (await anext(messages)).channel]

    assert _on(redis_url, work) == [b"a", b"b1"]


def test_a_killed_connection_is_subscribed_again(redis_url: str, raw: Raw) -> None:
    async def work(database: AsyncDatabase) -> Message:
        async with database.subscribe(b"news:rome:art", patterns=[b"other*"]) as messages:
            lost = asyncio.create_task(_until_lost(messages))
            await asyncio.sleep(0)
            raw("CLIENT", "KILL", "TYPE", "pubsub")
            await lost
            await messages.confirmed()
            assert messages.active
            await database.run(NEWS.publish(b"later", "rome", "art"))
            return await anext(messages)

    assert _on(redis_url, work).payload == b"later"


def test_a_restarted_server_is_subscribed_again(redis_url: str, keywright_server: RedisServer) -> None:
    async def work(database: AsyncDatabase) -> Message:
        async with database.subscribe(b"news:rome:art") as messages:
            keywright_server.kill()
            await _until_lost(messages)
            keywright_server.start()
            await messages.confirmed()
            await database.run(NEWS.publish(b"later", "rome", "art"))
            return await anext(messages)

    assert _on(redis_url, work).payload == b"later"


def test_a_connection_that_falls_silent_is_given_up(redis_url: str, keywright_server: RedisServer) -> None:
    async def opened() -> Message:
        async with (
            asyncio.timeout(WITHIN),
            aconnect(redis_url, settings=Settings(timeout_seconds=0.2)) as database,
            database.subscribe(b"news:rome:art") as messages,
        ):
            keywright_server.pause()
            await _until_lost(messages)
            keywright_server.resume()
            await messages.confirmed()
            await database.run(NEWS.publish(b"later", "rome", "art"))
            return await anext(messages)

    assert asyncio.run(opened()).payload == b"later"


def test_a_quiet_connection_is_kept(redis_url: str) -> None:
    async def opened() -> None:
        async with (
            aconnect(redis_url, settings=Settings(timeout_seconds=0.4)) as database,
            database.subscribe(b"quiet") as messages,
        ):
            feed = messages._feed
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(messages), timeout=1.5)
            assert messages._feed is feed

    asyncio.run(opened())


def test_a_user_who_may_not_ping_keeps_a_quiet_connection(redis_url: str, raw: Raw) -> None:
    raw("ACL", "SETUSER", "quiet", "on", "nopass", "+@all", "~*", "&*", "-ping")
    refused = _refused_pings(raw)

    async def opened() -> None:
        async with (
            aconnect(
                redis_url.replace("unix://", "unix://quiet:x@"), settings=Settings(timeout_seconds=0.4)
            ) as database,
            database.subscribe(b"quiet") as messages,
        ):
            feed = messages._feed
            await asyncio.to_thread(wait_until, lambda: _refused_pings(raw) >= refused + 3, "it was asked")
            await messages.add(b"more")
            assert messages._feed is feed

    try:
        asyncio.run(opened())
    finally:
        raw("ACL", "DELUSER", "quiet")


def _refused_pings(raw: Raw) -> int:
    return int(raw("INFO", "commandstats").get("cmdstat_ping", {}).get("rejected_calls", 0))


def test_a_server_that_cannot_be_reached_fails_the_entering() -> None:
    async def opened() -> None:
        with RedisServer() as server:
            url = server.url
            database = await aconnect(url, settings=Settings(retry=Retry(attempts=2)))
        async with database, database.subscribe(b"a"):
            raise AssertionError("entered")

    with pytest.raises(ConnectionLostError):
        asyncio.run(opened())


def test_a_refused_channel_fails_alone(redis_url: str, raw: Raw) -> None:
    raw("ACL", "SETUSER", "reader", "on", "nopass", "+@all", "~*", "resetchannels", "&open*")
    url = redis_url.replace("unix://", "unix://reader:x@")

    async def work(database: AsyncDatabase) -> Message:
        async with database.subscribe(b"open") as messages:
            with pytest.raises(ServerRefusedError, match="secret"):
                await messages.add(b"secret")
            await database.run(Channel("<name>", press, name=Plain()).publish(b"x", "open"))
            assert messages.active
            return await anext(messages)

    try:
        assert _on(url, work).channel == b"open"
    finally:
        raw("ACL", "DELUSER", "reader")


def test_a_channel_that_is_refused_after_a_reconnect_ends_the_iteration(redis_url: str, raw: Raw) -> None:
    raw("ACL", "SETUSER", "reader", "on", "nopass", "+@all", "~*", "resetchannels", "&open*", "&kept*")
    url = redis_url.replace("unix://", "unix://reader:x@")

    async def opened() -> None:
        async with aconnect(url) as database, database.subscribe(b"open", b"kept") as messages:
            # What a user loses in rights, it loses in connections: the server closes them.
            raw("ACL", "SETUSER", "reader", "resetchannels", "&kept*")
            with pytest.raises(ServerRefusedError, match="SUBSCRIBE b'open'"):
                await asyncio.wait_for(anext(messages), 30)

    try:
        asyncio.run(opened())
    finally:
        raw("ACL", "DELUSER", "reader")


def test_leaving_ends_the_iteration_and_the_connection(redis_url: str, raw: Raw) -> None:
    async def work(database: AsyncDatabase) -> None:
        async with database.subscribe(b"a") as messages:
            waiting = asyncio.create_task(anext(messages))
            await asyncio.sleep(0)
        with pytest.raises(StopAsyncIteration):
            await waiting

    _on(redis_url, work)
    assert raw("CLIENT", "LIST", "TYPE", "pubsub") == b""


def test_closing_the_database_ends_its_subscriptions(redis_url: str) -> None:
    async def work(database: AsyncDatabase) -> None:
        async with database.subscribe(b"a") as messages:
            await database.close()
            with pytest.raises(ConnectionLostError):
                await anext(messages)

    _on(redis_url, work)


def test_a_slow_reader_holds_the_sender_back_and_loses_nothing(redis_url: str) -> None:
    count = 3 * MOST_UNREAD

    async def work(database: AsyncDatabase) -> int:
        async with database.subscribe(b"news:rome:art") as messages:
            calls = [database.run(NEWS.publish(b"%d" % n, "rome", "art")) for n in range(count)]
            await asyncio.gather(*calls)
            for _ in range(100):  # each turn reads what has arrived, if it may
                await asyncio.sleep(0)
            assert MOST_UNREAD <= len(messages._unread) < count
            assert [int((await anext(messages)).payload) for _ in range(count)] == list(range(count))
            return len(messages._unread)

    assert _on(redis_url, work) == 0


def test_a_channel_shares_the_prefix_of_its_keyspace_and_escapes_it_in_patterns() -> None:
    context = Context([press.bind(prefix="a*b")])
    assert NEWS.name(context, "rome", "art") == b"a*b:news:rome:art"
    assert NEWS.pattern(context, place="rome") == b"a\\*b:news:rome:*"
    with pytest.raises(VariableError):
        NEWS.name(context, "ro:me", "art")


def test_a_subscription_says_when_it_is_not_active_yet(redis_url: str) -> None:
    async def work(database: AsyncDatabase) -> tuple[bool, bool]:
        unopened: Subscription = database.subscribe(b"a")
        async with database.subscribe(b"a") as messages:
            return unopened.active, messages.active

    assert _on(redis_url, work) == (False, True)
