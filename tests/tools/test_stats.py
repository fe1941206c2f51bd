"""Counts by template, and their rates of change."""

from __future__ import annotations

import pytest
import redis

from audit_samples import SAMPLES
from keywright import Id, Keyspace, Value, aconnect
from keywright.tools.audit import Budget, audit
from keywright.tools.model import Model
from keywright.tools.stats import snapshots, take_snapshot

TOWN = SAMPLES["town"]()
shop = Keyspace("shop", "What the shop sells.", prefix="shop")
stock = Keyspace("stock", "What the shop has.", prefix="stock")


class Price(Value[int], key="item:<item>", space=shop):
    """The price of an item."""

    item: Id


class Left(Value[int], key="item:<item>", space=stock):
    """How many are left."""

    item: Id


@pytest.mark.anyio
async def test_two_keyspaces_with_the_same_template_are_counted_apart(redis_url: str) -> None:
    with redis.Redis.from_url(redis_url) as client:
        client.mset({"shop:item:a": 1, "shop:item:b": 2, "stock:item:a": 3})
    model = Model("both", (shop, stock))
    async with aconnect(redis_url) as db:
        found = await take_snapshot(db, model, sample=1.0)
        report = await audit(db, model, budgets=[Budget("item:<item>", 100)])
    assert {count.template: count.keys for count in found.counts} == {
        "shop:item:<item>": 2,
        "stock:item:<item>": 1,
    }
    rows = {row.template: row for row in report.rows}
    assert {template: row.keys for template, row in rows.items()} == {
        "shop:item:<item>": 2,
        "stock:item:<item>": 1,
    }
    used = sum(row.bytes or 0 for row in rows.values())
    assert [finding.reason for finding in report.tally.findings["KW501"].kept] == [
        f"takes {used} bytes, the budget is 100"
    ]


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
