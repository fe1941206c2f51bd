"""Fixtures of Discord's tests: asyncio for `async def` tests, and the command line in this process."""

from __future__ import annotations

import pytest

from invoking import Invoke, invoke_keywright


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def invoke(monkeypatch: pytest.MonkeyPatch) -> Invoke:
    """Return a function that runs `keywright` with arguments, without the REDIS_URL of this machine."""
    monkeypatch.delenv("REDIS_URL", raising=False)
    return invoke_keywright
