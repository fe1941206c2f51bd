"""Commits across slots whose nodes or replicas go away: the error says truthfully what was applied."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest

from keywright import Database, Durability, Retry, RoundTrip, Settings, connect, recover
from keywright.errors import (
    ConnectionLostError,
    DeadlineError,
    KeywrightError,
    OutcomeUnknownError,
    ServerRefusedError,
    UnderReplicatedError,
    UnfinishedCommitError,
)
from keywright.operations import commit, equals, slot_of
from keywright.testing import RedisCluster
from keywright.testing.runs import Raw
from kinship import HomeOf, Mortal, Moves, assert_whole, home, recover_all, survey, town

Opener = Callable[..., Database]

IMPATIENT = Settings(retry=Retry(attempts=1))
DURABLE = Settings(durability=Durability(replicas=1, within_ms=150))


@pytest.fixture
def database(cluster_url: str, open_database: Opener) -> Database:
    return open_database(cluster_url)


@pytest.fixture
def frozen(keywright_cluster: RedisCluster, cluster_url: str) -> Iterator[Callable[[], None]]:
    """Freezes the replicas of every master until the test ends."""
    cluster = keywright_cluster
    replicas = [each for master in cluster.masters() for each in cluster.replicas_of(master)]

    def freeze() -> None:
        for each in replicas:
            each.pause()

    yield freeze
    cluster.heal()


def _once(operation: str, act: Callable[[], None]) -> Callable[[RoundTrip], None]:
    """Return an observer that acts after the first round trip with this operation."""
    acted: list[bool] = []

    def watch(trip: RoundTrip) -> None:
        if not acted and any(name == operation for _, name in trip.operations):
            acted.append(True)
            act()

    return watch


def test_a_write_that_is_not_idempotent_is_not_repeated_when_a_node_dies_after_the_decision(
    keywright_cluster: RedisCluster, cluster_url: str
) -> None:
    node = keywright_cluster.master_of(slot_of(b"moves"))
    watch = _once(f"decide {home.name}", lambda: keywright_cluster.kill(node))
    move = home.assign("ann", "one", also=[Moves().add(1)])
    with connect(cluster_url, town.bind(), settings=IMPATIENT, observers=[watch]) as db:
        with pytest.raises(UnfinishedCommitError, match=r"is decided.*Do not repeat it") as raised:
            db.run(move)
        assert isinstance(raised.value, OutcomeUnknownError)
        assert "call again" not in str(raised.value).replace(str(raised.value.reason), "")
    keywright_cluster.heal()
    with connect(keywright_cluster.url) as db:
        assert db.run(recover(town)).finished == 1
        assert db.run(Moves().get()) == 1
        assert db.run(home.of("ann")) == "one"
        assert db.run(home.inverse_of("one")) == {"ann"}


TROUBLES: list[KeywrightError] = [
    ConnectionLostError("a node", "it closed"),
    DeadlineError("a node", 5),
    ServerRefusedError("EVALSHA", b"moves", "READONLY You can't write against a read only replica."),
]


@pytest.mark.parametrize("trouble", TROUBLES, ids=lambda each: type(each).__name__)
@pytest.mark.parametrize("step", [0, 1], ids=["shared parts", "exclusive parts"])
def test_trouble_after_the_decision_never_advises_to_call_again(
    step: int, trouble: KeywrightError, database: Database, raw_cluster: Raw
) -> None:
    process = _until(Mortal(database, home.assign("ann", "one", also=[Moves().add(1)])), "decide")
    for _ in range(1 + step):
        process.step()
    process.send([])
    with pytest.raises(UnfinishedCommitError):
        process.receive([trouble for _ in process.wires])
    recover_all(database)
    assert raw_cluster("GET", "moves") == b"1"
    assert_whole(survey(raw_cluster))


def _until(process: Mortal, operation: str) -> Mortal:
    while not process.wires[0].operation.name.startswith(operation):
        process.step()
    return process


def test_an_intent_that_cannot_be_dropped_does_not_make_an_applied_commit_fail(
    database: Database, raw_cluster: Raw
) -> None:
    process = _until(Mortal(database, home.assign("ann", "one", also=[Moves().add(1)])), "decide")
    process.step()
    _until(process, "decide")
    with pytest.raises(StopIteration) as stop:
        process.receive([ConnectionLostError("a node", "it closed")])
    assert stop.value.value is True
    recover_all(database)
    assert_whole(survey(raw_cluster))


@pytest.mark.parametrize("lost", TROUBLES[:2], ids=lambda each: type(each).__name__)
def test_a_decision_in_doubt_that_cannot_be_looked_up_stays_in_doubt(
    lost: KeywrightError, database: Database, raw_cluster: Raw
) -> None:
    """The decision may have arrived: to report the second error would advise to call again."""
    process = _until(Mortal(database, home.assign("ann", "one", also=[Moves().add(1)])), "decide")
    process.send([0])
    process.receive([OutcomeUnknownError("a node", "EVALSHA", b"a key")])
    with pytest.raises(OutcomeUnknownError):
        process.receive([lost])
    recover_all(database)
    assert raw_cluster("GET", "moves") == b"1"


def test_a_decision_in_doubt_that_is_finished_while_it_is_looked_up_is_not_repeated(
    database: Database, raw_cluster: Raw
) -> None:
    process = _until(Mortal(database, home.assign("ann", "one", also=[Moves().add(1)])), "decide")
    process.send([0])
    process.receive([OutcomeUnknownError("a node", "EVALSHA", b"a key")])
    seen = process.send([0])
    recover_all(database)
    process.receive(seen)
    assert process.finish() is True
    assert raw_cluster("GET", "moves") == b"1"
    assert_whole(survey(raw_cluster))


def test_a_commit_across_slots_whose_intent_is_not_replicated_applies_nothing_and_says_so(
    frozen: Callable[[], None], cluster_url: str, raw_cluster: Raw
) -> None:
    with connect(cluster_url, town.bind(), settings=DURABLE) as db:
        frozen()
        with pytest.raises(UnderReplicatedError, match="nothing was applied") as raised:
            db.run(home.assign("ann", "one", also=[Moves().add(1)]))
    assert raised.value.applied is False
    assert raw_cluster.names() == set()


@pytest.mark.parametrize("operation", ["commit", "decide"])
def test_a_commit_across_slots_that_is_decided_is_applied_on_the_primaries_and_says_so(
    operation: str, frozen: Callable[[], None], cluster_url: str, raw_cluster: Raw
) -> None:
    watch = _once(f"{operation} {home.name}", frozen)
    with (
        connect(cluster_url, town.bind(), settings=DURABLE, observers=[watch]) as db,
        pytest.raises(UnderReplicatedError, match="the write was applied, but 0 of 1 replicas") as raised,
    ):
        db.run(home.assign("ann", "one", also=[Moves().add(1)]))
    assert raised.value.applied is True
    found = survey(raw_cluster)
    assert (found.values["moves"], found.values["person:ann:home"]) == ("1", "one")
    with connect(cluster_url, town.bind()) as db:
        # The intent is kept, so that what a failover loses can be applied again.
        assert db.run(recover(grace=timedelta(0))).finished == 1
    assert_whole(survey(raw_cluster))


def test_a_commit_that_is_refused_while_replicas_are_away_was_not_applied(
    frozen: Callable[[], None], cluster_url: str, raw_cluster: Raw
) -> None:
    with connect(cluster_url, town.bind(), settings=DURABLE) as db:
        frozen()
        assert not db.run(commit("refused", [equals(HomeOf("ann"), "two")], [HomeOf("ann").set("one")]))
    assert raw_cluster.names() == set()
