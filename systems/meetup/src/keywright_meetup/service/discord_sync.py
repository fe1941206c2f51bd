"""The sync to Discord: every series with an event to come has its channel, two roles, and its people in them.

Only differences are written. Nobody is removed from a role, and a channel that people renamed keeps its name.
Somebody who had a role at an earlier sync, and lacks it now, was removed by hand: that is recorded, and they
do not get it back. Only an answer of Discord about a member counts; an outage proves nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime

from keywright import AsyncDatabase
from keywright.errors import KeywrightError
from keywright_meetup import channels
from keywright_meetup.errors import RefusedChangeError
from keywright_meetup.events import series_name
from keywright_meetup.queries import SeriesState, upcoming_series
from keywright_meetup.schema import (
    AddedHosts,
    AddedUsers,
    ChannelId,
    DiscordId,
    GivenRole,
    RoleId,
    RoleKind,
    SeriesId,
    SeriesType,
)
from keywright_meetup.service.provisioner import Provisioner, is_marked
from keywright_service.discord_rest import Channel, DiscordGuild, Member, Overwrite, Role

__all__ = ["DiscordSync", "DiscordSynced", "GuildLayout"]

log = logging.getLogger("keywright.meetup")

VIEW_CHANNEL = 1 << 10
BLUE = 0x3498DB
OF_ROLE, OF_MEMBER = 0, 1


@dataclass(frozen=True)
class GuildLayout:
    """Where channels go in the guild, and who else sees campaigns."""

    categories: dict[SeriesType, int] = field(default_factory=dict)
    publisher_role: int | None = None


@dataclass
class DiscordSynced:
    """The result of a run."""

    made: int = 0
    changed: int = 0
    added: int = 0
    """Members who were given a role."""
    removed: int = 0
    """Members from whom somebody had taken a role by hand."""
    waiting: int = 0
    """Objects that an earlier process may still be making."""
    failures: dict[SeriesId, KeywrightError] = field(default_factory=dict)


@dataclass(frozen=True)
class _Found:
    """The time and the guild at the beginning of a run; members as they are met."""

    now: datetime
    bot: int
    channels: dict[int, Channel]
    roles: dict[int, Role]
    members: dict[DiscordId, Member | None] = field(default_factory=dict)


@dataclass(frozen=True)
class _Holders:
    """A role of a channel: who should have it, and who had it when that was recorded."""

    record: AddedUsers | AddedHosts
    role: RoleId
    users: frozenset[DiscordId]
    before: dict[DiscordId, GivenRole]


class DiscordSync:
    """The sync. Call `run` while holding the lease of the task."""

    def __init__(
        self,
        db: AsyncDatabase,
        api: DiscordGuild,
        layout: GuildLayout,
        clock: Callable[[], datetime],
    ) -> None:
        self._db = db
        self._api = api
        self._layout = layout
        self._clock = clock
        self._provisioner = Provisioner(db, api, clock)

    async def run(self) -> DiscordSynced:
        """Sync all series once. One that fails does not stop the others: it is among the failures."""
        done = DiscordSynced(waiting=await self._provisioner.recover())
        now = self._clock()
        states = await self._db.run(upcoming_series(now))
        if not states:
            return done
        found = _Found(now, await self._api.me(), await self._api.channels(), await self._api.roles())
        for state in states:
            try:
                await self._series(state, found, done)
            except KeywrightError as error:
                log.warning("series %s: %s", state.series, error)
                done.failures[state.series] = error
        return done

    async def _series(self, state: SeriesState, found: _Found, done: DiscordSynced) -> None:
        name, link = _next_session(state, found.now)
        channel = await self._living_channel(state, found)
        if channel is None:
            state = SeriesState(
                state.series, state.type, state.events, guests=state.guests, hosts=state.hosts
            )
            channel = await self._new_channel(state, name, found, done)
        if channel is None:
            return
        guest = await self._role("guest_role", channel, state.guest_role, f"[Player] {name}", found, done)
        if guest is None:
            return
        host = await self._role("host_role", channel, state.host_role, f"[Host] {name}", found, done)
        if host is None:
            return
        await self._dress(channel, state, link, self._overwrites(state, found, (guest, host)), found, done)
        hosts = _Holders(AddedHosts(channel), host, state.hosts, state.added_hosts)
        guests = _Holders(AddedUsers(channel), guest, state.guests, state.added_guests)
        await self._assign(hosts, found, done)
        await self._assign(guests, found, done)

    async def _living_channel(self, state: SeriesState, found: _Found) -> ChannelId | None:
        """Return the channel of a series if Discord has it. Forget one that is gone."""
        channel = state.channel
        if channel is None or channel in found.channels:
            return channel
        there = await self._api.channel(channel)
        if there is not None:
            found.channels[channel] = there
            return channel
        log.info("channel %d of series %s is gone from Discord", channel, state.series)
        await self._db.run(channels.forget_channel(channel))
        return None

    async def _new_channel(
        self, state: SeriesState, name: str, found: _Found, done: DiscordSynced
    ) -> ChannelId | None:
        # Hidden from the first moment on.
        overwrites = [_as_data(each) for each in self._overwrites(state, found, ())]
        channel = await self._provisioner.channel(
            state.series, name=name, parent_id=self._category(state), permission_overwrites=overwrites
        )
        if channel is not None and channel not in found.channels:
            done.made += 1
            there = await self._api.channel(channel)
            if there is not None:
                found.channels[channel] = there
        return channel

    async def _role(
        self,
        made: RoleKind,
        channel: ChannelId,
        role: RoleId | None,
        name: str,
        found: _Found,
        done: DiscordSynced,
    ) -> RoleId | None:
        """Return a role of a channel, which is made or named if need be; None while that is not settled."""
        if role is not None and role not in found.roles and (there := await self._api.role(role)):
            found.roles[role] = there
        if role is None or role not in found.roles:
            role = await self._provisioner.role(
                made, channel, instead_of=role, color=BLUE, permissions="0", mentionable=True
            )
            if role is None:
                return None
            done.made += 1
            await self._api.modify_role(role, name=name)
        elif is_marked(found.roles[role].name):
            await self._api.modify_role(role, name=name)
            done.changed += 1
        return role

    async def _dress(
        self,
        channel: ChannelId,
        state: SeriesState,
        link: str,
        overwrites: Iterable[Overwrite],
        found: _Found,
        done: DiscordSynced,
    ) -> None:
        """Set topic, category and permissions where they differ; permissions that others gave stay."""
        now = found.channels.get(channel, Channel(str(channel)))
        category, topic = self._category(state), f"Next session: {link}"
        merged = {each.id: each for each in now.permission_overwrites}
        merged |= {each.id: _added(each, merged.get(each.id)) for each in overwrites}
        changes: dict[str, object] = {}
        if now.topic != topic:
            changes["topic"] = topic
        if category is not None and now.parent_id != category:
            changes["parent_id"] = category
        if set(merged.values()) != set(now.permission_overwrites):
            changes["permission_overwrites"] = [_as_data(each) for each in merged.values()]
        if changes:
            await self._api.modify_channel(channel, **changes)
            done.changed += 1

    async def _assign(self, holders: _Holders, found: _Found, done: DiscordSynced) -> None:
        """Give a role to those who lack it, except users who left the guild or were removed by hand."""
        for user in sorted(holders.users):
            if user not in found.members:
                found.members[user] = await self._api.member(user)
            member = found.members[user]
            if member is None:
                continue
            given = GivenRole(str(holders.role), member.joined_at)
            has_it, had_it = given.role in member.roles, holders.before.get(user) == given
            if had_it and not has_it:
                await self._note_removal(holders, user)
                done.removed += 1
            elif not had_it and (has_it or await self._api.add_role(user, holders.role)):
                # Recorded afterwards: a role that was never given must not count as taken away.
                await self._db.run(channels.note_added(holders.record, user, given))
                done.added += not has_it

    async def _note_removal(self, holders: _Holders, user: DiscordId) -> None:
        channel = holders.record.channel
        if isinstance(holders.record, AddedHosts):
            await self._db.run(channels.remove_host(channel, user))
            log.info("Discord user %d was removed by hand from the hosts of channel %d", user, channel)
        else:
            await self._db.run(channels.remove_user(channel, user))
            log.info("Discord user %d was removed by hand from channel %d", user, channel)

    def _category(self, state: SeriesState) -> str | None:
        category = self._layout.categories.get(state.type or "adventure")
        return None if category is None else str(category)

    def _overwrites(self, state: SeriesState, found: _Found, roles: Iterable[RoleId]) -> list[Overwrite]:
        publisher = self._layout.publisher_role
        also = [publisher] if publisher is not None and state.type == "campaign" else []
        view = str(VIEW_CHANNEL)
        return [
            # The role @everyone has the id of the guild.
            Overwrite(str(self._api.guild), OF_ROLE, deny=view),
            Overwrite(str(found.bot), OF_MEMBER, allow=view),
            *(Overwrite(str(role), OF_ROLE, allow=view) for role in (*roles, *also)),
        ]


def _as_data(overwrite: Overwrite) -> dict[str, object]:
    return {
        "id": overwrite.id,
        "type": overwrite.type,
        "allow": overwrite.allow,
        "deny": overwrite.deny,
    }


def _next_session(state: SeriesState, now: datetime) -> tuple[str, str]:
    """Return the name of the series and the address of its next event."""
    event = state.next_event(now)
    assert event is not None  # only such series are read, and at the same time
    name = series_name(state.events[event].name)
    if name is None:
        raise RefusedChangeError(
            f"event {event}",
            f"has the title {state.events[event].name!r}, which begins with no name for its channel",
            "Put 2 to 80 letters before the first bracket.",
        )
    return name, state.events[event].link


def _added(wanted: Overwrite, found: Overwrite | None) -> Overwrite:
    """Return the permissions that we need, beside those that people have given or taken."""
    if found is None:
        return wanted
    allow, deny = int(wanted.allow), int(wanted.deny)
    return Overwrite(
        wanted.id,
        wanted.type,
        str(int(found.allow) & ~deny | allow),
        str(int(found.deny) & ~allow | deny),
    )
