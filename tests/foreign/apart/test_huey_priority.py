"""huey 3.5 with priorities: the queue is a sorted set of stamped tasks."""

from __future__ import annotations

from foreign.audits import Fault
from foreign.conformance import Conformance
from foreign.programs import APART

PROJECT = APART["huey-priority"]

FAULTS = [
    Fault(
        "a task without its time",
        "KW202",
        "undecodable",
        lambda client: client.zadd("huey.redis.plain", {b"\x80\x04N.": 0}),
        within=b"huey.redis.plain",
    ),
    Fault(
        "a queue that is a list", "KW201", "wrong-type", lambda client: client.rpush("huey.redis.ghost", "x")
    ),
]


class TestHueyPriority(Conformance):
    """huey with priorities."""
