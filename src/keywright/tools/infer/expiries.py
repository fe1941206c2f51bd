"""The expiry of a template, from the times to live that were seen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from keywright.tools.infer.facts import Facts

__all__ = ["SeenExpiry", "expiry_of"]

_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_USUAL = (
    *(1, 2, 3, 5, 10, 15, 20, 30, 45),
    *(count * _MINUTE for count in (1, 2, 3, 5, 10, 15, 20, 30, 45)),
    *(count * _HOUR for count in (1, 2, 3, 4, 6, 8, 12, 18)),
    *(count * _DAY for count in (1, 2, 3, 5, 7, 10, 14, 21, 28, 30, 31, 60, 90, 120, 180, 365, 366, 730)),
)
STRAY = 0.02
"""The share of keys, at most, without an expiry among keys that expire, if it is a single key."""
MANY = 10
LONGEST = 100 * 365 * _DAY
"""A longer time is a mistake or a way to say never; a timedelta could not hold the longest of Redis."""


class SeenExpiry(NamedTuple):
    """The seconds to declare, or None, and the evidence in words."""

    seconds: int | None
    evidence: str
    doubt: str = ""
    jitter: float = 0.0
    optional: bool = False
    """Whether some keys expire and others do not."""
    since: str = ""
    """From when on the time runs, if not from the last write."""


def expiry_of(groups: Sequence[Sequence[Facts]]) -> SeenExpiry:
    """Return the expiry of keys of one template, in groups by its optional segment.

    A single key of many without a time to live is about to get one, unless it is a group.
    """
    facts = [each for group in groups for each in group]
    times = [each.ttl_ms for each in facts if each.ttl_ms is not None]
    if not facts or not times:
        return SeenExpiry(None, "none expires" if facts else "")
    longest = max(times) / 1000
    share = len(times) / len(facts)
    kept = any(all(each.ttl_ms is None for each in group) for group in groups if group)
    if kept or len(facts) - len(times) > 1 or 1 - share > STRAY:
        return SeenExpiry(None, f"{share:.0%} expire, within {longest:,.0f} s", optional=True)
    if longest > LONGEST:
        return SeenExpiry(None, "all expire, the last in more than 100 years", optional=True)
    jittered = _jittered(min(times) / 1000, longest, len(times))
    if jittered is not None:
        seconds, jitter = jittered
        evidence = f"all expire, within {min(times) / 1000:,.0f} to {longest:,.0f} s"
        return SeenExpiry(seconds, evidence, "the times spread, which may be jitter", jitter)
    seconds = _rounded(longest)
    doubt = "" if len(times) > 2 else f"the expiry is from {len(times)} key(s)"
    return SeenExpiry(seconds, f"all expire, within {longest:,.0f} s", doubt)


def _jittered(shortest: float, longest: float, count: int) -> tuple[int, float] | None:
    """Return the usual time that others spread around, and by which share; None if they do not."""
    middle = (shortest + longest) / 2
    if count < MANY or not 1.05 < longest / max(shortest, 1) < 1.6 or _is_usual(longest):
        return None
    usual = next((usual for usual in _USUAL if abs(usual - middle) <= usual * 0.03), None)
    return None if usual is None else (usual, max(1, round((longest / usual - 1) * 20 + 0.4)) / 20)


def _is_usual(longest: float) -> bool:
    return any(longest <= usual <= longest * 1.01 + 1 for usual in _USUAL)


def _rounded(longest: float) -> int:
    """Return the usual time that is a little longer, or whole seconds."""
    for usual in _USUAL:
        if longest <= usual <= longest * 1.1 + 1:
            return usual
    return max(1, round(longest + 0.5))
