"""A cache that was emptied, replaced or filled by another bot is filled again by a new session."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest

from invoking import invoke_keywright
from keywright.testing import Raw, RedisServer
from keywright_discord.gateway import cache_watch
from keywright_discord.gateway.gateway import Gateway
from keywright_discord.gateway.opcodes import Op
from keywright_discord.simulator import DiscordSimulator, SimulatorSettings

from ..gateways import configured, environment, eventually, ready, running

pytestmark = pytest.mark.anyio

QUICK = SimulatorSettings(identify_window_seconds=0.01, guilds=3)
HOLD = timedelta(seconds=1)
GUILDS = {"drc": "bot:v1json:guilds", "spectacles": "bot:GUILDS"}
MARKS = {
    "drc": "bot:v1json-private:session:1:0",
    "spectacles": "bot:spectacles-private:session:1:0",
}
FOREIGN = b'{"bot":"175928847299117063","session":"abc"}'
"""The mark of another bot."""
Ask = Callable[..., Any]
"""Sends one command to Redis."""
LAYOUTS = pytest.mark.parametrize("layout", GUILDS)


def guilds(raw: Ask, layout: str) -> set[str]:
    found = raw("SMEMBERS" if layout == "drc" else "HKEYS", GUILDS[layout])
    assert isinstance(found, list | set)
    return {each.decode() for each in found}


@asynccontextmanager
async def filled(
    discord: DiscordSimulator, redis_url: str, raw: Ask, layout: str = "drc"
) -> AsyncIterator[Gateway]:
    """Run a gateway until its cache has every guild."""
    async with running(configured(discord, redis_url, CACHE_LAYOUT=layout), hold=HOLD) as gateway:
        await ready(gateway)
        await eventually(lambda: guilds(raw, layout) == set(discord.world.guilds), "the cache is filled")
        yield gateway


async def refilled(discord: DiscordSimulator, gateway: Gateway, raw: Ask, layout: str = "drc") -> None:
    await discord.until(lambda: len(discord.received(Op.IDENTIFY)) == 2, "it identifies again")
    await eventually(lambda: guilds(raw, layout) == set(discord.world.guilds), "the cache is filled again")
    await ready(gateway)


@LAYOUTS
async def test_a_cache_that_is_flushed_while_the_gateway_runs_is_filled_again(
    redis_url: str, raw: Raw, layout: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    async with DiscordSimulator(QUICK) as discord, filled(discord, redis_url, raw, layout) as gateway:
        raw("FLUSHALL")
        await refilled(discord, gateway, raw, layout)
        [shard] = gateway.monitor.health().shards
        assert (shard.refills, shard.refill_reason) == (1, "the cache was emptied or replaced")
        assert 'gateway_cache_refills{id="0"} 1.0' in gateway.monitor.exposition().decode()
    assert "shard 0: the cache was emptied or replaced; a new session fills the cache" in caplog.text


@LAYOUTS
async def test_a_cache_that_is_purged_while_the_gateway_is_stopped_is_filled_at_the_next_start(
    redis_url: str, raw: Raw, layout: str
) -> None:
    async with DiscordSimulator(QUICK) as discord:
        async with filled(discord, redis_url, raw, layout):
            pass
        purged = invoke_keywright(
            "discord", "purge", "--layout", layout, "--prefix", "bot", "--url", redis_url, "--yes"
        )
        assert purged.exit_code == 0, purged.output
        assert raw("EXISTS", MARKS[layout]) == 0
        async with filled(discord, redis_url, raw, layout) as gateway:
            await refilled(discord, gateway, raw, layout)
        assert discord.received(Op.RESUME) == []


async def test_a_cache_whose_server_was_replaced_by_an_empty_one_is_filled_again() -> None:
    with RedisServer(options={"appendonly": "no"}) as server:
        async with DiscordSimulator(QUICK) as discord, filled(discord, server.url, server.call) as gateway:
            server.kill()
            server.start()
            assert server.call("EXISTS", MARKS["drc"]) == 0
            await refilled(discord, gateway, server.call)


async def test_a_cache_that_another_bot_has_filled_is_filled_again_once(
    redis_url: str, raw: Raw, caplog: pytest.LogCaptureFixture
) -> None:
    async with DiscordSimulator(QUICK) as discord, filled(discord, redis_url, raw) as gateway:
        raw("SET", MARKS["drc"], FOREIGN)
        raw("SADD", GUILDS["drc"], "175928847299117064")
        await refilled(discord, gateway, raw)
        [shard] = gateway.monitor.health().shards
        assert shard.refill_reason == "bot 175928847299117063 has filled the cache"

        # The other bot is alive: sessions would replace each other until none is left for the day.
        await eventually(lambda: raw("GET", MARKS["drc"]) != FOREIGN, "the cache is marked again")
        raw("SET", MARKS["drc"], FOREIGN)
        await eventually(lambda: not gateway.monitor.health().ok, "it is reported")
        [shard] = gateway.monitor.health().shards
        assert shard.trouble.startswith("bot 175928847299117063 writes to the same cache")
        assert len(discord.received(Op.IDENTIFY)) == 2
    assert "give each its own cache.prefix" in caplog.text


async def test_another_bot_is_answered_again_after_an_hour(
    redis_url: str, raw: Raw, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache_watch, "FOREIGN_PAUSE_SECONDS", 0.0)
    async with DiscordSimulator(QUICK) as discord, filled(discord, redis_url, raw):
        for identified in (2, 3):
            raw("SET", MARKS["drc"], FOREIGN)
            await discord.until(
                lambda wanted=identified: len(discord.received(Op.IDENTIFY)) == wanted,  # type: ignore[misc]
                "it identifies again",
            )
            await eventually(lambda: raw("GET", MARKS["drc"]) != FOREIGN, "the cache is marked again")


async def test_a_cache_that_is_in_order_is_resumed(redis_url: str, raw: Raw) -> None:
    async with DiscordSimulator(QUICK) as discord:
        async with filled(discord, redis_url, raw):
            pass
        async with filled(discord, redis_url, raw) as gateway:
            assert gateway.monitor.health().shards[0].refills == 0
        assert (len(discord.received(Op.IDENTIFY)), len(discord.received(Op.RESUME))) == (1, 1)


def reset(discord: DiscordSimulator, redis_url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    for name, value in environment(discord, redis_url).items():
        monkeypatch.setenv(name, value)
    done = invoke_keywright("gateway", "reset")
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.mark.parametrize("layout", ["drc", "none"])
async def test_a_reset_gives_a_running_gateway_a_new_session(
    redis_url: str, raw: Raw, layout: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with (
        DiscordSimulator(QUICK) as discord,
        running(configured(discord, redis_url, CACHE_LAYOUT=layout), hold=HOLD) as gateway,
    ):
        await ready(gateway)
        await eventually(lambda: raw("KEYS", "gateway:*:session"), "its session is stored")
        said = reset(discord, redis_url, monkeypatch)
        assert said == (
            "Shard 0 of 1: its session was dropped; "
            "the process that runs it identifies again within seconds.\n"
        )
        await discord.until(lambda: len(discord.received(Op.IDENTIFY)) == 2, "it identifies again")
        await ready(gateway)
        assert gateway.monitor.health().shards[0].refill_reason == "a reset was requested"
        await eventually(lambda: raw("KEYS", "*:reset") == [], "the request is fulfilled")
        assert len(discord.received(Op.IDENTIFY)) == 2


async def test_a_reset_of_a_stopped_gateway_makes_its_next_start_identify(
    redis_url: str, raw: Raw, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with DiscordSimulator(QUICK) as discord:
        async with filled(discord, redis_url, raw):
            pass
        assert reset(discord, redis_url, monkeypatch) == (
            "Shard 0 of 1: its session was dropped; its next start identifies.\n"
        )
        for _ in range(2):  # the request is fulfilled once
            async with filled(discord, redis_url, raw):
                pass
        assert (len(discord.received(Op.IDENTIFY)), len(discord.received(Op.RESUME))) == (2, 1)


async def test_a_reset_of_a_bot_without_sessions_says_so(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with DiscordSimulator(QUICK) as discord:
        assert "has no stored session" in reset(discord, redis_url, monkeypatch)
