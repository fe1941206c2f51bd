"""An unmodified discord.py against the simulator, run by a test: prints what it received as JSON."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import yarl
from discord.gateway import DiscordWebSocket
from discord.http import Route

import discord
from keywright_discord.simulator import DiscordSimulator

from .simulator_course import Report, run_course, settings


class Bot(discord.AutoShardedClient):
    """Records everything that the test asserts."""

    def __init__(self) -> None:
        super().__init__(intents=discord.Intents.all(), chunk_guilds_at_startup=False)
        self.seen: list[str | None] = []
        self.resumed: list[int] = []
        self.failures: list[str] = []

    async def on_message(self, message: discord.Message) -> None:
        self.seen.append(message.content)

    async def on_shard_resumed(self, shard_id: int) -> None:
        self.resumed.append(shard_id)

    async def on_error(self, event: str, *args: Any, **named: Any) -> None:
        self.failures.append(f"{event}: {sys.exc_info()[1]!r}")


async def _follow(simulator: DiscordSimulator, bot: Bot, events: int) -> Report:
    await simulator.until(bot.is_ready, "discord.py is ready")
    report = {
        "guilds": sorted(str(guild.id) for guild in bot.guilds),
        "members": [guild.member_count for guild in bot.guilds],
        "chunked": [len(await guild.chunk()) for guild in bot.guilds],
        "user": str(bot.user.id) if bot.user else None,
    }
    report |= await run_course(simulator, bot.seen, bot.resumed, events)
    return report | {"failures": bot.failures}


async def main(shards: int, guilds: int, events: int) -> None:
    async with DiscordSimulator(settings(shards, guilds)) as simulator:
        # The two places where discord.py has Discord's address.
        Route.BASE = simulator.api_url
        DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL(simulator.gateway_url)
        bot = Bot()
        running = asyncio.create_task(bot.start(simulator.token))
        following = asyncio.create_task(_follow(simulator, bot, events))
        await asyncio.wait([running, following], return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            following.cancel()
            await running
        report = await following
        await bot.close()
        await running
    sys.stdout.write(json.dumps(report) + "\n")


if __name__ == "__main__":
    asyncio.run(main(*map(int, sys.argv[1:])))
