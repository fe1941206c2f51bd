"""taskiq 0.13 with taskiq-redis 1.2: lists, results, schedules by time, cron expression and interval."""

from __future__ import annotations

from foreign.audits import Fault
from foreign.conformance import Conformance
from foreign.programs import APART

PROJECT = APART["taskiq"]
GHOST = "0" * 32

FAULTS = [
    Fault(
        "an id without a schedule",
        "KW401",
        "dangling",
        lambda client: client.rpush("schedule:cron", GHOST),
        within=b"schedule:cron",
    ),
    Fault(
        "a malformed message",
        "KW202",
        "undecodable",
        lambda client: client.rpush("taskiq", "{}"),
        within=b"taskiq",
    ),
    Fault("a malformed result", "KW202", "undecodable", lambda client: client.set(GHOST, "{}", ex=600)),
    Fault("a result that is a list", "KW201", "wrong-type", lambda client: client.rpush(GHOST, "x")),
    Fault("a key of no template", "KW101", "unknown", lambda client: client.set("schedule:x", "x")),
]


class TestTaskiq(Conformance):
    """taskiq with lists."""
