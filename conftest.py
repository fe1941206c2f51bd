"""Plugins and marks of the whole suite."""

from __future__ import annotations

import logging
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from keywright.cli.logs import StderrHandler

# On a busy machine an example takes longer than the usual 200 ms, which says nothing about the code.
settings.register_profile("unhurried", settings.default, deadline=None)
settings.load_profile("unhurried")

# A shell starts background jobs with SIGINT ignored, and every process of a test would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

pytest_plugins = [
    "keywright.testing.plugin",
    "keywright_messaging.testing.plugin",
    "keywright_registry.testing.plugin",
]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--at-length",
        action="store_true",
        help="run the programs of tests/foreign at length, also those of .venv-foreign: make foreign",
    )


@pytest.fixture(autouse=True)
def loggers() -> Iterator[None]:
    """Undo `log_to_stderr` of a command that the test ran, so that the next test sees the usual log."""
    changed = [logging.getLogger(), logging.getLogger("keywright")]
    levels = [logger.level for logger in changed]
    yield
    changed[0].handlers = [each for each in changed[0].handlers if not isinstance(each, StderrHandler)]
    for logger, level in zip(changed, levels, strict=True):
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
    "test_discord",
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
