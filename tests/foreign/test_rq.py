"""RQ 2.12: two workers, a scheduler, and jobs that succeed, fail, are retried, wait and expire."""

from __future__ import annotations

from typing import Any

import pytest

from foreign.audits import Fault
from foreign.conformance import Conformance
from foreign.projects import python_project

PROJECT = python_project(
    "rq",
    "rq",
    momentary=["queue:<queue>:intermediate", "clean_registries:<queue>", "suspended"],
)
GHOST = "00000000-0000-4000-8000-000000000000"


def _job_without_status(client: Any) -> None:
    client.copy("rq:job:pending-0", f"rq:job:{GHOST}")
    client.hdel(f"rq:job:{GHOST}", "status")


FAULTS = [
    pytest.param(
        Fault(
            "an id without a job in a queue",
            "KW401",
            "dangling",
            lambda client: client.linsert("rq:queue:default", "BEFORE", "pending-3", GHOST),
            within=b"rq:queue:default",
        ),
    ),
    Fault(
        "a malformed name in the set of groups",
        "KW202",
        "undecodable",
        lambda client: client.sadd("rq:groups", "a:b"),
        within=b"rq:groups",
    ),
    Fault(
        "a malformed member of a job",
        "KW202",
        "undecodable",
        lambda client: client.hset("rq:job:pending-1", "ttl", "soon"),
        within=b"rq:job:pending-1",
    ),
    Fault("a job without a status", "KW203", "missing-member", _job_without_status),
    Fault(
        "a worker that is a string",
        "KW201",
        "wrong-type",
        lambda client: client.set("rq:worker:ghost", "x", ex=600),
    ),
    Fault("a key of no template", "KW101", "unknown", lambda client: client.set("rq:cash", "x")),
]


class TestRq(Conformance):
    """RQ with its declaration in the catalogue."""
