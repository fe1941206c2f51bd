"""A simulated Discord with everyday events and numbered messages: `python -m soak.loads.discord LOG WORLD`.

SIGUSR1 ends the events while sessions go on. SIGTERM writes the world to a file for the judge, and ends it.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import signal
import sys
from pathlib import Path

from keywright_discord.simulator import DiscordSimulator, SimulatorSettings
from keywright_service.signals import stop_on_signals
from soak.loads.acknowledgements import AcknowledgementLog

EVENTS_A_SECOND = 8.0
PAUSE_SECONDS = 0.25
SESSIONS = 2
# Guilds of the world stay the same; members, channels, roles and messages come and go.
MIX = {"GUILD_CREATE": 0.0, "GUILD_DELETE": 0.0}


async def serve(log: AcknowledgementLog) -> dict[str, dict[str, list[str]]]:
    stopped, quiet = asyncio.Event(), asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, quiet.set)
    settings = SimulatorSettings(guilds=6, members=30, max_concurrency=2, identify_window_seconds=1.0)
    with stop_on_signals(stopped.set):
        async with DiscordSimulator(settings) as discord:
            print(f"export DISCORD_API_HOST={discord.api_url.split('/')[2]}", flush=True)
            print(f"export DISCORD_TOKEN={discord.token}", flush=True)
            print("ready", flush=True)
            traffic: asyncio.Task[int] | None = None
            for number in itertools.count(1):
                if stopped.is_set() or quiet.is_set():
                    break
                await asyncio.sleep(PAUSE_SECONDS)
                if traffic is None and len(discord.sessions) == SESSIONS:
                    traffic = discord.start_traffic(rate=EVENTS_A_SECOND, mix=MIX)
                if traffic is not None:
                    await _say(discord, log, number)
            if traffic is not None:
                traffic.cancel()
            await stopped.wait()
            return _world(discord)


async def _say(discord: DiscordSimulator, log: AcknowledgementLog, number: int) -> None:
    """Say something in one of the guilds. It counts once the session of each gateway has it."""
    guilds = discord.world.guilds
    made = discord.world.message(f"number {number}", guild=guilds[number % len(guilds)])
    log.begin("say", made["id"])
    if await discord.dispatch("MESSAGE_CREATE", made) == SESSIONS:
        log.ok("say", made["id"])
    else:
        log.doubt("say", made["id"], "SessionMissing")


def _world(discord: DiscordSimulator) -> dict[str, dict[str, list[str]]]:
    found = {}
    for guild in discord.world.guilds:
        created = discord.world.guild_create(guild)
        if created is not None:
            found[guild] = {
                "members": [each["user"]["id"] for each in created["members"]],
                "channels": [each["id"] for each in created["channels"]],
                "roles": [each["id"] for each in created["roles"]],
                "emojis": [each["id"] for each in created["emojis"]],
            }
    return found


if __name__ == "__main__":
    found = asyncio.run(serve(AcknowledgementLog(Path(sys.argv[1]))))
    Path(sys.argv[2]).write_text(json.dumps(found))
