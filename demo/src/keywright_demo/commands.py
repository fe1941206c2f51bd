"""`keywright up`: everything at once, with live samples; what `make run` starts."""

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
            help="A real server, as in redis://localhost/9; else an embedded one. REDIS_URL is not used.",
            show_default=False,
        ),
    ] = None,
    broker: Annotated[
        str | None,
        typer.Option(
            help="A real broker, amqp://… or redis://…; else streams in the same Redis.", show_default=False
        ),
    ] = None,
    only: Annotated[
        str | None, typer.Option(help=f"Models to run, by comma: {', '.join(MODELS)}.", show_default=False)
    ] = None,
    without: Annotated[
        str | None, typer.Option(help="Models to leave out, by comma.", show_default=False)
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="Of the explorer; else 8600, or a free one.", show_default=False),
    ] = None,
    no_explorer: Annotated[bool, typer.Option("--no-explorer", help="Run everything but it.")] = False,
    duration: Annotated[
        float | None, typer.Option(min=0, help="Stop after so many seconds.", show_default=False)
    ] = None,
    logs: Annotated[
        Path | None,
        typer.Option(help="A folder to write the parts' logs to, and keep them.", show_default=False),
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Write samples also to a real server that holds something.")
    ] = False,
) -> None:
    """Run everything with live samples: Redis, a simulated Discord, gateway, worker, services, explorer.

    Prints the explorer's address and how everything is. Ctrl-C stops all of it and leaves nothing behind; on
    a real server the samples stay. A part that ends is reported and not started again.

    Exits with 0 when it was stopped, 1 when a part failed, 2 when a real server holds something or the
    port is taken, 3 when a real server cannot be reached.
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
