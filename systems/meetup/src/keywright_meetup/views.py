"""A person, an event, a series or a channel with everything that is related to it, as data for JSON.

Ids of 64 bits are text here: JSON numbers lose those above 2**53. Of tokens only the existence is shown.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from keywright import gather
from keywright.operations import Steps, procedure
from keywright_meetup.channel_times import times_of
from keywright_meetup.schema import (
    ChannelId,
    DiscordChannels,
    DiscordId,
    EventGuests,
    EventHosts,
    EventId,
    EventSeries,
    MeetupEvent,
    MeetupId,
    RemovedHosts,
    RemovedUsers,
    SeriesEvents,
    SeriesId,
    TypeOfSeries,
    UserTokens,
    channel_of_series,
    guest_role,
    host_role,
    people,
    series_of_event,
)

__all__ = ["view_channel", "view_discord_user", "view_event", "view_meetup_user", "view_series"]

View = dict[str, Any]


@procedure
def view_meetup_user(user: MeetupId) -> Steps[View | None]:
    """Return a linked Meetup user, or None."""
    partner, tokens = yield gather(people.of(user), UserTokens(user).exists())
    if partner is None:
        return None
    return {"meetup_user": str(user), "discord_user": str(partner), "oauth2_tokens": tokens}


@procedure
def view_discord_user(user: DiscordId) -> Steps[View | None]:
    """Return a linked Discord user, or None."""
    partner = yield people.inverse_of(user)
    return None if partner is None else (yield view_meetup_user(partner))


@procedure
def view_event(event: EventId) -> Steps[View | None]:
    """Return a tracked event, or None."""
    details, series, hosts, guests = yield gather(
        MeetupEvent(event).get(),
        series_of_event.of(event),
        EventHosts(event).members(),
        EventGuests(event).members(),
    )
    if details is None:
        return None
    shown = {"name": details.name, "time": details.time.isoformat(), "link": details.link}
    related = {"event_series": series, "meetup_hosts": _ids(hosts), "meetup_users": _ids(guests)}
    return {"meetup_event": event, **shown, "urlname": details.urlname, **related}


@procedure
def view_series(series: SeriesId) -> Steps[View | None]:
    """Return a tracked series, or None."""
    tracked, kind, channel, events = yield gather(
        EventSeries().has(series),
        TypeOfSeries(series).get(),
        channel_of_series.of(series),
        SeriesEvents(series).members(),
    )
    if not tracked:
        return None
    related = {"discord_channel": _id(channel), "meetup_events": sorted(events)}
    return {"event_series": series, "type": kind, **related}


@procedure
def view_channel(channel: ChannelId) -> Steps[View | None]:
    """Return a known channel, or None."""
    known, series, guest, host, times = yield gather(
        DiscordChannels().has(channel),
        channel_of_series.inverse_of(channel),
        guest_role.of(channel),
        host_role.of(channel),
        times_of([channel]),
    )
    if not known:
        return None
    users, hosts = yield gather(RemovedUsers(channel).members(), RemovedHosts(channel).members())
    return {
        "discord_channel": str(channel),
        "event_series": series,
        "discord_role": _id(guest),
        "discord_host_role": _id(host),
        "removed_users": _ids(users),
        "removed_hosts": _ids(hosts),
        "expiration_time": _time(times[channel].expiration),
        "last_expiration_reminder_time": _time(times[channel].reminded),
        "deletion_time": _time(times[channel].deletion),
    }


def _id(identity: int | None) -> str | None:
    return None if identity is None else str(identity)


def _ids(identities: Iterable[int]) -> list[str]:
    return [str(identity) for identity in sorted(identities)]


def _time(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()
