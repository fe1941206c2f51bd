"""A DRC cache that is fed events, with redis-py beside it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from keywright import connect
from keywright.testing.runs import Raw
from keywright_discord.drc import bind

from .feeding import Feed


@pytest.fixture
def feed(redis_url: str, raw: Raw) -> Iterator[Feed]:
    """An empty cache on a single server, whose session has not begun."""
    with connect(redis_url, *bind()) as database:
        yield Feed(database, raw)
