"""Channels with their series, two roles, removed people and times; and orphans.

Every commit that changes a channel checks the series of the channel, so that key orders them. A channel is
dissolved in one commit: no key of it is left, and whatever still exists on Discord is among the orphans until
Discord confirms that it is deleted.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

from keywright import Call, OneToOne, gather, gather_list
from keywright.errors import TakenError
from keywright.operations import Check, Steps, Writes, commit, has_member, optimistic, procedure
from keywright_meetup.errors import RefusedChangeError
from keywright_meetup.moments import moment_in
from keywright_meetup.schema import (
    AddedHosts,
    AddedUsers,
    ChannelId,
    ChannelOfGuestRole,
    ChannelOfHostRole,
    ChannelOfSeries,
    DeletionTime,
    DiscordChannels,
    DiscordId,
    EventSeries,
    ExpirationTime,
    GivenRole,
    GuestRoleOfChannel,
    HostRoleOfChannel,
    LastReminderTime,
    OrphanedChannels,
    OrphanedRoles,
    RemovedHosts,
    RemovedUsers,
    RoleId,
    SeriesId,
    SeriesOfChannel,
    TypeOfSeries,
    channel_of_series,
    guest_role,
    host_role,
)
from keywright_meetup.series import channel_attached, type_is

__all__ = [
    "Orphans",
    "attach_channel",
    "channel_is_known",
    "confirm_channel_deleted",
    "confirm_role_deleted",
    "forget_channel",
    "known_channel",
    "note_added",
    "orphans",
    "readmit",
    "remove_host",
    "remove_user",
    "retire_channel",
    "vacant_channel",
    "vacant_role",
]

_of_channel = channel_of_series.reversed()


def attach_channel(series: SeriesId, channel: ChannelId) -> Call[bool]:
    """Give a series a channel that exists on Discord. Return False if it has that channel already.

    Raise TakenError if either has another, and RefusedChangeError if the series is not tracked or the channel
    is being deleted.
    """

    def attempt() -> Steps[bool | None]:
        kind, theirs, owner, orphaned = yield gather(
            TypeOfSeries(series).get(),
            ChannelOfSeries(series).get(),
            SeriesOfChannel(channel).get(),
            OrphanedChannels().has(channel),
        )
        if (theirs, owner) == (channel, series):
            return False
        if theirs not in (None, channel):
            raise TakenError(channel_of_series.name, series, theirs, channel)
        if owner not in (None, series):
            raise TakenError(channel_of_series.name, channel, owner, series)
        if kind is None:
            raise RefusedChangeError(f"series {series}", "is not tracked", "Sync its events first.")
        if orphaned:
            raise RefusedChangeError(f"channel {channel}", "is being deleted", "Choose another channel.")
        checks = [type_is(series, kind), channel_of_series.holds(series, theirs)]
        checks += [_of_channel.holds(channel, owner), has_member(OrphanedChannels(), channel, present=False)]
        writes = channel_attached(series, channel)
        return True if (yield commit("attach channel", checks, writes)) else None

    return optimistic(f"attach channel {channel}", attempt)


def vacant_channel(channel: ChannelId) -> list[Check]:
    """Return the checks that a channel belongs to no series and is not an orphan."""
    return [_of_channel.holds(channel, None), has_member(OrphanedChannels(), channel, present=False)]


def vacant_role(role: RoleId) -> list[Check]:
    """Return the checks that a role belongs to no channel, as either kind, and is not an orphan."""
    return [
        guest_role.reversed().holds(role, None),
        host_role.reversed().holds(role, None),
        has_member(OrphanedRoles(), role, present=False),
    ]


def retire_channel(channel: ChannelId, *, due: datetime | None = None) -> Call[bool]:
    """Dissolve a channel that is to be deleted: it and its roles become orphans. Return whether it was known.

    With `due` only if that still is its deletion time: return False if the channel was extended meanwhile.
    """
    return _dissolved(channel, due, exists=True)


def forget_channel(channel: ChannelId) -> Call[bool]:
    """Dissolve a channel that Discord says is gone: its roles become orphans. Return whether it was known."""
    return _dissolved(channel, None, exists=False)


def _dissolved(channel: ChannelId, due: datetime | None, *, exists: bool) -> Call[bool]:
    def attempt() -> Steps[bool | None]:
        series, known, guest, host, deletion = yield gather(
            SeriesOfChannel(channel).get(),
            DiscordChannels().has(channel),
            GuestRoleOfChannel(channel).get(),
            HostRoleOfChannel(channel).get(),
            moment_in(DeletionTime(channel)),
        )
        if (series is None and not known) or (due is not None and due != deletion.time):
            return False
        checks: list[Check] = []
        writes: Writes = _without_parts(channel)
        if due is not None:
            checks.append(deletion.unchanged)
        if exists:
            writes.append(OrphanedChannels().add(channel))
        writes.append(DiscordChannels().remove(channel))
        yield from _ended(_of_channel, channel, series, checks, writes)
        for relation, role in ((guest_role, guest), (host_role, host)):
            ours = yield from _ended(relation, channel, role, checks, writes)
            writes += [OrphanedRoles().add(role)] if ours else []
        return True if (yield commit("dissolve channel", checks, writes)) else None

    return optimistic(f"dissolve channel {channel}", attempt)


def _without_parts(channel: ChannelId) -> Writes:
    people = (RemovedHosts(channel), RemovedUsers(channel), AddedHosts(channel), AddedUsers(channel))
    times = (ExpirationTime(channel), LastReminderTime(channel), DeletionTime(channel))
    return [part.delete() for part in (*people, *times)]


def _ended(
    relation: OneToOne[int, Any], channel: ChannelId, partner: Any, checks: list[Check], writes: Writes
) -> Steps[bool]:
    """End a channel's relation to a partner. Return False if the partner belongs to another channel."""
    checks.append(relation.holds(channel, partner))
    if partner is None:
        return False
    back = yield relation.reversed().of(partner)
    checks.append(relation.reversed().holds(partner, back))
    if back != channel:
        writes.append(relation.forward.made(channel).delete())
        return False
    writes += relation.parted(channel, partner)
    return True


