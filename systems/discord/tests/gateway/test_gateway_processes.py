"""Gateways as separate processes: killed, stopped, taken over."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path

import pytest

from keywright import AsyncDatabase, aconnect
from keywright_discord.drc.reader import DrcReader
from keywright_discord.drc.schema import bind
from keywright_discord.gateway.gateway import bot_of
from keywright_discord.gateway.opcodes import Op
from keywright_discord.gateway.schema import ShardOwner, ShardSession, gateway
from keywright_discord.simulator import DiscordSimulator, SimulatorSettings
from keywright_messaging import Broker
from service_processes import ServiceProcess, launched

from ..gateways import environment, eventually_true, take, workers_broker

pytestmark = pytest.mark.anyio

QUICK = SimulatorSettings(identify_window_seconds=0.01, guilds=8, members=5, max_concurrency=4, shards=4)
ONE_SHARD = SimulatorSettings(identify_window_seconds=0.01, guilds=3, members=5)


@contextmanager
def launching(log: Path) -> Iterator[Callable[[dict[str, str]], ServiceProcess]]:
    """Return a function that starts gateways, which end with the block."""
    with ExitStack() as stack:
        yield lambda variables: stack.enter_context(launched("gateway", "run", variables=variables, log=log))


@asynccontextmanager
async def database(redis_url: str) -> AsyncIterator[AsyncDatabase]:
    async with aconnect(redis_url, gateway.bind(), *bind("bot")) as db:
        yield db


def connected(discord: DiscordSimulator, shard: int = 0) -> bool:
    return any(each.shard is not None and each.shard.id == shard for each in discord.connections)


class Numbered:
    """Numbered events of one guild: messages for workers, and new names for the cache."""

    def __init__(self, discord: DiscordSimulator, guild: str) -> None:
        self._discord = discord
        self._guild = guild
        self.last = 0

    async def send(self, number: int) -> None:
        for _ in range(number):
            self.last += 1
            await self._discord.dispatch("GUILD_UPDATE", {"id": self._guild, "name": str(self.last)})
            await self._discord.say(str(self.last), guild=self._guild)

    async def cached(self, db: AsyncDatabase) -> int:
        found = await db.run(DrcReader().guild(self._guild))
        name = found["name"] if found else ""
        return int(name) if name.isdigit() else 0


@asynccontextmanager
async def watched(numbered: Numbered, db: AsyncDatabase) -> AsyncIterator[list[int]]:
    """Yield the list of values that the cache has had; it is polled in the background."""
    seen: list[int] = []

    async def look() -> None:
        while True:
            seen.append(await numbered.cached(db))
            await asyncio.sleep(0.001)

    looking = asyncio.create_task(look())
    try:
        yield seen
    finally:
        looking.cancel()
        await asyncio.wait([looking])


async def test_a_killed_process_resumes_and_no_event_is_lost_or_applied_out_of_order(
    redis_url: str, tmp_path: Path
) -> None:
    async with (
        DiscordSimulator(ONE_SHARD) as discord,
        database(redis_url) as db,
        await workers_broker(redis_url) as broker,
    ):
        variables = environment(discord, redis_url, BROKER_URL=redis_url)
        numbered = Numbered(discord, discord.world.guilds[0])
        with launching(tmp_path / "log") as launch:
            async with watched(numbered, db) as seen:
                for _ in range(3):
                    process = launch(variables)
                    await discord.until(lambda: connected(discord), "it is connected")
                    await numbered.send(150)
                    goal = numbered.last - 100
                    await eventually_true(partial(_reached, numbered, db, goal), "some are cached")
                    process.signal(signal.SIGKILL)
                    await process.ended()
                    await numbered.send(50)
                    # It would expire in 15 s.
                    await db.run(ShardOwner(bot_of(discord.token), 1, 0).delete())
                launch(variables)
                await eventually_true(lambda: _reached(numbered, db, numbered.last), "all are cached")
                got = await _all_numbers(broker, numbered.last)
        assert sorted(set(got)) == list(range(1, numbered.last + 1))
        assert len(discord.received(Op.IDENTIFY)) == 1
        assert len(discord.received(Op.RESUME)) == 3
        assert seen == sorted(seen)


async def _reached(numbered: Numbered, db: AsyncDatabase, goal: int) -> bool:
    return await numbered.cached(db) >= goal


async def _all_numbers(broker: Broker, last: int) -> list[int]:
    got: list[int] = []
    async with asyncio.timeout(30), broker.consume("MESSAGE_CREATE") as consumer:
        while last not in got:
            batch = await consumer.batch(100)
            got += [int(each.data["content"]) for each in batch]
            await consumer.acknowledge_all(batch)
    return got


async def test_a_stopped_process_leaves_nothing_behind(redis_url: str, tmp_path: Path) -> None:
    async with DiscordSimulator(ONE_SHARD) as discord, database(redis_url) as db:
        numbered = Numbered(discord, discord.world.guilds[0])
        with launching(tmp_path / "log") as launch:
            process = launch(environment(discord, redis_url, BROKER_URL=redis_url))
            await discord.until(lambda: connected(discord), "it is connected")
            await numbered.send(500)
            process.signal(signal.SIGTERM)
            assert await process.ended() == 0
        state = await db.run(ShardSession(bot_of(discord.token), 1, 0).get())
        assert state is not None
        [session] = discord.sessions
        assert state.id == session.id
        # The stored sequence is that of the cache: no received event was left half done.
        assert 2 * await numbered.cached(db) in (state.sequence - 4, state.sequence - 3)
        assert await db.run(ShardOwner(bot_of(discord.token), 1, 0).holder()) is None


async def test_two_processes_share_a_bot_and_a_third_takes_over(redis_url: str, tmp_path: Path) -> None:
    async with (
        DiscordSimulator(QUICK) as discord,
        database(redis_url) as db,
        await workers_broker(redis_url) as broker,
    ):
        variables = environment(discord, redis_url, BROKER_URL=redis_url)
        with launching(tmp_path / "log") as launch:
            launch(variables | {"DISCORD_SHARD_IDS": "0,1"})
            second = launch(variables | {"DISCORD_SHARD_IDS": "2,3"})
            await discord.until(lambda: len(discord.sessions) == 4, "four shards are connected")
            for guild in discord.world.guilds:
                await discord.say(guild, guild=guild)
            got = [each["content"] for each in await take(broker, "MESSAGE_CREATE", 8)]
            assert sorted(got) == sorted(discord.world.guilds)
            assert sorted(each.shard.id for each in discord.sessions) == [0, 1, 2, 3]

            second.signal(signal.SIGKILL)
            await second.ended()
            for shard in (2, 3):  # they would expire in 15 s
                await db.run(ShardOwner(bot_of(discord.token), 4, shard).delete())
            launch(variables | {"DISCORD_SHARD_IDS": "2,3"})
            await discord.until(lambda: len(discord.received(Op.RESUME)) == 2, "the third takes over")
            guild = next(each for each in discord.world.guilds if (int(each) >> 22) % 4 == 3)
            await broker.publish("SEND", {"guild_id": guild, "packet": {"op": 4, "d": {"guild_id": guild}}})
            await discord.until(lambda: discord.received(Op.VOICE_STATE_UPDATE, shard=3), "it sends")
            assert len(discord.received(Op.IDENTIFY)) == 4
