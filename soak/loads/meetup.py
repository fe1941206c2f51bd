"""Simulated Meetup and Discord, people who use them, and links: `python -m soak.loads.meetup LOG WORLD`.

REDIS_URL is the bot's. SIGUSR1 ends what people do while both APIs go on. SIGTERM writes the world to a file
for the judge, and ends it.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import signal
import sys
from pathlib import Path

from keywright import aconnect
from keywright.errors import KeywrightError
from keywright_meetup import account_links
from keywright_meetup import meetup as space
from keywright_meetup.simulator import MeetupSimulator
from keywright_meetup.simulator.town import Town
from keywright_service.signals import stop_on_signals
from keywright_service.testing.discord_rest_simulator import DiscordRestSimulator
from soak.judge.meetup import FIRST_STRANGER, PREFIX
from soak.loads.acknowledgements import AcknowledgementLog

PAUSE_SECONDS = 0.2
STEPS_AN_EVENT = 50
MOST_EVENTS = 40


async def live(town: Town, log: AcknowledgementLog, stopped: asyncio.Event, quiet: asyncio.Event) -> None:
    """Let people answer, organizers announce, and strangers link their accounts."""
    async with aconnect(os.environ["REDIS_URL"], space.bind(prefix=PREFIX)) as db:
        for step in itertools.count(1):
            if stopped.is_set() or quiet.is_set():
                return
            town.answer()
            if step % STEPS_AN_EVENT == 0 and len(town.events) < MOST_EVENTS:
                town.announce()
            meetup, discord = FIRST_STRANGER + step, 10 * FIRST_STRANGER + step
            item = f"{meetup}/{discord}"
            log.begin("link", item)
            try:
                await db.run(account_links.link(meetup, discord))
            except KeywrightError as error:
                log.failed("link", item, error)
            else:
                log.ok("link", item)
            # A simulator keeps every request for its tests; here they would fill the memory.
            town.meetup.answered.clear()
            town.discord.answered.clear()
            await asyncio.sleep(PAUSE_SECONDS)


async def serve(town: Town, log: AcknowledgementLog) -> None:
    stopped, quiet = asyncio.Event(), asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, quiet.set)
    with stop_on_signals(stopped.set):
        print("ready", flush=True)
        await live(town, log, stopped, quiet)
        await stopped.wait()


def _world(town: Town) -> dict[str, object]:
    guild = town.discord.guild
    return {
        "events": {
            event.id: {
                "hosts": event.hosts,
                "guests": [member for member, answer in event.rsvps.items() if answer == "YES"],
            }
            for event in town.events
        },
        "channels": [str(channel["id"]) for channel in guild.text_channels],
        "roles": [str(role["id"]) for role in guild.made_roles],
    }


def main(log: str, world: str) -> None:
    with MeetupSimulator() as meetup, DiscordRestSimulator() as discord:
        town = Town(meetup, discord)
        for name, value in town.variables().items():
            print(f"export {name}={value}", flush=True)
        asyncio.run(serve(town, AcknowledgementLog(Path(log))))
        Path(world).write_text(json.dumps(_world(town)))


if __name__ == "__main__":
    main(*sys.argv[1:])
