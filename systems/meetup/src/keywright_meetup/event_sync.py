"""The sync of Meetup's events: bulk reads for all events of a run, one commit for each that differs.

A run that finds nothing different sends reads only. If another writer changes something between the reads and
a commit, that commit fails, and the event is read and decided again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from keywright import gather, gather_list
from keywright.errors import ConflictError, KeywrightError, OutcomeUnknownError
from keywright.operations import ATTEMPTS, Steps, procedure
from keywright_meetup.events import (
    Announced,
    Change,
    Decision,
    Deferred,
    Known,
    KnownEvent,
    KnownSeries,
    Skipped,
    decide,
)
from keywright_meetup.queries import details_of, present
from keywright_meetup.schema import (
    ChannelId,
    EventGuests,
    EventHosts,
    EventId,
    OrphanedChannels,
    SeriesEvents,
    SeriesId,
    SeriesOfChannel,
    SeriesOfEvent,
    TypeOfSeries,
)
from keywright_meetup.series import apply_change, remove_event

__all__ = ["Synced", "read_known", "sync"]

WINDOW = 1000  # events read, and changes written, at a time


@dataclass
class Synced:
    """The result of a run."""

    added: set[EventId] = field(default_factory=set)
    changed: set[EventId] = field(default_factory=set)
    removed: set[EventId] = field(default_factory=set)
    unchanged: int = 0
    ignored: int = 0
    warnings: dict[EventId, str] = field(default_factory=dict)
    failures: dict[EventId, KeywrightError] = field(default_factory=dict)


@procedure
def sync(announced: Iterable[Announced], gone: Collection[EventId] = ()) -> Steps[Synced]:
    """Bring the stored events in line with Meetup: store these as they are now, forget those in `gone`.

    An event that cannot be written does not stop the others: it is among the failures. An event that joins
    the series of another event of this run waits for that one.
    """
    latest = {each.event: each for each in announced}
    done = Synced()
    yield from _remove([event for event in gone if event not in latest], done)
    pending: Collection[EventId] = list(latest)
    coming = frozenset(pending)
    stalled = 0
    while pending:
        lost, waiting = yield from _pass([latest[event] for event in pending], coming, done)
        left = [*lost, *waiting]
        stalled = stalled + 1 if len(left) == len(pending) else 0
        if stalled > ATTEMPTS:
            raise ConflictError("sync", ATTEMPTS)
        # Where all wait and nothing came that they wait for, nothing will.
        coming = frozenset() if stalled and not lost else frozenset(left)
        pending = left
    return done


def _pass(
    pending: Sequence[Announced], coming: frozenset[EventId], done: Synced
) -> Steps[tuple[list[EventId], list[EventId]]]:
    """Read, decide and write once. Return the events that lost to another writer, and those that wait."""
    lost: list[EventId] = []
    waiting: list[EventId] = []
    for window in _windows(pending):
        known = yield read_known(window)
        decisions = [decide(each, known, coming) for each in window]
        waiting += [each.event for each in decisions if isinstance(each, Deferred)]
        changes = list(_changes(decisions, done))
        for together in _apart(changes):
            outcomes = yield gather_list(apply_change(change).attempt() for change in together)
            for change, outcome in zip(together, outcomes, strict=True):
                if isinstance(outcome, KeywrightError) and not isinstance(outcome, OutcomeUnknownError):
                    done.failures[change.event] = outcome
                elif outcome and not isinstance(outcome, KeywrightError):
                    (done.added if change.joining else done.changed).add(change.event)
                else:
                    lost.append(change.event)
    return lost, waiting


def _changes(decisions: Iterable[Decision], done: Synced) -> Iterator[Change]:
    """Return the changes to write; events without one are only counted."""
    for decision in decisions:
        warning = decision.warning if isinstance(decision, Change) else None
        if isinstance(decision, Skipped):
            warning = decision.reason
            done.ignored += 1
        if warning is not None:
            done.warnings[decision.event] = warning
        if isinstance(decision, Change) and decision.writes_something:
            yield decision
        elif isinstance(decision, Change):
            done.unchanged += 1


def _apart(changes: Sequence[Change]) -> Iterator[list[Change]]:
    """Group changes that may be written at once: those that join one series, or one channel, may not."""
    kept = [change for change in changes if change.joining is None]
    yield from _windows(kept)
    lanes: dict[object, list[Change]] = {}
    for change in changes:
        if change.joining is not None:
            lanes.setdefault(change.joining.channel or change.series, []).append(change)
    for row in zip_longest(*lanes.values()):
        yield from _windows([change for change in row if change is not None])


def _remove(events: Sequence[EventId], done: Synced) -> Steps[None]:
    for window in _windows(events):
        series = yield SeriesOfEvent.get_many(window)
        tracked = [event for event, found in zip(window, series, strict=True) if found is not None]
        outcomes = yield gather_list(remove_event(event).attempt() for event in tracked)
        for event, outcome in zip(tracked, outcomes, strict=True):
            if isinstance(outcome, KeywrightError):
                done.failures[event] = outcome
            elif outcome:
                done.removed.add(event)


@procedure
def read_known(announced: Sequence[Announced]) -> Steps[Known]:
    """Read the stored state of these events and of all that their shortcodes name, in two round trips."""
    codes = {each.event: each.shortcodes for each in announced}
    named = {code.of_event for code in codes.values() if code.of_event is not None}
    asked = [*codes, *(named - codes.keys())]
    channels = sorted({c.channel for c in codes.values() if c.channel is not None and c.fault is None})
    counted = [each.event for each in announced if each.guests is not None]
    series, of_channels, details, hosts, guests = yield gather(
        SeriesOfEvent.get_many(asked),
        gather(SeriesOfChannel.get_many(channels), OrphanedChannels().has_many(channels)),
        details_of(list(codes)),
        gather_list(EventHosts(event).members() for event in codes),
        gather_list(EventGuests(event).members() for event in counted),
    )
    series_of = present(asked, series)
    guests_of = dict(zip(counted, guests, strict=True))
    events = {
        event: KnownEvent(
            series_of.get(event), details.get(event), frozenset(host), frozenset(guests_of.get(event, ()))
        )
        for event, host in zip(codes, hosts, strict=True)
    }
    new = [code.of_event for event, code in codes.items() if event not in series_of]
    joined = {series_of[event] for event in new if event in series_of}
    known_series = yield from _known_series(sorted(joined))
    by_channel: dict[ChannelId, SeriesId] = present(channels, of_channels[0])
    orphans = frozenset(channel for channel, orphaned in of_channels[1].items() if orphaned)
    return Known(events, series_of, known_series, by_channel, orphans)


def _known_series(series: list[SeriesId]) -> Steps[dict[SeriesId, KnownSeries]]:
    if not series:
        return {}
    types, events = yield gather(
        TypeOfSeries.get_many(series),
        gather_list(SeriesEvents(each).members() for each in series),
    )
    return {
        each: KnownSeries(kind, events=frozenset(members))
        for each, kind, members in zip(series, types, events, strict=True)
    }


def _windows(items: Sequence[Any]) -> Iterator[Any]:
    for start in range(0, len(items), WINDOW):
        yield items[start : start + WINDOW]
