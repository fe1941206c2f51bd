"""A simulated Reddit with everyday actions: `python -m soak.loads.reddit WORLD [--rate N]`.

SIGUSR1 ends the actions while the API goes on. SIGTERM writes the world to a file for the judge, and ends it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import signal
from pathlib import Path

from keywright_openmod.simulator import RedditSimulator, SimulatedSubmission
from keywright_service.signals import stop_on_signals


async def serve(rate: float) -> dict[str, object]:
    stopped, quiet = asyncio.Event(), asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, quiet.set)
    with stop_on_signals(stopped.set):
        async with RedditSimulator() as reddit:
            reddit.populate()
            chosen = reddit.settings
            for name, value in reddit.variables.items():
                print(f"export {name}={value}", flush=True)
            print("ready", flush=True)
            chance = random.Random(0)
            while not stopped.is_set() and not quiet.is_set():
                reddit.world.everyday(chance, chosen.subreddit)
                # A simulator keeps every request for its tests; here they would fill the memory.
                reddit.answered.clear()
                await asyncio.sleep(1 / rate)
            await stopped.wait()
            return _world(reddit)


def _world(reddit: RedditSimulator) -> dict[str, object]:
    chosen, world = reddit.settings, reddit.world
    return {
        "log": [
            {"action": entry.action, "actor": entry.moderator.id, "target": entry.target.id}
            for entry in world.log
            if entry.subreddit.name == chosen.subreddit
        ],
        "submissions": {each.id: _submission(each) for each in world.submissions.values()},
        "target": chosen.target,
    }


def _submission(each: SimulatedSubmission) -> dict[str, object]:
    return {
        "author": each.author.id,
        "subreddit": each.subreddit.name,
        "deleted": each.deleted,
        "removed": each.removed,
        "body": each.body,
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("world", type=Path)
    parser.add_argument("--rate", type=float, default=2.0)
    options = parser.parse_args()
    found = asyncio.run(serve(options.rate))
    options.world.write_text(json.dumps(found))
