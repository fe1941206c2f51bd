"""The bot's database on both kinds of server, with raw redis-py beside it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from random import Random

import pytest

from keywright import Binding, Database, Observer, connect
from keywright.testing import Raw
from keywright_meetup.schema import meetup

from .meetup_town import Opener, Place


class Impatient(Random):
    """Pauses of no length: what waits for another writer asks again at once."""

    def uniform(self, a: float, b: float) -> float:
        return min(a, b)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def open_database() -> Iterator[Opener]:
    """Opens databases whose clock is `ahead`; they close with the test."""
    with ExitStack() as opened:

        def opening(
            url: str,
            *bindings: Binding,
            ahead: timedelta = timedelta(0),
            observers: tuple[Observer, ...] = (),
        ) -> Database:
            bound = bindings or (meetup.bind(),)  # the recoverer knows its journal
            database = connect(url, *bound, clock=lambda: datetime.now(UTC) + ahead, observers=observers)
            database.context.random = Impatient()
            return opened.enter_context(database)

        yield opening


@pytest.fixture
def place(redis_url: str, raw: Raw, open_database: Opener) -> Place:
    """A single server."""
    return Place(redis_url, open_database(redis_url), raw)


@pytest.fixture
def cluster_place(cluster_url: str, raw_cluster: Raw, open_database: Opener) -> Place:
    """A six-node cluster."""
    return Place(cluster_url, open_database(cluster_url), raw_cluster)


@pytest.fixture(
    params=["place", pytest.param("cluster_place", marks=pytest.mark.cluster)], ids=["server", "cluster"]
)
def anywhere(request: pytest.FixtureRequest) -> Place:
    """Each kind of server in turn."""
    found: Place = request.getfixturevalue(request.param)
    return found
