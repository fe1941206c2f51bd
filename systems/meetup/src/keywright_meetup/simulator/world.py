"""People, events and RSVPs of the simulated Meetup."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from datetime import datetime

__all__ = ["MeetupWorld", "SimulatedEvent"]


@dataclass
class SimulatedEvent:
    id: str
    urlname: str
    title: str
    time: datetime
    description: str = ""
    hosts: list[int] = field(default_factory=list)
    rsvps: dict[int, str] = field(default_factory=dict)
    """YES, NO or WAITLIST, by member."""
    status: str = "ACTIVE"

    @property
    def link(self) -> str:
        return f"https://www.meetup.com/{self.urlname}/events/{self.id}/"


class MeetupWorld:
    """The state of the simulated Meetup. A test changes it as organizers and members would."""

    def __init__(self, *groups: str) -> None:
        self._ids = itertools.count(290_000_001)
        self.groups = set(groups)
        self.members: dict[int, str] = {}
        self.events: dict[str, SimulatedEvent] = {}

    def join(self, name: str) -> int:
        """Make an account for somebody. Return its id."""
        member = next(self._ids)
        self.members[member] = name
        return member

    def announce(
        self, urlname: str, title: str, time: datetime, description: str = "", *, hosts: tuple[int, ...] = ()
    ) -> SimulatedEvent:
        """Announce an event, as an organizer does."""
        self.groups.add(urlname)
        event = SimulatedEvent(str(next(self._ids)), urlname, title, time, description, list(hosts))
        self.events[event.id] = event
        return event

    def events_of(self, urlname: str, after: datetime | None) -> list[SimulatedEvent]:
        """Return the group's events after a time, by time: cancelled ones too, but no drafts."""
        found = [each for each in self.events.values() if each.urlname == urlname and each.status != "DRAFT"]
        return sorted((e for e in found if after is None or e.time > after), key=lambda each: each.time)
