"""The slash commands and buttons of the bot: who may use each, and what it does.

Everybody may link and unlink themselves, and remove themselves from a channel. The hosts of a channel decide
about it, and so do members who may manage the server. Hosts have the host role of the channel, or host an
event of its series on Meetup, and were not removed from the hosts. Only the person who asked sees the reply.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from operator import itemgetter
from typing import Any, NamedTuple

from keywright import AsyncDatabase
from keywright.errors import TakenError
from keywright_meetup import account_links, channel_times, channels
from keywright_meetup.errors import RefusedChangeError
from keywright_meetup.queries import ChannelHosts, hosts_of_channel
from keywright_meetup.schema import (
    ChannelId,
    DiscordId,
    GuestRoleOfChannel,
    HostRoleOfChannel,
    MeetupUserOfDiscordUser,
    RemovedUsers,
    RoleId,
)
from keywright_meetup.service.interactions import COMPONENT, Interaction, Reply
from keywright_meetup.service.pages import link_to
from keywright_service.discord_rest import DiscordGuild

__all__ = ["COMMANDS", "END_BUTTONS", "SlashCommands", "register"]

log = logging.getLogger("keywright.meetup")

ADMINISTRATOR, MANAGE_GUILD = 1 << 3, 1 << 5
# What Discord calls the types of options, of components and the styles of buttons.
INTEGER, BOOLEAN, USER, CHANNEL = 4, 5, 6, 7
ROW, BUTTON = 1, 2
PRIMARY, SECONDARY, DANGER, LINK = 1, 2, 4, 5
TEXT_CHANNEL = 0
MOST_DAYS = 180
WEEK = 7
_CHANNEL_NUMBER = re.compile(r"channel ([0-9]+)")

Json = Mapping[str, Any]


def _option(name: str, kind: int, description: str, **given: Any) -> Json:
    return {"name": name, "type": kind, "description": description, **given}


_USER = _option("user", USER, "Who", required=True)
_CHANNEL = _option(
    "channel", CHANNEL, "Which channel; the one you are in if you leave it out", channel_types=[TEXT_CHANNEL]
)
_DAYS = _option(
    "days", INTEGER, "For how many days from now", required=True, min_value=1, max_value=MOST_DAYS
)
_ONLY_HOST = _option("only_as_host", BOOLEAN, "Let them stay as a guest")

COMMANDS: Sequence[Json] = [
    {"name": name, "description": description, **({"options": list(options)} if options else {})}
    for name, description, *options in (
        ("link", "Link your Meetup account with your Discord account"),
        ("unlink", "End the link between your accounts"),
        ("whoami", "See which Meetup account you are linked to"),
        ("invite", "Hosts: let somebody into the channel as a guest", _USER, _CHANNEL),
        ("end", "Hosts: have the channel deleted, once it has served its last session", _CHANNEL),
        ("extend", "Hosts: keep the channel for longer", _DAYS, _CHANNEL),
        ("remove", "Hosts: remove somebody, so that they are not added again", _USER, _ONLY_HOST, _CHANNEL),
        ("readmit", "Hosts: take the removal of somebody back", _USER, _CHANNEL),
    )
]


def _row(*buttons: Json) -> Json:
    return {"type": ROW, "components": [{"type": BUTTON, **each} for each in buttons]}


LINK_BUTTON = _row({"style": PRIMARY, "label": "Link my Meetup account", "custom_id": "link"})
END_BUTTONS = _row(
    {"style": DANGER, "label": "End this channel", "custom_id": "end"},
    {"style": SECONDARY, "label": "Keep it for another week", "custom_id": "extend"},
)
_OF_BUTTONS: dict[str, dict[str, Any]] = {"link": {}, "end": {}, "extend": {"days": WEEK}}


async def register(api: DiscordGuild, application: int) -> bool:
    """Register the commands in the guild. Return False, and write nothing, if Discord has them already."""
    by_name = itemgetter("name")
    if _includes(sorted(await api.commands(application), key=by_name), sorted(COMMANDS, key=by_name)):
        return False
    await api.replace_commands(application, COMMANDS, guild=api.guild)
    log.info("registered %d commands at Discord", len(COMMANDS))
    return True


def _includes(found: Any, wanted: Any) -> bool:
    """Return whether Discord has something as we want it: it adds members to objects, and none to lists."""
    if isinstance(wanted, Mapping):
        return isinstance(found, Mapping) and all(
            _includes(found.get(name), value) for name, value in wanted.items()
        )
    if isinstance(wanted, list):
        there = found or []
        return len(there) == len(wanted) and all(map(_includes, there, wanted))
    return bool(found == wanted)


class Asked(NamedTuple):
    """An interaction of a member, with its options by name."""

    user: DiscordId
    roles: frozenset[RoleId]
    is_admin: bool
    channel: ChannelId
    """The one it is about."""
    options: Mapping[str, Any]

    @property
    def other(self) -> DiscordId:
        """The member whom it is about."""
        return _number(self.options, "user")

    @property
    def days(self) -> int:
        return min(max(_number(self.options, "days"), 1), MOST_DAYS)


def _number(options: Mapping[str, Any], name: str) -> int:
    """Return an option that is an id or a number. Raise RefusedChangeError if it is not one."""
    given = str(options.get(name))
    if not re.fullmatch(r"[0-9]{1,20}", given):
        remedy = "Type the command again, and choose from what Discord offers."
        raise RefusedChangeError(f"the option `{name}`", "is missing or not valid", remedy)
    return int(given)


def _asked(interaction: Interaction) -> tuple[str, Asked]:
    """Return the name of a command, or of the one that a button stands for, and what was asked."""
    assert interaction.member is not None  # the endpoint refuses interactions outside of the guild
    options = {each.name: each.value for each in interaction.data.options}
    name = interaction.data.name
    if interaction.type == COMPONENT:
        name = interaction.data.custom_id
        options = _OF_BUTTONS.get(name, {})
    permissions = int(interaction.member.permissions)
    asked = Asked(
        int(interaction.member.user.id),
        frozenset(map(int, interaction.member.roles)),
        bool(permissions & (ADMINISTRATOR | MANAGE_GUILD)),
        _number({"channel": interaction.channel_id or 0, **options}, "channel"),
        options,
    )
    return name, asked


class SlashCommands:
    """Answers interactions."""

    def __init__(
        self, db: AsyncDatabase, api: DiscordGuild, clock: Callable[[], datetime], public_url: str
    ) -> None:
        self._db = db
        self._api = api
        self._clock = clock
        self._public_url = public_url
        self._of_everybody: dict[str, Callable[[Asked], Awaitable[Reply]]] = {
            "link": self._link,
            "unlink": self._unlink,
            "whoami": self._whoami,
        }
        self._of_hosts: dict[str, Callable[[Asked], Awaitable[Reply]]] = {
            "invite": self._invite,
            "end": self._end,
            "extend": self._extend,
            "remove": self._remove,
            "readmit": self._readmit,
        }

    async def answer(self, interaction: Interaction) -> Reply:
        """Do what somebody asks. A refusal is a reply too; other errors are raised."""
        try:
            name, asked = _asked(interaction)
            if name in self._of_everybody:
                return await self._of_everybody[name](asked)
            if name not in self._of_hosts:
                return Reply("The bot does not know this any more. Look at its commands: type / to see them.")
            await self._require_host(name, asked)
            return await self._of_hosts[name](asked)
        except RefusedChangeError as error:
            subject = _CHANNEL_NUMBER.sub(r"<#\1>", error.subject)
            return Reply(f"{subject[:1].upper()}{subject[1:]} {error.reason}. {error.remedy}")

    async def _require_host(self, name: str, asked: Asked) -> None:
        """Raise RefusedChangeError unless the person may decide about the channel, or removes themselves."""
        known: ChannelHosts | None = await self._db.run(hosts_of_channel(asked.channel))
        if known is None:
            remedy = "Use the command in the channel of a series, or name that."
            raise RefusedChangeError(f"channel {asked.channel}", "is not a channel of the bot", remedy)
        # A host who steps down is removed before the role is gone, and can repeat a command that failed.
        if name == "remove" and asked.other == asked.user:
            return
        is_host = known.role in asked.roles or asked.user in known.users
        if not asked.is_admin and (not is_host or asked.user in known.removed):
            remedy = "Ask one of its hosts, or somebody who manages this server."
            raise RefusedChangeError("You", f"are not a host of <#{asked.channel}>", remedy)

    async def _link(self, asked: Asked) -> Reply:
        try:
            linking = await self._db.run(account_links.begin_linking(asked.user))
        except TakenError as error:
            return Reply(f"You are linked to {_member(error.partner)} already. `/unlink` ends that link.")
        button = {"style": LINK, "label": "Link my accounts", "url": link_to(self._public_url, linking)}
        text = (
            "Open the page, and consent at Meetup. The link is for you alone: it works once, for ten minutes."
        )
        return Reply(text, (_row(button),))

    async def _unlink(self, asked: Asked) -> Reply:
        if not await self._db.run(account_links.unlink_discord(asked.user)):
            return Reply("You are not linked to a Meetup account. `/link` links you.")
        return Reply("Your accounts are not linked any more. You keep the roles that you have.")

    async def _whoami(self, asked: Asked) -> Reply:
        partner = await self._db.run(MeetupUserOfDiscordUser(asked.user).get())
        if partner is None:
            return Reply(f"You are <@{asked.user}>, and not linked to a Meetup account. `/link` links you.")
        return Reply(f"You are <@{asked.user}>, linked to {_member(partner)}. `/unlink` ends that link.")

    async def _invite(self, asked: Asked) -> Reply:
        channel, guest = asked.channel, asked.other
        role = await self._db.run(GuestRoleOfChannel(channel).get())
        if await self._db.run(RemovedUsers(channel).has(guest)):
            return Reply(f"<@{guest}> was removed from <#{channel}>. `/readmit` takes that back.")
        if role is None:
            return Reply(f"<#{channel}> has no role for guests yet. Try again in a quarter of an hour.")
        if not await self._api.add_role(guest, role):
            return Reply(f"<@{guest}> is not a member of this server.")
        if await self._db.run(MeetupUserOfDiscordUser(guest).get()) is not None:
            return Reply(f"<@{guest}> can see <#{channel}> now.")
        text = f"Welcome, <@{guest}>! Link your Meetup account, and you get into the channels of your events."
        nonce = f"{guest % 10**12}-{int(self._clock().timestamp()) // 60}"
        mentions = {"users": [str(guest)]}
        await self._api.post(channel, text, nonce, mentions=mentions, components=[LINK_BUTTON])
        return Reply(f"<@{guest}> can see <#{channel}> now, and is asked there to link their Meetup account.")

    async def _end(self, asked: Asked) -> Reply:
        moment = await self._db.run(channel_times.end(asked.channel, self._clock()))
        again = "`/extend`, or a later event on Meetup, takes that back."
        return Reply(f"<#{asked.channel}> is deleted {_time(moment)}. {again}")

    async def _extend(self, asked: Asked) -> Reply:
        until = self._clock() + timedelta(days=asked.days)
        if not await self._db.run(channel_times.extend(asked.channel, until)):
            return Reply(f"<#{asked.channel}> is kept for longer already.")
        return Reply(f"<#{asked.channel}> is kept until {_time(until)}.")

    async def _remove(self, asked: Asked) -> Reply:
        channel, user, only_as_host = asked.channel, asked.other, bool(asked.options.get("only_as_host"))
        removal = channels.remove_host if only_as_host else channels.remove_user
        # Recorded first: a role that is taken before would be given back by a sync.
        await self._db.run(removal(channel, user))
        kinds = (HostRoleOfChannel,) if only_as_host else (HostRoleOfChannel, GuestRoleOfChannel)
        for kind in kinds:
            role = await self._db.run(kind(channel).get())
            if role is not None:
                await self._api.remove_role(user, role)
        place = f"the hosts of <#{channel}>" if only_as_host else f"<#{channel}>"
        return Reply(
            f"<@{user}> was removed from {place}, and is not added again. `/readmit` takes that back."
        )

    async def _readmit(self, asked: Asked) -> Reply:
        if not await self._db.run(channels.readmit(asked.channel, asked.other)):
            return Reply(f"<@{asked.other}> was not removed from <#{asked.channel}>.")
        return Reply(
            f"<@{asked.other}> gets into <#{asked.channel}> again within a quarter of an hour, "
            "if they are signed up on Meetup and linked. `/invite` lets them in now."
        )


def _member(meetup_user: object) -> str:
    return f"[Meetup member {meetup_user}](<https://www.meetup.com/members/{meetup_user}/>)"


def _time(moment: datetime) -> str:
    """Return a time that Discord shows in the time zone of the reader."""
    return f"<t:{int(moment.timestamp())}:f>"