def known_channel(channel: ChannelId) -> Steps[list[Check]]:
    """Return the checks that a channel stays known. Raise RefusedChangeError if it is not."""
    series, known = yield gather(SeriesOfChannel(channel).get(), DiscordChannels().has(channel))
    if series is None and not known:
        raise RefusedChangeError(
            f"channel {channel}", "is not one of the bot's channels", "Attach it to a series first."
        )
    checks = [_of_channel.holds(channel, series)]
    # With a series that check is enough: no commit takes a channel from the index without it.
    return checks if series is not None else [*checks, channel_is_known(channel)]


def channel_is_known(channel: ChannelId) -> Check:
    return has_member(DiscordChannels(), channel)


def remove_user(channel: ChannelId, user: DiscordId) -> Call[bool]:
    """Never add this user to the channel again. Return False if that was so already.

    Raise RefusedChangeError if the channel is unknown.
    """
    return _removal(RemovedUsers(channel), user)


def remove_host(channel: ChannelId, user: DiscordId) -> Call[bool]:
    """Never make this user a host of the channel again, as `remove_user` does for guests."""
    return _removal(RemovedHosts(channel), user)


def readmit(channel: ChannelId, user: DiscordId) -> Call[bool]:
    """Take back both removals. Return whether there was one.

    A sync gives the user the roles again: that they had them before is forgotten.
    """

    def attempt() -> Steps[bool | None]:
        checks = yield from known_channel(channel)
        removed = (RemovedUsers(channel), RemovedHosts(channel))
        if not any((yield gather_list(key.has(user) for key in removed))):
            return False
        added = (AddedUsers(channel), AddedHosts(channel))
        writes = [key.remove(user) for key in (*removed, *added)]
        return True if (yield commit("readmit", checks, writes)) else None

    return optimistic(f"readmission to channel {channel}", attempt)


def note_added(key: AddedUsers | AddedHosts, user: DiscordId, given: GivenRole) -> Call[bool]:
    """Record that a user has a role of a channel, so that it is noticed when somebody takes it away."""

    def attempt() -> Steps[bool | None]:
        checks = yield from known_channel(key.channel)
        return True if (yield commit("added", checks, [key.put(user, given)])) else None

    return optimistic(f"addition to channel {key.channel}", attempt)


def _removal(key: RemovedUsers | RemovedHosts, user: DiscordId) -> Call[bool]:
    def attempt() -> Steps[bool | None]:
        checks = yield from known_channel(key.channel)
        if (yield key.has(user)):
            return False
        return True if (yield commit("removal", checks, [key.add(user)])) else None

    return optimistic(f"removal from channel {key.channel}", attempt)


class Orphans(NamedTuple):
    """Channels and roles that the bot made and that Discord has yet to confirm as deleted."""

    channels: set[ChannelId]
    roles: set[RoleId]
    in_use: set[int]
    """Those that another key names: they are orphans by mistake, and must not be deleted."""


@procedure
def orphans() -> Steps[Orphans]:
    """Return the orphans to delete, and apart from them those that are in use.

    One side of a relation is enough to be in use: a repair completes such a half link.
    """
    channels, roles, series, known = yield gather(
        OrphanedChannels().members(),
        OrphanedRoles().members(),
        EventSeries().members(),
        DiscordChannels().members(),
    )
    if not channels and not roles:
        return Orphans(set(), set(), set())
    owners, guest_of, host_of, channels_of, guest_roles, host_roles = yield gather(
        SeriesOfChannel.get_many(sorted(channels)),
        ChannelOfGuestRole.get_many(sorted(roles)),
        ChannelOfHostRole.get_many(sorted(roles)),
        ChannelOfSeries.get_many(sorted(series)),
        GuestRoleOfChannel.get_many(sorted(known)),
        HostRoleOfChannel.get_many(sorted(known)),
    )
    named = {
        orphan
        for orphans, owners in ((channels, owners), (roles, guest_of), (roles, host_of))
        for orphan, owner in zip(sorted(orphans), owners, strict=True)
        if owner is not None
    }
    named |= {*channels_of, *guest_roles, *host_roles}
    return Orphans(channels - named, roles - named, (channels | roles) & named)


def confirm_channel_deleted(channel: ChannelId) -> Call[bool]:
    """Forget an orphan that Discord deleted, or does not know. Return whether it was one."""
    return OrphanedChannels().remove(channel).map(bool)


def confirm_role_deleted(role: RoleId) -> Call[bool]:
    """Forget an orphan that Discord deleted, or does not know. Return whether it was one."""
    return OrphanedRoles().remove(role).map(bool)
