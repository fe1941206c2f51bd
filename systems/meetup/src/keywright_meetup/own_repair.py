"""Mending what an audit found, and sweeping what nobody needs any more.

The findings about one person, event, series, channel or role are mended in one commit, which checks that all
they were decided from is still so; one that fails is decided anew by the next audit. Nothing is written
without `apply`: the audit is the plan.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeAlias

from keywright import AsyncDatabase, Call, Database, gather_list, recover
from keywright.errors import KeywrightError
from keywright.keyspace.kinds.set import REMOVE
from keywright.operations import (
    Check,
    Command,
    Outcome,
    Steps,
    Writes,
    commit,
    procedure,
    stored_equals,
    stored_set_equals,
)
from keywright_meetup import schema
from keywright_meetup.own_audit import Audit, Finding, aaudit, audit
from keywright_meetup.queries import SeriesState, read_series
from keywright_meetup.schema import EventSeries, SeriesEvents, SeriesId
from keywright_meetup.series import delete_series
from keywright_meetup.soundness import State

if TYPE_CHECKING:
    pass

__all__ = ["Repair", "arepair", "repair", "vacuum"]

PASSES = 5
WINDOW = 500

Entity: TypeAlias = tuple[str, Any]

# Whose key it is, and of whom its value or members speak.
_OWNER: dict[Any, str] = {
    schema.DiscordUserOfMeetupUser: "meetup user",
    schema.UserTokens: "meetup user",
    schema.MeetupUserOfDiscordUser: "discord user",
    schema.SeriesOfEvent: "event",
    schema.MeetupEvent: "event",
    schema.EventGuests: "event",
    schema.EventHosts: "event",
    schema.SeriesEvents: "series",
    schema.ChannelOfSeries: "series",
    schema.TypeOfSeries: "series",
    schema.SeriesOfChannel: "channel",
    schema.GuestRoleOfChannel: "channel",
    schema.HostRoleOfChannel: "channel",
    schema.RemovedHosts: "channel",
    schema.RemovedUsers: "channel",
    schema.ExpirationTime: "channel",
    schema.LastReminderTime: "channel",
    schema.DeletionTime: "channel",
    schema.ChannelOfGuestRole: "role",
    schema.ChannelOfHostRole: "role",
}
_SUBJECT: dict[Any, str] = {
    schema.DiscordUserOfMeetupUser: "discord user",
    schema.MeetupUserOfDiscordUser: "meetup user",
    schema.SeriesOfEvent: "series",
    schema.ChannelOfSeries: "channel",
    schema.SeriesOfChannel: "series",
    schema.GuestRoleOfChannel: "role",
    schema.HostRoleOfChannel: "role",
    schema.ChannelOfGuestRole: "channel",
    schema.ChannelOfHostRole: "channel",
    schema.MeetupUsers: "meetup user",
    schema.DiscordUsers: "discord user",
    schema.MeetupEvents: "event",
    schema.EventSeries: "series",
    schema.SeriesEvents: "event",
    schema.DiscordChannels: "channel",
    schema.OrphanedChannels: "channel",
    schema.DiscordRoles: "role",
    schema.DiscordHostRoles: "role",
    schema.OrphanedRoles: "role",
    schema.MisnamedOrphans: "role",
}
_TOLD_BY: dict[str, tuple[Any, ...]] = {
    "meetup user": (schema.DiscordUserOfMeetupUser,),
    "discord user": (schema.MeetupUserOfDiscordUser,),
    "event": (schema.SeriesOfEvent,),
    "series": (schema.TypeOfSeries, schema.ChannelOfSeries),
    "channel": (schema.SeriesOfChannel, schema.GuestRoleOfChannel, schema.HostRoleOfChannel),
    "role": (schema.ChannelOfGuestRole, schema.ChannelOfHostRole),
}


@dataclass(frozen=True)
class Repair:
    """What was found at first, and what an audit finds now: the same where nothing was applied."""

    found: list[Finding]
    left: list[Finding]
    mended: int


def repair(db: Database, *, apply: bool = False) -> Repair:
    """Audit, and with `apply` mend until an audit finds nothing, or nothing more can be mended.

    Commits that a dead process left half done on a cluster are finished or undone first.
    """
    if apply:
        db.run(recover())
    first = now = audit(db)
    mended = 0
    for _ in range(PASSES if apply else 0):
        if now.holds:
            break
        mended += db.run(_mend(now))
        now = audit(db)
    return Repair(first.findings, now.findings, mended)


async def arepair(db: AsyncDatabase, *, apply: bool = False) -> Repair:
    """`repair` for asyncio."""
    if apply:
        await db.run(recover())
    first = now = await aaudit(db)
    mended = 0
    for _ in range(PASSES if apply else 0):
        if now.holds:
            break
        mended += await db.run(_mend(now))
        now = await aaudit(db)
    return Repair(first.findings, now.findings, mended)


@procedure
def vacuum(now: datetime) -> Steps[set[SeriesId]]:
    """Delete every series that has neither a channel nor an event to come; which they were."""
    series = sorted((yield EventSeries().members()))
    states: list[SeriesState] = yield read_series(series, now)
    stale = [each for each in states if each.channel is None and each.next_event(now) is None]
    deleted = yield gather_list(delete_series(each.series, only_with=each.events) for each in stale)
    return {each.series for each, gone in zip(stale, deleted, strict=True) if gone}


@procedure
def _mend(found: Audit) -> Steps[int]:
    """Mend every group of findings that is still as it was found; how many findings that were."""
    groups: dict[Entity, list[Finding]] = defaultdict(list)
    for finding in found.findings:
        groups[_about(finding)].append(finding)
    mended = 0
    failure: KeywrightError | None = None
    todo = list(groups.items())
    for start in range(0, len(todo), WINDOW):
        some = todo[start : start + WINDOW]
        outcomes = yield gather_list(_mended(*each, found.state).attempt() for each in some)
        for (_, group), outcome in zip(some, outcomes, strict=True):
            if isinstance(outcome, KeywrightError):
                failure = outcome
            elif outcome:
                mended += len(group)
    if failure is not None and not mended:
        raise failure
    return mended


def _about(finding: Finding) -> Entity:
    """Of whom a finding is: the member of an index or of a series, else the owner of the key."""
    kind = type(finding.key)
    if finding.member is not None and kind in _SUBJECT:
        return _SUBJECT[kind], finding.member
    if kind in _OWNER:
        return _OWNER[kind], finding.key._values[0]
    return "index", finding.key._name  # a spoilt index, or a member that is no id


def _mended(entity: Entity, group: Sequence[Finding], state: State) -> Call[Outcome]:
    entities = {entity, *(each for finding in group for each in _touched(finding))}
    checks = [check for each in sorted(entities, key=repr) for check in _unchanged(each, group, state)]
    checks += [check for finding in group if finding.spoilt for check in finding.spoilt.still]
    # What is spoilt goes first: its key may be written anew.
    writes: Writes = [_write(finding) for finding in sorted(group, key=lambda each: each.spoilt is None)]
    return commit("mend", checks, writes, subject=f"{entity[0]} {entity[1]}")


def _touched(finding: Finding) -> list[Entity]:
    kind = type(finding.key)
    about = [(_OWNER[kind], finding.key._values[0])] if kind in _OWNER else []
    if finding.member is not None:
        values = [finding.member]
    else:
        values = [] if finding.spoilt else [v for v in (finding.found, finding.wanted) if v is not None]
    return about + [(_SUBJECT[kind], value) for value in values if kind in _SUBJECT]


def _unchanged(entity: Entity, group: Sequence[Finding], state: State) -> list[Check]:
    """The checks that what tells about an entity is as it was read; a spoilt key has a check of its own."""
    name, identity = entity
    spoilt = {finding.key for finding in group if finding.spoilt is not None}
    checks = []
    for kind in _TOLD_BY.get(name, ()):
        key, value = kind(identity), state.values[kind].get(identity)
        if key not in spoilt:
            checks.append(stored_equals(key, None if value is None else key._encode(value)))
    if name == "series" and SeriesEvents(identity) not in spoilt:
        events = SeriesEvents(identity)
        checks.append(stored_set_equals(events, map(events._encode, state.members(SeriesEvents, identity))))
    return checks


def _write(finding: Finding) -> Call[Any]:
    key: Any = finding.key
    if finding.spoilt is not None and finding.spoilt.member is not None:
        return Command(REMOVE, key, (finding.spoilt.member,), int)
    if finding.member is not None:
        added: Call[Any] = key.remove(finding.member) if finding.found else key.add(finding.member)
        return added
    changed: Call[Any] = key.delete() if finding.wanted is None else key.set(finding.wanted)
    return changed
