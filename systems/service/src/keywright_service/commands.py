"""The options that every service has on the command line, and what they do.

One precedence: flags, environment variables, the file, defaults. `--show-config` prints the result.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, NamedTuple, Protocol, TypeVar

import typer

from keywright.cli import echo, log_to_stderr, server_url
from keywright.errors import UsageError
from keywright_service.configuration import LogFormat, LogLevel, LogPart, SettingsReader, with_redis
from keywright_service.configuration_listing import listed

__all__ = [
    "ConfigOption",
    "LogFormatOption",
    "LogLevelOption",
    "ServiceOptions",
    "SetOption",
    "ShowConfigOption",
    "configured",
    "run_service",
]

ConfigOption = Annotated[
    Path | None,
    typer.Option(
        rich_help_panel="Configuration",
        help="A TOML file. Environment variables win over it.",
        show_default=False,
    ),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="SETTING=VALUE",
        rich_help_panel="Configuration",
        help="A setting, by its name in the file, as in redis.prefix=bot. Wins over file and environment.",
        show_default=False,
    ),
]
ShowConfigOption = Annotated[
    bool,
    typer.Option(
        "--show-config",
        rich_help_panel="Configuration",
        help="Print every setting and where it was given; secrets are masked.",
    ),
]
LogLevelOption = Annotated[
    LogLevel | None,
    typer.Option(
        "--log-level",
        "--loglevel",
        rich_help_panel="Configuration",
        help="The least level to log; else info.",
        show_default=False,
    ),
]
LogFormatOption = Annotated[
    LogFormat | None,
    typer.Option(
        rich_help_panel="Configuration",
        help="text, the default, or json: an object on each line.",
        show_default=False,
    ),
]

_LEVELS = {
    LogLevel.SUPPRESS: logging.CRITICAL + 1,
    LogLevel.ERROR: logging.ERROR,
    LogLevel.WARN: logging.WARNING,
    LogLevel.INFO: logging.INFO,
    LogLevel.DEBUG: logging.DEBUG,
}


class ServiceOptions(NamedTuple):
    """The values of the common options."""

    config: Path | None = None
    settings: list[str] | None = None
    url: str | None = None
    embedded: str | None = None
    log_level: LogLevel | None = None
    log_format: LogFormat | None = None
    show_config: bool = False


class ServiceConfiguration(Protocol):
    """Has the common parts."""

    @property
    def log(self) -> LogPart: ...
    @property
    def redis(self) -> Any: ...


class Runnable(Protocol):
    async def run(self, *, handle_signals: bool = ...) -> None: ...


C = TypeVar("C", bound=ServiceConfiguration)
Load = Callable[[Path | None, Mapping[str, str] | None, Mapping[str, str] | None], C]


def configured(
    reader: SettingsReader,
    load: Load[C],
    options: ServiceOptions,
    flags: Mapping[str, str | None] | None = None,
) -> C:
    """Return the configuration, and begin to log. With `--show-config`, print it and exit.

    `flags` are the service's own options, by the settings that they stand for. Raise ConfigurationError.
    """
    common = {
        "redis.url": options.url or options.embedded,
        "log.level": options.log_level,
        "log.format": options.log_format,
    }
    chosen = {name: value for name, value in {**common, **(flags or {})}.items() if value is not None}
    chosen |= dict(map(_assignment, options.settings or ()))
    if options.show_config:
        for line in listed(reader, reader.settings(options.config, None, chosen)):
            echo(line)
    found = load(options.config, None, chosen)
    if options.show_config:
        raise typer.Exit
    log_to_stderr(_LEVELS[found.log.level], json=found.log.format is LogFormat.JSON)
    return with_redis(found, server_url(options.url, options.embedded, configured=found.redis.url))


def run_service(make: Callable[[], Runnable]) -> None:
    """Run a service until SIGTERM or SIGINT."""

    async def served() -> None:
        await make().run(handle_signals=True)

    asyncio.run(served())


def _assignment(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        # The text may be a secret that lost its name.
        raise UsageError("--set needs a name and a value. Write it as in --set redis.prefix=bot.")
    return name.strip(), value.strip()
