"""For the tests of programs that use Keywright: real servers, a cluster, faults on cue, a clock.

Names are loaded when first used, because the pytest plugin below this package is imported in every test run.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from keywright.testing.clock import ManualClock
    from keywright.testing.cluster import RedisCluster
    from keywright.testing.conditions import wait_until
    from keywright.testing.leftovers import assert_none_left, started_pids
    from keywright.testing.proxy import Proxy
    from keywright.testing.sentinel import RedisSentinel
    from keywright.testing.servers import RedisServer
    from keywright.testing.wire import Wire

__all__ = [
    "ManualClock",
    "Proxy",
    "RedisCluster",
    "RedisSentinel",
    "RedisServer",
    "Wire",
    "assert_none_left",
    "started_pids",
    "wait_until",
]

_HOMES = {
    "ManualClock": "clock",
    "Proxy": "proxy",
    "RedisCluster": "cluster",
    "RedisSentinel": "sentinel",
    "RedisServer": "servers",
    "Wire": "wire",
    "assert_none_left": "leftovers",
    "started_pids": "leftovers",
    "wait_until": "conditions",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
