"""A DRC cache, or one of either layout, that is fed events, and a raw client beside it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from keywright import connect
from keywright.testing import Raw
from keywright_discord.drc import bind
from keywright_discord.layouts import LAYOUTS

from .both import Fed
from .feed import Feed


@pytest.fixture
def feed(redis_url: str, raw: Raw) -> Iterator[Feed]:
    """Return an empty cache on a single server, whose session has not begun."""
    with connect(redis_url, *bind()) as database:
        yield Feed(database, raw)


@pytest.fixture(params=LAYOUTS)
def fed(request: pytest.FixtureRequest, redis_url: str, raw: Raw) -> Iterator[Fed]:
    """Return an empty cache of each layout in turn."""
    layout = LAYOUTS[request.param]
    with connect(redis_url, *layout.bind(None)) as database:
        yield Fed(request.param, database, raw, layout.cache())
