"""dramatiq 2.2: a worker process, results, groups, rate limits, delays, retries and dead letters."""

from __future__ import annotations

import pytest

from foreign.audits import Fault
from foreign.conformance import Conformance
from foreign.projects import python_project

PROJECT = python_project("dramatiq", "dramatiq")
GHOST = "00000000-0000-4000-8000-000000000000"

FAULTS = [
    pytest.param(
        Fault(
            "an id without a message in a queue",
            "KW401",
            "dangling",
            lambda client: client.lpush("dramatiq:default", GHOST),
            within=b"dramatiq:default",
        ),
    ),
    Fault(
        "an id without a message among the dead letters",
        "KW401",
        "dangling",
        lambda client: client.zadd("dramatiq:low-priority.XQ", {GHOST: 1_700_000_000_000}),
        within=b"dramatiq:low-priority.XQ",
    ),
    Fault(
        "an id without a message that a worker has taken",
        "KW401",
        "dangling",
        lambda client: client.sadd(f"dramatiq:__acks__.{GHOST}.default", GHOST),
    ),
    Fault(
        "a malformed message",
        "KW202",
        "undecodable",
        lambda client: client.hset("dramatiq:default.msgs", GHOST, '{"queue_name": 1}'),
        within=b"dramatiq:default.msgs",
    ),
    Fault(
        "a result that is a string",
        "KW201",
        "wrong-type",
        lambda client: client.set("d41d8cd98f00b204e9800998ecf8427e", "1", ex=600),
    ),
    Fault("a key of no template", "KW101", "unknown", lambda client: client.set("another:key", "x")),
]


class TestDramatiq(Conformance):
    """dramatiq with its declaration in the catalogue."""
