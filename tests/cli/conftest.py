"""The command line for its tests."""

from __future__ import annotations

import pytest

from invoking import Invoke, invoke_keywright


@pytest.fixture
def invoke(monkeypatch: pytest.MonkeyPatch) -> Invoke:
    """Return a function that runs `keywright` without the machine's REDIS_URL and keyring."""
    monkeypatch.delenv("REDIS_URL", raising=False)
    monkeypatch.delenv("KEYWRIGHT_SEAL_KEYS", raising=False)
    return invoke_keywright
