"""Intents: channels and roles are made on Discord so that no crash leaks one.

An intent is recorded before Discord is asked, with a mark that goes into the topic or the name of the object.
The object that Discord made is attached in the commit that drops the intent; if it is not needed any more,
that commit makes it an orphan instead. A process that dies in between leaves the intent: `pending` lists it,
and a later run looks for its mark on Discord, and finishes or abandons it.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, NamedTuple

from keywright import Call, OneToOne, gather
from keywright.operations import Check, Steps, Writes, commit, exists, field_equals, optimistic
from keywright_meetup.channels import known_channel, vacant_channel, vacant_role
from keywright_meetup.errors import RefusedChangeError
from keywright_meetup.schema import (
    ChannelId,
    ChannelOfGuestRole,
    ChannelOfHostRole,
    ChannelOfSeries,
    DiscordChannels,
    GuestRoleOfChannel,
    Intent,
    OrphanedChannels,
    OrphanedRoles,
    Provisioning,
    RoleId,
    RoleKind,
    SeriesId,
    SeriesOfChannel,
    Target,
    TypeOfSeries,
    channel_of_series,
    guest_role,
    host_role,
    new_id,
)
from keywright_meetup.series import channel_attached, type_is

__all__ = [
    "Begun",
    "Finished",
    "abandon",
    "begin_channel",
    "begin_role",
    "finish_channel",
    "finish_role",
    "pending",
]

_of_channel = channel_of_series.reversed()
ROLES: dict[RoleKind, OneToOne[ChannelId, RoleId]] = {"guest_role": guest_role, "host_role": host_role}


class Begun(NamedTuple):
    """`mine`: go on and make it. Else it exists, or `intent` is that of another process, alive or dead."""

    mine: bool
    intent: Intent | None = None
    existing: int | None = None


class Finished(NamedTuple):
    """`kept`: the new object is in use. Else it is an orphan, and `existing` is used instead."""

    kept: bool
    existing: int | None = None


def begin_channel(series: SeriesId, now: datetime) -> Call[Begun]:
    """Record that a channel is being made for a series, unless it has one or another process makes one."""
    target = Target("channel", series)

    def wanted() -> Steps[tuple[int | None, list[Check]]]:
        kind, channel = yield gather(TypeOfSeries(series).get(), ChannelOfSeries(series).get())
        if kind is None:
            raise RefusedChangeError(f"series {series}", "is not tracked", "Sync its events first.")
        return channel, [exists(TypeOfSeries(series)), channel_of_series.holds(series, channel)]

    return _begun(target, now, wanted)


def begin_role(
    made: RoleKind, channel: ChannelId, now: datetime, *, instead_of: RoleId | None = None
) -> Call[Begun]:
    """Record that a guest_role or host_role is being made for a channel, unless it has one.

    `instead_of` is a role that Discord says is gone: it does not count. A host role needs a guest role.
    """
    relation = ROLES[made]
    target = Target(made, str(channel))

    def wanted() -> Steps[tuple[int | None, list[Check]]]:
        checks = yield from known_channel(channel)
        role, guest = yield gather(relation.of(channel), GuestRoleOfChannel(channel).get())
        if made == "host_role" and guest is None:
            raise RefusedChangeError(f"channel {channel}", "has no guest role yet", "Make that first.")
        return None if role == instead_of else role, [*checks, relation.holds(channel, role)]

    return _begun(target, now, wanted)


def _begun(
    target: Target, now: datetime, wanted: Callable[[], Steps[tuple[int | None, list[Check]]]]
) -> Call[Begun]:
    """Record an intent, unless `wanted` finds that there is such an object; it returns that, and checks."""
    mine = Intent(new_id(), now)

    def attempt() -> Steps[Begun | None]:
        found = yield Provisioning().get(target)
        if found is not None:
            return Begun(found == mine, found)
        existing, checks = yield from wanted()
        if existing is not None:
            return Begun(mine=False, existing=existing)
        writes: Writes = [Provisioning().put(target, mine)]
        begun = yield commit("begin provisioning", [_intent_is(target, None), *checks], writes)
        return Begun(mine=True, intent=mine) if begun else None

    return optimistic(f"begin {target.made} for {target.owner}", attempt)


def finish_channel(series: SeriesId, mark: str, channel: ChannelId) -> Call[Finished]:
    """Attach the channel that Discord made for a series, or make it an orphan; the intent goes with it."""
    target = Target("channel", series)

    def attempt() -> Steps[Finished | None]:
        kind, theirs, owner, orphaned = yield gather(
            TypeOfSeries(series).get(),
            ChannelOfSeries(series).get(),
            SeriesOfChannel(channel).get(),
            OrphanedChannels().has(channel),
        )
        checks, writes = yield from _dropped(target, mark)
        checks += [type_is(series, kind), channel_of_series.holds(series, theirs)]
        if kind is not None and theirs is None and owner is None and not orphaned:
            checks += vacant_channel(channel)
            writes += channel_attached(series, channel)
            return Finished(kept=True, existing=channel) if (yield _finish(checks, writes)) else None
        checks.append(_of_channel.holds(channel, owner))
        if owner is None:
            writes += [OrphanedChannels().add(channel), DiscordChannels().remove(channel)]
        return Finished(theirs == channel, theirs) if (yield _finish(checks, writes)) else None

    return optimistic(f"finish channel {channel}", attempt)


def finish_role(
    made: RoleKind, channel: ChannelId, mark: str, role: RoleId, *, instead_of: RoleId | None = None
) -> Call[Finished]:
    """Attach a role that Discord made for a channel, or make it an orphan; the intent goes with it.

    A role in `instead_of` that the channel still has is replaced, and forgotten: Discord says it is gone.
    """
    relation = ROLES[made]
    target = Target(made, str(channel))

    def attempt() -> Steps[Finished | None]:
        series, theirs, guest = yield gather(
            SeriesOfChannel(channel).get(), relation.of(channel), GuestRoleOfChannel(channel).get()
        )
        as_guest, as_host, orphaned = yield gather(
            ChannelOfGuestRole(role).get(), ChannelOfHostRole(role).get(), OrphanedRoles().has(role)
        )
        in_use = as_guest is not None or as_host is not None
        checks, writes = yield from _dropped(target, mark)
        checks += [_of_channel.holds(channel, series), relation.holds(channel, theirs)]
        free = theirs in (None, instead_of) and not in_use and not orphaned
        if series is not None and free and (made == "guest_role" or guest is not None):
            checks += [*vacant_role(role), guest_role.holds(channel, guest)]
            replaced = [] if theirs is None else (yield from _replaced(relation, channel, theirs, checks))
            writes += [*replaced, *relation.joined(channel, role)]
            return Finished(kept=True, existing=role) if (yield _finish(checks, writes)) else None
        checks += [guest_role.reversed().holds(role, as_guest), host_role.reversed().holds(role, as_host)]
        writes += [] if in_use else [OrphanedRoles().add(role)]
        return Finished(theirs == role, theirs) if (yield _finish(checks, writes)) else None

    return optimistic(f"finish {made} {role}", attempt)


def _replaced(
    relation: OneToOne[ChannelId, RoleId], channel: ChannelId, old: RoleId, checks: list[Check]
) -> Steps[Writes]:
    """Return the writes that forget a dead role, before another takes its place."""
    back = yield relation.reversed().of(old)
    checks.append(relation.reversed().holds(old, back))
    return relation.parted(channel, old) if back == channel else []


def abandon(target: Target, mark: str) -> Call[bool]:
    """Drop an intent if nothing on Discord has its mark and no process can be making it any more."""

    def attempt() -> Steps[bool | None]:
        found = yield Provisioning().get(target)
        if found is None or found.mark != mark:
            return False
        writes: Writes = [Provisioning().remove(target)]
        return True if (yield commit("abandon", [_intent_is(target, found)], writes)) else None

    return optimistic(f"abandon {target.made} for {target.owner}", attempt)


def pending() -> Call[dict[Target, Intent]]:
    """Return the intents of running processes and of those that died."""
    return Provisioning().all()


def _dropped(target: Target, mark: str) -> Steps[tuple[list[Check], Writes]]:
    """Return the check and the write that drop an intent, if it still has this mark."""
    found = yield Provisioning().get(target)
    if found is None or found.mark != mark:
        return [], []
    return [_intent_is(target, found)], [Provisioning().remove(target)]


def _intent_is(target: Target, intent: Intent | None) -> Check:
    return field_equals(Provisioning(), target, intent)


def _finish(checks: list[Check], writes: Writes) -> Call[Any]:
    return commit("finish provisioning", checks, writes)
