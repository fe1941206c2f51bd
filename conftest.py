"""Plugins and marks of the whole suite."""

from __future__ import annotations

import pytest
from hypothesis import settings

# On a busy machine an example takes longer than the usual 200 ms, which says nothing about the code.
settings.register_profile("unhurried", settings.default, deadline=None)
settings.load_profile("unhurried")

pytest_plugins = [
    "keywright.testing.plugin",
    "keywright_messaging.testing.plugin",
    "keywright_registry.testing.plugin",
]


@pytest.fixture
def anyio_backend() -> str:
    """Tests that are coroutines run on asyncio, as the engine does."""
    return "asyncio"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs the cluster, so that `-m "not cluster"` is the quick run."""
    for item in items:
        if "cluster_url" in getattr(item, "fixturenames", ()):
            item.add_marker("cluster")
