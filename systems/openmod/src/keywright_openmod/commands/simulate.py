"""`keywright openmod simulate`: a Reddit of one's own, to run the service against."""

from __future__ import annotations

import asyncio
import signal
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated

import typer

from keywright.errors import UsageError

if TYPE_CHECKING:
    from keywright_openmod.simulator import RedditSimulator

__all__ = ["simulate_reddit"]

_NEEDED = ("starlette", "uvicorn")


def simulate_reddit(
    port: Annotated[int, typer.Option(help="Where to listen; 0 takes a free port.", min=0, max=65535)] = 0,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    rate: Annotated[float, typer.Option(help="Things that happen a second; 0 is silence.", min=0)] = 2.0,
    seed: Annotated[int, typer.Option(help="The same seed makes the same things happen.")] = 0,
) -> None:
    """Run a Reddit of your own, until Ctrl-C.

    It answers the calls of Reddit's API that the service makes; nothing reaches the network. Prints the
    variables that point `keywright openmod serve` at it. Needs keywright[openmod].
    """
    if any(find_spec(name) is None for name in _NEEDED):
        raise UsageError("the simulator needs packages that are not here. Install keywright[openmod].")
    asyncio.run(_run(host, port, rate, seed))


async def _run(host: str, port: int, rate: float, seed: int) -> None:
    # Imported here, because the packages are only there with the extra.
    from keywright_openmod.simulator import RedditSimulator, SimulatorSettings

    stopped = asyncio.Event()
    for reason in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(reason, stopped.set)
    async with RedditSimulator(SimulatorSettings(host=host, port=port)) as reddit:
        _print_variables(reddit)
        if rate:
            reddit.start_traffic(rate=rate, seed=seed)
        await stopped.wait()


def _print_variables(reddit: RedditSimulator) -> None:
    chosen = reddit.settings
    for name, value in {
        "OPENMOD_SUBREDDIT": chosen.subreddit,
        "OPENMOD_TARGET_SUBREDDIT": chosen.target,
        "REDDIT_URL": reddit.url,
        "REDDIT_OAUTH_URL": reddit.url,
        "REDDIT_CLIENT_ID": chosen.client_id,
        "REDDIT_CLIENT_SECRET": chosen.client_secret,
        "REDDIT_USERNAME": chosen.username,
        "REDDIT_PASSWORD": chosen.password,
    }.items():
        typer.echo(f"export {name}={value}")
