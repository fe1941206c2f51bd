"""`keywright meetup`: link people, end links, look at what the bot between Meetup and Discord knows."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Annotated, Any

import typer

from keywright import Call, Database, Keyring, connect
from keywright.cli import NamesPrefix, ServerOption, as_json
from keywright.errors import TakenError, UsageError
from keywright_meetup import account_links, views
from keywright_meetup.commands.bot import LARGEST_ID, DiscordArgument, invite, serve, sync
from keywright_meetup.schema import meetup as space

__all__ = ["meetup"]

meetup = typer.Typer(
    help="The bot that ties Meetup events to Discord channels.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


class Shown(Enum):
    MEETUP_USER = "meetup-user"
    DISCORD_USER = "discord-user"
    EVENT = "event"
    SERIES = "series"
    CHANNEL = "channel"


@meetup.command()
def link(
    meetup_user: Annotated[int, typer.Argument(metavar="MEETUP", min=0, max=LARGEST_ID, show_default=False)],
    discord_user: DiscordArgument,
    url: ServerOption = None,
    prefix: NamesPrefix = None,
) -> None:
    """Link a Meetup user with a Discord user, by their ids.

    Exits with 0 when they are linked, now or before, 1 when either is linked to another: nothing changes
    then; 3 when the server cannot be reached.
    """
    with opened(url, prefix) as db:
        try:
            new = db.run(account_links.link(meetup_user, discord_user))
        except TakenError as error:
            typer.echo(
                f"refused: {error.holder} is linked to {error.partner} already. Unlink them first.", err=True
            )
            raise typer.Exit(1) from error
    typer.echo("Linked." if new else "They were linked already.")


@meetup.command()
def unlink(
    meetup_user: Annotated[
        int | None, typer.Argument(metavar="[MEETUP]", min=0, max=LARGEST_ID, show_default=False)
    ] = None,
    discord: Annotated[
        int | None, typer.Option(help="The Discord user, instead.", min=0, max=LARGEST_ID)
    ] = None,
    url: ServerOption = None,
    prefix: NamesPrefix = None,
) -> None:
    """End a link, with the tokens of the Meetup user.

    Exits with 0 when it ended, 1 when there was none, 2 when not exactly one user is given, 3 when the server
    cannot be reached.
    """
    if (meetup_user is None) == (discord is None):
        raise UsageError(
            "one user is needed to end a link. Give a Meetup id, or --discord with a Discord id."
        )
    call = (
        account_links.unlink(meetup_user)
        if meetup_user is not None
        else account_links.unlink_discord(discord or 0)
    )
    with opened(url, prefix) as db:
        ended = db.run(call)
    if not ended:
        typer.echo("There is no such link.", err=True)
        raise typer.Exit(1)
    typer.echo("Unlinked.")


@meetup.command()
def show(
    what: Annotated[
        Shown, typer.Argument(metavar="WHAT", help="meetup-user, discord-user, event, series, channel.")
    ],
    identity: Annotated[str, typer.Argument(metavar="ID", help="Its id.", show_default=False)],
    url: ServerOption = None,
    prefix: NamesPrefix = None,
) -> None:
    """Print a person, an event, a series or a channel with all that is related to it, as JSON.

    Ids are text, since JSON numbers lose digits; tokens are only said to be there. Exits with 1 when it is
    not known, 2 when that is no id, 3 when the server cannot be reached.
    """
    call = _view(what, identity)
    with opened(url, prefix) as db:
        found = db.run(call)
    if found is None:
        typer.echo(f"{what.value} {identity} is not known.", err=True)
        raise typer.Exit(1)
    typer.echo(as_json(found))


for command in (sync, serve, invite):
    meetup.command()(command)


def opened(url: str | None, prefix: str | None = None) -> Database:
    """The bot's database; tokens are sealed where KEYWRIGHT_SEAL_KEYS holds keys."""
    keyring = Keyring.from_env_if_set()
    return connect(url, space.bind(prefix=prefix, keyring=keyring))


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
        raise UsageError(f"{identity!r} is no id of a {what.value}. Give a number of at most 64 bits.")
    return _NUMBERED[what](int(identity))
