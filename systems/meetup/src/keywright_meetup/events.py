"""The shortcodes of Meetup events, and the decision what to store. Pure functions: nothing is read here.

An event belongs to the bot when its description has shortcodes, in brackets of either kind and in any case:
`[new adventure]`, `[new campaign]`, `[campaign <event id>]` for a further session of the series that another
event belongs to, and `[channel <digits>]` with a new series that has a channel already.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from keywright_meetup.schema import (
    ChannelId,
    EventDetails,
    EventId,
    MeetupId,
    SeriesId,
    SeriesType,
    new_id,
)

__all__ = [
    "Announced",
    "Change",
    "Deferred",
    "Joining",
    "Known",
    "KnownEvent",
    "KnownSeries",
    "Shortcodes",
    "Skipped",
    "decide",
    "read_shortcodes",
    "series_name",
]

# The id of an event is ASCII: IGNORECASE would take other letters, such as the Kelvin sign, for a to z.
_CODE = re.compile(
    r"[\[(]\s*(?:new\s+(?P<new>adventure|campaign)"
    r"|campaign\s+(?P<of>(?a:[a-z0-9_-]+))"
    r"|channel\s+(?P<channel>[0-9]+))\s*[\])]",
    re.IGNORECASE,
)
_BEFORE_BRACKETS = re.compile(r"[^\[(]*")
_LARGEST_ID = 2**64 - 1
NAME_BYTES = range(2, 81)


@dataclass(frozen=True)
class Shortcodes:
    """The shortcodes of one description."""

    new: SeriesType | None = None
    of_event: EventId | None = None
    channel: ChannelId | None = None

    @property
    def found(self) -> bool:
        return self != Shortcodes()

    @property
    def fault(self) -> str | None:
        """The reason why these contradict each other, or None."""
        if self.of_event is not None and (self.new is not None or self.channel is not None):
            return "names a series and a new series or channel at once"
        if self.channel is not None and self.new is None:
            return "names a channel, but no new series for it"
        if self.channel is not None and self.channel > _LARGEST_ID:
            return "names a channel whose number is not a Discord id"
        return None


def read_shortcodes(description: str) -> Shortcodes:
    """Return the shortcodes in a description. The first of each sort counts, and a campaign wins."""
    found = list(_CODE.finditer(description))
    new = {match["new"].lower() for match in found if match["new"]}
    of_event = next((match["of"] for match in found if match["of"]), None)
    channel = next((_number(match["channel"]) for match in found if match["channel"]), None)
    kind: SeriesType | None = "campaign" if "campaign" in new else "adventure" if new else None
    return Shortcodes(kind, of_event, channel)


def _number(digits: str) -> int:
    """Return a number that is too large for an id if there are too many digits for Python to read."""
    return int(digits) if len(digits) <= len(str(_LARGEST_ID)) else _LARGEST_ID + 1


def series_name(title: str) -> str | None:
    """Return the name in an event's title, which ends at the first bracket; None if it is not valid."""
    found = _BEFORE_BRACKETS.match(title)
    name = found[0].strip() if found else ""
    return name if len(name.encode()) in NAME_BYTES else None


@dataclass(frozen=True)
class Announced:
    """An event as Meetup has it now. `guests` are those who said yes, None if that was not asked."""

    event: EventId
    details: EventDetails
    description: str = ""
    hosts: frozenset[MeetupId] = frozenset()
    guests: frozenset[MeetupId] | None = None

    @property
    def shortcodes(self) -> Shortcodes:
        return read_shortcodes(self.description)


@dataclass(frozen=True)
class KnownEvent:
    """The stored state of an event; one that is not stored has no series."""

    series: SeriesId | None = None
    details: EventDetails | None = None
    hosts: frozenset[MeetupId] = frozenset()
    guests: frozenset[MeetupId] = frozenset()


@dataclass(frozen=True)
class KnownSeries:
    """The stored state of a series."""

    type: SeriesType | None = None
    channel: ChannelId | None = None
    events: frozenset[EventId] = frozenset()


@dataclass(frozen=True)
class Known:
    """The stored state of everything that a run of the sync is about."""

    events: Mapping[EventId, KnownEvent] = field(default_factory=dict)
    series_of: Mapping[EventId, SeriesId] = field(default_factory=dict)
    series: Mapping[SeriesId, KnownSeries] = field(default_factory=dict)
    channels: Mapping[ChannelId, SeriesId] = field(default_factory=dict)
    orphans: frozenset[ChannelId] = frozenset()


