"""saq 0.26: workers of two queues, and jobs that succeed, fail, are retried, scheduled and aborted."""

from __future__ import annotations

from foreign.audits import Fault
from foreign.conformance import Conformance
from foreign.programs import APART

PROJECT = APART["saq"]

FAULTS = [
    Fault(
        "a name without a job in a queue",
        "KW401",
        "dangling",
        lambda client: client.rpush("saq:low priority:queued", "saq:job:low priority:ghost"),
        within=b"saq:low priority:queued",
    ),
    Fault(
        "a malformed name in a queue",
        "KW202",
        "undecodable",
        lambda client: client.rpush("saq:default:queued", "ghost"),
        within=b"saq:default:queued",
    ),
    Fault(
        "a malformed job",
        "KW202",
        "undecodable",
        lambda client: client.set("saq:job:default:ghost", '{"function": "add"}'),
    ),
    Fault(
        "a set of incomplete jobs that is a list",
        "KW201",
        "wrong-type",
        lambda client: client.rpush("saq:ghost:incomplete", "x"),
    ),
    Fault("a key of no template", "KW101", "unknown", lambda client: client.set("saq:default:jobs", "x")),
]


class TestSaq(Conformance):
    """saq with the declaration of the catalogue."""
