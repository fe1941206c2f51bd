"""An audit: what is stored beside what should be, as findings by invariant. Only reads.

The invariants:

1. links of people are mutual and unique, both are in their index, and only they have tokens;
2. an event has whole details, a series that knows it, and a place in the index, or no key at all;
3. a series and its channel are mutual and unique, and the channel is in the index;
4. a channel and each of its roles are mutual and unique, roles are in their index, no host role is alone;
5. a series has a type, and is a campaign if it has several events;
6. orphans are not in use;
7. removed people and times are those of known channels.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from keywright import AsyncDatabase, Database, Key, Set, Value
from keywright_meetup import schema
from keywright_meetup.own_survey import Spoilt, Survey, asurvey, survey
from keywright_meetup.schema import ChannelId
from keywright_meetup.soundness import State, sound

__all__ = ["Audit", "Finding", "aaudit", "audit", "examine"]

INVARIANTS: dict[int, tuple[type[Key], ...]] = {
    1: (
        schema.DiscordUserOfMeetupUser,
        schema.MeetupUserOfDiscordUser,
        schema.MeetupUsers,
        schema.DiscordUsers,
        schema.UserTokens,
    ),
    2: (
        schema.MeetupEvents,
        schema.MeetupEvent,
        schema.EventGuests,
        schema.EventHosts,
        schema.SeriesOfEvent,
        schema.SeriesEvents,
        schema.EventSeries,
    ),
    3: (schema.ChannelOfSeries, schema.SeriesOfChannel, schema.DiscordChannels),
    4: (
        schema.GuestRoleOfChannel,
        schema.HostRoleOfChannel,
        schema.ChannelOfGuestRole,
        schema.ChannelOfHostRole,
        schema.DiscordRoles,
        schema.DiscordHostRoles,
    ),
    5: (schema.TypeOfSeries,),
    6: (schema.OrphanedChannels, schema.OrphanedRoles, schema.MisnamedOrphans),
    7: (
        schema.RemovedHosts,
        schema.RemovedUsers,
        schema.ExpirationTime,
        schema.LastReminderTime,
        schema.DeletionTime,
    ),
}
_INVARIANT = {kind: number for number, kinds in INVARIANTS.items() for kind in kinds}


@dataclass(frozen=True)
class Finding:
    """One key, or one member of a set, that is not as it should be; None stands for its absence.

    For a member of a set `found` and `wanted` tell whether it is there, and `member` which.
    """

    key: Key
    found: Any
    wanted: Any
    member: Any = None
    spoilt: Spoilt | None = None

    @property
    def invariant(self) -> int:
        return _INVARIANT[type(self.key)]

    def __str__(self) -> str:
        name = self.key._name.decode()
        if self.spoilt is not None:
            return f"{self.invariant} {name}: {self.spoilt.reason}; {self._mend()}"
        if self.member is not None:
            return f"{self.invariant} {name}: {'remove' if self.found else 'add'} {self.member}"
        return f"{self.invariant} {name}: {self._mend()}"

    def _mend(self) -> str:
        if self.spoilt is not None and self.spoilt.member is not None:
            return f"remove the member {self.spoilt.member!r}"
        return "delete it" if self.wanted is None else f"set it to {self.wanted}"


@dataclass(frozen=True)
class Audit:
    """What an audit found. `unplaced` are known channels without a series: no breach, but odd."""

    keys: int
    findings: list[Finding]
    unplaced: set[ChannelId]
    state: State

    @property
    def holds(self) -> bool:
        return not self.findings


def audit(db: Database) -> Audit:
    """Compare all that is stored with what should be."""
    return examine(survey(db))


async def aaudit(db: AsyncDatabase) -> Audit:
    """`audit` for asyncio."""
    return examine(await asurvey(db))


def examine(found: Survey) -> Audit:
    """The findings of a survey."""
    wanted = sound(found.state)
    spoilt = [Finding(each.key, found=True, wanted=None, spoilt=each) for each in found.spoilt]
    findings = [*spoilt, *_differences(found.state, wanted)]
    unplaced = wanted.members(schema.DiscordChannels) - set(wanted.values[schema.SeriesOfChannel])
    return Audit(found.keys, findings, unplaced, found.state)


def _differences(found: State, wanted: State) -> Iterator[Finding]:
    for kind in sorted(found.kinds() | wanted.kinds(), key=lambda kind: _INVARIANT[kind]):
        if issubclass(kind, Value):
            yield from _value_differences(kind, found.values[kind], wanted.values[kind])
        elif issubclass(kind, Set):
            yield from _set_differences(kind, found.sets[kind], wanted.sets[kind])
        else:
            record: Any = kind
            for identity in found.records[record] - wanted.records[record]:
                yield Finding(record(identity), found=True, wanted=None)


def _value_differences(kind: Any, found: dict[Any, Any], wanted: dict[Any, Any]) -> Iterator[Finding]:
    for identity in found.keys() | wanted.keys():
        if found.get(identity) != wanted.get(identity):
            yield Finding(kind(identity), found.get(identity), wanted.get(identity))


def _set_differences(kind: Any, found: dict[Any, set[Any]], wanted: dict[Any, set[Any]]) -> Iterator[Finding]:
    for identity in found.keys() | wanted.keys():
        key = kind() if identity is None else kind(identity)
        there, needed = found.get(identity, set()), wanted.get(identity, set())
        yield from (Finding(key, found=True, wanted=False, member=each) for each in there - needed)
        yield from (Finding(key, found=False, wanted=True, member=each) for each in needed - there)
