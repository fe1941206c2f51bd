"""BullMQ 6.7 on Node: workers, flows, schedulers, delays, priorities, retries and deduplication."""

from __future__ import annotations

from typing import Any

import pytest

from foreign.audits import Fault
from foreign.conformance import Conformance
from foreign.projects import bullmq

PROJECT = bullmq(momentary=["<queue>:metrics:<outcome>:data", "<queue>:stalled"])
GHOST = "order-999999"


def _job_without_name(client: Any) -> None:
    client.copy("bull:video:order-0", f"bull:video:{GHOST}")
    client.hdel(f"bull:video:{GHOST}", "name")


FAULTS = [
    pytest.param(
        Fault(
            "an id without a job that waits",
            "KW401",
            "dangling",
            lambda client: client.lpush("bull:video:wait", GHOST),
            within=b"bull:video:wait",
        ),
    ),
    Fault(
        "an id without a job among the completed ones",
        "KW401",
        "dangling",
        lambda client: client.zadd("bull:video:completed", {GHOST: 1_700_000_000_000}),
        within=b"bull:video:completed",
    ),
    Fault(
        "a malformed member of a job",
        "KW202",
        "undecodable",
        lambda client: client.hset("bull:video:order-0", "stc", "often"),
        within=b"bull:video:order-0",
    ),
    Fault("a job without a name", "KW203", "missing-member", _job_without_name),
    Fault(
        "a job that is a string", "KW201", "wrong-type", lambda client: client.set(f"bull:video:{GHOST}", "x")
    ),
    Fault("a key of no template", "KW101", "unknown", lambda client: client.set("bull:video:limiter", "x")),
]


class TestBullMq(Conformance):
    """BullMQ with its declaration in the catalogue."""
