"""Who runs a shard, and what of its session is stored."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from gateways import configured, eventually, ready, running
from keywright.engine import AsyncDatabase, aconnect
from keywright.keyspace import check
from keywright.services.gateway.configuration import load
from keywright.services.gateway.gateway import Gateway, bot_of, terms_of
from keywright.services.gateway.schema import Applied, SessionState, gateway
from keywright.services.gateway.sessions import Tenancy
from keywright.testing.discord_simulator import DiscordSimulator, SimulatorSettings
from keywright.testing.discord_simulator.codes import Op

SHORT = timedelta(milliseconds=300)
STATE = SessionState("abc", "wss://resume", 7, "terms", "123")


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[AsyncDatabase]:
    async with aconnect(url, gateway.bind(prefix="gw")) as db:
        yield db


def test_the_keyspace_is_sound() -> None:
    assert check(gateway) == []


def test_a_session_is_read_back_as_it_was_saved(redis_url: str) -> None:
    async def story() -> None:
        async with opened(redis_url) as db:
            tenancy = Tenancy(db, "bot", 2, 4)
            await tenancy.begin()
            assert await tenancy.load() == (None, None)
            assert await tenancy.save(STATE)
            await db.run(tenancy.mark("abc", 9))
            assert await tenancy.load() == (STATE, Applied("abc", 9))
            assert await Tenancy(db, "bot", 2, 8).load() == (None, None)
            assert await Tenancy(db, "other", 2, 4).load() == (None, None)

    asyncio.run(story())


def test_a_shard_has_one_owner_and_the_next_takes_over_when_it_dies(redis_url: str) -> None:
    async def story() -> None:
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

    asyncio.run(story())


def test_a_shard_that_is_given_up_is_free_at_once(redis_url: str) -> None:
    async def story() -> None:
        async with opened(redis_url) as db:
            first, second = (Tenancy(db, "bot", 0, 1, hold=timedelta(hours=1)) for _ in range(2))
            await first.begin()
            await first.end()
            await asyncio.wait_for(second.begin(), 10)

    asyncio.run(story())


def test_a_lease_that_ran_out_unnoticed_is_taken_back(redis_url: str) -> None:
    async def story() -> None:
        async with opened(redis_url) as db:
            tenancy = Tenancy(db, "bot", 0, 1)
            await tenancy.begin()
            await tenancy.end()
            assert await tenancy.save(STATE)

    asyncio.run(story())


def test_a_second_gateway_stands_by_and_resumes_when_the_first_goes(redis_url: str) -> None:
    settings = SimulatorSettings(identify_window_seconds=0.01)

    async def story() -> None:
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

    asyncio.run(story())


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
    assert found == bot_of(token) != bot_of(token + "x") or name
