"""arq 0.28: two workers, a cron job, and jobs that succeed, fail, are retried, deferred and aborted."""

from __future__ import annotations

from foreign.audits import Fault
from foreign.conformance import Conformance
from foreign.programs import APART

PROJECT = APART["arq"]

FAULTS = [
    Fault(
        "an id without a job in a queue",
        "KW401",
        "dangling",
        lambda client: client.zadd("arq:queue", {"ghost": 1}),
        within=b"arq:queue",
    ),
    Fault(
        "a malformed pickle",
        "KW202",
        "undecodable",
        lambda client: client.set("arq:result:ghost", b"\x80\x04\x95cut", ex=600),
    ),
    Fault("a queue that is a list", "KW201", "wrong-type", lambda client: client.rpush("arq:queue:x", "x")),
    Fault("a key of no template", "KW101", "unknown", lambda client: client.set("arq:jobs", "x")),
]


class TestArq(Conformance):
    """arq with the declaration of the catalogue."""
