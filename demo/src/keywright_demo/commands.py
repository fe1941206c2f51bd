"""`keywright up`, which `make run` starts: all systems with live samples."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from keywright_demo.options import MODELS, UpOptions, chosen_models
from keywright_demo.supervisor import Supervisor

__all__ = ["up"]


def up(
    url: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="A real server, as in redis://localhost/9. Default: an embedded one; REDIS_URL is not used.",
            show_default=False,
        ),
    ] = None,
    broker: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="A real broker, amqp://… or redis://…. Default: streams in the same Redis.",
            show_default=False,
        ),
    ] = None,
    only: Annotated[
        str | None,
        typer.Option(
            metavar="MODELS", help=f"Models to run, comma-separated: {', '.join(MODELS)}.", show_default=False
        ),
    ] = None,
    without: Annotated[
        str | None,
        typer.Option(metavar="MODELS", help="Models to omit, comma-separated.", show_default=False),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=65535,
            metavar="PORT",
            help="Port of the explorer. Default: 8600, or a free one.",
            show_default=False,
        ),
    ] = None,
    no_explorer: Annotated[bool, typer.Option("--no-explorer", help="Do not run the explorer.")] = False,
    duration: Annotated[
        float | None, typer.Option(min=0, metavar="SECONDS", help="Stop after this time.", show_default=False)
    ] = None,
    logs: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="A folder in which to keep the logs.", show_default=False),
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Write samples even to a real server that has keys.")
    ] = False,
) -> None:
    """Run all systems with live samples: Redis, simulators, gateway, worker, services, explorer.

    Prints every address that it serves and a status line. Ctrl-C stops everything and leaves nothing behind;
    on a real server the samples stay. A process that ends early is reported and not restarted.

    Exits with 0 after a stop, 1 if a process failed, 2 if a real server has keys or the port is in use, 3 if
    a real server cannot be reached.

    Examples:
        keywright up
        keywright up --only drc,meetup --duration 60
    """
    options = UpOptions(
        models=chosen_models(only, without),
        url=url,
        broker=broker,
        explorer=not no_explorer,
        port=port,
        seconds=duration,
        logs=logs,
        confirmed=yes,
    )

    async def supervised() -> int:
        return await Supervisor(options).run()

    raise typer.Exit(asyncio.run(supervised()))
