"""Series and their events as they are written: each operation is one commit, whatever it spans.

The type of a series is the key that all who change its events compare, so a series cannot go while an event
comes. The series of an event is the key that all who change the event compare.
"""

from __future__ import annotations

from collections.abc import Iterable

from keywright import Call, gather, gather_list
from keywright.operations import (
    Check,
    Outcome,
    Procedure,
    Steps,
    Writes,
    absent,
    commit,
    optimistic,
    stored_equals,
    stored_member,
    stored_set_equals,
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


def apply_change(change: Change) -> Call[Outcome]:
    """Write one change of an event, if all that it was decided from still holds."""

    def steps() -> Steps[Outcome]:
        # Made only here, so that what cannot be written is an error of this call alone.
        checks, writes = _changed(change)
        outcome: Outcome = yield commit("sync event", checks, writes, subject=change.event)
        return outcome

    return Procedure(steps, f"sync event {change.event}")


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
        # Whoever comes second must see the first, and make it a campaign.
        checks.append(absent(SeriesEvents(change.series)))
    if joining.by is not None:
        checks.append(series_of_event.holds(joining.by, change.series))
    if joining.channel is not None:
        orphans = OrphanedChannels()
        checks.append(channel_of_series.reversed().holds(joining.channel, None))
        checks.append(stored_member(orphans, orphans._encode(joining.channel), present=False))
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
    """Forget an event with its guests, hosts and place in its series; whether it was tracked.

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
    """Forget a series with all of its events, in one step; whether it was deleted.

    Not while it has a channel, nor, where `only_with` is given, while it has other events: False then.
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
    checks = [
        type_is(series, kind),
        channel_of_series.holds(series, None),
        stored_set_equals(events, map(events._encode, members)),
    ]
    writes: Writes = [TypeOfSeries(series).delete(), events.delete(), EventSeries().remove(series)]
    for event, owner in members.items():
        checks.append(series_of_event.holds(event, owner))
        # One that belongs elsewhere is only named here by mistake.
        writes += event_writes(event, series) if owner == series else []
    return checks, writes


def type_is(series: SeriesId, kind: SeriesType | None) -> Check:
    """The check that a series is of this type, or does not exist."""
    key = TypeOfSeries(series)
    return stored_equals(key, None if kind is None else key._encode(kind))
