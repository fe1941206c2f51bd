"""The pytest plugin: real servers as fixtures. It loads in every test run, so it imports late."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from keywright.testing import ManualClock, PostgresServer, Proxy, RabbitServer, RedisCluster, RedisServer

__all__ = [
    "amqp_url",
    "cluster_url",
    "keywright_cluster",
    "keywright_postgres",
    "keywright_rabbitmq",
    "keywright_server",
    "make_proxy",
    "manual_clock",
    "postgres_url",
    "redis_url",
]


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


@pytest.fixture(scope="session")
def keywright_rabbitmq() -> Iterator[RabbitServer]:
    """One private RabbitMQ for the whole run, on a loopback port."""
    from keywright.testing.rabbitmq import RabbitServer, find_rabbitmq

    _require(find_rabbitmq)
    with RabbitServer() as server:
        yield server


@pytest.fixture
def amqp_url(keywright_rabbitmq: RabbitServer) -> Iterator[str]:
    """The URL of an empty virtual host; a server that an earlier test stopped is brought back first."""
    keywright_rabbitmq.resume()
    keywright_rabbitmq.start()
    vhost = keywright_rabbitmq.make_vhost()
    yield keywright_rabbitmq.url_of(vhost)
    keywright_rabbitmq.resume()
    keywright_rabbitmq.start()
    keywright_rabbitmq.remove_vhost(vhost)


@pytest.fixture(scope="session")
def keywright_postgres() -> Iterator[PostgresServer]:
    """One private PostgreSQL for the whole run, on a unix socket."""
    _require(_find_postgres)
    from keywright.testing import PostgresServer

    with PostgresServer() as server:
        yield server


@pytest.fixture
def postgres_url(keywright_postgres: PostgresServer) -> Iterator[str]:
    """The URL of an empty database; a server that an earlier test stopped is brought back first."""
    keywright_postgres.resume()
    keywright_postgres.start()
    name = keywright_postgres.make_database()
    yield keywright_postgres.url_of(name)
    keywright_postgres.resume()
    keywright_postgres.start()
    keywright_postgres.remove_database(name)


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

    _require(find_server)


def _find_postgres() -> Path:
    from keywright.errors import EngineError

    try:
        from keywright.testing.postgres import find_postgres
    except ModuleNotFoundError as exc:
        raise EngineError(f"{exc.name} is not installed. Install keywright[registry].") from exc
    return find_postgres()


def _require(find: Callable[[], Path]) -> None:
    from keywright.errors import EngineError

    try:
        find()
    except EngineError as exc:
        # In CI a skipped suite would pass for a tested one.
        if os.environ.get("CI") == "true":
            pytest.fail(str(exc))
        pytest.skip(str(exc))
