"""`keywright gateway simulate`: a local Discord, to run a bot or a gateway against."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from keywright.cli import echo
from keywright_service.signals import stop_on_signals

if TYPE_CHECKING:
    from keywright_discord.simulator import DiscordSimulator, SimulatorSettings

__all__ = ["simulate"]

USED_EVERY = 2.0
ANSWER_SECONDS = 3.0  # Discord waits as long


def simulate(
    port: Annotated[
        int, typer.Option(metavar="PORT", help="Where to listen; 0 takes a free port.", min=0, max=65535)
    ] = 0,
    api_port: Annotated[
        int,
        typer.Option(
            metavar="PORT", help="Where the REST API listens; 0 takes a free port.", min=0, max=65535
        ),
    ] = 0,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    guilds: Annotated[int, typer.Option(help="How many guilds the bot is in.", min=0)] = 10,
    members: Annotated[int, typer.Option(help="How many members each guild has.", min=1)] = 50,
    rate: Annotated[float, typer.Option(help="Events per second; 0 for none.", min=0)] = 10.0,
    token: Annotated[str | None, typer.Option(help="The bot's token; default: a generated one.")] = None,
    shards: Annotated[int, typer.Option(help="How many shards /gateway/bot recommends.", min=1)] = 1,
    max_concurrency: Annotated[int, typer.Option(help="How many shards may identify at once.", min=1)] = 1,
    seed: Annotated[int, typer.Option(help="The same seed makes the same guilds and events.")] = 0,
    use_commands: Annotated[
        bool,
        typer.Option("--use-commands", help="Use the bot's commands every few seconds; print the answers."),
    ] = False,
) -> None:
    """Run a local Discord until Ctrl-C.

    It implements Discord's gateway protocol and the REST routes that a login, `keywright discord fetch` and
    the answer to an interaction need; nothing reaches the network. Prints its addresses and the bot's token.

    Examples:
        keywright gateway simulate --guilds 3 --members 20 --rate 5
    """
    from keywright_discord.simulator import SimulatorSettings

    settings = SimulatorSettings(
        host=host,
        port=port,
        api_port=api_port,
        guilds=guilds,
        members=members,
        token=token,
        shards=shards,
        max_concurrency=max_concurrency,
        seed=seed,
    )
    asyncio.run(_run(settings, rate, use_commands=use_commands))


async def _run(settings: SimulatorSettings, rate: float, *, use_commands: bool) -> None:
    from keywright_discord.simulator import DiscordSimulator

    stopped = asyncio.Event()
    with stop_on_signals(stopped.set):
        async with DiscordSimulator(settings) as discord:
            _print_addresses(discord)
            waiting: list[asyncio.Task[object]] = [asyncio.create_task(stopped.wait())]
            waiting += [discord.start_traffic(rate=rate)] if rate else []
            waiting += [asyncio.create_task(_use_commands(discord))] if use_commands else []
            done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for task in waiting:
                task.cancel()
            for task in done:
                task.result()


async def _use_commands(discord: DiscordSimulator) -> None:
    while True:
        await asyncio.sleep(USED_EVERY)
        guild = next((each for each in discord.world.guilds if discord.world.guild_create(each)), None)
        for name in discord.commands if guild else ():
            used = await discord.use_command(name, guild=str(guild))
            await asyncio.sleep(ANSWER_SECONDS)
            answer = "no answer" if used.response is None else msgspec.json.encode(used.response).decode()
            echo(f"/{name} in guild {guild}: {answer}")


def _print_addresses(discord: DiscordSimulator) -> None:
    settings = discord.settings
    for line in (
        f"gateway  {discord.gateway_url}",
        f"api      {discord.api_url}",
        f"token    {discord.token}",
        f"world    {settings.guilds} guilds of {settings.members} members, seed {settings.seed}",
        "Ctrl-C stops it.",
    ):
        echo(line)
