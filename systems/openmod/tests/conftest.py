"""An installation of Open Mod on an empty server, single or cluster."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from keywright.testing import Raw

from .newsroom import Newsroom, newsroom


@pytest.fixture
def room(redis_url: str, raw: Raw) -> Iterator[Newsroom]:
    with newsroom(redis_url, raw) as opened:
        yield opened


@pytest.fixture
def cluster_room(cluster_url: str, raw_cluster: Raw) -> Iterator[Newsroom]:
    with newsroom(cluster_url, raw_cluster) as opened:
        yield opened


@pytest.fixture(params=["single", "cluster"])
def any_room(request: pytest.FixtureRequest) -> Newsroom:
    """Once on a single server, once on a cluster."""
    found: Newsroom = request.getfixturevalue("room" if request.param == "single" else "cluster_room")
    return found
