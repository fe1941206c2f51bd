"""Packets of workers: to their shard, once it is connected, or to the dead letters."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from keywright.testing import ManualClock, Raw, RedisServer
from keywright_discord.gateway import packets, pipeline
from keywright_discord.gateway.gateway import Gateway
from keywright_discord.gateway.opcodes import Op
from keywright_discord.simulator import DiscordSimulator, SimulatorSettings
from keywright_messaging import Broker, BrokerSettings, Encoding, etf, open_broker

from ..gateways import backed_up, configured, eventually, eventually_true, ready, running, workers_broker

pytestmark = pytest.mark.anyio

QUICK = SimulatorSettings(identify_window_seconds=0.01, guilds=8, max_concurrency=4, shards=4)


def voice(guild: str, channel: str | None = None) -> dict[str, Any]:
    return {"op": 4, "d": {"guild_id": guild, "channel_id": channel, "self_mute": False, "self_deaf": False}}


@asynccontextmanager
async def started(
    redis_url: str, *processes: str, settings: SimulatorSettings = QUICK
) -> AsyncIterator[tuple[DiscordSimulator, Broker, list[Gateway]]]:
    """Start gateways of these shard ids over Redis streams, and open the broker of a worker."""
    async with (
        DiscordSimulator(settings) as discord,
        await workers_broker(redis_url) as broker,
        _gateways(discord, redis_url, list(processes)) as gateways,
    ):
        yield discord, broker, gateways


@asynccontextmanager
async def _gateways(
    discord: DiscordSimulator, redis_url: str, processes: list[str]
) -> AsyncIterator[list[Gateway]]:
    if not processes:
        yield []
        return
    configuration = configured(discord, redis_url, DISCORD_SHARD_IDS=processes[0], BROKER_URL=redis_url)
    async with running(configuration) as first, _gateways(discord, redis_url, processes[1:]) as rest:
        await ready(first)
        yield [first, *rest]


def by_shard(discord: DiscordSimulator) -> dict[int, str]:
    """Return a guild of each shard."""
    return {(int(guild) >> 22) % 4: guild for guild in discord.world.guilds}


async def test_send_reaches_the_shard_of_its_guild_in_any_process(redis_url: str) -> None:
    async with started(redis_url, "0,1", "2,3") as (discord, broker, _):
        guilds = by_shard(discord)
        assert set(guilds) == {0, 1, 2, 3}, "the seed must spread its guilds"
        for guild in guilds.values():
            await broker.publish("SEND", {"guild_id": guild, "packet": voice(guild)})
        for shard, guild in guilds.items():
            [sent] = await discord.until(
                lambda shard=shard: discord.received(Op.VOICE_STATE_UPDATE, shard=shard),  # type: ignore[misc]
                f"shard {shard} sends",
            )
            assert sent.data == voice(guild)["d"]


async def test_a_packet_under_a_shard_id_is_sent_once_and_in_order(redis_url: str) -> None:
    async with started(redis_url, "0,1", "2,3") as (discord, broker, _):
        guild = by_shard(discord)[3]
        await broker.publish_many("3", [voice(guild, str(1000 + number)) for number in range(20)])
        await discord.until(lambda: len(discord.received(Op.VOICE_STATE_UPDATE)) >= 20, "all are sent")
    sent = discord.received(Op.VOICE_STATE_UPDATE)
    assert [each.data["channel_id"] for each in sent] == [str(1000 + number) for number in range(20)]
    assert {each.shard for each in sent} == {3}


async def test_packets_wait_while_the_shard_is_disconnected_and_outlive_the_process(redis_url: str) -> None:
    async with DiscordSimulator(QUICK) as discord, await workers_broker(redis_url) as broker:
        guild = by_shard(discord)[3]
        async with _gateways(discord, redis_url, ["3"]) as [gateway]:
            async with discord.outage():
                await eventually(lambda: not gateway.monitor.health().ok, "it is noticed")
                await broker.publish("3", voice(guild, "1"))
                await broker.publish("SEND", {"guild_id": guild, "packet": voice(guild, "2")})
            await discord.until(lambda: len(discord.received(Op.VOICE_STATE_UPDATE)) == 2, "both are sent")
        await broker.publish("3", voice(guild, "3"))
        async with _gateways(discord, redis_url, ["3"]):
            await discord.until(lambda: len(discord.received(Op.VOICE_STATE_UPDATE)) == 3, "it is sent")
        sent = [each.data["channel_id"] for each in discord.received(Op.VOICE_STATE_UPDATE)]
        assert sent == ["1", "2", "3"]


@pytest.mark.parametrize(
    ("event", "data", "reason"),
    [
        ("SEND", {"guild_id": "some id", "packet": voice("1")}, "guild_id"),
        ("SEND", {"packet": voice("1")}, "guild_id"),
        ("SEND", {"guild_id": "1", "packet": {"op": 2, "d": {}}}, "not 2"),
        ("SEND", {"guild_id": "1", "packet": {"op": 4, "d": {"x": "y" * 4096}}}, "4,096"),
        ("0", {"op": 6, "d": {}}, "not 6"),
        ("0", {"op": 8, "d": {"query": "y" * 4096}}, "4,096"),
        ("0", "nothing", "a packet must be an object"),
    ],
)
async def test_malformed_packets_become_dead_letters_with_the_reason(
    redis_url: str, event: str, data: Any, reason: str
) -> None:
    async with started(redis_url, "0") as (discord, broker, [gateway]):
        await broker.publish(event, data)
        [dead] = await eventually_true(lambda: broker.dead_letters(event), "it is a dead letter")
        assert reason in dead.reason
        assert f'gateway_dead_letters{{event="{event}"}} 1.0' in gateway.monitor.exposition().decode()
        guild = by_shard(discord)[0]
        await broker.publish("0", voice(guild))
        await discord.until(lambda: discord.received(Op.VOICE_STATE_UPDATE), "the next is sent")


@pytest.mark.parametrize("event", ["SEND", "0"])
@pytest.mark.parametrize("op", [10**5000, ["x" * 1000] * 100], ids=["huge integer", "long list"])
async def test_a_poisonous_packet_becomes_a_dead_letter_and_the_gateway_goes_on(
    redis_url: str, raw: Raw, event: str, op: object
) -> None:
    async with DiscordSimulator(QUICK) as discord, await workers_broker(redis_url) as broker:
        guild = by_shard(discord)[0]
        packet = {"op": op, "d": {}}
        body = etf.encode({"guild_id": guild, "packet": packet} if event == "SEND" else packet)
        await broker.declare(event)
        raw("XADD", event, "*", "data", body)
        async with _gateways(discord, redis_url, ["0"]) as [started]:
            [dead] = await eventually_true(lambda: broker.dead_letters(event), "it is a dead letter")
            assert dead.body == body
            assert len(dead.reason) < 1000
            await broker.publish("SEND", {"guild_id": guild, "packet": voice(guild)})
            await discord.until(lambda: discord.received(Op.VOICE_STATE_UPDATE), "the next is sent")
            assert started.monitor.health().ok


UNWRITABLE = msgspec.msgpack.Ext(7, b"")


@pytest.mark.parametrize("event", ["SEND", "0"])
@pytest.mark.parametrize(
    ("value", "written", "more"),
    [
        (UNWRITABLE, Encoding.MSGPACK, {}),
        ({None: 1}, Encoding.MSGPACK, {}),
        (2**70, Encoding.JSON, {"BROKER_ENCODING": "msgpack", "DISCORD_ENCODING": "etf"}),
        (float("nan"), Encoding.MSGPACK, {"DISCORD_ENCODING": "etf"}),
        (msgspec.Raw(b"[" * 900 + b"]" * 900), Encoding.JSON, {"DISCORD_ENCODING": "etf"}),
    ],
    ids=["extension", "null as key", "large integer", "nan", "deep"],
)
async def test_data_that_another_encoding_cannot_hold_does_not_end_the_gateway(
    redis_url: str, event: str, value: object, written: Encoding, more: dict[str, str]
) -> None:
    async with (
        DiscordSimulator(QUICK) as discord,
        running(
            configured(discord, redis_url, DISCORD_SHARD_IDS="0", BROKER_URL=redis_url, **more)
        ) as gateway,
        await open_broker(redis_url, BrokerSettings(encoding=written, client="worker")) as broker,
    ):
        await ready(gateway)
        guild = by_shard(discord)[0]
        packet = {"op": 4, "d": {"guild_id": guild, "x": value}}
        await broker.publish(event, {"guild_id": guild, "packet": packet} if event == "SEND" else packet)
        await broker.publish("SEND", {"guild_id": guild, "packet": voice(guild)})
        await discord.until(
            lambda: [
                each for each in discord.received(Op.VOICE_STATE_UPDATE) if each.data == voice(guild)["d"]
            ],
            "the next is sent",
        )


async def test_a_packet_waits_while_the_end_of_the_connection_is_not_read(
    redis_url: str, keywright_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "MOST_EVENTS", 50)

    settings = SimulatorSettings(identify_window_seconds=0.01, heartbeat_interval_ms=200)
    async with (
        DiscordSimulator(settings) as discord,
        running(configured(discord, redis_url)) as gateway,
        await workers_broker() as broker,
    ):
        await ready(gateway)
        guild = discord.world.guilds[0]
        keywright_server.pause()
        try:
            await backed_up(gateway, discord)
            await discord.cut(0)
            # The first is sent to a connection that is gone, which is not known before.
            await broker.publish("0", voice(guild, "1"))
            await eventually(lambda: 'op="4"' in gateway.monitor.exposition().decode(), "it is sent")
            await asyncio.sleep(0.5)
            await broker.publish("0", voice(guild, "2"))
            await asyncio.sleep(0.5)  # enough time for many vain attempts
            async with asyncio.timeout(10), broker.consume("0") as consumer:
                assert (await consumer.batch(1))[0].attempt <= 3
        finally:
            keywright_server.resume()
        await discord.until(lambda: discord.received(Op.VOICE_STATE_UPDATE), "it is sent")


def members(guild: str, nonce: str) -> dict[str, Any]:
    return {"op": 8, "d": {"guild_id": guild, "query": "", "limit": 0, "nonce": nonce}}


def pending(raw: Raw, event: str) -> int:
    """Return the packets under an event that are delivered and not acknowledged."""
    found = raw("XPENDING", event, "gateway")
    assert isinstance(found, dict)
    return int(found["pending"])


async def test_a_request_that_discord_refuses_for_now_is_sent_again_and_only_then_acknowledged(
    redis_url: str, raw: Raw
) -> None:
    clock = ManualClock()
    settings = replace(QUICK, member_requests_window_seconds=0.5, clock=clock.monotonic)
    async with started(redis_url, "0", settings=settings) as (discord, broker, [gateway]):
        guild = by_shard(discord)[0]
        await broker.publish_many("0", [members(guild, "first"), members(guild, "second"), voice(guild)])
        # The refused one keeps nobody waiting.
        await discord.until(lambda: discord.received(Op.VOICE_STATE_UPDATE), "the next is sent")
        limited = 'gateway_rate_limited{op="8",shard="0"} '
        await eventually(lambda: limited in gateway.monitor.exposition().decode(), "it is refused")
        assert pending(raw, "0") == 1
        clock.advance(timedelta(seconds=1))
        await discord.until(
            lambda: (
                [each.data["nonce"] for each in discord.received(Op.REQUEST_GUILD_MEMBERS)][-1:] == ["second"]
                and len(discord.received(Op.REQUEST_GUILD_MEMBERS)) >= 3
            ),
            "it is sent again",
        )
        await eventually(lambda: pending(raw, "0") == 0, "it is acknowledged")
        chunks = 't="GUILD_MEMBERS_CHUNK"} 2.0'
        await eventually(lambda: chunks in gateway.monitor.exposition().decode(), "both are answered")


async def test_a_refused_request_outlives_the_process(redis_url: str, raw: Raw) -> None:
    clock = ManualClock()
    settings = replace(QUICK, clock=clock.monotonic)
    async with DiscordSimulator(settings) as discord, await workers_broker(redis_url) as broker:
        guild = by_shard(discord)[0]
        async with _gateways(discord, redis_url, ["0"]) as [gateway]:
            await broker.publish_many("0", [members(guild, "first"), members(guild, "second")])
            await eventually(
                lambda: "gateway_rate_limited{" in gateway.monitor.exposition().decode(), "it is refused"
            )
        clock.advance(timedelta(seconds=60))
        async with _gateways(discord, redis_url, ["0"]):
            await eventually(lambda: pending(raw, "0") == 0, "it is acknowledged")
        nonces = [each.data["nonce"] for each in discord.received(Op.REQUEST_GUILD_MEMBERS)]
        assert nonces[:2] == ["first", "second"]
        assert nonces.count("second") == 2


async def test_a_request_that_discord_ignores_is_done_after_a_while(
    redis_url: str, raw: Raw, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packets, "ANSWER_SECONDS", 0.1)
    async with started(redis_url, "0") as (discord, broker, _):
        await broker.publish("0", members("1", "unknown guild"))
        await discord.until(lambda: discord.received(Op.REQUEST_GUILD_MEMBERS), "it is sent")
        await eventually(lambda: pending(raw, "0") == 0, "it is acknowledged")


@pytest.mark.parametrize("encoding", Encoding)
async def test_packets_are_understood_in_every_encoding(redis_url: str, encoding: Encoding) -> None:
    async with started(redis_url, "0") as (discord, _, _):
        guild = by_shard(discord)[0]
        async with await open_broker(redis_url, BrokerSettings(encoding=encoding, client="worker")) as other:
            await other.publish("SEND", {"guild_id": guild, "packet": voice(guild)})
            [sent] = await discord.until(lambda: discord.received(Op.VOICE_STATE_UPDATE), "it is sent")
            assert sent.data == voice(guild)["d"]


@pytest.mark.parametrize(("op", "most"), [(Op.PRESENCE_UPDATE, 5), (Op.VOICE_STATE_UPDATE, 100)])
async def test_discord_never_closes_for_too_many_packets(redis_url: str, op: Op, most: int) -> None:
    settings = SimulatorSettings(identify_window_seconds=0.01, guilds=2, heartbeat_interval_ms=1500)
    async with started(redis_url, "0", settings=settings) as (discord, broker, [gateway]):
        data = presence() if op is Op.PRESENCE_UPDATE else voice(discord.world.guilds[0])["d"]
        await broker.publish_many("0", [{"op": int(op), "d": data} for _ in range(most + 50)])
        await discord.until(lambda: len(discord.received(op)) >= most, "as many as allowed")
        beats = len(discord.received(Op.HEARTBEAT))
        await discord.until(lambda: len(discord.received(Op.HEARTBEAT)) > beats + 1, "beats go on")
        assert most <= len(discord.received(op)) <= most * 1.1
        assert discord.received(Op.RESUME) == []
        assert gateway.monitor.health().ok


def presence() -> dict[str, Any]:
    return {"since": None, "activities": [], "status": "online", "afk": False}
