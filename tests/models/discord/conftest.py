"""A DRC cache that is fed events, with redis-py beside it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from keywright import connect
from keywright.models.discord.drc import bind
from models.discord.feeding import Feed
from running import Raw


@pytest.fixture
def feed(redis_url: str, raw: Raw) -> Iterator[Feed]:
    """An empty cache on a single server, whose session has not begun."""
    with connect(redis_url, *bind()) as database:
        yield Feed(database, raw)
