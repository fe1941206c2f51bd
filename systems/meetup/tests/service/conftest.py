from __future__ import annotations

from collections.abc import Iterator

import pytest

from browsing import chromium

from ..meetup_bots import Surroundings, surroundings

__all__ = ["around", "chromium"]


@pytest.fixture
def around(redis_url: str) -> Iterator[Surroundings]:
    """Meetup, Discord and an empty Redis."""
    with surroundings(redis_url) as made:
        yield made
