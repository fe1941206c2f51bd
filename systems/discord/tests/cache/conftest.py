"""A DRC cache that is fed events, and a raw client beside it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from keywright import connect
from keywright.testing import Raw
from keywright_discord.drc import bind

from .feed import Feed


@pytest.fixture
def feed(redis_url: str, raw: Raw) -> Iterator[Feed]:
    """Return an empty cache on a single server, whose session has not begun."""
    with connect(redis_url, *bind()) as database:
        yield Feed(database, raw)
