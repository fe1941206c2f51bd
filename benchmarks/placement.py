"""Which cores client and server run on. It decides a latency: another core has to be woken first.

Left to the scheduler, two runs of one benchmark may be placed differently and contradict each other.
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
    """Pin this process and the server; afterwards both may run anywhere again."""
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
