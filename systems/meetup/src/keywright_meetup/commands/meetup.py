"""`keywright meetup`: look at the bot's data, and change the parts of it that a person decides about."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer

from keywright import Call, Database, Keyring, Secret, connect
from keywright.cli import (
    EmbeddedOption,
    NamesPrefix,
    UrlOption,
    as_json,
    echo,
    echo_error,
    echo_json,
    server_url,
)
from keywright.errors import TakenError, UsageError
from keywright_meetup import account_links, channel_times, channels, views
from keywright_meetup.commands.bot import (
    LARGEST_ID,
    ConfigOption,
    DiscordArgument,
    authorize,
    invite,
    register,
    serve,
    sync,
)
from keywright_meetup.commands.simulate import simulate
from keywright_meetup.schema import meetup as space
from keywright_meetup.tokens import store_organizer

__all__ = ["meetup"]

meetup = typer.Typer(
    help="The bot that ties Meetup events to Discord channels.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


ChannelArgument = Annotated[
    int,
    typer.Argument(
        metavar="CHANNEL", help="The id of a channel on Discord.", min=0, max=LARGEST_ID, show_default=False
    ),
]


class Shown(Enum):
    MEETUP_USER = "meetup-user"
    DISCORD_USER = "discord-user"
    EVENT = "event"
    SERIES = "series"
    CHANNEL = "channel"


@meetup.command()
def link(
    meetup_user: Annotated[
        int,
        typer.Argument(
            metavar="MEETUP", help="The id of a Meetup user.", min=0, max=LARGEST_ID, show_default=False
        ),
    ],
    discord_user: DiscordArgument,
    url: UrlOption = None,
    embedded: EmbeddedOption = None,
    prefix: NamesPrefix = None,
    config: ConfigOption = None,
) -> None:
    """Link a Meetup user with a Discord user, by their ids.

    Exits with 0 when they are linked, now or before, 1 when either is linked to another and nothing was
    changed, 3 when the server cannot be reached.

    Examples:
        keywright meetup link 182743 53908232506183680 --url redis://localhost:6379/0
    """
    with opened(url, embedded, prefix, config) as db:
        try:
            new = db.run(account_links.link(meetup_user, discord_user))
        except TakenError as error:
            echo_error(f"{error.holder} is linked to {error.partner} already. Unlink them first.")
            raise typer.Exit(1) from error
    echo("Linked." if new else "They were linked already.")


@meetup.command()
def unlink(
    meetup_user: Annotated[
        int | None,
        typer.Argument(
            metavar="MEETUP", help="The id of a Meetup user.", min=0, max=LARGEST_ID, show_default=False
        ),
    ] = None,
    discord: Annotated[
        int | None, typer.Option(metavar="ID", help="The Discord user, instead.", min=0, max=LARGEST_ID)
    ] = None,
    url: UrlOption = None,
    embedded: EmbeddedOption = None,
    prefix: NamesPrefix = None,
    config: ConfigOption = None,
) -> None:
    """End a link, with the tokens of the Meetup user.

    Exits with 0 when it ended, 1 when there was none, 2 when not exactly one user is given, 3 when the server
    cannot be reached.

    Examples:
        keywright meetup unlink 182743
        keywright meetup unlink --discord 53908232506183680
    """
    if (meetup_user is None) == (discord is None):
        raise UsageError("unlink needs one user. Give a Meetup id, or --discord with a Discord id.")
    call = (
        account_links.unlink(meetup_user)
        if meetup_user is not None
        else account_links.unlink_discord(discord or 0)
    )
    with opened(url, embedded, prefix, config) as db:
        ended = db.run(call)
    if not ended:
        echo_error("This user is not linked.")
        raise typer.Exit(1)
    echo("Unlinked.")


@meetup.command()
def show(
    what: Annotated[Shown, typer.Argument(metavar="WHAT", help="What to show.")],
    identity: Annotated[str, typer.Argument(metavar="ID", help="Its id.", show_default=False)],
    url: UrlOption = None,
    embedded: EmbeddedOption = None,
    prefix: NamesPrefix = None,
    config: ConfigOption = None,
) -> None:
    """Print a person, an event, a series or a channel with everything that is related to it, as JSON.

    Ids are text, since JSON numbers lose digits; of tokens only the existence is shown. Exits with 1 when it
    is not known, 2 when the id is not valid, 3 when the server cannot be reached. An id of an earlier version
    may begin with a dash: write it after `--`.

    Examples:
        keywright meetup show event 298374623
        keywright meetup show discord-user 53908232506183680
    """
    call = _view(what, identity)
    with opened(url, embedded, prefix, config) as db:
        found = db.run(call)
    if found is None:
        echo_error(f"{what.value} {identity} is not known.")
        raise typer.Exit(1)
    echo_json(as_json(found))


@meetup.command()
def attach(
    series: Annotated[str, typer.Argument(metavar="SERIES", help="The id of a series.", show_default=False)],
    channel: ChannelArgument,
    url: UrlOption = None,
    embedded: EmbeddedOption = None,
    prefix: NamesPrefix = None,
    config: ConfigOption = None,
) -> None:
    """Give a series a channel that exists on Discord.

    Exits with 0 when the series has the channel, now or before, 1 when either has another or the series is
    not tracked, 3 when the server cannot be reached.

    Examples:
        keywright meetup attach dungeon-night 1234567890
    """
    with opened(url, embedded, prefix, config) as db:
        try:
            new = db.run(channels.attach_channel(series, channel))
        except TakenError as error:
            echo_error(f"{error.holder} has {error.partner} already.")
            raise typer.Exit(1) from error
    echo("Attached." if new else "It was attached already.")


@meetup.command()
def remove(
    channel: ChannelArgument,
    discord_user: DiscordArgument,
    host: Annotated[bool, typer.Option("--host", help="Only never make them host again.")] = False,
    url: UrlOption = None,
    embedded: EmbeddedOption = None,
    prefix: NamesPrefix = None,
    config: ConfigOption = None,
) -> None:
    """Never add a user to a channel again. Their roles on Discord are yours to take.

    Exits with 1 when the channel is not one of the bot's, 3 when the server cannot be reached.

    Examples:
        keywright meetup remove 1234567890 53908232506183680
        keywright meetup remove 1234567890 53908232506183680 --host
    """
    removal = channels.remove_host if host else channels.remove_user
    with opened(url, embedded, prefix, config) as db:
        new = db.run(removal(channel, discord_user))
    echo("Removed." if new else "They were removed already.")


@meetup.command()
def readmit(
    channel: ChannelArgument,
    discord_user: DiscordArgument,
    url: UrlOption = None,
    embedded: EmbeddedOption = None,
    prefix: NamesPrefix = None,
    config: ConfigOption = None,
) -> None:
    """Take back both removals of a user from a channel: the next sync adds them again.

    Exits with 1 when the channel is not one of the bot's, 3 when the server cannot be reached.

    Examples:
        keywright meetup readmit 1234567890 53908232506183680
    """
    with opened(url, embedded, prefix, config) as db:
        changed = db.run(channels.readmit(channel, discord_user))
    echo("Readmitted." if changed else "They were not removed.")


@meetup.command()
def end(
    channel: ChannelArgument,
    url: UrlOption = None,
    embedded: EmbeddedOption = None,
    prefix: NamesPrefix = None,
    config: ConfigOption = None,
) -> None:
    """Have the bot delete an expired channel, eight hours from now. A later event takes that back.

    Exits with 1 when it has not expired or is not one of the bot's, 3 when the server cannot be reached.

    Examples:
        keywright meetup end 1234567890
    """
    with opened(url, embedded, prefix, config) as db:
        moment = db.run(channel_times.end(channel, datetime.now(UTC)))
    echo(f"It is deleted at {moment:%Y-%m-%d %H:%M} UTC.")


@meetup.command()
def tokens(
    url: UrlOption = None,
    embedded: EmbeddedOption = None,
    prefix: NamesPrefix = None,
    config: ConfigOption = None,
) -> None:
    """Replace the organizer's tokens by those in MEETUP_ACCESS_TOKEN and MEETUP_REFRESH_TOKEN.

    The bot stores the variables only where the database has no tokens, and tries them when Meetup refuses the
    stored ones. `keywright meetup authorize` gets new tokens from Meetup.

    Exits with 2 when a variable is missing, 3 when the server cannot be reached.

    Examples:
        keywright meetup tokens --config bot.toml
    """
    access, refresh = (os.environ.get(f"MEETUP_{name}_TOKEN", "") for name in ("ACCESS", "REFRESH"))
    if not access or not refresh:
        raise UsageError("the new tokens are missing. Set MEETUP_ACCESS_TOKEN and MEETUP_REFRESH_TOKEN.")
    with opened(url, embedded, prefix, config) as db:
        db.run(store_organizer(Secret(access), Secret(refresh), datetime.now(UTC)))
    echo("Replaced.")


for command in (sync, serve, invite, authorize, register, simulate):
    meetup.command()(command)


def opened(url: str | None, embedded: str | None, prefix: str | None, config: Path | None) -> Database:
    """Open the bot's database; tokens are sealed where KEYWRIGHT_SEAL_KEYS holds keys."""
    # Imported here: `keywright --help` starts without the service kit.
    from keywright_meetup.service.configuration import load_redis

    configured = load_redis(config)
    server = server_url(url, embedded, configured=configured.url)
    prefix = configured.prefix if prefix is None else prefix
    return connect(server, space.bind(prefix=prefix, keyring=Keyring.from_env_if_set()))


_NUMBERED: dict[Shown, Callable[[int], Call[Any]]] = {
    Shown.MEETUP_USER: views.view_meetup_user,
    Shown.DISCORD_USER: views.view_discord_user,
    Shown.CHANNEL: views.view_channel,
}
_NAMED: dict[Shown, Callable[[str], Call[Any]]] = {
    Shown.EVENT: views.view_event,
    Shown.SERIES: views.view_series,
}


def _view(what: Shown, identity: str) -> Call[Any]:
    if what in _NAMED:
        return _NAMED[what](identity)
    if not (identity.isascii() and identity.isdigit() and int(identity) <= LARGEST_ID):
        raise UsageError(f"a {what.value} has a number of at most 64 bits as its id, got {identity!r}.")
    return _NUMBERED[what](int(identity))
