"""The lease of a shard and its stored session."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from keywright import AsyncDatabase, aconnect, check
from keywright.testing import Proxy
from keywright_discord.gateway.configuration import load
from keywright_discord.gateway.gateway import Gateway, bot_of, terms_of
from keywright_discord.gateway.opcodes import Op
from keywright_discord.gateway.schema import SessionState, ShardOwner, gateway
from keywright_discord.gateway.sessions import Tenancy, may_resume_at
from keywright_discord.simulator import DiscordSimulator, SimulatorSettings

from ..gateways import configured, eventually, eventually_true, ready, running

pytestmark = pytest.mark.anyio

SHORT = timedelta(milliseconds=300)
STATE = SessionState("abc", "wss://resume", 7, "terms", "123")


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[AsyncDatabase]:
    async with aconnect(url, gateway.bind(prefix="gw")) as db:
        yield db


def test_the_keyspace_is_sound() -> None:
    assert check(gateway) == []


async def test_a_session_is_read_back_as_it_was_saved(redis_url: str) -> None:
    async with opened(redis_url) as db:
        tenancy = Tenancy(db, "bot", 2, 4)
        await tenancy.begin()
        assert await tenancy.load() is None
        assert await tenancy.save(STATE)
        assert await tenancy.load() == STATE
        assert await Tenancy(db, "bot", 2, 8).load() is None
        assert await Tenancy(db, "other", 2, 4).load() is None


async def test_the_progress_of_the_cache_counts_in_one_session_only(redis_url: str) -> None:
    async with opened(redis_url) as db:
        tenancy = Tenancy(db, "bot", 2, 4)
        assert await tenancy.applied("abc") == 0
        await db.run(tenancy.mark("abc", 9))
        assert await tenancy.applied("abc") == 9
        assert await tenancy.applied("def") == 0
        assert await Tenancy(db, "bot", 2, 8).applied("abc") == 0


async def test_a_shard_has_one_owner_and_the_next_takes_over_when_it_dies(redis_url: str) -> None:
    async with opened(redis_url) as db:
        first, second = (Tenancy(db, "bot", 0, 1, hold=SHORT) for _ in range(2))
        await first.begin()
        keeping = asyncio.create_task(first.keep())
        waiting = asyncio.create_task(second.begin())
        await asyncio.sleep(2 * SHORT.total_seconds())
        assert not waiting.done()
        assert second.elsewhere
        keeping.cancel()
        await asyncio.wait_for(waiting, 10)
        assert not second.elsewhere
        assert not await first.save(STATE)
        await asyncio.wait_for(first.keep(), 10)
        assert first.elsewhere


async def test_a_released_shard_is_free_at_once(redis_url: str) -> None:
    async with opened(redis_url) as db:
        first, second = (Tenancy(db, "bot", 0, 1, hold=timedelta(hours=1)) for _ in range(2))
        await first.begin()
        await first.end()
        await asyncio.wait_for(second.begin(), 10)


async def test_a_lease_that_expired_unnoticed_is_acquired_again(redis_url: str) -> None:
    async with opened(redis_url) as db:
        tenancy = Tenancy(db, "bot", 0, 1)
        await tenancy.begin()
        await tenancy.end()
        assert await tenancy.save(STATE)


async def test_a_second_gateway_stands_by_and_resumes_when_the_first_stops(redis_url: str) -> None:
    settings = SimulatorSettings(identify_window_seconds=0.01)

    async with DiscordSimulator(settings) as discord:
        configuration = configured(discord, redis_url)
        spare = Gateway(configuration, hold=SHORT)
        async with running(configuration) as first:
            await ready(first)
            task = asyncio.create_task(spare.run())
            await eventually(lambda: "standby" in str(spare.monitor.health()), "it stands by")
            assert spare.monitor.health().ok
            assert len(discord.connections) == 1
        await discord.until(lambda: discord.received(Op.RESUME), "it takes over")
        await ready(spare)
        spare.stop()
        await task


async def test_a_shard_that_was_granted_while_stopping_is_released(
    redis_url: str, make_proxy: Callable[[str], Proxy]
) -> None:
    proxy = make_proxy(redis_url)
    async with DiscordSimulator() as discord, aconnect(redis_url, gateway.bind()) as db:
        held = ShardOwner(bot_of(discord.token), 1, 0).holder()
        first = Tenancy(db, bot_of(discord.token), 0, 1)
        await first.begin()
        spare = Gateway(configured(discord, proxy.url))
        task = asyncio.create_task(spare.run())
        await eventually(lambda: "standby" in str(spare.monitor.health()), "it stands by")
        proxy.delay(30)
        await first.end()
        await eventually_true(lambda: db.run(held), "Redis has given it the shard")
        spare.stop()
        proxy.heal()
        await task
        assert await db.run(held) is None


async def test_a_released_shard_is_not_renewed_once_more(
    redis_url: str, make_proxy: Callable[[str], Proxy]
) -> None:
    proxy = make_proxy(redis_url)
    settings = SimulatorSettings(identify_window_seconds=0.01)
    async with DiscordSimulator(settings) as discord, aconnect(redis_url, gateway.bind()) as db:
        for _ in range(4):  # one attempt would find it by chance
            stopped = Gateway(configured(discord, proxy.url), hold=SHORT)
            task = asyncio.create_task(stopped.run())
            await ready(stopped)
            proxy.delay(SHORT.total_seconds() / 2)
            stopped.stop()
            await task
            proxy.heal()
            assert await db.run(ShardOwner(bot_of(discord.token), 1, 0).holder()) is None


@pytest.mark.parametrize(
    "change",
    [
        {"DISCORD_INTENTS": "GUILDS"},
        {"DISCORD_ENCODING": "etf"},
        {"CACHE_PREFIX": "another"},
        {"CACHE_WITHOUT": "presence"},
        {"DISCORD_PRESENCE": '{"status": "idle"}'},
    ],
)
def test_other_terms_make_another_session(change: dict[str, str]) -> None:
    plain = {"DISCORD_TOKEN": "t"}
    assert terms_of(load(environment=plain)) == terms_of(load(environment={"DISCORD_TOKEN": "u"}))
    assert terms_of(load(environment=plain)) != terms_of(load(environment=plain | change))


DISCORD = "wss://gateway.discord.gg"
PROXY = "wss://proxy.example:8443/discord"
SIMULATOR = "ws://127.0.0.1:7100"


@pytest.mark.parametrize(
    ("url", "gateway_url"),
    [
        (DISCORD, DISCORD),
        ("wss://gateway-us-east1-b.discord.gg", DISCORD),
        ("wss://GATEWAY-us-east1-b.Discord.gg:443/?v=10", DISCORD),
        ("wss://gateway-us-east1-b.discord.gg", PROXY),
        ("wss://gateway-us-east1-b.discord.gg", SIMULATOR),
        ("wss://proxy.example:8443/resume", PROXY),
        ("ws://127.0.0.1:7100/resume", SIMULATOR),
        ("wss://user:password@proxy.example", "wss://user:password@proxy.example"),
        ("wss://proxy.example/resume", "wss://user:password@proxy.example"),
    ],
)
def test_a_stored_session_is_resumed_at_the_gateway_and_at_discord(url: str, gateway_url: str) -> None:
    assert may_resume_at(url, gateway_url)


@pytest.mark.parametrize(
    ("url", "gateway_url"),
    [
        ("wss://evil.example", DISCORD),
        ("wss://evildiscord.gg", DISCORD),
        ("wss://gateway.discord.gg.evil.example", DISCORD),
        ("wss://gateway.discord.gg@evil.example", DISCORD),
        ("wss://evil.example@gateway.discord.gg", DISCORD),
        ("wss://evil.example\\@gateway.discord.gg", DISCORD),
        ("wss://evil.example#.discord.gg", DISCORD),
        ("wss://evil.example\\.discord.gg", DISCORD),
        ("wss://evil.example%2f.discord.gg", DISCORD),
        ("wss://gateway.discord.gg:8443", DISCORD),
        ("ws://gateway.discord.gg", DISCORD),
        ("ws://gateway.discord.gg", SIMULATOR),
        ("ws://proxy.example:8443", PROXY),
        ("wss://proxy.example", PROXY),
        ("wss://127.0.0.1:7100", SIMULATOR),
        ("ws://127.0.0.1:7101", SIMULATOR),
        ("https://gateway.discord.gg", DISCORD),
        ("ws+unix://gateway.discord.gg", DISCORD),
        ("gateway.discord.gg", DISCORD),
        ("wss://[::1", DISCORD),
        ("wss://gateway.discord.gg:port", DISCORD),
        ("wss://", DISCORD),
        ("", DISCORD),
    ],
)
def test_a_stored_session_is_not_resumed_elsewhere(url: str, gateway_url: str) -> None:
    assert not may_resume_at(url, gateway_url)


@pytest.mark.parametrize(
    ("token", "name"),
    [
        ("MTUzMjkwMDY3MTYzMzc4NTQyNw.simulated.token", "1532900671633785427"),
        ("no id in it", None),
        ("ä.b", None),
    ],
)
def test_a_bot_is_named_by_its_id_or_a_fingerprint(token: str, name: str | None) -> None:
    found = bot_of(token)
    assert found == name if name else len(found) == 16
    assert (bot_of(token + "x") == found) is (name is not None)
