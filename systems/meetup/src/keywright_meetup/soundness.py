"""What a stored state should be: the nearest one in which every invariant holds. Pure.

An audit is the difference between what is stored and this; a repair writes the difference. The rules are the
bot's own for its vacuum: half links are restored, what has no partner goes, what may still exist on Discord
becomes an orphan, what is in use is no orphan. Where two claim the same partner and none of them mutually,
nobody can tell who is right, and both claims end.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from keywright import Key, Record, Set, Value
from keywright_meetup.schema import (
    ChannelOfGuestRole,
    ChannelOfHostRole,
    ChannelOfSeries,
    DeletionTime,
    DiscordChannels,
    DiscordHostRoles,
    DiscordRoles,
    DiscordUserOfMeetupUser,
    DiscordUsers,
    EventGuests,
    EventHosts,
    EventId,
    EventSeries,
    ExpirationTime,
    GuestRoleOfChannel,
    HostRoleOfChannel,
    LastReminderTime,
    MeetupEvent,
    MeetupEvents,
    MeetupUserOfDiscordUser,
    MeetupUsers,
    MisnamedOrphans,
    OrphanedChannels,
    OrphanedRoles,
    RemovedHosts,
    RemovedUsers,
    SeriesEvents,
    SeriesId,
    SeriesOfChannel,
    SeriesOfEvent,
    TypeOfSeries,
    UserTokens,
)

__all__ = ["State", "sound"]

A = TypeVar("A")
B = TypeVar("B")

CHANNEL_TIMES = (ExpirationTime, LastReminderTime, DeletionTime)
CHANNEL_REMOVALS = (RemovedHosts, RemovedUsers)


@dataclass
class State:
    """Stored keys by class and id: values, members of sets, and which records are there and whole.

    The id of a key without variables is None.
    """

    values: dict[type[Value[Any]], dict[Any, Any]] = field(default_factory=lambda: defaultdict(dict))
    sets: dict[type[Set[Any]], dict[Any, set[Any]]] = field(default_factory=lambda: defaultdict(dict))
    records: dict[type[Record[Any]], set[Any]] = field(default_factory=lambda: defaultdict(set))

    def members(self, kind: type[Set[Any]], identity: Any = None) -> set[Any]:
        return self.sets[kind].get(identity, set())

    def kinds(self) -> set[type[Key]]:
        return {*self.values, *self.sets, *self.records}


def sound(found: State) -> State:
    """The state that a repair brings about; equal to what was found if all is well."""
    wanted = State()
    _people(found, wanted)
    channels = _pairs(found.values[ChannelOfSeries], found.values[SeriesOfChannel])
    _events(found, wanted, set(channels))
    _channels(found, wanted, channels)
    _roles(found, wanted)
    return wanted


def _pairs(forward: Mapping[A, B], inverse: Mapping[B, A]) -> dict[A, B]:
    """The partners of a one-to-one relation: mutual ones, and halves that nothing contradicts."""
    mutual = {a: b for a, b in forward.items() if inverse.get(b) == a}
    halves = {(a, b) for a, b in forward.items()} | {(a, b) for b, a in inverse.items()}
    taken = set(mutual.values())
    halves = {(a, b) for a, b in halves if mutual.get(a) != b}
    by_a, by_b = Counter(a for a, _ in halves), Counter(b for _, b in halves)
    restored = {
        a: b for a, b in halves if a not in mutual and b not in taken and by_a[a] == 1 and by_b[b] == 1
    }
    return mutual | restored


def _people(found: State, wanted: State) -> None:
    """1: both directions, both indexes; tokens of linked users only."""
    linked = _pairs(found.values[DiscordUserOfMeetupUser], found.values[MeetupUserOfDiscordUser])
    wanted.values[DiscordUserOfMeetupUser] = dict(linked)
    wanted.values[MeetupUserOfDiscordUser] = {d: m for m, d in linked.items()}
    wanted.sets[MeetupUsers][None] = set(linked)
    wanted.sets[DiscordUsers][None] = set(linked.values())
    wanted.records[UserTokens] = found.records[UserTokens] & set(linked)


def _events(found: State, wanted: State, with_channel: set[SeriesId]) -> None:
    """2 and 5: an event has details, a series that knows it, and a place in the index; a series a type."""
    holders: dict[EventId, list[SeriesId]] = defaultdict(list)
    for series, events in found.sets[SeriesEvents].items():
        for event in events:
            holders[event].append(series)
    tracked = found.members(EventSeries)
    alive = tracked | with_channel | set(found.values[TypeOfSeries])
    placed: dict[EventId, SeriesId] = {}
    for event in found.records[MeetupEvent]:
        home = found.values[SeriesOfEvent].get(event)
        if home is None and len(holders[event]) == 1:
            home = holders[event][0]
        if home is not None and (home in alive or home in holders[event]):
            placed[event] = home
    members: dict[SeriesId, set[EventId]] = defaultdict(set)
    for event, home in placed.items():
        members[home].add(event)
    wanted.values[SeriesOfEvent] = dict(placed)
    wanted.sets[SeriesEvents] = dict(members)
    wanted.sets[MeetupEvents][None] = set(placed)
    wanted.records[MeetupEvent] = set(placed)
    for part in (EventGuests, EventHosts):
        wanted.sets[part] = {event: some for event, some in found.sets[part].items() if event in placed}
    wanted.sets[EventSeries][None] = tracked | set(members) | with_channel
    types = found.values[TypeOfSeries]
    wanted.values[TypeOfSeries] = {
        series: "campaign" if len(members.get(series, ())) > 1 else types.get(series, "adventure")
        for series in wanted.sets[EventSeries][None]
    }


def _channels(found: State, wanted: State, paired: dict[SeriesId, int]) -> None:
    """3, 6 and 7: both directions and the index; orphans are not in use; parts are of known channels."""
    used = set(paired.values())
    orphans = found.members(OrphanedChannels) - used
    known = (found.members(DiscordChannels) | used) - orphans
    wanted.values[ChannelOfSeries] = dict(paired)
    wanted.values[SeriesOfChannel] = {channel: series for series, channel in paired.items()}
    wanted.sets[DiscordChannels][None] = known
    wanted.sets[OrphanedChannels][None] = orphans
    for time in CHANNEL_TIMES:
        wanted.values[time] = {c: moment for c, moment in found.values[time].items() if c in known}
    for removal in CHANNEL_REMOVALS:
        wanted.sets[removal] = {c: people for c, people in found.sets[removal].items() if c in known}


def _roles(found: State, wanted: State) -> None:
    """4 and 6: roles of known channels, no host role without a guest role, no role of both kinds."""
    known = wanted.members(DiscordChannels)
    guests = _pairs(found.values[GuestRoleOfChannel], found.values[ChannelOfGuestRole])
    guests = {channel: role for channel, role in guests.items() if channel in known}
    hosts = _pairs(found.values[HostRoleOfChannel], found.values[ChannelOfHostRole])
    taken = set(guests.values())
    hosts = {channel: role for channel, role in hosts.items() if channel in guests and role not in taken}
    wanted.values[GuestRoleOfChannel], wanted.values[HostRoleOfChannel] = guests, hosts
    wanted.values[ChannelOfGuestRole] = {role: channel for channel, role in guests.items()}
    wanted.values[ChannelOfHostRole] = {role: channel for channel, role in hosts.items()}
    wanted.sets[DiscordRoles][None] = set(guests.values())
    wanted.sets[DiscordHostRoles][None] = set(hosts.values())
    wanted.sets[MisnamedOrphans][None] = set()
    wanted.sets[OrphanedRoles][None] = _mentioned_roles(found) - taken - set(hosts.values())


def _mentioned_roles(found: State) -> set[int]:
    """Every role that any key names: what the bot made, and must be deleted on Discord if it is not used."""
    kinds = (DiscordRoles, DiscordHostRoles, OrphanedRoles, MisnamedOrphans)
    named: set[int] = set().union(*(found.members(kind) for kind in kinds))
    for relation in (GuestRoleOfChannel, HostRoleOfChannel):
        named |= set(found.values[relation].values())
    for inverse in (ChannelOfGuestRole, ChannelOfHostRole):
        named |= set(found.values[inverse])
    return named
