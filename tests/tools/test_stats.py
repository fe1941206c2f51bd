"""Counts by template, and their rates of change."""

from __future__ import annotations

import pytest
import redis

from audit_samples import SAMPLES
from keywright import aconnect
from keywright.tools.stats import snapshots, take_snapshot

TOWN = SAMPLES["town"]()


@pytest.mark.anyio
async def test_a_snapshot_counts_every_template_and_the_unknown(redis_url: str) -> None:
    with TOWN.open(redis_url) as db, redis.Redis.from_url(redis_url) as client:
        TOWN.fill(db)
        client.set("nobodys", "x")
        people = len(client.keys("person:*:home"))

    async with aconnect(redis_url) as db:
        found = await take_snapshot(db, TOWN.model, sample=1.0)

    counts = {count.template: count for count in found.counts}
    assert counts["person:<person>:home"].keys == people == 60
    assert (counts["person:<person>:home"].bytes or 0) > 60 * 50
    assert counts["moves"].keys == 0
    assert found.unknown == 1
    assert found.counts[0].rate is None


@pytest.mark.anyio
async def test_the_second_of_two_snapshots_has_rates(redis_url: str) -> None:

    async with aconnect(redis_url) as db:
        passes = snapshots(db, TOWN.model)
        first = await anext(passes)
        with redis.Redis.from_url(redis_url) as client:
            client.mset({f"person:p{n}": "name" for n in range(100)})
        second = await anext(passes)
        await passes.aclose()  # type: ignore[attr-defined]  # it is a generator
        found = first, second
    first, second = found
    assert {count.rate for count in first.counts} == {None}
    rates = {count.template: count.rate for count in second.counts}
    assert (rates["person:<person>"] or 0) > 0
    assert rates["moves"] == 0
