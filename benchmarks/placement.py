"""Pin client and server to cores. The placement decides the latency: another core must be woken first.

The scheduler may place two runs of one benchmark differently, with contradictory results.
"""

from __future__ import annotations

import enum
import os
from collections.abc import Iterator
from contextlib import contextmanager

from keywright.testing import RedisServer


class Placement(enum.Enum):
    FREE = "placed freely"
    SAME = "same core"
    APART = "two cores"


@contextmanager
def placed(placement: Placement, server: RedisServer) -> Iterator[None]:
    """Pin this process and the server; unpin both afterwards."""
    cores = sorted(os.sched_getaffinity(0))
    assert server.pid is not None
    if placement is not Placement.FREE:
        os.sched_setaffinity(0, {cores[0]})
        os.sched_setaffinity(server.pid, {cores[0] if placement is Placement.SAME else cores[-1]})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)
        os.sched_setaffinity(server.pid, cores)
