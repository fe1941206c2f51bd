"""`keywright meetup simulate`: Meetup and Discord on this machine, with a small town, for the bot."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import typer

from keywright.cli import echo, echo_exact

if TYPE_CHECKING:
    from keywright_meetup.simulator.town import Town

__all__ = ["simulate"]

PAUSE_SECONDS = 1.0


def simulate(
    port: Annotated[int, typer.Option(help="The port of Discord; 0 takes a free one.", min=0, max=65535)] = 0,
    meetup_port: Annotated[
        int, typer.Option(help="The port of Meetup; 0 takes a free one.", min=0, max=65535)
    ] = 0,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    pages: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Where the pages of the bot will listen.")
    ] = "127.0.0.1:8090",
    rate: Annotated[
        float, typer.Option(help="Answers to events per second, and some new events; 0 is none.", min=0)
    ] = 0.0,
    seed: Annotated[int, typer.Option(help="The seed of the events and answers.")] = 0,
) -> None:
    """Run Meetup and Discord simulators with a small town until Ctrl-C.

    They serve the calls of both APIs that the bot makes, and Meetup's consent page; nothing reaches the
    network. Prints the variables that point `keywright meetup serve` at them, and how to use a command of the
    bot as a member of the simulated guild.

    Exits with 0 when it was stopped, 2 when it cannot listen.

    Examples:
        keywright meetup simulate --rate 1
    """
    asyncio.run(_run(host, port, meetup_port, pages, rate, seed))


async def _run(host: str, port: int, meetup_port: int, pages: str, rate: float, seed: int) -> None:
    # Imported here, so that `keywright --help` does not load a web server.
    from keywright_meetup.simulator import MeetupSimulator
    from keywright_meetup.simulator.controls import DiscordWithControls
    from keywright_meetup.simulator.town import Town
    from keywright_service.signals import stop_on_signals

    stopped = asyncio.Event()
    with (
        MeetupSimulator(host=host, port=meetup_port) as meetup,
        DiscordWithControls(host=host, port=port) as discord,
        stop_on_signals(stopped.set),
    ):
        town = Town(meetup, discord, seed=seed)
        _print(town, pages)
        while not stopped.is_set():
            if rate:
                town.act()
            # A simulator keeps every request for tests; here they would fill the memory.
            meetup.answered.clear()
            discord.answered.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(stopped.wait(), 1 / rate if rate else PAUSE_SECONDS)


def _print(town: Town, pages: str) -> None:
    from keywright_meetup.simulator.controls import PATH

    addresses = {"PAGES_URL": f"http://{pages}", "PAGES_ADDRESS": pages}
    for name, value in {**town.variables(), **addresses}.items():
        echo(f"export {name}={value}")
    echo(
        f"# members: {', '.join(each.name for each in town.people)}; {town.people[0].name} manages the guild"
    )
    # Whole, so that they can be pasted.
    echo_exact(f"# use a command: curl -d as={town.people[0].name} -d command=link {town.discord.url}{PATH}")
    echo_exact(f"# see the guild: curl {town.discord.url}{PATH}")
