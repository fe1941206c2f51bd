"""The commands of `keywright meetup` that need the whole configuration of the bot."""

from __future__ import annotations

import asyncio
import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from keywright.cli import EmbeddedOption, UrlOption, echo, echo_error, log_to_stderr, server_url, warn
from keywright.errors import TakenError
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

if TYPE_CHECKING:
    from keywright_meetup.service.configuration import Configuration

__all__ = [
    "LARGEST_ID",
    "ConfigOption",
    "DiscordArgument",
    "authorize",
    "invite",
    "register",
    "serve",
    "sync",
]

LARGEST_ID = 2**64 - 1

DiscordArgument = Annotated[
    int,
    typer.Argument(
        metavar="DISCORD", help="The id of a Discord user.", min=0, max=LARGEST_ID, show_default=False
    ),
]


def serve(
    url: UrlOption = None,
    embedded: EmbeddedOption = None,
    config: ConfigOption = None,
    settings: SetOption = None,
    log_level: LogLevelOption = None,
    log_format: LogFormatOption = None,
    show_config: ShowConfigOption = False,
) -> None:
    """Run the bot: commands on Discord, the linking pages, and sync, expiry and token refresh on schedule.

    The guide (systems/meetup/docs/guide.md) lists the settings. SIGTERM and SIGINT end it cleanly. Any number
    of bots may run on one database: each task is run by one of them at a time.

    Exits with 0 when it was stopped, 2 when the configuration is wrong or it cannot listen, 3 when Redis
    cannot be reached at the start or Discord refuses the token.

    Examples:
        keywright meetup serve --config bot.toml
        keywright meetup serve --config bot.toml --show-config
    """
    from keywright_meetup.service.configuration import READER, load

    options = ServiceOptions(config, settings, url, embedded, log_level, log_format, show_config)
    configuration = configured(READER, load, options)
    from keywright_meetup.service.bot import Bot

    run_service(lambda: Bot(configuration))


def sync(config: ConfigOption = None, url: UrlOption = None, embedded: EmbeddedOption = None) -> None:
    """Sync once: Meetup's events into Redis, then channels, roles and their members on Discord.

    Exits with 0 when everything is in step, 1 when some events or series could not be synced or another sync
    is under way, 2 when the configuration is wrong, 3 when Redis, Meetup or Discord cannot be reached.

    Examples:
        keywright meetup sync --config bot.toml
    """
    configuration = _configuration(config, url, embedded)
    from keywright_meetup.service.bot import sync_once

    log_to_stderr(logging.ERROR)
    outcome = asyncio.run(sync_once(configuration))
    meetup, discord = outcome
    echo(
        f"Meetup: {len(meetup.added)} events added, {len(meetup.changed)} changed, "
        f"{len(meetup.removed)} removed, {meetup.unchanged} unchanged."
    )
    echo(
        f"Discord: {discord.made} channels and roles made, {discord.changed} changed, "
        f"{discord.added} times a member was given a role, {discord.removed} removals by hand recorded."
    )
    for event, warning in sorted(meetup.warnings.items()):
        warn(f"event {event} {warning}")
    for subject, failure in sorted(outcome.failures.items()):
        echo_error(f"{subject}: {failure}")
    if outcome.failures:
        raise typer.Exit(1)


def invite(
    discord_user: DiscordArgument,
    config: ConfigOption = None,
    url: UrlOption = None,
    embedded: EmbeddedOption = None,
) -> None:
    """Print a link with which a Discord user can link their Meetup account; it works once, for ten minutes.

    Exits with 1 when the user is linked already, 2 when the configuration is wrong, 3 when Redis cannot be
    reached.

    Examples:
        keywright meetup invite 53908232506183680 --config bot.toml
    """
    configuration = _configuration(config, url, embedded)
    from keywright_meetup.service.bot import invited

    try:
        echo(asyncio.run(invited(configuration, discord_user)))
    except TakenError as error:
        echo_error(f"{error.holder} is linked to {error.partner} already.")
        raise typer.Exit(1) from error


def authorize(
    finish: Annotated[
        bool,
        typer.Option(
            "--finish", help="Read the address that Meetup sent the browser to from standard input."
        ),
    ] = False,
    config: ConfigOption = None,
    url: UrlOption = None,
    embedded: EmbeddedOption = None,
) -> None:
    """Have an organizer authorize the bot at Meetup, for the first time or because its tokens are not valid.

    Prints the address that the organizer opens; it works once, for an hour. Meetup then sends the browser to
    the pages of the bot, which store the tokens. Where those cannot be reached, the browser shows an error:
    pass the address that it shows to `keywright meetup authorize --finish`.

    Exits with 1 when the address is not of an authorization under way, or the organizer said no, 2 when the
    configuration is wrong, 3 when Redis or Meetup cannot be reached or Meetup refuses.

    Examples:
        keywright meetup authorize --config bot.toml
        keywright meetup authorize --finish --config bot.toml
    """
    configuration = _configuration(config, url, embedded)
    from keywright_meetup.service.bot import authorization

    async def begun() -> str:
        async with authorization(configuration) as opened:
            return await opened.begin()

    async def finished(address: str) -> str:
        async with authorization(configuration) as opened:
            member = await opened.finish(address)
        return f"Authorized by {member.name or 'a member without a name'} (Meetup member {member.id})."

    echo(asyncio.run(finished(sys.stdin.readline().strip()) if finish else begun()))


def register(config: ConfigOption = None) -> None:
    """Register the bot's commands at Discord, and the address to which Discord sends interactions.

    Discord tries the address at once, so the bot must be running and reachable at pages.public_url, over
    https. A running bot renews the commands by itself.

    Exits with 2 when the configuration is wrong, 3 when Discord refuses or cannot be reached.

    Examples:
        keywright meetup register --config bot.toml
    """
    from keywright_meetup.service.bot import registered
    from keywright_meetup.service.configuration import load

    new, endpoint = asyncio.run(registered(load(config)))
    echo("The commands are registered." if new else "The commands were registered already.")
    echo(f"Discord sends interactions to {endpoint}.")


def _configuration(path: Path | None, url: str | None, embedded: str | None) -> Configuration:
    # Imported here, like the bot above: the other commands start without the service kit.
    from keywright_meetup.service.configuration import load
    from keywright_service.configuration import with_redis

    found = load(path)
    return with_redis(found, server_url(url, embedded, configured=found.redis.url))
