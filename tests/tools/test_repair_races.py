"""A repair that meets other writers: what they corrected, moved or brought back is left alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import pytest
import redis

from audited import applied, audited, planned, repaired, undone
from fault_table import stock
from garden import SAMPLE
from keywright.testing import RedisServer
from old_redis import old_binary

Change = Callable[[Any], object]


@pytest.fixture
def client(redis_url: str) -> Iterator[Any]:
    with redis.Redis.from_url(redis_url) as found, SAMPLE.open(redis_url) as db:
        stock(db, found)
        yield found


@pytest.mark.parametrize(
    ("plant", "correct", "name"),
    [
        (
            lambda db: db.hset("g:v1:map:a", mapping={"row": b"\xff", "row2": "p2"}),
            lambda db: db.hset("g:v1:map:a", "row", "p1"),
            "g:v1:map:a",
        ),
        (
            lambda db: db.hset("g:v1:map:a", mapping={"row": "gone", "row2": "p2"}),
            lambda db: db.hset("g:v1:map:a", "row", "p1"),
            "g:v1:map:a",
        ),
        (
            lambda db: db.hset("g:v1:record:a", mapping={"width": "wide", "length": "3"}),
            lambda db: db.hset("g:v1:record:a", "width", "4"),
            "g:v1:record:a",
        ),
        (
            lambda db: db.zadd("g:v1:sorted:a", {"p1": 0.5, "p2": 2}),
            lambda db: db.zadd("g:v1:sorted:a", {"p1": 1}),
            "g:v1:sorted:a",
        ),
        (
            lambda db: db.set("g:v1:value:a", "gone"),
            lambda db: db.set("g:v1:plant:gone", "it grew again"),
            "g:v1:value:a",
        ),
        (
            lambda db: db.rpush("g:v1:list:a", "p1", "gone", "p2"),
            lambda db: db.set("g:v1:plant:gone", "it grew again"),
            "g:v1:list:a",
        ),
        (
            lambda db: db.set("g:v1:counter:gone", "7"),
            lambda db: db.set("g:v1:plant:gone", "it grew again"),
            "g:v1:counter:gone",
        ),
    ],
    ids=["map-value", "map-reference", "record", "score", "value-target", "list-target", "name-target"],
)
def test_a_fault_that_was_corrected_after_the_plan_is_not_removed(
    plant: Change, correct: Change, name: str, redis_url: str, client: Any, tmp_path: Path
) -> None:
    plant(client)
    assert planned(redis_url, SAMPLE, tmp_path / "plan").steps == 1
    correct(client)
    before = client.dump(name)
    done = applied(redis_url, SAMPLE, tmp_path)
    assert (done.done, done.overtaken, done.undo) == ({}, 1, None)
    assert client.dump(name) == before


def test_an_item_of_a_queue_that_others_work_on_is_removed_and_put_back_among_its_neighbours(
    redis_url: str, client: Any, tmp_path: Path
) -> None:
    client.rpush("g:v1:list:a", "p1", "p2", "gone", "p3", "gone")
    planned(redis_url, SAMPLE, tmp_path / "plan")
    client.lpop("g:v1:list:a")
    client.rpush("g:v1:list:a", "p4")
    assert applied(redis_url, SAMPLE, tmp_path).done == {"remove-entry": 1}
    assert client.lrange("g:v1:list:a", 0, -1) == [b"p2", b"p3", b"p4"]
    client.rpush("g:v1:list:a", "p5")
    for restored in (1, 0):  # undone once
        assert undone(redis_url, SAMPLE, tmp_path / "undo").restored == restored
        assert client.lrange("g:v1:list:a", 0, -1) == [b"p2", b"gone", b"p3", b"gone", b"p4", b"p5"]


def test_a_busy_queue_loses_its_bad_items_and_no_other(redis_url: str, client: Any, tmp_path: Path) -> None:
    name = "g:v1:list:a"
    client.rpush(name, *(f"p{n % 20}" if n % 30 else "gone" for n in range(600)))
    before = Counter(client.lrange(name, 0, -1))
    finished, turned = Event(), Event()

    def rotate() -> None:
        with redis.Redis.from_url(redis_url) as other:
            while not finished.is_set():
                other.lmove(name, name, "LEFT", "RIGHT")
                turned.set()

    with ThreadPoolExecutor() as pool:
        rotating = pool.submit(rotate)
        turned.wait()
        done = repaired(redis_url, SAMPLE, tmp_path / "undo")
        finished.set()
        rotating.result()
    assert done.done == {"remove-entry": 1}
    assert Counter(client.lrange(name, 0, -1)) == before - Counter({b"gone": 20})
    undone(redis_url, SAMPLE, tmp_path / "undo")
    assert Counter(client.lrange(name, 0, -1)) == before


def test_an_item_of_a_list_that_became_shorter_is_put_back_at_its_end(
    redis_url: str, client: Any, tmp_path: Path
) -> None:
    client.rpush("g:v1:list:a", "p1", "p2", "p3", "gone", "p4")
    repaired(redis_url, SAMPLE, tmp_path / "undo")
    client.ltrim("g:v1:list:a", 0, 0)
    undone(redis_url, SAMPLE, tmp_path / "undo")
    assert client.lrange("g:v1:list:a", 0, -1) == [b"p1", b"gone"]


def test_an_entry_is_named_as_it_is_stored_not_as_it_would_be_written(
    redis_url: str, client: Any, tmp_path: Path
) -> None:
    client.rpush("g:v1:orders:a", '{"plant": "p1"}', '{"plant":  "gone"}', '{"plant":"p2"}')
    (finding,) = audited(redis_url, SAMPLE)[1]
    assert (finding.code, finding.member) == ("KW401", b'{"plant":  "gone"}')
    client.rpush("g:v1:orders:a", "not JSON")
    assert {each.code for each in audited(redis_url, SAMPLE)[1]} == {"KW202", "KW401"}
    repaired(redis_url, SAMPLE, tmp_path / "undo")
    assert client.lrange("g:v1:orders:a", 0, -1) == [b'{"plant": "p1"}', b'{"plant":"p2"}']


def test_undo_keeps_the_groups_of_a_stream_and_the_entries_that_came_later(
    redis_url: str, client: Any, tmp_path: Path
) -> None:
    _check_groups(redis_url, client, tmp_path)


def test_undo_keeps_the_groups_of_a_stream_of_redis_6(tmp_path: Path) -> None:
    with (
        RedisServer(binary=old_binary()) as server,
        redis.Redis.from_url(server.url) as found,
        SAMPLE.open(server.url) as db,
    ):
        stock(db, found)
        _check_groups(server.url, found, tmp_path)


def _check_groups(url: str, client: Any, folder: Path) -> None:
    name = "g:v1:stream:a"
    for number, plant in enumerate(["p1", "gone", "p2", "gone"], 1):
        client.xadd(name, {"plant": plant, "litres": "1"}, id=f"{number}-0")
    client.xgroup_create(name, "team", id="0")
    client.xreadgroup("team", "ann", {name: ">"}, count=3)
    client.xack(name, "team", "1-0")
    client.pexpire(name, 9_000_000)
    before, pending = client.xrange(name), client.xpending_range(name, "team", "-", "+", 9)
    assert repaired(url, SAMPLE, folder / "undo").done == {"remove-entry": 2}
    assert [each[0] for each in client.xrange(name)] == [b"1-0", b"3-0"]
    client.xadd(name, {"plant": "p3", "litres": "1"}, id="5-0")
    for restored in (2, 0):
        assert undone(url, SAMPLE, folder / "undo").restored == restored
        assert client.xrange(name) == [*before, (b"5-0", {b"plant": b"p3", b"litres": b"1"})]
    assert client.xinfo_stream(name)["last-generated-id"] == b"5-0"
    assert client.pttl(name) > 8_000_000
    for each in (*pending, *(found := client.xpending_range(name, "team", "-", "+", 9))):
        del each["time_since_delivered"]
    assert found == pending
    assert [each[0] for each in client.xreadgroup("team", "ben", {name: ">"})[0][1]] == [b"4-0", b"5-0"]


def test_a_relation_that_ends_because_its_target_is_missing_comes_back_complete(
    redis_url: str, client: Any, tmp_path: Path
) -> None:
    client.set("g:v1:gardener:g1:plot", "barren", px=9_000_000)
    client.srem("g:v1:plot:plot:gardeners", "g1")
    client.sadd("g:v1:plot:barren:gardeners", "g1")
    assert repaired(redis_url, SAMPLE, tmp_path / "undo").done == {"remove-key": 1}
    assert not client.exists("g:v1:gardener:g1:plot", "g:v1:plot:barren:gardeners")
    assert not client.sismember("g:v1:working", "g1")
    assert client.sismember("g:v1:working", "g2")
    undone(redis_url, SAMPLE, tmp_path / "undo")
    assert client.get("g:v1:gardener:g1:plot") == b"barren"
    assert client.pttl("g:v1:gardener:g1:plot") > 8_000_000
    assert client.smembers("g:v1:plot:barren:gardeners") == {b"g1"}
    assert client.sismember("g:v1:working", "g1")
