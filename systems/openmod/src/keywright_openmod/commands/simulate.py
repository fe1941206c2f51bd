"""`keywright openmod simulate`: run the Reddit simulator for the service."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from keywright.cli import echo

if TYPE_CHECKING:
    from keywright_openmod.simulator import RedditSimulator

__all__ = ["simulate_reddit"]


def simulate_reddit(
    port: Annotated[
        int, typer.Option(metavar="PORT", help="The port to listen on; 0 takes a free one.", min=0, max=65535)
    ] = 0,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    rate: Annotated[float, typer.Option(help="Random actions per second; 0 is none.", min=0)] = 2.0,
    seed: Annotated[int, typer.Option(help="The seed of the random actions.")] = 0,
    world: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Keep everything in this file, and continue with what it has.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Run a Reddit simulator until Ctrl-C.

    It serves the calls of Reddit's API that the service makes; nothing reaches the network. Prints the
    variables that point `keywright openmod serve` at it. Without --world everything is forgotten at the end.

    Examples:
        keywright openmod simulate --rate 5 --world world.json
    """
    asyncio.run(_run(host, port, rate, seed, world))


async def _run(host: str, port: int, rate: float, seed: int, file: Path | None) -> None:
    # Imported here, so that `keywright --help` does not load a web server.
    from keywright_openmod.simulator import (
        RedditSimulator,
        RedditSimulatorSettings,
        read_world,
        write_world,
    )
    from keywright_service.signals import stop_on_signals

    stopped = asyncio.Event()
    settings = RedditSimulatorSettings(host=host, port=port)
    world = None if file is None else read_world(file)
    save = None if file is None else lambda changed: write_world(changed, file)
    with stop_on_signals(stopped.set):
        async with RedditSimulator(settings, world=world, on_change=save) as reddit:
            _print_variables(reddit)
            if rate:
                reddit.start_traffic(rate=rate, seed=seed)
            await stopped.wait()


def _print_variables(reddit: RedditSimulator) -> None:
    for name, value in reddit.variables.items():
        echo(f"export {name}={value}")
