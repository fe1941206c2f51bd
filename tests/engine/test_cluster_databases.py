"""Numbered databases of a Valkey cluster: each has its own keys, relations and journal."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from keywright import Database, Id, Keyspace, Set, Value, connect, many_to_one
from keywright.testing import RedisCluster
from new_valkey import new_binary

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
