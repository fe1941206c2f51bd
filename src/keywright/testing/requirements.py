"""Programs that a test requires and a machine may lack."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from keywright.errors import EngineError

__all__ = ["require"]


def require(find: Callable[[], Path]) -> None:
    """Skip the test if `find` raises EngineError; in CI, fail it."""
    import pytest  # the other names of keywright.testing need no extra

    try:
        find()
    except EngineError as error:
        # In CI a skipped suite would pass for a tested one.
        if os.environ.get("CI") == "true":
            pytest.fail(str(error))
        pytest.skip(str(error))
