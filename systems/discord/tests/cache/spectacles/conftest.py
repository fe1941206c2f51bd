"""A Spectacles cache on a single server, and one on the cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from keywright import Binding, Database, connect
from keywright.testing import Raw
from keywright_discord.spectacles import bind
from keywright_discord.spectacles.store import SpectaclesCache

from .payloads import Opener, World


@pytest.fixture
def opener() -> Iterator[Opener]:
    """Return a function that opens a database, which is closed after the test."""
    with ExitStack() as opened:

        def opening(url: str, *bindings: Binding) -> Database:
            return opened.enter_context(connect(url, *bindings))

        yield opening


@pytest.fixture
def world(opener: Opener, redis_url: str, raw: Raw) -> World:
    return World(opener(redis_url, *bind()), raw, SpectaclesCache())


@pytest.fixture
def cluster_world(opener: Opener, cluster_url: str, raw_cluster: Raw) -> World:
    return World(opener(cluster_url, *bind()), raw_cluster, SpectaclesCache())
