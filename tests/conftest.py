"""Fixtures of several folders: one way to run a call on both engines, and raw redis-py beside it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import redis
from redis.cluster import RedisCluster

from running import OpenRun, Raw, Run, async_opener, sync_opener


@pytest.fixture(params=[sync_opener, async_opener], ids=["sync", "async"])
def open_run(request: pytest.FixtureRequest) -> Iterator[OpenRun]:
    """Opens databases of one engine; they close with the test."""
    with ExitStack() as opened:
        yield request.param(opened)


@pytest.fixture
def run(open_run: OpenRun, redis_url: str) -> Run:
    """A database on an empty single server, once for each engine."""
    return open_run(redis_url)


@pytest.fixture
def cluster_run(open_run: OpenRun, cluster_url: str) -> Run:
    """A database on an empty six-node cluster, once for each engine."""
    return open_run(cluster_url)


@pytest.fixture
def raw(redis_url: str) -> Iterator[Raw]:
    """The single server as redis-py sees it."""
    with redis.Redis.from_url(redis_url) as client:
        yield Raw(client)


@pytest.fixture
def raw_cluster(cluster_url: str) -> Iterator[Raw]:
    """The cluster as redis-py sees it."""
    client = RedisCluster.from_url(cluster_url)
    yield Raw(client)
    client.close()


@pytest.fixture(params=["postgresql", "sqlite"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty metadata database of the registry, once of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/registry.db"
    url: str = request.getfixturevalue("postgres_url")
    return url


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs the cluster, so that `-m "not cluster"` is the quick run."""
    for item in items:
        if "cluster_url" in getattr(item, "fixturenames", ()):
            item.add_marker("cluster")
