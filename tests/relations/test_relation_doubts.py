"""Commits across slots whose answers are lost, or whose commands arrive twice: at most once, and whole."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from keywright import Database
from keywright.engine.nodes import Batch
from keywright.errors import KeywrightError, OutcomeUnknownError
from keywright.operations import Effect, Wire
from keywright.testing.runs import Raw
from kinship import Mortal, Moves, assert_whole, home, recover_all, survey

Opener = Callable[..., Database]


@pytest.fixture
def database(cluster_url: str, open_database: Opener) -> Database:
    return open_database(cluster_url)


@pytest.fixture
def rescue(cluster_url: str, open_database: Opener) -> Database:
    return open_database(cluster_url, timedelta(minutes=1))


def _until(process: Mortal, operation: str, verb: bytes = b"EVALSHA") -> Mortal:
    while (process.wires[0].operation.name.partition(" ")[0], process.wires[0].operation.verb) != (
        operation,
        verb,
    ):
        process.step()
    return process


def _unknown() -> KeywrightError:
    return OutcomeUnknownError("a node", "EVALSHA", b"a key")


def test_a_late_copy_of_an_intent_does_not_make_it_undecided_again(
    database: Database, rescue: Database, raw_cluster: Raw
) -> None:
    process = _until(Mortal(database, home.assign("ann", "one")), "journal", b"HSETNX")
    intent = list(process.wires)
    _until(process, "decide").step()
    database.run(Batch(intent))
    recover_all(rescue)
    assert raw_cluster("GET", "person:ann:home") == b"one"
    assert_whole(survey(raw_cluster))


def test_an_intent_is_never_sent_twice(database: Database) -> None:
    """Its copy could arrive when it was undone, and bring it back to be decided without its markers."""
    process = _until(Mortal(database, home.assign("ann", "one")), "journal", b"HSETNX")
    assert {wire.operation.effect for wire in process.wires} == {Effect.ONCE}


@pytest.mark.parametrize("arrived", [True, False])
def test_an_intent_in_doubt_is_undone_and_replaced(
    arrived: bool, database: Database, raw_cluster: Raw
) -> None:
    call = home.assign("ann", "one", also=[Moves().add(1)])
    process = _until(Mortal(database, call), "journal", b"HSETNX")
    process.send(range(arrived))
    process.receive([_unknown()])
    assert process.finish() is True
    assert raw_cluster("GET", "moves") == b"1"
    assert_whole(survey(raw_cluster))


def test_a_preparation_is_never_sent_twice(database: Database) -> None:
    """Its copy could arrive when the commit is applied already, and have it applied again."""
    process = _until(Mortal(database, home.assign("ann", "one")), "commit")
    assert {wire.operation.effect for wire in process.wires} == {Effect.ONCE}


@pytest.mark.parametrize("lost", range(3))
@pytest.mark.parametrize("arrived", [True, False])
def test_a_preparation_in_doubt_is_undone_and_retried(
    lost: int, arrived: bool, database: Database, raw_cluster: Raw
) -> None:
    process = _until(Mortal(database, home.assign("ann", "one", also=[Moves().add(1)])), "commit")
    chosen = [number for number in range(len(process.wires)) if arrived or number != lost]
    replies = process.send(chosen)
    process.receive([*replies[:lost], _unknown(), *replies[lost + arrived :]])
    assert process.finish() is True
    assert raw_cluster("GET", "moves") == b"1"
    assert_whole(survey(raw_cluster))


@pytest.mark.parametrize("arrived", [True, False])
def test_a_decision_in_doubt_is_looked_up(arrived: bool, database: Database, raw_cluster: Raw) -> None:
    process = _until(Mortal(database, home.assign("ann", "one", also=[Moves().add(1)])), "decide")
    process.send(range(arrived))
    process.receive([_unknown()])
    assert process.finish() is True
    assert raw_cluster("GET", "moves") == b"1"
    assert_whole(survey(raw_cluster))


def test_a_decision_in_doubt_that_others_have_finished_is_not_made_again(
    database: Database, rescue: Database, raw_cluster: Raw
) -> None:
    process = _until(Mortal(database, home.assign("ann", "one", also=[Moves().add(1)])), "decide")
    process.send(range(1))
    recover_all(rescue)
    process.receive([_unknown()])
    with pytest.raises(OutcomeUnknownError):
        process.finish()
    assert raw_cluster("GET", "moves") == b"1"
    assert_whole(survey(raw_cluster))


def test_writes_that_arrive_twice_are_applied_once(
    database: Database, rescue: Database, raw_cluster: Raw
) -> None:
    process = _until(Mortal(database, home.assign("ann", "one", also=[Moves().add(1)])), "decide")
    process.step()
    copies: list[Wire] = []
    while process.wires[0].operation.name.startswith("commit"):
        copies += process.wires
        process.step()
    process.finish()
    rescue.run(home.replace("ann", "two"))
    database.run(Batch(copies))
    assert raw_cluster("GET", "moves") == b"1"
    assert raw_cluster("GET", "person:ann:home") == b"two"
    assert_whole(survey(raw_cluster))
