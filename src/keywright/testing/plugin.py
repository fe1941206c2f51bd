"""The pytest plugin: real servers as fixtures. It loads in every test run, so it imports late."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from keywright.testing import ManualClock, Proxy, RedisCluster, RedisServer

__all__ = ["cluster_url", "keywright_cluster", "keywright_server", "make_proxy", "manual_clock", "redis_url"]


@pytest.fixture(scope="session")
def keywright_server() -> Iterator[RedisServer]:
    """One private server for the whole run, on a unix socket and a loopback port."""
    _require_server()
    from keywright.testing import RedisServer

    with RedisServer(tcp=True) as server:
        yield server


@pytest.fixture
def redis_url(keywright_server: RedisServer) -> str:
    """The URL of an empty server; one that an earlier test stopped or froze is brought back first."""
    keywright_server.resume()
    keywright_server.start()
    keywright_server.call("FLUSHALL")
    return keywright_server.url


@pytest.fixture(scope="session")
def keywright_cluster() -> Iterator[RedisCluster]:
    """One six-node cluster for the whole run."""
    _require_server()
    from keywright.testing import RedisCluster

    with RedisCluster() as cluster:
        yield cluster


@pytest.fixture
def cluster_url(keywright_cluster: RedisCluster) -> str:
    """The URL of a whole and empty cluster; nodes that an earlier test killed are brought back first."""
    keywright_cluster.heal()
    keywright_cluster.flush()
    return keywright_cluster.url


@pytest.fixture
def make_proxy() -> Iterator[Callable[[str], Proxy]]:
    """Makes proxies in front of a URL; they close with the test."""
    from keywright.testing import Proxy

    with ExitStack() as proxies:
        yield lambda upstream: proxies.enter_context(Proxy(upstream))


@pytest.fixture
def manual_clock() -> ManualClock:
    """A clock that stands still until the test moves it."""
    from keywright.testing import ManualClock

    return ManualClock()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """End servers that outlived the last fixture, and fail the run for them."""
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


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if left := config.stash.get(_LEFT, None):
        terminalreporter.section("keywright", red=True)
        terminalreporter.line(left)


_LEFT = pytest.StashKey[str]()


def _require_server() -> None:
    from keywright.engine.embedded import find_server
    from keywright.errors import EngineError

    try:
        find_server()
    except EngineError as exc:
        # In CI a skipped suite would pass for a tested one.
        if os.environ.get("CI") == "true":
            pytest.fail(str(exc))
        pytest.skip(str(exc))
