"""Numbered databases of a Valkey cluster: each has its own keys, relations and journal."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from invoking import invoke_keywright
from keywright import Database, Id, Keyspace, Set, Value, connect, many_to_one
from keywright.testing import RedisCluster
from new_valkey import new_binary
from numbered_spaces import Page, User, pages, people

space = Keyspace("harbour", "Ships and their berths.", prefix="harbour")


class Berth(Value[Id], key="ship:<ship>:berth", space=space):
    """The berth of a ship."""

    ship: Id


class Ships(Set[Id], key="berth:<berth>:ships", space=space):
    """The ships at a berth."""

    berth: Id


moored = many_to_one(Berth, inverse=Ships)


@pytest.fixture(scope="module")
def cluster() -> Iterator[RedisCluster]:
    with RedisCluster(binary=new_binary(), options={"cluster-databases": "4"}) as cluster:
        yield cluster


def opened(cluster: RedisCluster, number: int, scheme: str) -> Database:
    return connect(cluster.url.replace("redis:", f"{scheme}:").rpartition("/")[0] + f"/{number}")


@pytest.mark.parametrize("scheme", ["redis", "redis+cluster"])
def test_a_relation_is_kept_in_the_database_that_the_url_names(cluster: RedisCluster, scheme: str) -> None:
    ships = [f"{scheme}-{number}".replace("+", "-") for number in range(12)]
    with opened(cluster, 3, scheme) as third, opened(cluster, 0, scheme) as first:
        for ship in ships:
            third.run(moored.assign(ship, "north"))
        assert third.run(Ships("north").members()) >= set(ships)
        assert all(third.run(Berth(ship).get()) == "north" for ship in ships)
        assert {key.ship for key in third.scan(Berth)} >= set(ships)
        assert list(first.names(space)) == []
        assert first.run(Ships("north").members()) == set()


def test_the_databases_of_a_cluster_are_read_in_one_run(cluster: RedisCluster) -> None:
    unnamed = cluster.url.rpartition("/")[0]
    with connect(unnamed, people.bind()) as first, connect(unnamed, pages.bind()) as third:
        for number in range(30):
            first.run(User(str(number)).set("x"))
            third.run(Page(str(number)).set(number))
    arguments = ("--url", unnamed, "--format", "json")
    audit = invoke_keywright("audit", "numbered_spaces:people,numbered_spaces:pages", *arguments)
    assert [part["names"] for part in json.loads(audit.stdout)["databases"]] == [30, 30], audit.output
    stats = json.loads(invoke_keywright("stats", *arguments).stdout)
    assert {0, 2} <= {part["database"] for part in stats["databases"]}
