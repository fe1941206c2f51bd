"""An unmodified hikari against the simulator, run by a test: prints what it received as JSON."""

from __future__ import annotations

import asyncio
import json
import logging
import sys

import hikari

from keywright_discord.simulator import DiscordSimulator

from .simulator_course import Report, run_course, settings


class _Failures(logging.Handler):
    """Collects the warnings of hikari about packets that it cannot parse."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.found.append(record.getMessage())


async def _follow(simulator: DiscordSimulator, bot: hikari.GatewayBot, events: int) -> Report:
    seen: list[str | None] = []
    resumed: list[int] = []

    async def on_message(event: hikari.MessageCreateEvent) -> None:
        seen.append(event.content)

    async def on_resumed(event: hikari.ShardResumedEvent) -> None:
        resumed.append(event.shard.id)

    bot.subscribe(hikari.MessageCreateEvent, on_message)
    bot.subscribe(hikari.ShardResumedEvent, on_resumed)
    await bot.start(check_for_updates=False)
    everywhere = len(simulator.world.guilds)
    cached = bot.cache.get_guilds_view
    await simulator.until(lambda: len(cached()) == everywhere, "all guilds are cached")
    me = bot.get_me()
    report: Report = {
        "guilds": sorted(str(guild) for guild in cached()),
        "members": [len(bot.cache.get_members_view_for_guild(guild)) for guild in cached()],
        "user": str(me.id) if me else None,
    }
    return report | await run_course(simulator, seen, resumed, events)


async def main(shards: int, guilds: int, events: int) -> None:
    failures = _Failures()
    logging.getLogger("hikari").addHandler(failures)
    async with DiscordSimulator(settings(shards, guilds)) as simulator:
        bot = hikari.GatewayBot(
            simulator.token,
            rest_url=simulator.api_url,
            intents=hikari.Intents.ALL,
            banner=None,
            logs=None,
            suppress_optimization_warning=True,
        )
        report = await _follow(simulator, bot, events)
        await bot.close()
        await simulator.until(lambda: not simulator.sessions, "hikari said goodbye")
    sys.stdout.write(json.dumps(report | {"failures": failures.found}) + "\n")


if __name__ == "__main__":
    asyncio.run(main(*map(int, sys.argv[1:])))
