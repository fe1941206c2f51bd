"""Plugins and marks of the whole suite."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

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


@pytest.fixture(autouse=True)
def loggers() -> Iterator[None]:
    """Restore what a command of the test changed with `log_to_stderr`, of which the next test knows nothing."""
    changed = [logging.getLogger(), logging.getLogger("keywright")]
    before = [(logger, logger.handlers[:], logger.level) for logger in changed]
    yield
    for logger, handlers, level in before:
        logger.handlers = handlers
        logger.setLevel(level)


@pytest.fixture
def anyio_backend() -> str:
    """Tests that are coroutines run on asyncio, as the engine does."""
    return "asyncio"


# Files of a minute or more begin first, so that no worker is left with one when the others are done.
LONG = (
    "test_explorer_pages",
    "test_fuzz",
    "test_migrate",
    "test_faults",
    "test_relation_machine",
    "test_enforcement",
    "test_planted_faults",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put long files first, and mark tests of the cluster, so that `-m "not cluster"` is the quick run."""
    for item in items:
        if "cluster_url" in getattr(item, "fixturenames", ()):
            item.add_marker("cluster")
    items.sort(key=_rank)  # stable: the order within a file stays


def _rank(item: pytest.Item) -> int:
    name = Path(item.path).stem
    return LONG.index(name) if name in LONG else len(LONG)
