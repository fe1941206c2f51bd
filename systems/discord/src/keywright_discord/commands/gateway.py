"""`keywright gateway`: a bot's connection to Discord, for the cache and for workers behind a broker."""

from __future__ import annotations

import asyncio
import logging
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from keywright.cli import EmbeddedOption, UrlOption, log_to_stderr, server_url
from keywright_discord.commands.reset import reset
from keywright_discord.commands.simulate import simulate

__all__ = ["gateway"]

gateway = typer.Typer(
    help="Discord's gateway into the cache and to a broker.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


class LogLevel(StrEnum):
    SUPPRESS = "suppress"
    ERROR = "error"
    WARN = "warn"
    INFO = "info"
    DEBUG = "debug"


_LEVELS = {
    LogLevel.SUPPRESS: logging.CRITICAL + 1,
    LogLevel.ERROR: logging.ERROR,
    LogLevel.WARN: logging.WARNING,
    LogLevel.INFO: logging.INFO,
    LogLevel.DEBUG: logging.DEBUG,
}


@gateway.command()
def run(
    config: Annotated[
        Path | None,
        typer.Option(help="A TOML file. Environment variables win over it.", show_default=False),
    ] = None,
    url: UrlOption = None,
    embedded: EmbeddedOption = None,
    log_level: Annotated[
        LogLevel, typer.Option("--loglevel", help="The least level to log.")
    ] = LogLevel.INFO,
) -> None:
    """Connect a bot's shards to Discord; write the cache, publish events, send workers' packets.

    Only DISCORD_TOKEN and a server must be given; systems/discord/docs/gateway.md lists the rest. SIGTERM and
    SIGINT end it cleanly: a process that is started afterwards resumes its sessions.

    Exits with 0 after SIGTERM or SIGINT, 2 when the configuration is wrong or Discord refuses it, 3 when
    Redis, the broker or Discord cannot be reached at the start.
    """
    from keywright_discord.gateway.configuration import load
    from keywright_discord.gateway.gateway import Gateway
    from keywright_service.configuration import with_redis

    log_to_stderr(_LEVELS[log_level])
    given = load(config)
    configuration = with_redis(given, server_url(url, embedded, configured=given.redis.url))

    async def served() -> None:
        await Gateway(configuration).run(handle_signals=True)

    asyncio.run(served())


gateway.command()(reset)
gateway.command()(simulate)
