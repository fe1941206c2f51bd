"""Observers see every command that audit, stats, migrate and the explorer's survey send."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from audit_samples import SAMPLES
from keywright import AsyncDatabase, RoundTrip, aconnect
from keywright.explorer import ExplorerSettings
from keywright.explorer.atlas import Atlas
from keywright.explorer.survey import Surveyor
from keywright.testing import RedisServer
from keywright.tools.audit import AuditOptions, audit
from keywright.tools.migrate.sweeper import sweep
from keywright.tools.stats import take_snapshot

pytestmark = pytest.mark.anyio

SHOP = SAMPLES["bookshop"]()
SPACES = SHOP.model.spaces

# What redis-py sends to open a connection, and what this test sends.
OTHERS = ("client", "hello", "select", "config")


def _commands(server: RedisServer) -> int:
    lines = server.text("INFO", "commandstats").splitlines()
    counts = {line[8:].partition(":")[0]: line for line in lines if line.startswith("cmdstat_")}
    return sum(
        int(line.partition("calls=")[2].partition(",")[0])
        for verb, line in counts.items()
        if verb.partition("|")[0] not in OTHERS
    )


async def _audited(db: AsyncDatabase) -> None:
    await audit(db, SHOP.model, AuditOptions())


async def _surveyed(db: AsyncDatabase) -> None:
    await Surveyor(db, Atlas(SPACES, db.context), ExplorerSettings()).once()


@pytest.mark.parametrize(
    "walk",
    [
        pytest.param(_audited, id="audit"),
        pytest.param(lambda db: take_snapshot(db, SHOP.model, sample=1.0), id="stats"),
        pytest.param(lambda db: sweep(db, SPACES), id="migrate"),
        pytest.param(_surveyed, id="survey"),
    ],
)
async def test_observers_see_every_command_of_a_walk(walk: Callable[[AsyncDatabase], Awaitable[Any]]) -> None:
    trips: list[RoundTrip] = []
    with RedisServer() as server:
        with SHOP.open(server.url) as filling:
            SHOP.fill(filling)
        async with aconnect(server.url, *SHOP.bindings, observers=[trips.append]) as db:
            trips.clear()
            server.call("CONFIG", "RESETSTAT")
            await walk(db)
            sent = _commands(server)
    seen = sum((trip.operations for trip in trips), Counter[tuple[str, str]]())
    assert seen.total() == sent > 0
    assert {template for template, _ in seen} > {""}, "what was asked about keys names their templates"
    assert not any(trip.errors for trip in trips)
