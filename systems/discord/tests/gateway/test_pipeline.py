"""Events through a gateway when Redis is slow or away, and when the broker does not know them yet."""

from __future__ import annotations

from typing import Any

import pytest

from keywright import aconnect
from keywright.testing import RedisServer
from keywright_discord.drc.reader import DrcReader
from keywright_discord.drc.schema import bind
from keywright_discord.gateway import pipeline
from keywright_discord.gateway.opcodes import Op
from keywright_discord.simulator import DiscordSimulator, SimulatorSettings

from ..gateways import backed_up, configured, eventually, ready, running, take, workers_broker

pytestmark = pytest.mark.anyio

QUICK = SimulatorSettings(identify_window_seconds=0.01, heartbeat_interval_ms=200)


def numbers(messages: list[Any]) -> list[int]:
    return [int(each["content"]) for each in messages]


async def test_while_redis_is_frozen_heartbeats_go_on_and_nothing_is_lost(
    redis_url: str, keywright_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "MOST_EVENTS", 50)

    async with DiscordSimulator(QUICK) as discord, running(configured(discord, redis_url)) as gateway:
        await ready(gateway)
        keywright_server.pause()
        try:
            await backed_up(gateway, discord)
            beats = len(discord.received(Op.HEARTBEAT))
            await discord.until(lambda: len(discord.received(Op.HEARTBEAT)) > beats + 5, "beats go on")
            assert gateway.monitor.health().shards[0].backlog < 100
        finally:
            keywright_server.resume()
        async with await workers_broker() as broker:
            assert numbers(await take(broker, "MESSAGE_CREATE", 1000)) == list(range(1000))
        assert len(discord.received(Op.IDENTIFY)) == 1


async def test_an_outage_of_redis_is_survived(redis_url: str, keywright_server: RedisServer) -> None:
    async with DiscordSimulator(QUICK) as discord, running(configured(discord, redis_url)) as gateway:
        await ready(gateway)
        guild = discord.world.guilds[0]
        keywright_server.kill()
        for number in range(100):
            await discord.say(str(number), guild=guild)
        await eventually(lambda: gateway.monitor.health().shards[0].backlog, "they wait")
        keywright_server.start()
        async with await workers_broker() as broker:
            assert numbers(await take(broker, "MESSAGE_CREATE", 100)) == list(range(100))


async def test_every_event_can_be_published(redis_url: str) -> None:
    async with DiscordSimulator(QUICK) as discord:
        configuration = configured(discord, redis_url, DISCORD_EVENTS="*")
        async with running(configuration) as gateway, await workers_broker() as broker:
            await ready(gateway)
            await discord.dispatch("SOMETHING_NEW", {"a": [1, None]}, guild=discord.world.guilds[0])
            await discord.say("hello", guild=discord.world.guilds[0])
            assert (await take(broker, "MESSAGE_CREATE", 1))[0]["content"] == "hello"
            created = await take(broker, "GUILD_CREATE", 2)
            assert [each["id"] for each in created] == discord.world.guilds
            assert (await take(broker, "READY", 1))[0]["session_id"] == discord.sessions[0].id


async def test_an_event_that_the_cache_refuses_is_published(redis_url: str) -> None:
    async with DiscordSimulator(QUICK) as discord, running(configured(discord, redis_url)) as gateway:
        await ready(gateway)
        guild = discord.world.guilds[0]
        await discord.dispatch("MESSAGE_CREATE", {"guild_id": guild, "content": "no id"})
        said = await discord.say("whole", guild=guild)
        async with await workers_broker() as broker, aconnect(redis_url, *bind("bot")) as db:
            got = await take(broker, "MESSAGE_CREATE", 2)
            assert [each["content"] for each in got] == ["no id", "whole"]
            assert await db.run(DrcReader(hydrate=False).get("message", said["id"])) is not None
        assert 'gateway_cache_refused{shard="0"} 1.0' in gateway.monitor.exposition().decode()


async def test_without_a_cache_events_are_published(redis_url: str) -> None:
    async with (
        DiscordSimulator(QUICK) as discord,
        running(configured(discord, redis_url, CACHE_LAYOUT="none")) as gateway,
    ):
        await ready(gateway)
        await discord.say("hello", guild=discord.world.guilds[0])
        async with await workers_broker() as broker:
            assert (await take(broker, "MESSAGE_CREATE", 1))[0]["content"] == "hello"


@pytest.mark.parametrize("layout", ["drc", "spectacles"])
async def test_a_cluster_keeps_sessions_and_cache(cluster_url: str, layout: str) -> None:
    async with DiscordSimulator(QUICK) as discord:
        for content in ("one", "two"):
            async with running(configured(discord, cluster_url, CACHE_LAYOUT=layout)) as gateway:
                await ready(gateway)
                await discord.say(content, guild=discord.world.guilds[0])
                async with await workers_broker() as broker:
                    assert (await take(broker, "MESSAGE_CREATE", 1))[0]["content"] == content
        assert len(discord.received(Op.IDENTIFY)) == 1
        assert len(discord.received(Op.RESUME)) == 1


@pytest.mark.parametrize(
    ("event", "data", "more"),
    [
        ("NAMED:BADLY", {}, {}),
        ("MESSAGE_CREATE", {"nonce": 2**70}, {"BROKER_ENCODING": "msgpack"}),
        ("MESSAGE_CREATE", {"content": "x" * 17_000_000}, {"CACHE_LAYOUT": "none"}),
    ],
    ids=["name", "encoding", "size"],
)
async def test_an_event_that_the_broker_does_not_take_is_counted_and_the_rest_is_published(
    redis_url: str, event: str, data: dict[str, Any], more: dict[str, str]
) -> None:
    async with (
        DiscordSimulator(QUICK) as discord,
        running(configured(discord, redis_url, DISCORD_EVENTS="*", **more)) as gateway,
    ):
        await ready(gateway)
        guild = discord.world.guilds[0]
        await discord.dispatch(event, {"guild_id": guild, **data})
        await discord.say("after", guild=guild)
        async with await workers_broker() as broker:
            assert (await take(broker, "MESSAGE_CREATE", 1))[0]["content"] == "after"
        counted = f'gateway_events_unpublished{{shard="0",t="{event}"}} 1.0'
        assert counted in gateway.monitor.exposition().decode()
