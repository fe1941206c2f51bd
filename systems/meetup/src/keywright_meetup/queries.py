"""Series with their events, channels, roles and people, in a few round trips for all of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from keywright import gather, gather_list
from keywright.errors import KeywrightError, StoredDataError
from keywright.operations import Steps, procedure
from keywright_meetup.account_links import discord_users_of
from keywright_meetup.channel_times import ChannelTimes, times_of
from keywright_meetup.schema import (
    AddedHosts,
    AddedUsers,
    ChannelId,
    ChannelOfSeries,
    DiscordChannels,
    DiscordId,
    EventDetails,
    EventGuests,
    EventHosts,
    EventId,
    EventSeries,
    GivenRole,
    GuestRoleOfChannel,
    HostRoleOfChannel,
    MeetupEvent,
    MeetupEvents,
    MeetupId,
    RemovedHosts,
    RemovedUsers,
    RoleId,
    SeriesEvents,
    SeriesId,
    SeriesOfChannel,
    SeriesType,
    TypeOfSeries,
)

__all__ = [
    "ChannelHosts",
    "SeriesState",
    "details_of",
    "hosts_of_channel",
    "present",
    "read_series",
    "tracked_events",
    "upcoming_series",
]


@dataclass(frozen=True)
class SeriesState:
    """A series with its events, its channel, and the people who belong there.

    `guests` and `hosts` are Discord users: those of the events that are yet to come, linked, and not removed
    by hand. People who came to past events only are not among them, and must not be removed for that.
    """

    series: SeriesId
    type: SeriesType | None
    events: dict[EventId, EventDetails]
    channel: ChannelId | None = None
    guest_role: RoleId | None = None
    host_role: RoleId | None = None
    guests: frozenset[DiscordId] = frozenset()
    hosts: frozenset[DiscordId] = frozenset()
    added_guests: dict[DiscordId, GivenRole] = field(default_factory=dict)
    """Who has, or had, the guest role."""
    added_hosts: dict[DiscordId, GivenRole] = field(default_factory=dict)
    times: ChannelTimes = field(default_factory=ChannelTimes)

    def next_event(self, now: datetime) -> EventId | None:
        """Return the first event that is yet to come."""
        coming = [(details.time, event) for event, details in self.events.items() if details.time >= now]
        return min(coming)[1] if coming else None


@procedure
def tracked_events() -> Steps[dict[EventId, EventDetails]]:
    """Return every tracked event whose details are complete, in two round trips."""
    found: dict[EventId, EventDetails] = yield details_of(sorted((yield MeetupEvents().members())))
    return found


@procedure
def details_of(events: Sequence[EventId]) -> Steps[dict[EventId, EventDetails]]:
    """Return the details of many events, without missing or malformed ones: a sync writes those again."""
    try:
        found = yield MeetupEvent.get_many(events)
    except StoredDataError:
        found = yield gather_list(MeetupEvent(event).get().attempt() for event in events)
    for each in found:
        if isinstance(each, KeywrightError) and not isinstance(each, StoredDataError):
            raise each
    return present(events, [None if isinstance(each, StoredDataError) else each for each in found])


@procedure
def upcoming_series(now: datetime) -> Steps[list[SeriesState]]:
    """Return every series that has an event to come, in a handful of round trips for all of them."""
    series = sorted((yield EventSeries().members()))
    states: list[SeriesState] = yield read_series(series, now)
    return [state for state in states if state.next_event(now) is not None]


@procedure
def read_series(series: Sequence[SeriesId], now: datetime) -> Steps[list[SeriesState]]:
    """Return these series, in the order asked."""
    types, channels, events_of = yield gather(
        TypeOfSeries.get_many(series),
        ChannelOfSeries.get_many(series),
        gather_list(SeriesEvents(each).members() for each in series),
    )
    known = [channel for channel in channels if channel is not None]
    details, property_of = yield gather(
        details_of(sorted({event for events in events_of for event in events})), _property(known)
    )
    attending = yield from _attending([event for event, each in details.items() if each.time >= now])
    states = []
    for each, kind, channel, events in zip(series, types, channels, events_of, strict=True):
        present = {event: details[event] for event in events if event in details}
        owned = _Property() if channel is None else property_of[channel]
        states.append(_state(SeriesState(each, kind, present, channel), attending, owned))
    return states


@dataclass(frozen=True)
class ChannelHosts:
    """The hosts of a channel: those who have the role, or host an event on Meetup, without removed ones."""

    role: RoleId | None
    users: frozenset[DiscordId]
    removed: frozenset[DiscordId]


@procedure
def hosts_of_channel(channel: ChannelId) -> Steps[ChannelHosts | None]:
    """Return who decides about a channel, by events of its series past and to come; None if it is unknown."""
    series, known, role, removed = yield gather(
        SeriesOfChannel(channel).get(),
        DiscordChannels().has(channel),
        HostRoleOfChannel(channel).get(),
        gather(RemovedHosts(channel).members(), RemovedUsers(channel).members()),
    )
    if series is None and not known:
        return None
    events = [] if series is None else sorted((yield SeriesEvents(series).members()))
    hosts: list[set[MeetupId]] = yield gather_list(EventHosts(event).members() for event in events)
    linked = yield discord_users_of(sorted(set().union(*hosts)))
    return ChannelHosts(role, frozenset(linked.values()), frozenset().union(*removed))


@dataclass(frozen=True)
class _Property:
    """The roles, removed and added people and times of a channel."""

    guest_role: RoleId | None = None
    host_role: RoleId | None = None
    removed_users: frozenset[DiscordId] = frozenset()
    removed_hosts: frozenset[DiscordId] = frozenset()
    added_guests: dict[DiscordId, GivenRole] = field(default_factory=dict)
    added_hosts: dict[DiscordId, GivenRole] = field(default_factory=dict)
    times: ChannelTimes = field(default_factory=ChannelTimes)


@dataclass(frozen=True)
class _Attending:
    """The guests and hosts of events, as Discord users."""

    guests: dict[EventId, set[DiscordId]]
    hosts: dict[EventId, set[DiscordId]]


def _state(bare: SeriesState, attending: _Attending, owned: _Property) -> SeriesState:
    guests = {user for event in bare.events for user in attending.guests.get(event, ())}
    hosts = {user for event in bare.events for user in attending.hosts.get(event, ())}
    return replace(
        bare,
        guest_role=owned.guest_role,
        host_role=owned.host_role,
        guests=frozenset(guests - owned.removed_users),
        hosts=frozenset(hosts - owned.removed_users - owned.removed_hosts),
        added_guests=owned.added_guests,
        added_hosts=owned.added_hosts,
        times=owned.times,
    )


@procedure
def _property(channels: Sequence[ChannelId]) -> Steps[dict[ChannelId, _Property]]:
    *columns, times = yield gather(
        GuestRoleOfChannel.get_many(channels),
        HostRoleOfChannel.get_many(channels),
        gather_list(RemovedUsers(channel).members() for channel in channels),
        gather_list(RemovedHosts(channel).members() for channel in channels),
        gather_list(AddedUsers(channel).all() for channel in channels),
        gather_list(AddedHosts(channel).all() for channel in channels),
        times_of(channels),
    )
    return {
        channel: _Property(
            guest_role,
            host_role,
            frozenset(users),
            frozenset(hosts),
            guests_before,
            hosts_before,
            times[channel],
        )
        for channel, guest_role, host_role, users, hosts, guests_before, hosts_before in zip(
            channels, *columns, strict=True
        )
    }


def _attending(events: Sequence[EventId]) -> Steps[_Attending]:
    guests, hosts = yield gather(
        gather_list(EventGuests(event).members() for event in events),
        gather_list(EventHosts(event).members() for event in events),
    )
    everyone: set[MeetupId] = set().union(*guests, *hosts)
    linked: dict[MeetupId, DiscordId] = yield discord_users_of(sorted(everyone))

    def on_discord(users: Iterable[set[MeetupId]]) -> dict[EventId, set[DiscordId]]:
        return {
            event: {linked[user] for user in some if user in linked}
            for event, some in zip(events, users, strict=True)
        }

    return _Attending(on_discord(guests), on_discord(hosts))


def present(keys: Sequence[Any], values: Sequence[Any]) -> dict[Any, Any]:
    """Return the values that exist, by their keys."""
    return {key: value for key, value in zip(keys, values, strict=True) if value is not None}
