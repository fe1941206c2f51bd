"""A gateway on the simulated Discord, with real Redis: every opcode and close code on a live connection."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
import msgspec
import pytest
from websockets.asyncio.server import ServerConnection, serve

from keywright import aconnect
from keywright.errors import UsageError
from keywright_discord.drc.reader import DrcReader
from keywright_discord.drc.schema import bind
from keywright_discord.gateway.close_codes import CloseCode
from keywright_discord.gateway.connection import RefusedByDiscordError
from keywright_discord.gateway.gateway import Gateway, bot_of
from keywright_discord.gateway.opcodes import Op
from keywright_discord.gateway.schema import SessionState, ShardOwner, ShardSession, gateway
from keywright_discord.simulator import DiscordSimulator, SimulatorSettings

from ..gateways import configured, eventually, eventually_true, ready, running, take, workers_broker

pytestmark = pytest.mark.anyio

QUICK = SimulatorSettings(identify_window_seconds=0.01, heartbeat_interval_ms=300)
FATAL = [4004, 4010, 4011, 4012, 4013, 4014]
NEW_SESSION = [4007, 4009]
RESUMED = [code for code in CloseCode if code not in (*FATAL, *NEW_SESSION)]


@asynccontextmanager
async def started_gateway(
    redis_url: str, settings: SimulatorSettings = QUICK, **more: str
) -> AsyncIterator[tuple[DiscordSimulator, Gateway]]:
    """Open a simulated Discord and a gateway that is ready."""
    async with (
        DiscordSimulator(settings) as discord,
        running(configured(discord, redis_url, **more)) as started,
    ):
        await ready(started)
        yield discord, started


async def says(discord: DiscordSimulator, *contents: str) -> None:
    for content in contents:
        await discord.say(content, guild=discord.world.guilds[0])


async def heard(number: int) -> list[str]:
    async with await workers_broker() as broker:
        return [message["content"] for message in await take(broker, "MESSAGE_CREATE", number)]


async def stored(redis_url: str, discord: DiscordSimulator, shard: int = 0, shards: int = 1) -> Any:
    async with aconnect(redis_url, gateway.bind()) as db:
        return await db.run(ShardSession(bot_of(discord.token), shards, shard).get())


@pytest.mark.parametrize("compression", ["none", "zlib-stream", "zstd-stream"])
@pytest.mark.parametrize("encoding", ["json", "etf"])
async def test_events_reach_the_cache_and_the_broker(redis_url: str, encoding: str, compression: str) -> None:
    async with started_gateway(redis_url, DISCORD_ENCODING=encoding, DISCORD_COMPRESSION=compression) as (
        discord,
        _,
    ):
        guild = discord.world.guilds[0]
        said = await discord.say("hello", guild=guild)
        async with await workers_broker() as broker, aconnect(redis_url, *bind("bot")) as db:
            [got] = await take(broker, "MESSAGE_CREATE", 1)
            assert (got["id"], got["content"]) == (said["id"], "hello")
            cached = await db.run(DrcReader(hydrate=False).get("message", said["id"]))
            assert cached is not None
            assert cached["content"] == "hello"
            for each in discord.world.guilds:
                assert await db.run(DrcReader().guild(each)) is not None


async def test_only_wanted_events_are_published_and_all_are_cached(redis_url: str) -> None:
    async with started_gateway(redis_url) as (discord, started):
        await discord.join_guild()
        await says(discord, "after")
        assert await heard(1) == ["after"]
        published = started.monitor.exposition().decode()
        assert 'gateway_events_published{shard="0",t="MESSAGE_CREATE"} 1.0' in published
        assert 't="GUILD_CREATE"} 3.0' in published
        assert 'gateway_events_published{shard="0",t="GUILD_CREATE"}' not in published
        async with aconnect(redis_url, *bind("bot")) as db:
            assert await db.run(DrcReader().guild(discord.world.guilds[-1])) is not None


@pytest.mark.parametrize("code", RESUMED)
async def test_after_these_codes_the_session_goes_on_and_nothing_is_missed(
    redis_url: str, code: CloseCode
) -> None:
    async with started_gateway(redis_url) as (discord, _):
        [before] = discord.sessions
        await discord.close(0, code)
        await says(discord, "one", "two")
        assert await heard(2) == ["one", "two"]
        assert [session.id for session in discord.sessions] == [before.id]
        assert discord.connection(0).path.startswith("/resume")
        assert len(discord.received(Op.IDENTIFY)) == 1


@pytest.mark.parametrize("code", NEW_SESSION)
async def test_after_these_codes_a_new_session_begins(redis_url: str, code: int) -> None:
    async with started_gateway(redis_url) as (discord, started):
        [before] = discord.sessions
        await says(discord, "one")
        await eventually_true(lambda: _advanced(redis_url, discord, before.id, 4), "the sequence is stored")
        await discord.close(0, CloseCode(code))
        await discord.until(lambda: len(discord.received(Op.IDENTIFY)) == 2, "it identifies again")
        await ready(started)
        await says(discord, "two")
        assert await heard(2) == ["one", "two"]
        [now] = [each for each in discord.sessions if each.id != before.id]
        state = await eventually_true(lambda: _advanced(redis_url, discord, now.id, 4), "it is stored")
        assert state.sequence == 4
        assert discord.received(Op.RESUME) == []


async def _advanced(
    redis_url: str, discord: DiscordSimulator, session: str, sequence: int
) -> SessionState | None:
    state: SessionState | None = await stored(redis_url, discord)
    return state if state is not None and (state.id, state.sequence) == (session, sequence) else None


@pytest.mark.parametrize("code", FATAL)
async def test_after_these_codes_the_gateway_ends_and_says_why(redis_url: str, code: int) -> None:
    async with DiscordSimulator(QUICK) as discord:
        started = Gateway(configured(discord, redis_url))
        task = asyncio.create_task(started.run())
        await ready(started)
        await discord.close(0, CloseCode(code))
        with pytest.raises(RefusedByDiscordError, match=rf"refused shard 0 \({code}\)") as caught:
            await task
        assert discord.token not in str(caught.value)


async def test_a_connection_that_breaks_without_a_code_is_resumed(redis_url: str) -> None:
    async with started_gateway(redis_url) as (discord, _):
        await discord.cut(0)
        await says(discord, "one", "two")
        assert await heard(2) == ["one", "two"]
        assert len(discord.received(Op.IDENTIFY)) == 1


async def test_a_connection_that_no_longer_answers_is_replaced(redis_url: str) -> None:
    async with started_gateway(redis_url) as (discord, _):
        discord.stop_acks(0)
        await discord.until(lambda: discord.received(Op.RESUME), "it resumes")
        await says(discord, "still here")
        assert await heard(1) == ["still here"]


async def test_op_1_is_answered_and_op_7_reconnects(redis_url: str) -> None:
    slow = SimulatorSettings(identify_window_seconds=0.01)

    async with started_gateway(redis_url, slow) as (discord, _):
        beats = len(discord.received(Op.HEARTBEAT))
        await discord.request_heartbeat(0)
        await discord.until(lambda: len(discord.received(Op.HEARTBEAT)) > beats, "it beats at once")
        await discord.reconnect(0)
        await discord.until(lambda: discord.received(Op.RESUME), "it resumes")
        await says(discord, "again")
        assert await heard(1) == ["again"]


@pytest.mark.parametrize("resumable", [True, False])
async def test_op_9_resumes_or_identifies_again(redis_url: str, resumable: bool) -> None:
    async with started_gateway(redis_url) as (discord, started):
        await discord.invalidate(0, resumable=resumable)
        wanted = (lambda: discord.received(Op.RESUME)) if resumable else _identified_twice(discord)
        await discord.until(wanted, "it comes back")
        await ready(started)
        await says(discord, "again")
        assert await heard(1) == ["again"]


def _has_received(started: Gateway, event: str) -> bool:
    return f't="{event}"' in started.monitor.exposition().decode()


def _identified_twice(discord: DiscordSimulator) -> Callable[[], Any]:
    return lambda: len(discord.received(Op.IDENTIFY)) == 2


async def test_an_outage_of_discord_is_survived(redis_url: str) -> None:
    async with started_gateway(redis_url) as (discord, started):
        async with discord.outage():
            await says(discord, "unheard")
            await eventually(lambda: not started.monitor.health().ok, "it is noticed")
        assert await heard(1) == ["unheard"]


async def test_stopping_leaves_a_session_that_the_next_process_resumes(redis_url: str) -> None:
    async with DiscordSimulator(QUICK) as discord:
        configuration = configured(discord, redis_url)
        keeping = await workers_broker()  # the memory broker ends with its last client
        async with running(configuration) as first:
            await ready(first)
            await says(discord, "one")
            await eventually(lambda: _has_received(first, "MESSAGE_CREATE"), "it is received")
        [session] = discord.sessions
        state = await stored(redis_url, discord)
        assert (state.id, state.sequence) == (session.id, 4)
        async with aconnect(redis_url, gateway.bind()) as db:
            assert await db.run(ShardOwner(bot_of(discord.token), 1, 0).holder()) is None
        await says(discord, "two")
        async with running(configuration) as second:
            await ready(second)
            await says(discord, "three")
            assert await heard(3) == ["one", "two", "three"]
        await keeping.close()
        assert [each.data["seq"] for each in discord.received(Op.RESUME)] == [4]
        assert len(discord.received(Op.IDENTIFY)) == 1


async def test_a_session_begun_in_another_encoding_is_not_resumed(redis_url: str) -> None:
    async with DiscordSimulator(QUICK) as discord:
        for encoding in ("json", "etf"):
            async with running(configured(discord, redis_url, DISCORD_ENCODING=encoding)) as started:
                await ready(started)
        assert discord.received(Op.RESUME) == []
        assert len(discord.received(Op.IDENTIFY)) == 2


async def test_the_token_is_not_sent_to_a_foreign_address_that_was_stored(
    redis_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("WARNING", "keywright.gateway")
    stolen: list[str | bytes] = []

    async def steal(socket: ServerConnection) -> None:
        await socket.send('{"op": 10, "d": {"heartbeat_interval": 45000}}')
        stolen.append(await socket.recv())

    async with DiscordSimulator(QUICK) as discord, serve(steal, "127.0.0.1", 0) as thief:
        foreign = f"ws://127.0.0.1:{thief.sockets[0].getsockname()[1]}"
        configuration = configured(discord, redis_url)
        async with running(configuration) as first:
            await ready(first)
        async with aconnect(redis_url, gateway.bind()) as db:
            key = ShardSession(bot_of(discord.token), 1, 0)
            await db.run(key.put(msgspec.structs.replace(await stored(redis_url, discord), url=foreign)))
        async with running(configuration):
            await eventually(lambda: stolen or _identified_twice(discord)(), "it connects")
    assert stolen == []
    assert len(discord.received(Op.IDENTIFY)) == 2
    assert "shard 0: the stored resume address is not one of the gateway" in caplog.text
    assert discord.token not in caplog.text


async def test_a_wrong_token_ends_it_before_anything_is_connected(redis_url: str) -> None:
    async with DiscordSimulator(QUICK) as discord:
        with pytest.raises(RefusedByDiscordError, match="401") as caught:
            await Gateway(configured(discord, redis_url, DISCORD_TOKEN="wrong.token")).run()
        assert "wrong.token" not in str(caught.value)


async def test_it_stops_while_discord_does_not_answer(redis_url: str) -> None:
    async with DiscordSimulator(QUICK) as discord, running(configured(discord, redis_url)) as started:
        await ready(started)
        async with discord.outage():
            await eventually(lambda: _phase(started) == "connecting", "it tries")
            started.stop()
            await eventually(lambda: _phase(started) not in ("ready", "connecting"), "it stops")


def _phase(started: Gateway) -> str:
    return started.monitor.health().shards[0].phase


async def test_an_address_that_is_taken_ends_it(redis_url: str) -> None:
    async with DiscordSimulator(QUICK) as discord:
        taken = f"127.0.0.1:{discord.port}"
        with pytest.raises(UsageError, match="PROMETHEUS_ADDRESS"):
            await Gateway(configured(discord, redis_url, PROMETHEUS_ADDRESS=taken)).run()


async def test_health_and_metrics_are_served_on_loopback(redis_url: str, unused_port: int) -> None:
    async with started_gateway(redis_url, PROMETHEUS_ADDRESS=f":{unused_port}") as (discord, started):
        base = f"http://127.0.0.1:{unused_port}"
        async with httpx.AsyncClient() as client:
            well = await client.get(f"{base}/health")
            assert well.status_code == 200
            assert well.json()["shards"][0]["phase"] == "ready"
            metrics = (await client.get(f"{base}/metrics")).text
            for line in (
                'gateway_shards_alive{id="0"} 1.0',
                "gateway_total_shards 1.0",
                "gateway_packets_sent",
            ):
                assert line in metrics
            await discord.until(
                lambda: 'gateway_ping_count{id="0"}' in started.monitor.exposition().decode(), "a ping"
            )
            async with discord.outage():
                await eventually(lambda: not started.monitor.health().ok, "it is noticed")
                ill = await client.get(f"{base}/health")
                assert ill.status_code == 503
                assert not ill.json()["ok"]


async def test_no_session_is_started_beyond_those_that_discord_allows(
    redis_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    settings = SimulatorSettings(identify_window_seconds=0.01, shards=6, guilds=1, session_starts=3)

    async with (
        DiscordSimulator(settings) as discord,
        running(configured(discord, redis_url, DISCORD_SHARD_IDS="0,2,4")),
        running(configured(discord, redis_url, DISCORD_SHARD_IDS="1,3,5")),
    ):
        await discord.until(lambda: len(discord.sessions) == 3, "three are started")
        # The first that waits passes its turn to the other process, which then waits too.
        await eventually(lambda: "no session may be started" in caplog.text, "the next waits")
        assert len(discord.received(Op.IDENTIFY)) == 3  # a fourth would have reset the token


async def test_it_stops_before_discord_has_answered(
    redis_url: str, unused_port: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("WARNING", "keywright.service")  # a command that another test ran may have set its own
    async with DiscordSimulator(QUICK) as discord:
        nowhere = configured(discord, redis_url, DISCORD_API_HOST=f"127.0.0.1:{unused_port}")
    started = Gateway(nowhere)
    task = asyncio.create_task(started.run())
    await eventually(lambda: "Discord's API: ConnectError" in caplog.text, "it asks in vain")
    started.stop()
    await asyncio.wait_for(task, 5)
