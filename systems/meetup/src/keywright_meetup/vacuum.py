"""Forgetting series that are over: they have no channel to look after, and no event that is yet to come.

A repair restores what is stored wrongly; this deletes what is stored rightly and not needed any more. The bot
runs it on schedule.
"""

from __future__ import annotations

from datetime import datetime

from keywright import gather_list
from keywright.operations import Steps, procedure
from keywright_meetup.queries import SeriesState, read_series
from keywright_meetup.schema import EventSeries, SeriesId
from keywright_meetup.series import delete_series

__all__ = ["vacuum"]


@procedure
def vacuum(now: datetime) -> Steps[set[SeriesId]]:
    """Delete every series that has neither a channel nor an event to come. Return the deleted series."""
    series = sorted((yield EventSeries().members()))
    states: list[SeriesState] = yield read_series(series, now)
    stale = [each for each in states if each.channel is None and each.next_event(now) is None]
    deleted = yield gather_list(delete_series(each.series, only_with=each.events) for each in stale)
    return {each.series for each, gone in zip(stale, deleted, strict=True) if gone}