@dataclass(frozen=True)
class Joining:
    """How a new event joins its series."""

    type: SeriesType
    known: KnownSeries | None = None  # None: the series is made with the event
    by: EventId | None = None  # the event that the shortcode names
    channel: ChannelId | None = None


@dataclass(frozen=True)
class Change:
    """The writes for one event, which are applied in one step."""

    event: EventId
    series: SeriesId
    joining: Joining | None = None
    details: EventDetails | None = None
    new_hosts: frozenset[MeetupId] = frozenset()
    gone_hosts: frozenset[MeetupId] = frozenset()
    new_guests: frozenset[MeetupId] = frozenset()
    gone_guests: frozenset[MeetupId] = frozenset()
    warning: str | None = None

    @property
    def writes_something(self) -> bool:
        changes: Sequence[object] = (self.joining, self.details, self.new_hosts, self.gone_hosts)
        return any((*changes, self.new_guests, self.gone_guests))


@dataclass(frozen=True)
class Skipped:
    """An event that is left alone; `reason` is None if the event is not one of the bot's."""

    event: EventId
    reason: str | None = None


@dataclass(frozen=True)
class Deferred:
    """An event that belongs to the series of another which this run has yet to store."""

    event: EventId
    of_event: EventId


Decision = Change | Skipped | Deferred


def decide(announced: Announced, known: Known, coming: frozenset[EventId] = frozenset()) -> Decision:
    """Decide about one event. `coming` are the events that this run may still store."""
    found = known.events.get(announced.event, KnownEvent())
    codes = announced.shortcodes
    if found.series is not None:
        return _kept(announced, found, found.series, _mismatch(codes, found.series, known))
    if not codes.found:
        return Skipped(announced.event)
    if codes.fault is not None:
        return Skipped(announced.event, codes.fault)
    if codes.of_event is not None:
        return _joining(announced, found, codes.of_event, known, coming)
    assert codes.new is not None
    if codes.channel is not None and codes.channel in known.channels:
        return Skipped(announced.event, f"names channel {codes.channel}, which has a series already")
    if codes.channel is not None and codes.channel in known.orphans:
        return Skipped(announced.event, f"names channel {codes.channel}, which is being deleted")
    return _new(announced, found, new_id(), Joining(codes.new, channel=codes.channel))


def _mismatch(codes: Shortcodes, series: SeriesId, known: Known) -> str | None:
    """Return how shortcodes contradict the series of a stored event; a deleted event contradicts nothing."""
    if codes.fault is not None:
        return codes.fault
    if codes.of_event is not None and known.series_of.get(codes.of_event) not in (None, series):
        return f"belongs to another series than event {codes.of_event}, which it names"
    if codes.channel is not None and known.channels.get(codes.channel) not in (None, series):
        return f"belongs to another series than channel {codes.channel}, which it names"
    return None


def _kept(announced: Announced, found: KnownEvent, series: SeriesId, mismatch: str | None) -> Decision:
    """Return the change of a stored event: of its guests only, if its shortcodes contradict its series."""
    guests = found.guests if announced.guests is None else announced.guests
    hosts = found.hosts if mismatch else announced.hosts
    stale = mismatch is None and announced.details != found.details
    return Change(
        announced.event,
        series,
        details=announced.details if stale else None,
        new_hosts=hosts - found.hosts,
        gone_hosts=found.hosts - hosts,
        new_guests=guests - found.guests,
        gone_guests=found.guests - guests,
        warning=mismatch,
    )


def _joining(
    announced: Announced, found: KnownEvent, by: EventId, known: Known, coming: frozenset[EventId]
) -> Decision:
    series = known.series_of.get(by)
    if series is None and by in coming and by != announced.event:
        return Deferred(announced.event, by)
    if series is None:
        return Skipped(announced.event, f"names event {by}, which is not tracked")
    stored = known.series.get(series, KnownSeries())
    kind: SeriesType = "campaign" if stored.events - {announced.event} else stored.type or "adventure"
    return _new(announced, found, series, Joining(kind, stored, by))


def _new(announced: Announced, found: KnownEvent, series: SeriesId, joining: Joining) -> Change:
    """Return the change of a new event, which removes the remains of an earlier event with that id."""
    guests = announced.guests or frozenset()
    return Change(
        announced.event,
        series,
        joining,
        announced.details,
        new_hosts=announced.hosts,
        gone_hosts=found.hosts - announced.hosts,
        new_guests=guests,
        gone_guests=found.guests - guests,
    )
