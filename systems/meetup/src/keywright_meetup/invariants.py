"""The checks of the invariants that the schema declares, and what a repair does about each violation.

The rules are those that the bot's authors planned for their vacuum: half links are completed, a key without
its partner goes, a role that may still exist on Discord becomes an orphan, and an orphan is not in use. Where
two keys claim the same partner, and neither is mutual, nobody can tell which is right, and both claims end.

A fix that removes something is applied when nothing is left to be completed, so a check may take a link that
can still be completed for a missing one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from keywright import Call, Fix, Key, OneToOne, Set, Violation, gather, gather_list
from keywright.operations import Check, Steps, Writes, absent, exists, has_member, procedure
from keywright_meetup import schema
from keywright_meetup.schema import (
    ChannelId,
    ChannelOfGuestRole,
    ChannelOfHostRole,
    ChannelOfSeries,
    DiscordChannels,
    DiscordHostRoles,
    DiscordRoles,
    DiscordUserOfMeetupUser,
    DiscordUsers,
    EventGuests,
    EventHosts,
    EventId,
    EventSeries,
    GuestRoleOfChannel,
    HostRoleOfChannel,
    MeetupEvent,
    MeetupEvents,
    MeetupUserOfDiscordUser,
    MeetupUsers,
    MisnamedOrphans,
    OrphanedChannels,
    OrphanedRoles,
    RoleId,
    SeriesEvents,
    SeriesId,
    SeriesOfChannel,
    SeriesOfEvent,
    SeriesType,
    TypeOfSeries,
    UserTokens,
    channel_of_series,
    guest_role,
    host_role,
    people,
    series_of_event,
)
from keywright_meetup.series import channel_attached, event_writes, type_is

__all__: list[str] = []

Found = Steps[list[Violation]]


@schema.linked_people.check
def _person(key: Key, value: Any) -> Found:
    match key:
        case DiscordUserOfMeetupUser():
            return (yield from _linked(key, key.user, value))
        case MeetupUserOfDiscordUser():
            return (yield from _linked(key, value, key.user))
        case MeetupUsers():
            return (yield from _strays(key, DiscordUserOfMeetupUser, value))
        case DiscordUsers():
            return (yield from _strays(key, MeetupUserOfDiscordUser, value))
    assert isinstance(key, UserTokens)
    linked = yield DiscordUserOfMeetupUser(key.user).exists()
    fix = Fix("remove the tokens", [key.delete()], [absent(DiscordUserOfMeetupUser(key.user))])
    return [] if linked else [Violation("they are of a user who is not linked", fix)]


def _linked(key: Key, meetup_user: int, discord_user: int) -> Found:
    listed = gather(MeetupUsers().has(meetup_user), DiscordUsers().has(discord_user)).map(all)
    joined = people.joined(meetup_user, discord_user)
    return (yield from _mutual(people, meetup_user, discord_user, joined, [key.delete()], listed))


@schema.whole_events.check
def _event(key: Key, value: Any) -> Found:
    match key:
        case SeriesEvents():
            return (yield from _members(key, value))
        case SeriesOfEvent():
            return (yield from _placed(key.event, value))
        case MeetupEvents():
            return (yield from _strays(key, SeriesOfEvent, value))
        case MeetupEvent():
            series = yield SeriesOfEvent(key.event).get()
            gone = _event_removed(key.event, series)
            return [] if series is not None else [Violation("it belongs to no series", gone)]
    assert isinstance(key, EventGuests | EventHosts)
    details = MeetupEvent(key.event)
    fix = Fix("remove the people", [key.delete()], [absent(details)])
    return [] if (yield details.exists()) else [Violation("they are of an event without details", fix)]


def _members(key: SeriesEvents, events: Sequence[EventId]) -> Found:
    """Judge the events that a series names."""
    homes, detailed = yield gather(
        SeriesOfEvent.get_many(events), gather_list(MeetupEvent(event).exists() for event in events)
    )
    found = []
    for event, home, there in zip(events, homes, detailed, strict=True):
        leave = Fix("remove it from the series", [key.remove(event)], [series_of_event.holds(event, home)])
        if home is None and there:
            checks = [series_of_event.holds(event, None), exists(MeetupEvent(event))]
            join = Fix("give the event its series", series_of_event.joined(event, key.series), checks)
            found.append(Violation("the event does not name its series", join, event, if_contested=leave))
        elif home != key.series:
            found.append(Violation("the event belongs elsewhere, or is gone", leave, event))
    return found


def _placed(event: EventId, series: SeriesId) -> Found:
    """Judge an event that names its series."""
    detailed, known, listed, state = yield gather(
        MeetupEvent(event).exists(),
        SeriesEvents(series).has(event),
        MeetupEvents().has(event),
        _series_state(series),
    )
    if not detailed:
        gone = _event_removed(event, series, absent(MeetupEvent(event)))
        return [Violation("the event has no details", gone)]
    if known and listed:
        return []
    if not known and not state.exists:
        gone = _event_removed(event, series, *state.unchanged)
        return [Violation("its series does not exist", gone)]
    checks = [series_of_event.holds(event, series), exists(MeetupEvent(event))]
    fix = Fix("enter it in its series and the index", series_of_event.joined(event, series), checks)
    return [Violation("its series or the index does not name it", fix)]


def _event_removed(event: EventId, series: SeriesId | None, *because: Check) -> Fix:
    checks = [series_of_event.holds(event, series), *because]
    return Fix("remove the event", event_writes(event, series), checks)


class _SeriesState:
    """What is stored of a series beside its events."""

    def __init__(self, series: SeriesId, kind: Any, channel: ChannelId | None, *, tracked: bool) -> None:
        self.kind = kind
        self.channel = channel
        self.tracked = tracked
        self.unchanged = [
            type_is(series, kind),
            channel_of_series.holds(series, channel),
            has_member(EventSeries(), series, present=tracked),
        ]

    @property
    def exists(self) -> bool:
        return self.tracked or self.kind is not None or self.channel is not None


@procedure
def _series_state(series: SeriesId) -> Steps[_SeriesState]:
    kind, channel, tracked = yield gather(
        TypeOfSeries(series).get(), ChannelOfSeries(series).get(), EventSeries().has(series)
    )
    return _SeriesState(series, kind, channel, tracked=tracked)


@schema.series_types.check
def _series(key: Key, value: Any) -> Found:
    if isinstance(key, EventSeries):
        found = yield gather_list(_series_violation(series, member=series) for series in value)
        return [each for each in found if each is not None]
    assert isinstance(key, SeriesEvents | ChannelOfSeries | TypeOfSeries)
    violation = yield _series_violation(key.series)
    return [] if violation is None else [violation]


@procedure
def _series_violation(series: SeriesId, member: SeriesId | None = None) -> Steps[Violation | None]:
    state, named = yield gather(_series_state(series), SeriesEvents(series).members())
    # Only events that name the series count: a stray one must not make it a campaign, which is never undone.
    homes = yield SeriesOfEvent.get_many(named)
    events = [event for event, home in zip(named, homes, strict=True) if home == series]
    kind: SeriesType = "campaign" if len(events) > 1 else state.kind or "adventure"
    if not (state.tracked or events or state.channel is not None):
        checks = [*state.unchanged, absent(SeriesEvents(series))]
        return Violation(
            "it has neither events nor a channel",
            Fix("remove the type", [TypeOfSeries(series).delete()], checks),
            member,
        )
    if state.tracked and state.kind == kind:
        return None
    writes: Writes = [TypeOfSeries(series).set(kind), EventSeries().add(series)]
    checks = [*state.unchanged, *(series_of_event.holds(event, series) for event in events[:2])]
    reason = (
        "it has several events and is not a campaign" if state.kind else "it is not tracked, or has no type"
    )
    return Violation(reason, Fix(f"track it as {kind}", writes, checks), member)


@schema.known_channels.check
def _channel(key: Key, value: Any) -> Found:
    match key:
        case ChannelOfSeries():
            return (yield from _attached(key, key.series, value))
        case SeriesOfChannel():
            return (yield from _attached(key, value, key.channel))
    channel: ChannelId = key.channel  # type: ignore[attr-defined]  # removed people and times have one
    known = yield DiscordChannels().has(channel)
    fix = Fix("remove it", [key.delete()], [has_member(DiscordChannels(), channel, present=False)])
    return [] if known else [Violation("its channel is not known", fix)]


def _attached(key: Key, series: SeriesId, channel: ChannelId) -> Found:
    joined, known = channel_attached(series, channel), DiscordChannels().has(channel)
    return (yield from _mutual(channel_of_series, series, channel, joined, [key.delete()], known))


@schema.unplaced_channels.check
def _unplaced(key: DiscordChannels, channels: Sequence[ChannelId]) -> Found:
    series = yield SeriesOfChannel.get_many(channels)
    return [
        Violation("it belongs to no series", member=channel)
        for channel, found in zip(channels, series, strict=True)
        if found is None
    ]


@schema.roles_in_use.check
def _role(key: Key, value: Any) -> Found:
    match key:
        case GuestRoleOfChannel():
            return (yield from _held(guest_role, key, key.channel, value))
        case ChannelOfGuestRole():
            return (yield from _held(guest_role, key, value, key.role))
        case HostRoleOfChannel():
            return (yield from _held(host_role, key, key.channel, value))
        case ChannelOfHostRole():
            return (yield from _held(host_role, key, value, key.role))
        case DiscordRoles():
            return (yield from _stray_roles(key, guest_role, value))
    assert isinstance(key, DiscordHostRoles)
    return (yield from _stray_roles(key, host_role, value))


def _held(relation: OneToOne[ChannelId, RoleId], key: Key, channel: ChannelId, role: RoleId) -> Found:
    """Judge one side of a channel and its role."""
    known, guest, uses, theirs, ours = yield gather(
        DiscordChannels().has(channel),
        GuestRoleOfChannel(channel).get(),
        _uses(role),
        relation.forward.made(channel).get(),
        relation.inverse.made(role).get(),
    )
    others = {use: where for use, where in uses.items() if (use, where) != (relation.name, channel)}
    orphaned: Writes = [] if others else [OrphanedRoles().add(role)]
    refusals = [
        (not known, "its channel is not known", has_member(DiscordChannels(), channel, present=False)),
        (
            relation is host_role and guest is None,
            "it has no guest role beside it",
            guest_role.holds(channel, None),
        ),
        (
            relation is host_role and guest_role.name in uses,
            "it is a guest role too",
            guest_role.reversed().holds(role, uses.get(guest_role.name)),
        ),
    ]
    for refused, reason, because in refusals:
        if refused:
            mutual = (theirs, ours) == (role, channel)
            ended: Writes = relation.parted(channel, role) if mutual else [key.delete()]
            checks = [relation.holds(channel, theirs), relation.reversed().holds(role, ours), because]
            does = "take it from the channel" if others else "make it an orphan"
            return [Violation(reason, Fix(does, [*ended, *orphaned], checks))]
    assert relation.inverse_index is not None
    listed = relation.inverse_index().has(role)
    joined = relation.joined(channel, role)
    return (yield from _mutual(relation, channel, role, joined, [key.delete(), *orphaned], listed))


@procedure
def _uses(role: RoleId) -> Steps[dict[str, ChannelId]]:
    """The channels that a role belongs to mutually, by the name of the relation: one at most of each kind."""
    relations = (guest_role, host_role)
    channels = yield gather_list(relation.inverse.made(role).get() for relation in relations)
    named = [(rel, channel) for rel, channel in zip(relations, channels, strict=True) if channel is not None]
    roles = yield gather_list(relation.forward.made(channel).get() for relation, channel in named)
    return {rel.name: channel for (rel, channel), back in zip(named, roles, strict=True) if back == role}


def _stray_roles(key: Set[RoleId], relation: OneToOne[ChannelId, RoleId], roles: Sequence[RoleId]) -> Found:
    owners, uses = yield gather(
        gather_list(relation.inverse.made(role).exists() for role in roles),
        gather_list(_uses(role) for role in roles),
    )
    return [
        _disused(key, role, used, "it belongs to no channel", [absent(relation.inverse.made(role))])
        for role, owned, used in zip(roles, owners, uses, strict=True)
        if not owned
    ]


def _disused(
    key: Set[RoleId], role: RoleId, uses: dict[str, ChannelId], reason: str, checks: Sequence[Check] = ()
) -> Violation:
    """A role that has no place in a set: it becomes an orphan, unless it is used in another way."""
    removed: Writes = [key.remove(role)]
    if uses:
        return Violation(
            reason, Fix("remove it from the set", removed, [*checks, *_still_used(role, uses)]), role
        )
    free = [relation.reversed().holds(role, None) for relation in (guest_role, host_role)]
    return Violation(
        reason, Fix("make it an orphan", [*removed, OrphanedRoles().add(role)], [*checks, *free]), role
    )


def _still_used(role: RoleId, uses: dict[str, ChannelId]) -> list[Check]:
    return [
        check
        for relation in (guest_role, host_role)
        if (channel := uses.get(relation.name)) is not None
        for check in (relation.holds(channel, role), relation.reversed().holds(role, channel))
    ]


@schema.unused_orphans.check
def _orphan(key: Key, value: Any) -> Found:
    if isinstance(key, OrphanedChannels):
        found = yield gather_list(_orphaned_channel(key, channel) for channel in value)
        return [each for each in found if each is not None]
    assert isinstance(key, OrphanedRoles | MisnamedOrphans)
    uses = yield gather_list(_uses(role) for role in value)
    if isinstance(key, MisnamedOrphans):
        reason = "it is under the name of earlier versions"
        return [_disused(key, role, used, reason) for role, used in zip(value, uses, strict=True)]
    return [_disused(key, role, used, "it is in use") for role, used in zip(value, uses, strict=True) if used]


@procedure
def _orphaned_channel(key: OrphanedChannels, channel: ChannelId) -> Steps[Violation | None]:
    series, known = yield gather(SeriesOfChannel(channel).get(), DiscordChannels().has(channel))
    theirs = None if series is None else (yield ChannelOfSeries(series).get())
    checks = [channel_of_series.reversed().holds(channel, series)]
    if theirs == channel:
        checks.append(channel_of_series.holds(series, channel))
        return Violation(
            "it is in use", Fix("remove it from the set", [key.remove(channel)], checks), channel
        )
    if not known:
        return None
    fix = Fix("remove it from the known channels", [DiscordChannels().remove(channel)], checks)
    return Violation("it is a known channel too", fix, channel)


def _mutual(
    relation: OneToOne[Any, Any], a: Any, b: Any, joined: Writes, ended: Writes, listed: Call[bool]
) -> Found:
    """Judge one side of a relation, which says that a and b belong together.

    `joined` are the writes that complete the relation and `ended` those that end what this side claims;
    `listed` reads whether the indexes name both.
    """
    theirs, ours, indexed = yield gather(
        relation.forward.made(a).get(), relation.inverse.made(b).get(), listed
    )
    checks = [relation.holds(a, theirs), relation.reversed().holds(b, ours)]
    complete = Fix("complete it", joined, checks)
    if (theirs, ours) == (b, a):
        return [] if indexed else [Violation("an index does not name it", complete)]
    end = Fix("end the claim", ended, checks)
    if theirs in (None, b) and ours in (None, a):
        return [Violation("only one side knows of it", complete, if_contested=end)]
    return [Violation("the other side belongs to another", end, claims=joined)]


def _strays(key: Set[Any], owner: type[Key], members: Iterable[Any]) -> Found:
    """Judge the members of an index, each of which has a key of its own."""
    asked = list(members)
    there = yield gather_list(owner.made(member).exists() for member in asked)
    return [
        Violation(
            "nothing is stored under it",
            Fix("remove it from the index", [key.remove(member)], [absent(owner.made(member))]),
            member,
        )
        for member, found in zip(asked, there, strict=True)
        if not found
    ]
