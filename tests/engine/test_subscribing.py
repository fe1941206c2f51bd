"""Pub/sub: confirmed before anything else happens, and again after every lost connection."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Annotated

import pytest

from keywright import (
    AsyncDatabase,
    Channel,
    Context,
    Keyspace,
    Message,
    Plain,
    Retry,
    Settings,
    Subscription,
    aconnect,
)
from keywright.engine.pubsub import MOST_UNREAD
from keywright.errors import ConnectionLostError, ServerRefusedError, VariableError
from keywright.testing import RedisServer, as_user, wait_until
from keywright.testing.runs import Raw

pytestmark = pytest.mark.anyio

WITHIN = 60.0  # a guard: on a busy machine 30,000 messages take more than 20 seconds

press = Keyspace("press", "Channels that a newspaper publishes on.")


class News(Channel[bytes], channel="news:<place>:<topic>", space=press):
    """What happened at a place."""

    place: Annotated[str, Plain()]
    topic: Annotated[str, Plain()]


class Named(Channel[bytes], channel="<name>", space=press):
    """Any channel."""

    name: Annotated[str, Plain()]


@asynccontextmanager
async def _opened(url: str, settings: Settings | None = None) -> AsyncIterator[AsyncDatabase]:
    async with asyncio.timeout(WITHIN), aconnect(url, settings=settings) as database:
        yield database


@contextmanager
def _user(raw: Raw, name: str, *rules: str) -> Iterator[None]:
    """Create a user of the server, with all commands and keys and these rules, for the block."""
    raw("ACL", "SETUSER", name, "on", "nopass", "+@all", "~*", *rules)
    try:
        yield
    finally:
        raw("ACL", "DELUSER", name)


async def _until_lost(messages: Subscription[Message]) -> None:
    """Wait until the current connection is lost; another may be open already."""
    feed = messages._lines[None].feed
    await asyncio.to_thread(
        wait_until, lambda: messages._lines[None].feed is not feed, "the connection is given up"
    )


@pytest.mark.parametrize("url", ["redis_url", "cluster_url"])
async def test_a_message_published_after_entering_arrives(url: str, request: pytest.FixtureRequest) -> None:
    async with (
        _opened(request.getfixturevalue(url)) as database,
        database.subscribe(b"news:rome:art", patterns=[b"news:*:sport"]) as messages,
    ):
        for place, topic in (("rome", "art"), ("oslo", "art"), ("oslo", "sport")):
            await database.run(News(place, topic).publish(topic.encode()))
        found = [await anext(messages), await anext(messages)]

    assert found == [Message(b"news:rome:art", b"art"), Message(b"news:oslo:sport", b"sport")]


async def test_on_a_cluster_every_node_passes_on_messages_of_the_others(cluster_url: str) -> None:
    """The topics lie in different slots, so they are published through different nodes."""
    topics = [f"topic{number}" for number in range(12)]

    async with (
        _opened(cluster_url) as database,
        database.subscribe(patterns=[b"news:rome:topic*"]) as messages,
    ):
        await asyncio.gather(*(database.run(News("rome", topic).publish(b"x")) for topic in topics))
        found = {(await anext(messages)).channel for _ in topics}

    assert found == {b"news:rome:" + topic.encode() for topic in topics}


async def test_publishing_counts_the_subscribers(redis_url: str) -> None:
    async with _opened(redis_url) as database:
        alone = await database.run(News("rome", "art").publish(b"x"))
        async with database.subscribe(b"news:rome:art"):
            found = alone, await database.run(News("rome", "art").publish(b"x"))

    assert found == (0, 1)


async def test_more_channels_may_be_added_and_are_confirmed(redis_url: str) -> None:
    async with _opened(redis_url) as database, database.subscribe() as messages:
        await messages.add(b"a", patterns=[b"b*"])
        await messages.add(b"a")
        for channel in (b"a", b"b1"):
            assert messages.active
            raw = await aconnect(redis_url)
            async with raw:
                await raw.run(Named(channel.decode()).publish(b"x"))
        found = [(await anext(messages)).channel, (await anext(messages)).channel]

    assert found == [b"a", b"b1"]


async def test_a_killed_connection_is_subscribed_again(redis_url: str, raw: Raw) -> None:
    async with (
        _opened(redis_url) as database,
        database.subscribe(b"news:rome:art", patterns=[b"other*"]) as messages,
    ):
        lost = asyncio.create_task(_until_lost(messages))
        await asyncio.sleep(0)
        raw("CLIENT", "KILL", "TYPE", "pubsub")
        await lost
        await messages.confirmed()
        assert messages.active
        await database.run(News("rome", "art").publish(b"later"))
        found = await anext(messages)

    assert found.payload == b"later"


async def test_a_restarted_server_is_subscribed_again(redis_url: str, keywright_server: RedisServer) -> None:
    async with _opened(redis_url) as database, database.subscribe(b"news:rome:art") as messages:
        keywright_server.kill()
        await _until_lost(messages)
        keywright_server.start()
        await messages.confirmed()
        await database.run(News("rome", "art").publish(b"later"))
        found = await anext(messages)

    assert found.payload == b"later"


async def test_a_connection_that_falls_silent_is_given_up(
    redis_url: str, keywright_server: RedisServer
) -> None:
    async with (
        asyncio.timeout(WITHIN),
        aconnect(redis_url, settings=Settings(timeout_seconds=0.2)) as database,
        database.subscribe(b"news:rome:art") as messages,
    ):
        keywright_server.pause()
        await _until_lost(messages)
        keywright_server.resume()
        await messages.confirmed()
        await database.run(News("rome", "art").publish(b"later"))
        found = await anext(messages)
    assert found.payload == b"later"


async def test_a_quiet_connection_is_kept(redis_url: str) -> None:
    async with (
        aconnect(redis_url, settings=Settings(timeout_seconds=0.4)) as database,
        database.subscribe(b"quiet") as messages,
    ):
        feed = messages._lines[None].feed
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(messages), timeout=1.5)
        assert messages._lines[None].feed is feed


async def test_a_user_who_may_not_ping_keeps_a_quiet_connection(redis_url: str, raw: Raw) -> None:
    refused = _refused_pings(raw)
    url = as_user(redis_url, "quiet", "x")

    with _user(raw, "quiet", "&*", "-ping"):
        async with (
            aconnect(url, settings=Settings(timeout_seconds=0.4)) as database,
            database.subscribe(b"quiet") as messages,
        ):
            feed = messages._lines[None].feed
            await asyncio.to_thread(wait_until, lambda: _refused_pings(raw) >= refused + 3, "it was asked")
            await messages.add(b"more")
            assert messages._lines[None].feed is feed


def _refused_pings(raw: Raw) -> int:
    return int(raw("INFO", "commandstats").get("cmdstat_ping", {}).get("rejected_calls", 0))


async def test_a_server_that_cannot_be_reached_fails_the_entering() -> None:
    with RedisServer() as server:
        database = await aconnect(server.url, settings=Settings(retry=Retry(attempts=2)))
    async with database:
        with pytest.raises(ConnectionLostError):
            await database.subscribe(b"a").__aenter__()


async def test_a_refused_channel_fails_alone(redis_url: str, raw: Raw) -> None:
    url = as_user(redis_url, "reader", "x")

    with _user(raw, "reader", "resetchannels", "&open*"):
        async with _opened(url) as database, database.subscribe(b"open") as messages:
            with pytest.raises(ServerRefusedError, match="secret"):
                await messages.add(b"secret")
            await database.run(Named("open").publish(b"x"))
            assert messages.active
            assert (await anext(messages)).channel == b"open"


async def test_a_channel_that_is_refused_after_a_reconnect_ends_the_iteration(
    redis_url: str, raw: Raw
) -> None:
    url = as_user(redis_url, "reader", "x")

    with _user(raw, "reader", "resetchannels", "&open*", "&kept*"):
        async with aconnect(url) as database, database.subscribe(b"open", b"kept") as messages:
            # A user that loses rights loses its connections too: the server closes them.
            raw("ACL", "SETUSER", "reader", "resetchannels", "&kept*")
            with pytest.raises(ServerRefusedError, match="SUBSCRIBE b'open'"):
                await asyncio.wait_for(anext(messages), 30)


async def test_leaving_ends_the_iteration_and_the_connection(redis_url: str, raw: Raw) -> None:
    async with _opened(redis_url) as database:
        async with database.subscribe(b"a") as messages:
            waiting = asyncio.create_task(anext(messages))
            await asyncio.sleep(0)
        with pytest.raises(StopAsyncIteration):
            await waiting

    assert raw("CLIENT", "LIST", "TYPE", "pubsub") == b""


async def test_closing_the_database_ends_its_subscriptions(redis_url: str) -> None:
    async with _opened(redis_url) as database, database.subscribe(b"a") as messages:
        await database.close()
        with pytest.raises(ConnectionLostError):
            await anext(messages)


async def test_a_slow_reader_holds_the_sender_back_and_loses_nothing(redis_url: str) -> None:
    count = 3 * MOST_UNREAD
    patient = Settings(timeout_seconds=60)  # on a busy machine 30,000 messages take longer than usual

    async with _opened(redis_url, patient) as database, database.subscribe(b"news:rome:art") as messages:
        calls = [database.run(News("rome", "art").publish(b"%d" % n)) for n in range(count)]
        await asyncio.gather(*calls)
        for _ in range(100):  # each turn reads what has arrived, if it may
            await asyncio.sleep(0)
        assert MOST_UNREAD <= len(messages._unread) < count
        assert [int((await anext(messages)).payload) for _ in range(count)] == list(range(count))
        found = len(messages._unread)

    assert found == 0


def test_a_channel_shares_the_prefix_of_its_keyspace_and_escapes_it_in_patterns() -> None:
    context = Context([press.bind(prefix="a*b")])
    assert context.name(News("rome", "art")) == b"a*b:news:rome:art"
    assert News.matching(place="rome").glob(context) == b"a\\*b:news:rome:*"
    with pytest.raises(VariableError):
        News("ro:me", "art")


async def test_a_subscription_says_when_it_is_not_active_yet(redis_url: str) -> None:
    async with _opened(redis_url) as database:
        unopened: Subscription[Message] = database.subscribe(b"a")
        async with database.subscribe(b"a") as messages:
            found = unopened.active, messages.active

    assert found == (False, True)
