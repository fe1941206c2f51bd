"""A cluster that reshards and loses nodes while it is used."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from engines import Engine, Group, Queue, Tally, Word
from keywright import Retry, Settings, atomic, gather, gather_list
from keywright.errors import DeadlineError, EngineError, ServerRefusedError
from keywright.operations import slot_of
from keywright.testing import RedisCluster, RedisServer, wait_until
from keywright.testing.runs import Raw

OpenEngine = Callable[..., Engine]

SLOT = slot_of(b"word:a")
ROOM = slot_of(b"r")


def _elsewhere(cluster: RedisCluster, slot: int) -> RedisServer:
    owner = cluster.master_of(slot)
    return next(master for master in cluster.masters() if master is not owner)


def test_a_moved_slot_is_followed(
    open_engine: OpenEngine, cluster_url: str, keywright_cluster: RedisCluster
) -> None:
    engine = open_engine(cluster_url)
    engine.run(gather(Word("a").set("x"), Tally("a").add(1)))
    keywright_cluster.migrate_slot(SLOT, _elsewhere(keywright_cluster, SLOT))
    keywright_cluster.migrate_slot(slot_of(b"tally:a"), _elsewhere(keywright_cluster, slot_of(b"tally:a")))
    assert engine.run(gather(Word("a").get(), Tally("a").add(1))) == ("x", 2)


def test_a_batch_over_all_slots_survives_a_moved_one(
    open_engine: OpenEngine, cluster_url: str, keywright_cluster: RedisCluster
) -> None:
    engine = open_engine(cluster_url)
    words = [Word("a"), *(Word(f"w{n}") for n in range(200))]
    engine.run(gather_list(word.set(word.word) for word in words))
    keywright_cluster.migrate_slot(SLOT, _elsewhere(keywright_cluster, SLOT))
    assert engine.run(gather_list(word.get() for word in words)) == [word.word for word in words]


def test_while_a_slot_moves_each_command_is_sent_where_its_key_is(
    open_engine: OpenEngine, cluster_url: str, keywright_cluster: RedisCluster
) -> None:
    engine = open_engine(cluster_url)
    here, moved, new = Group("r", "here"), Group("r", "moved"), Group("r", "new")
    engine.run(gather(here.add("x"), moved.add("y")))
    target = _elsewhere(keywright_cluster, ROOM)
    keywright_cluster.begin_migration(ROOM, target)
    try:
        keywright_cluster.move_key("group:{r}:moved", target)
        found = engine.run(gather(here.members(), moved.members(), new.members()))
        assert found == ({"x"}, {"y"}, set())
        assert engine.run(gather(new.add("z"), here.add("w"))) == (1, 1)
        with target.wire() as wire:
            wire.call("ASKING")
            assert wire.call("SMEMBERS", "group:{r}:new") == [b"z"]
    finally:
        keywright_cluster.finish_migration(ROOM, target)
    assert engine.run(gather(here.members(), new.members())) == ({"x", "w"}, {"z"})


def test_a_transaction_on_a_moved_key_is_sent_after_it_whole(
    open_engine: OpenEngine, cluster_url: str, keywright_cluster: RedisCluster, raw_cluster: Raw
) -> None:
    engine = open_engine(cluster_url)
    target = _elsewhere(keywright_cluster, ROOM)
    keywright_cluster.begin_migration(ROOM, target)
    try:
        assert engine.run(atomic(Group("r", "a").add("x"), Group("r", "a").add("y"))) == (1, 1)
    finally:
        keywright_cluster.finish_migration(ROOM, target)
    assert raw_cluster("SCARD", "group:{r}:a") == 2


def test_keys_that_are_apart_while_their_slot_moves_are_tried_again_until_they_are_together(
    open_engine: OpenEngine, cluster_url: str, keywright_cluster: RedisCluster
) -> None:
    engine = open_engine(cluster_url, Settings(retry=Retry(attempts=500, longest_seconds=0.05)))
    sets = Group("r", "a"), Group("r", "b")
    engine.run(gather(sets[0].add("x"), sets[1].add("y")))
    target = _elsewhere(keywright_cluster, ROOM)
    keywright_cluster.begin_migration(ROOM, target)
    try:
        keywright_cluster.move_key("group:{r}:a", target)
        united = engine.start(sets[0].union(sets[1]))
    finally:
        keywright_cluster.finish_migration(ROOM, target)
    assert united.result() == {"x", "y"}


def test_keys_that_stay_apart_are_reported_after_bounded_attempts(
    open_engine: OpenEngine, cluster_url: str, keywright_cluster: RedisCluster
) -> None:
    engine = open_engine(cluster_url, Settings(retry=Retry(attempts=3)))
    sets = Group("r", "a"), Group("r", "b")
    engine.run(gather(sets[0].add("x"), sets[1].add("y")))
    target = _elsewhere(keywright_cluster, ROOM)
    keywright_cluster.begin_migration(ROOM, target)
    try:
        keywright_cluster.move_key("group:{r}:a", target)
        with pytest.raises(ServerRefusedError, match="TRYAGAIN"):
            engine.run(sets[0].union(sets[1]))
    finally:
        keywright_cluster.finish_migration(ROOM, target)


def _succeeds(engine: Engine) -> bool:
    try:
        return engine.run(gather_list(Word(f"w{n}").set("new") for n in range(50))) == [True] * 50
    except EngineError:
        return False


def test_calls_succeed_again_when_a_replica_took_over_from_a_killed_master(
    open_engine: OpenEngine, cluster_url: str, keywright_cluster: RedisCluster
) -> None:
    engine = open_engine(cluster_url)
    engine.run(Word("a").set("x"))
    dead = keywright_cluster.master_of(SLOT)
    dead.call("WAIT", 1, 5_000)
    keywright_cluster.kill(dead)
    wait_until(lambda: _succeeds(engine), "every slot takes writes", seconds=60)
    assert keywright_cluster.master_of(SLOT) is not dead
    assert engine.run(Word("a").get()) == "x"


def test_calls_succeed_again_when_a_replica_took_over_from_a_frozen_master(
    open_engine: OpenEngine, cluster_url: str, keywright_cluster: RedisCluster
) -> None:
    """A node that is cut off closes nothing and redirects nobody: only a deadline shows it."""
    engine = open_engine(cluster_url, Settings(timeout_seconds=0.5, connect_seconds=0.5))
    engine.run(Word("a").set("x"))
    frozen = keywright_cluster.master_of(SLOT)
    frozen.call("WAIT", 1, 5_000)
    frozen.pause()
    with pytest.raises(DeadlineError):
        engine.run(Word("a").get())
    wait_until(lambda: _succeeds(engine), "every slot takes writes", seconds=60)
    assert engine.run(Word("a").get()) == "x"


def test_a_planned_failover_is_followed_while_the_former_master_stays_alive(
    open_engine: OpenEngine, cluster_url: str, keywright_cluster: RedisCluster
) -> None:
    engine = open_engine(cluster_url, Settings(retry=Retry(within_seconds=60)))
    engine.run(Tally("a").add(1))
    former = keywright_cluster.master_of(slot_of(b"tally:a"))
    successor = keywright_cluster.hand_over(former)
    assert engine.run(Tally("a").add(1)) == 2
    assert successor.call("GET", "tally:a") == b"2"


def test_a_frozen_node_does_not_hold_up_calls_to_healthy_ones_that_need_the_new_topology(
    open_engine: OpenEngine, cluster_url: str, keywright_cluster: RedisCluster
) -> None:
    """Asking the frozen node alone would take 60 seconds; the bound is far above what the others need."""
    frozen = next(node for node in keywright_cluster.nodes if node.tcp_url == cluster_url)
    owner, target = [master for master in keywright_cluster.masters() if master is not frozen][:2]
    word = next(each for n in range(100) if _owner(keywright_cluster, each := Word(f"w{n}")) is owner)
    engine = open_engine(cluster_url, Settings(timeout_seconds=60, connect_seconds=60))
    engine.run(word.set("x"))
    keywright_cluster.migrate_slot(slot_of(bytes(word)), target)
    frozen.pause()
    assert engine.start(word.get()).result(timeout=40) == "x"


def _owner(cluster: RedisCluster, word: Word) -> RedisServer:
    return cluster.master_of(slot_of(bytes(word)))


def test_a_wait_for_an_item_goes_to_the_node_that_has_the_key(
    open_engine: OpenEngine, cluster_url: str
) -> None:
    engine = open_engine(cluster_url)
    for name in ("a", "b", "c", "d"):
        waiting = engine.start(Queue(name).wait(timedelta(seconds=30)))
        engine.run(Queue(name).push("item"))
        assert waiting.result() == "item"
