"""Writes of series and their events: each operation is one commit, whatever it spans.

Every commit that changes the events of a series checks the type of the series, so a series is not deleted
while an event joins it. Every commit that changes an event checks the series of the event.
"""

from __future__ import annotations

from collections.abc import Iterable

from keywright import Call, gather, gather_list
from keywright.operations import (
    Check,
    Outcome,
    Steps,
    Writes,
    absent,
    commit,
    equals,
    has_member,
    members_are,
    optimistic,
    procedure,
)
from keywright_meetup.events import Change, Joining
from keywright_meetup.schema import (
    ChannelId,
    ChannelOfSeries,
    DiscordChannels,
    EventGuests,
    EventHosts,
    EventId,
    EventSeries,
    MeetupEvent,
    MeetupEvents,
    OrphanedChannels,
    SeriesEvents,
    SeriesId,
    SeriesOfEvent,
    SeriesType,
    TypeOfSeries,
    channel_of_series,
    series_of_event,
)

__all__ = ["apply_change", "channel_attached", "delete_series", "event_writes", "remove_event", "type_is"]


@procedure
def apply_change(change: Change) -> Steps[Outcome]:
    """Write one change of an event, if everything that it was decided from still holds."""
    # Bound inside the procedure, so that a value that cannot be written is an error of this call alone.
    checks, writes = _changed(change)
    outcome: Outcome = yield commit("sync event", checks, writes, subject=change.event)
    return outcome


def _changed(change: Change) -> tuple[list[Check], Writes]:
    before = None if change.joining else change.series
    checks = [series_of_event.holds(change.event, before)]
    writes: Writes = []
    if change.joining is not None:
        checks += _join_checks(change, change.joining)
        writes += _join_writes(change, change.joining)
    if change.details is not None:
        writes.append(MeetupEvent(change.event).write(change.details))
    hosts, guests = EventHosts(change.event), EventGuests(change.event)
    writes += [hosts.remove(*change.gone_hosts), hosts.add(*change.new_hosts)]
    writes += [guests.remove(*change.gone_guests), guests.add(*change.new_guests)]
    return checks, writes


def _join_checks(change: Change, joining: Joining) -> list[Check]:
    known = joining.known
    checks = [type_is(change.series, known.type if known else None)]
    if known is None or not known.events:
        # The second event of a series must see the first, and make the series a campaign.
        checks.append(absent(SeriesEvents(change.series)))
    if joining.by is not None:
        checks.append(series_of_event.holds(joining.by, change.series))
    if joining.channel is not None:
        checks.append(channel_of_series.reversed().holds(joining.channel, None))
        checks.append(has_member(OrphanedChannels(), joining.channel, present=False))
    return checks


def _join_writes(change: Change, joining: Joining) -> Writes:
    writes = series_of_event.joined(change.event, change.series)
    writes.append(EventSeries().add(change.series))
    if joining.known is None or joining.type != joining.known.type:
        writes.append(TypeOfSeries(change.series).set(joining.type))
    if joining.channel is not None:
        writes += channel_attached(change.series, joining.channel)
    return writes


def channel_attached(series: SeriesId, channel: ChannelId) -> Writes:
    """Return the writes that give a series a channel, both of which are free."""
    return [*channel_of_series.joined(series, channel), DiscordChannels().add(channel)]


def remove_event(event: EventId) -> Call[bool]:
    """Forget an event with its guests, hosts and place in its series. Return whether it was tracked.

    The series stays, without events perhaps: its channel may be in use.
    """

    def attempt() -> Steps[bool | None]:
        series = yield SeriesOfEvent(event).get()
        if series is None:
            return False
        checks = [series_of_event.holds(event, series)]
        return True if (yield commit("remove event", checks, event_writes(event, series))) else None

    return optimistic(f"remove event {event}", attempt)


def event_writes(event: EventId, series: SeriesId | None) -> Writes:
    """Return the writes that leave nothing of an event, which belongs to this series."""
    parted = [MeetupEvents().remove(event)] if series is None else series_of_event.parted(event, series)
    parts = (MeetupEvent(event), EventGuests(event), EventHosts(event))
    return [*parted, *(part.delete() for part in parts)]


def delete_series(series: SeriesId, *, only_with: Iterable[EventId] | None = None) -> Call[bool]:
    """Forget a series with all of its events, in one step. Return whether it was deleted.

    It is not while it has a channel, nor, where `only_with` is passed, while it has other events.
    """
    allowed = None if only_with is None else set(only_with)

    def attempt() -> Steps[bool | None]:
        found = yield gather(
            TypeOfSeries(series).get(),
            ChannelOfSeries(series).get(),
            SeriesEvents(series).members(),
            EventSeries().has(series),
        )
        kind, channel, events, tracked = found
        if channel is not None or not (tracked or events or kind):
            return False
        if allowed is not None and not events <= allowed:
            return False
        owners = yield gather_list(SeriesOfEvent(event).get() for event in events)
        members = dict(zip(events, owners, strict=True))
        checks, writes = _deletion(series, kind, members)
        return True if (yield commit("delete series", checks, writes)) else None

    return optimistic(f"delete series {series}", attempt)


def _deletion(
    series: SeriesId, kind: SeriesType | None, members: dict[EventId, SeriesId | None]
) -> tuple[list[Check], Writes]:
    events = SeriesEvents(series)
    checks = [type_is(series, kind), channel_of_series.holds(series, None), members_are(events, members)]
    writes: Writes = [TypeOfSeries(series).delete(), events.delete(), EventSeries().remove(series)]
    for event, owner in members.items():
        checks.append(series_of_event.holds(event, owner))
        # An event that belongs elsewhere is named here by mistake only.
        writes += event_writes(event, series) if owner == series else []
    return checks, writes


def type_is(series: SeriesId, kind: SeriesType | None) -> Check:
    """Return the check that a series is of this type, or does not exist."""
    return equals(TypeOfSeries(series), kind)
