"""limits 5.8 with moving windows."""

from __future__ import annotations

from foreign.audits import Fault
from foreign.conformance import Conformance
from foreign.programs import APART

PROJECT = APART["limits-moving"]

FAULTS = [
    Fault(
        "a malformed time",
        "KW202",
        "undecodable",
        lambda client: client.lpush("LIMITS:LIMITER/900000/1/year", "soon"),
        within=b"LIMITS:LIMITER/900000/1/year",
    ),
    Fault("a key of no template", "KW101", "unknown", lambda client: client.set("LIMITS:LIMITER/ghost", 1)),
]


class TestLimitsMoving(Conformance):
    """limits with moving windows."""
