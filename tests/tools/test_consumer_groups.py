"""Declared consumer groups: the audit finds missing and foreign ones, a repair creates them on demand."""

from __future__ import annotations

from pathlib import Path

import msgspec

from audited import REMOVABLE, Sample, audited, repaired
from exploring import exploring, key_path
from invoking import invoke_keywright
from keywright import Database, Id, Keyspace, Stream
from keywright.testing import RedisServer
from keywright.testing.damage import plant
from keywright.tools.model import Model

shop = Keyspace("shop", "Orders.", prefix="g")


class Order(msgspec.Struct):
    item: str


class Orders(Stream[Order], key="orders:<day>", space=shop, groups=["billing", "mail"]):
    """The orders of a day."""

    day: Id


class Events(Stream[Order], key="events:<day>", space=shop):
    """A stream whose groups are not declared."""

    day: Id


def _fill(db: Database) -> None:
    for day in ("mon", "tue", "wed"):
        db.run(Orders(day).create_groups())
        for item in ("tea", "cup"):
            db.run(Orders(day).add(Order(item)))
        db.run(Events(day).add(Order("x")))
        db.run(Events(day).create_group("anything"))


SHOP = Sample(Model("shop", (shop,)), (), _fill, {}, each=1)


def test_missing_and_foreign_groups_are_found_and_created_on_demand_only(
    redis_url: str, keywright_server: RedisServer, tmp_path: Path
) -> None:
    with SHOP.open(redis_url) as db:
        _fill(db)
        assert audited(redis_url, SHOP)[1] == []
        keywright_server.call("XGROUP", "DESTROY", "g:orders:mon", "mail")
        keywright_server.call("XGROUP", "CREATE", "g:orders:tue", "spam", "$")
        found = [(each.code, each.name, each.member) for each in audited(redis_url, SHOP)[1]]
        assert sorted(found) == [("KW207", b"g:orders:mon", b"mail"), ("KW208", b"g:orders:tue", b"spam")]

        repaired(redis_url, SHOP, tmp_path / "undo")
        assert db.run(Orders("mon").group_state("mail")) is None
        repaired(redis_url, SHOP, tmp_path / "undo", REMOVABLE | {"KW207"})
        state = db.run(Orders("mon").group_state("mail"))
        assert state is not None
        assert state.last_delivered == "0-0"
        assert [each.code for each in audited(redis_url, SHOP)[1]] == ["KW208"]
        first = db.run(Orders("mon").consume("mail", "me"))
        assert [entry.value.item for entry in first] == ["tea", "cup"]


def test_planted_faults_of_groups_are_found(redis_url: str) -> None:
    with SHOP.open(redis_url) as db:
        _fill(db)
        planted = plant(db, [shop], each=1)
    assert {"KW207", "KW208"} <= {fault.code for fault in planted}
    found = {(each.code, each.name) for each in audited(redis_url, SHOP)[1]}
    assert {(fault.code, fault.name) for fault in planted} <= found


def test_stats_and_the_explorer_show_pending_entries_and_lag(redis_url: str) -> None:
    with SHOP.open(redis_url) as db:
        _fill(db)
        db.run(Orders("mon").consume("billing", "me", count=1))
        lag = db.run(Orders("mon").group_state("billing"))
    assert lag is not None
    shown = invoke_keywright("stats", f"{__name__}:shop", "--url", redis_url, "--format", "json")
    counts = msgspec.json.decode(shown.stdout)["templates"]
    groups = {each["template"]: each["groups"] for each in counts}
    total = None if lag.lag is None else lag.lag + 4
    assert groups["orders:<day>"]["billing"] == {"streams": 3, "pending": 1, "lag": total}
    assert groups["events:<day>"] == {}
    table = invoke_keywright("stats", f"{__name__}:shop", "--url", redis_url).stdout
    assert "1 pending" in table
    with exploring(redis_url, [shop]) as explored:
        assert "1 pending" in explored.get(key_path("g:orders:mon")).text


def test_the_repair_command_creates_groups_with_its_option(
    redis_url: str, keywright_server: RedisServer, tmp_path: Path
) -> None:
    with SHOP.open(redis_url) as db:
        db.run(Orders("mon").add(Order("tea")))
    for option, created in ((("--remove", "all"), False), (("--create-groups",), True)):
        undo = str(tmp_path / "undo")
        invoke_keywright(
            "repair", f"{__name__}:shop", "--url", redis_url, *option, "--yes", "--undo-to", undo
        )
        found = keywright_server.call("XINFO", "GROUPS", "g:orders:mon")
        assert bool(found) is created, option
