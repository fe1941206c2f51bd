"""A Spectacles cache on a single server, and one on the cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from keywright.testing.runs import OpenRun, Raw, sync_opener
from keywright_discord.spectacles import bind
from keywright_discord.spectacles.store import SpectaclesCache

from .payloads import World


@pytest.fixture
def opener() -> Iterator[OpenRun]:
    with ExitStack() as opened:
        yield sync_opener(opened)


@pytest.fixture
def world(opener: OpenRun, redis_url: str, raw: Raw) -> World:
    return World(opener(redis_url, *bind()), raw, SpectaclesCache())


@pytest.fixture
def cluster_world(opener: OpenRun, cluster_url: str, raw_cluster: Raw) -> World:
    return World(opener(cluster_url, *bind()), raw_cluster, SpectaclesCache())
