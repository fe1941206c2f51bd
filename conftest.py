"""Marks of the whole suite."""

from __future__ import annotations

import pytest


@pytest.fixture
def anyio_backend() -> str:
    """Tests that are coroutines run on asyncio, as the engine does."""
    return "asyncio"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs the cluster, so that `-m "not cluster"` is the quick run."""
    for item in items:
        if "cluster_url" in getattr(item, "fixturenames", ()):
            item.add_marker("cluster")
