"""The command line in this process, without settings of the machine."""

from __future__ import annotations

import pytest

from invoking import Invoke, invoke_keywright


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def invoke(monkeypatch: pytest.MonkeyPatch) -> Invoke:
    monkeypatch.delenv("REDIS_URL", raising=False)
    return invoke_keywright
