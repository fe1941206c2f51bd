"""Test support for programs that use Keywright: real servers, a cluster, fault injection, a clock.

Names are loaded when first used, because the pytest plugin below this package is imported in every test run.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from keywright.testing.clock import ManualClock
    from keywright.testing.cluster import RedisCluster
    from keywright.testing.codecs import assert_codec, stored_bytes
    from keywright.testing.conditions import wait_until
    from keywright.testing.leftovers import assert_none_left, started_pids
    from keywright.testing.private_server import PrivateServer
    from keywright.testing.processes import (
        START_SECONDS,
        STOP_SECONDS,
        ServerProcess,
        death_with_parent,
        descendants,
        is_running,
        make_run_folder,
        quoted,
        remove_run_folder,
    )
    from keywright.testing.proxy import Proxy
    from keywright.testing.requirements import require
    from keywright.testing.runs import OpenRun, Raw, Run
    from keywright.testing.sentinel import RedisSentinel
    from keywright.testing.servers import (
        LOOPBACK,
        PORT_PAIR_OFFSET,
        RedisServer,
        as_user,
        free_port,
        start_on_free_port,
    )
    from keywright.testing.versions import witness
    from keywright.testing.wire import RawConnection

__all__ = [
    "LOOPBACK",
    "PORT_PAIR_OFFSET",
    "START_SECONDS",
    "STOP_SECONDS",
    "ManualClock",
    "OpenRun",
    "PrivateServer",
    "Proxy",
    "Raw",
    "RawConnection",
    "RedisCluster",
    "RedisSentinel",
    "RedisServer",
    "Run",
    "ServerProcess",
    "as_user",
    "assert_codec",
    "assert_none_left",
    "death_with_parent",
    "descendants",
    "free_port",
    "is_running",
    "make_run_folder",
    "quoted",
    "remove_run_folder",
    "require",
    "start_on_free_port",
    "started_pids",
    "stored_bytes",
    "wait_until",
    "witness",
]

_HOMES = {
    "LOOPBACK": "servers",
    "PORT_PAIR_OFFSET": "servers",
    "START_SECONDS": "processes",
    "STOP_SECONDS": "processes",
    "ManualClock": "clock",
    "OpenRun": "runs",
    "PrivateServer": "private_server",
    "Proxy": "proxy",
    "Raw": "runs",
    "RedisCluster": "cluster",
    "RedisSentinel": "sentinel",
    "RedisServer": "servers",
    "Run": "runs",
    "ServerProcess": "processes",
    "RawConnection": "wire",
    "as_user": "servers",
    "assert_codec": "codecs",
    "assert_none_left": "leftovers",
    "death_with_parent": "processes",
    "descendants": "processes",
    "free_port": "servers",
    "is_running": "processes",
    "make_run_folder": "processes",
    "quoted": "processes",
    "remove_run_folder": "processes",
    "require": "requirements",
    "start_on_free_port": "servers",
    "started_pids": "leftovers",
    "stored_bytes": "codecs",
    "wait_until": "conditions",
    "witness": "versions",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
