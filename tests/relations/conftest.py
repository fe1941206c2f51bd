"""Databases on both kinds of server, with clocks that tests choose."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from random import Random

import pytest

from keywright import Database, connect
from kinship import town

Opener = Callable[..., Database]


class Impatient(Random):
    """Pauses of no length: what waits for another writer asks again at once."""

    def uniform(self, a: float, b: float) -> float:
        return min(a, b)


@pytest.fixture
def open_database() -> Iterator[Opener]:
    """Opens databases whose clock is `ahead`; they close with the test."""
    with ExitStack() as opened:

        def opening(url: str, ahead: timedelta = timedelta(0)) -> Database:
            database = connect(url, town.bind(), clock=lambda: datetime.now(UTC) + ahead)
            database.context.random = Impatient()
            return opened.enter_context(database)

        yield opening
