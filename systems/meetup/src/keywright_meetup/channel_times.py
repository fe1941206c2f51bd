"""The times of a channel: until when it serves its series, when its hosts were reminded, when it is deleted.

A channel expires some days after the last event of its series, and is only ever extended. From then on its
hosts are reminded now and then; when they end it, it gets a time of deletion, which an extension removes.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

from keywright import Call, gather, gather_list
from keywright.operations import Steps, Writes, commit, optimistic, procedure
from keywright_meetup.channels import known_channel
from keywright_meetup.errors import RefusedChangeError
from keywright_meetup.moments import moment_in
from keywright_meetup.schema import (
    ChannelId,
    DeletionTime,
    DiscordChannels,
    ExpirationTime,
    LastReminderTime,
    SeriesType,
)

__all__ = [
    "ChannelTimes",
    "claim_reminder",
    "due_for_deletion",
    "end",
    "expiration",
    "extend",
    "reminder_is_due",
    "times_of",
]

EXPIRES_AFTER: dict[SeriesType, timedelta] = {"campaign": timedelta(days=3), "adventure": timedelta(days=1)}
# Two hours less than whole days: a task that runs once a day must not miss its day by minutes.
REMIND_EVERY: dict[SeriesType, timedelta] = {
    "campaign": timedelta(days=4) - timedelta(hours=2),
    "adventure": timedelta(days=2) - timedelta(hours=2),
}
DELETED_AFTER = timedelta(hours=8)
TIMES = (ExpirationTime, LastReminderTime, DeletionTime)


class ChannelTimes(NamedTuple):
    """The three times of a channel, where it has them."""

    expiration: datetime | None = None
    reminded: datetime | None = None
    deletion: datetime | None = None


def expiration(kind: SeriesType, events: Iterable[datetime], now: datetime) -> datetime:
    """Return when the channel of a series with these events expires: at once if there are none."""
    times = list(events)
    return max(times) + EXPIRES_AFTER[kind] if times else now


def reminder_is_due(times: ChannelTimes, kind: SeriesType, now: datetime) -> bool:
    """Return whether the hosts of a channel should be asked to end it."""
    if times.expiration is None or now < times.expiration or times.deletion is not None:
        return False
    return times.reminded is None or now - times.reminded >= REMIND_EVERY[kind]


def times_of(channels: Iterable[ChannelId]) -> Call[dict[ChannelId, ChannelTimes]]:
    """Return the times of many channels, in one round trip."""
    asked = list(channels)
    return gather(*(kind.get_many(asked) for kind in TIMES)).map(
        lambda found: {
            channel: ChannelTimes(*times)
            for channel, times in zip(asked, zip(*found, strict=True), strict=True)
        }
    )


def extend(channel: ChannelId, until: datetime) -> Call[bool]:
    """Let a channel serve until a time, if that is later than so far. Return whether it is.

    The last reminder and the time of deletion are removed.
    """

    def attempt() -> Steps[bool | None]:
        checks = yield from known_channel(channel)
        stored = yield moment_in(ExpirationTime(channel))
        if stored.time is not None and until <= stored.time:
            return False
        writes: Writes = [ExpirationTime(channel).set(until)]
        writes += [LastReminderTime(channel).delete(), DeletionTime(channel).delete()]
        return True if (yield commit("extend", [*checks, stored.unchanged], writes)) else None

    return optimistic(f"extend channel {channel}", attempt)


def claim_reminder(channel: ChannelId, kind: SeriesType, now: datetime) -> Call[bool]:
    """Record that the hosts are reminded now. Return True to one of several callers, if it is due."""

    def attempt() -> Steps[bool | None]:
        checks = yield from known_channel(channel)
        found = yield gather_list(moment_in(time(channel)) for time in TIMES)
        if not reminder_is_due(ChannelTimes(*(each.time for each in found)), kind, now):
            return False
        checks += [each.unchanged for each in found]
        writes: Writes = [LastReminderTime(channel).set(now)]
        return True if (yield commit("remind", checks, writes)) else None

    return optimistic(f"remind channel {channel}", attempt)


def end(channel: ChannelId, now: datetime, after: timedelta = DELETED_AFTER) -> Call[datetime]:
    """Have a channel deleted, and return when. Raise RefusedChangeError if it has not expired yet."""

    def attempt() -> Steps[datetime | None]:
        checks = yield from known_channel(channel)
        stored = yield moment_in(ExpirationTime(channel))
        if stored.time is None or now < stored.time:
            raise RefusedChangeError(
                f"channel {channel}", "has not expired yet", "End it after its last event, or delete that."
            )
        moment = now + after
        writes: Writes = [DeletionTime(channel).set(moment)]
        return moment if (yield commit("end", [*checks, stored.unchanged], writes)) else None

    return optimistic(f"end channel {channel}", attempt)


@procedure
def due_for_deletion(now: datetime) -> Steps[dict[ChannelId, datetime]]:
    """Return the channels whose time has come, for `retire_channel(channel, due=…)`, in two round trips."""
    channels = sorted((yield DiscordChannels().members()))
    times = yield DeletionTime.get_many(channels)
    return {
        channel: time
        for channel, time in zip(channels, times, strict=True)
        if time is not None and time <= now
    }
