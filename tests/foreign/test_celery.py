"""Celery 5.7: a worker, Redis as broker and result backend, chords, groups, retries and priorities."""

from __future__ import annotations

from foreign.audits import Fault
from foreign.conformance import Conformance
from foreign.projects import python_project

PROJECT = python_project(
    "celery",
    "celery",
    momentary=[
        "<caller>.reply.celery.pidbox",
        "celery-taskset-meta-<group>.t",
        "unacked_mutex",
    ],
)
GHOST = "00000000-0000-4000-8000-000000000000"

FAULTS = [
    Fault(
        "an indexed delivery tag without a message",
        "KW401",
        "dangling",
        lambda client: client.zadd("unacked_index", {GHOST: 1_700_000_000}),
        within=b"unacked_index",
    ),
    Fault(
        "a malformed message in a queue",
        "KW202",
        "undecodable",
        lambda client: client.rpush("celery", '{"body": 1}'),
        within=b"celery",
    ),
    Fault(
        "a malformed message of a delivery tag",
        "KW202",
        "undecodable",
        lambda client: client.hset("unacked", GHOST, "not JSON"),
        within=b"unacked",
    ),
    Fault(
        "a malformed result",
        "KW202",
        "undecodable",
        lambda client: client.set(f"celery-task-meta-{GHOST}", '{"status": "DONE"}', ex=600),
    ),
    Fault(
        "a result that is a hash",
        "KW201",
        "wrong-type",
        lambda client: client.hset(f"celery-task-meta-{GHOST}", "status", "SUCCESS"),
    ),
    Fault("a key of no template", "KW101", "unknown", lambda client: client.lpush("another:key", "x")),
]


class TestCelery(Conformance):
    """Celery with its declaration in the catalogue."""
