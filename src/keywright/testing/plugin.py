"""The pytest plugin: real servers as fixtures.

Opt in with `pytest_plugins = ["keywright.testing.plugin"]`, or with `-p keywright.testing.plugin`.
"""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from keywright.errors import dependencies_of

with dependencies_of("the pytest plugin", install="keywright[testing]"):
    import pytest

if TYPE_CHECKING:
    from keywright.testing import ManualClock, Proxy, RedisCluster, RedisServer
    from keywright.testing.runs import OpenRun, Raw, Run

__all__ = [
    "cluster_run",
    "cluster_url",
    "keywright_cluster",
    "keywright_server",
    "make_proxy",
    "manual_clock",
    "open_run",
    "raw",
    "raw_cluster",
    "redis_url",
    "run",
]


@pytest.fixture(scope="session")
def keywright_server() -> Iterator[RedisServer]:
    """Provide one private server for the whole run, on a unix socket and a loopback port with a password.

    A test that needs it fails if no server can be started: a skipped suite would pass for a tested one.
    """
    from keywright.testing import RedisServer
    from keywright.testing.servers import random_password

    with RedisServer(tcp=True, password=random_password()) as server:
        yield server


@pytest.fixture
def redis_url(keywright_server: RedisServer) -> str:
    """Return the URL of an empty server. Restart it first if an earlier test stopped or froze it."""
    keywright_server.resume()
    keywright_server.start()
    keywright_server.call("FLUSHALL")
    return keywright_server.url


@pytest.fixture(scope="session")
def keywright_cluster() -> Iterator[RedisCluster]:
    """Provide one six-node cluster for the whole run."""
    from keywright.testing import RedisCluster
    from keywright.testing.servers import random_password

    with RedisCluster(password=random_password()) as cluster:
        yield cluster


@pytest.fixture
def cluster_url(keywright_cluster: RedisCluster) -> str:
    """Return the URL of a healthy, empty cluster. Restart nodes that an earlier test killed first."""
    keywright_cluster.heal()
    keywright_cluster.flush()
    return keywright_cluster.url


@pytest.fixture
def make_proxy() -> Iterator[Callable[[str], Proxy]]:
    """Return a factory of proxies in front of a URL. They are closed after the test."""
    from keywright.testing import Proxy

    with ExitStack() as proxies:
        yield lambda upstream: proxies.enter_context(Proxy(upstream))


@pytest.fixture
def manual_clock() -> ManualClock:
    """Return a clock that stands still until the test moves it."""
    from keywright.testing import ManualClock

    return ManualClock()


@pytest.fixture(params=["sync", "async"])
def open_run(request: pytest.FixtureRequest) -> Iterator[OpenRun]:
    """Return a factory of databases of one engine. They are closed after the test."""
    from keywright.testing.runs import async_opener, sync_opener

    opener = sync_opener if request.param == "sync" else async_opener
    with ExitStack() as opened:
        yield opener(opened)


@pytest.fixture
def run(open_run: OpenRun, redis_url: str) -> Run:
    """Provide a database on an empty single server, once for each engine."""
    return open_run(redis_url)


@pytest.fixture
def cluster_run(open_run: OpenRun, cluster_url: str) -> Run:
    """Provide a database on an empty six-node cluster, once for each engine."""
    return open_run(cluster_url)


@pytest.fixture
def raw(redis_url: str) -> Iterator[Raw]:
    """Provide the single server as redis-py sees it."""
    import redis

    from keywright.testing.runs import Raw

    with redis.Redis.from_url(redis_url) as client:
        yield Raw(client)


@pytest.fixture
def raw_cluster(cluster_url: str) -> Iterator[Raw]:
    """Provide the cluster as redis-py sees it."""
    import redis.cluster

    from keywright.testing.runs import Raw

    client = redis.cluster.RedisCluster.from_url(cluster_url)
    yield Raw(client)
    for node in client.nodes_manager.nodes_cache.values():
        if node.redis_connection:  # close() leaves the pools to the garbage collector
            node.redis_connection.connection_pool.disconnect()
    client.close()


def pytest_report_header() -> str:
    """Return the program that fixtures start, and its version."""
    from keywright.engine.embedded import find_server
    from keywright.errors import EngineError

    try:
        program = find_server()
    except EngineError as error:
        return f"keywright: {error}"
    shown = subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout
    return f"keywright: {' '.join(shown.split()[:3])}, {program}"  # Valkey server v=9.1.2 sha=…


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """End servers that outlived the last fixture, and fail the run if there are any."""
    if "keywright.testing.versions" in sys.modules:
        from keywright.testing.versions import started_versions

        session.config.stash.setdefault(_STARTED, Counter()).update(started_versions())
        output = getattr(session.config, "workeroutput", None)
        if output is not None:  # a worker of pytest-xdist sends it to its controller
            output[_STARTED_OF_WORKER] = dict(started_versions())
    if "keywright.engine.embedded" not in sys.modules:
        return
    from keywright.engine.embedded import end_living
    from keywright.testing.leftovers import assert_none_left

    try:
        assert_none_left()
    except AssertionError as exc:
        end_living()
        session.config.stash[_LEFT] = str(exc)
        if session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Add the servers of a finished worker of pytest-xdist."""
    output = getattr(node, "workeroutput", {})
    node.config.stash.setdefault(_STARTED, Counter()).update(output.get(_STARTED_OF_WORKER, {}))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if started := config.stash.get(_STARTED, None):
        listing = ", ".join(f"{version} ({count})" for version, count in sorted(started.items()))
        terminalreporter.line(f"keywright: servers started: {listing}")
    if left := config.stash.get(_LEFT, None):
        terminalreporter.section("keywright", red=True)
        terminalreporter.line(left)


_LEFT = pytest.StashKey[str]()
_STARTED = pytest.StashKey[Counter[str]]()
_STARTED_OF_WORKER = "keywright_started_versions"
