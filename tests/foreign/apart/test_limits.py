"""limits 5.8: fixed and sliding windows of every length, for callers of one word, of several and of none."""

from __future__ import annotations

from foreign.audits import Fault
from foreign.conformance import Conformance
from foreign.programs import APART

PROJECT = APART["limits"]

FAULTS = [
    Fault(
        "a moving window in the place of a fixed one",
        "KW201",
        "wrong-type",
        lambda client: client.rpush("LIMITS:LIMITER/ghost/5/1/day", "1794854198.9"),
    ),
    Fault("a key of no template", "KW101", "unknown", lambda client: client.set("LIMITS:LIMITER/ghost", 1)),
]


class TestLimits(Conformance):
    """limits with fixed and sliding windows."""
