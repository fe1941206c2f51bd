"""huey 3.5: consumers of three queues, and tasks that succeed, fail, are retried, scheduled and revoked."""

from __future__ import annotations

from typing import Any

from foreign.audits import Fault
from foreign.conformance import Conformance
from foreign.programs import HUEY_MOMENTARY
from foreign.projects import BRIEF, python_project

GHOST = "00000000-0000-4000-8000-000000000000"
PROJECT = python_project("huey", "huey", momentary=HUEY_MOMENTARY, length=BRIEF)


def _queue_of_another_type(client: Any) -> None:
    client.hset("huey.redis.ghost", "x", "x")


FAULTS = [
    Fault(
        "a malformed result in the hash",
        "KW202",
        "undecodable",
        lambda client: client.hset("huey.results.plain", GHOST, b"\x80\x04\x95cut"),
        within=b"huey.results.plain",
    ),
    Fault(
        "a malformed result",
        "KW202",
        "undecodable",
        lambda client: client.set(f"huey.r.lasting.{GHOST}", "cut", ex=600),
    ),
    Fault("a queue of another type", "KW201", "wrong-type", _queue_of_another_type),
    Fault("a key of no template", "KW101", "unknown", lambda client: client.set("huey.ghost", "x")),
]


class TestHuey(Conformance):
    """huey without priorities."""
