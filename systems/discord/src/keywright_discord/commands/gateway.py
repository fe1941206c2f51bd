"""`keywright gateway`: a bot's connection to Discord, for the cache and for workers behind a broker."""

from __future__ import annotations

import typer

from keywright.cli import EmbeddedOption, UrlOption
from keywright_discord.commands.reset import reset
from keywright_discord.commands.simulate import simulate
from keywright_service.commands import (
    ConfigOption,
    LogFormatOption,
    LogLevelOption,
    ServiceOptions,
    SetOption,
    ShowConfigOption,
    configured,
    run_service,
)

__all__ = ["gateway"]

gateway = typer.Typer(
    help="Discord's gateway into the cache and to a broker.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@gateway.command()
def run(
    url: UrlOption = None,
    embedded: EmbeddedOption = None,
    config: ConfigOption = None,
    settings: SetOption = None,
    log_level: LogLevelOption = None,
    log_format: LogFormatOption = None,
    show_config: ShowConfigOption = False,
) -> None:
    """Connect a bot's shards to Discord; write the cache, publish events, send workers' packets.

    Only DISCORD_TOKEN and a server must be given; systems/discord/docs/gateway.md lists the rest. SIGTERM and
    SIGINT end it cleanly: a process that is started afterwards resumes its sessions.

    Exits with 0 after SIGTERM or SIGINT, 2 when the configuration is wrong or Discord refuses it, 3 when
    Redis, the broker or Discord cannot be reached at the start.

    Examples:
        keywright gateway run --config gateway.toml
        keywright gateway run --set cache.layout=spectacles
        keywright gateway run --config gateway.toml --show-config
    """
    from keywright_discord.gateway.configuration import READER, load

    options = ServiceOptions(config, settings, url, embedded, log_level, log_format, show_config)
    configuration = configured(READER, load, options)
    from keywright_discord.gateway.gateway import Gateway

    run_service(lambda: Gateway(configuration))


gateway.command()(reset)
gateway.command()(simulate)
