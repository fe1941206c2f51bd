"""Fixtures of the registry's tests: open databases for `async def` tests, and the command line."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from invoking import Invoke, invoke_keywright
from keywright import AsyncDatabase, aconnect
from keywright.testing import ManualClock
from keywright_registry.metadata import Metadata

from .registry_databases import opened


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def redis(redis_url: str) -> AsyncIterator[AsyncDatabase]:
    """A database on an empty single server."""
    async with aconnect(redis_url) as database:
        yield database


@pytest.fixture
async def metadata(database_url: str, manual_clock: ManualClock) -> AsyncIterator[Metadata]:
    """A migrated metadata database, once for PostgreSQL and once for SQLite, on the manual clock."""
    async with opened(database_url, clock=manual_clock) as database:
        yield database


@pytest.fixture
def invoke(monkeypatch: pytest.MonkeyPatch) -> Invoke:
    """Return a function that runs `keywright` with arguments, without the REDIS_URL of this machine."""
    monkeypatch.delenv("REDIS_URL", raising=False)
    return invoke_keywright
