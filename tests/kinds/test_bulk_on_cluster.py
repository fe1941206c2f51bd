"""Bulk reads and writes across the slots of a real cluster."""

from __future__ import annotations

import pytest

from keywright import U64, Counter, Id, Keyspace, Value, atomic, gather, gather_list
from keywright.errors import CrossSlotError
from keywright.operations import slot_of
from keywright.testing.runs import Raw, Run

space = Keyspace("post", "Letters, spread over a cluster.")

MANY = range(500)


class Letter(Value[str], key="letter:<number>", space=space):
    """A letter."""

    number: U64


class Stamps(Counter, key="stamps:<number>", space=space):
    """Stamps on a letter."""

    number: U64


class Parcel(Value[str], key="{van:<van>}:parcel:<parcel>", space=space):
    """A parcel; the parcels of a van share a slot."""

    van: Id
    parcel: U64


def test_values_of_many_slots_are_written_and_read_at_once(cluster_run: Run, raw_cluster: Raw) -> None:
    cluster_run(Letter.set_many((number, f"text {number}") for number in MANY))
    assert len({slot_of(b"letter:%d" % number) for number in MANY}) > 100
    assert raw_cluster("GET", "letter:77") == b"text 77"
    asked = [*reversed(MANY), 2**53 + 1]
    assert cluster_run(Letter.get_many(asked)) == [*(f"text {number}" for number in reversed(MANY)), None]


def test_counters_of_many_slots_are_read_at_once(cluster_run: Run) -> None:
    cluster_run(gather_list(Stamps(number).add(number) for number in MANY))
    assert cluster_run(Stamps.get_many([5, 1000, 3])) == [5, 0, 3]


def test_bulk_calls_without_ids_do_nothing(cluster_run: Run) -> None:
    assert cluster_run(Letter.get_many([])) == []
    cluster_run(Letter.set_many([]))


def test_gather_reads_from_several_nodes(cluster_run: Run) -> None:
    cluster_run(gather(Letter(1).set("one"), Letter(2).set("two"), Stamps(3).add()))
    assert cluster_run(gather(Letter(1).get(), Letter(2).get(), Stamps(3).get())) == ("one", "two", 1)


def test_atomic_holds_within_a_hash_tag(cluster_run: Run, raw_cluster: Raw) -> None:
    assert cluster_run(atomic(Parcel("a", 1).set("x"), Parcel("a", 2).set("y"))) == (True, True)
    assert raw_cluster("MGET", "{van:a}:parcel:1", "{van:a}:parcel:2") == [b"x", b"y"]


def test_atomic_across_slots_is_refused_before_anything_is_sent(cluster_run: Run, raw_cluster: Raw) -> None:
    with pytest.raises(CrossSlotError) as refused:
        cluster_run(atomic(Letter(1).set("x"), Letter(2).set("y")))
    assert {name for name, _ in refused.value.keys} == {b"letter:1", b"letter:2"}
    assert raw_cluster.names() == set()


def test_atomic_spread_is_one_transaction_a_slot(cluster_run: Run) -> None:
    assert cluster_run(atomic(Letter(1).set("x"), Letter(2).set("y"), spread=True)) == (True, True)
    assert cluster_run(Letter.get_many([1, 2])) == ["x", "y"]
