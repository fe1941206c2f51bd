"""A process that dies at any point of a commit across slots leaves all of it or nothing, never half."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from itertools import chain, combinations
from typing import Any

import pytest

from keywright import Call, Database, erase, recover
from keywright.errors import ConflictError, OutcomeUnknownError, TakenError, UsageError, WrongTypeError
from keywright.testing import Proxy
from keywright.testing.runs import Raw
from kinship import (
    Club,
    Mortal,
    Moves,
    Person,
    Residents,
    assert_whole,
    club,
    desk,
    home,
    people,
    recover_all,
    survey,
)

Opener = Callable[..., Database]

MINUTE = timedelta(minutes=1)
MOST_ROUNDS = 12

MOVES: dict[str, Callable[[], Call[Any]]] = {
    "move": lambda: home.replace("ann", "two"),
    "move out": lambda: home.clear("ann"),
    "take the desk": lambda: desk.replace("ann", "two"),
    "choose clubs": lambda: club.replace("ann", {"two", "six"}),
    "name": lambda: people.put(Person("ann"), Person("ann").set("Anna")),
}


@pytest.fixture
def database(cluster_url: str, open_database: Opener) -> Database:
    return open_database(cluster_url)


@pytest.fixture
def rescue(cluster_url: str, open_database: Opener) -> Database:
    """A database by whose clock everyone else has been silent for long enough."""
    return open_database(cluster_url, MINUTE)


def _settle_the_town(raw: Raw, database: Database) -> None:
    raw("FLUSHALL")
    for call in (
        home.assign("ann", "one"),
        desk.assign("ann", "one"),
        desk.assign("bob", "two"),
        club.assign("ann", "one"),
        club.assign("ann", "six"),
    ):
        database.run(call)


def _subsets(count: int) -> Iterator[tuple[int, ...]]:
    return chain.from_iterable(combinations(range(count), size) for size in range(count + 1))


def _advanced(database: Database, call: Call[Any], rounds: int) -> Mortal | None:
    """Return a process after this many round trips; None if the call is over by then."""
    process = Mortal(database, call)
    try:
        for _ in range(rounds):
            process.step()
    except StopIteration:
        return None
    return process


def _until_decided(database: Database, call: Call[Any]) -> Mortal:
    """Return a process that has just committed its intent, and applied nothing."""
    process = Mortal(database, call)
    while not process.wires[0].operation.name.startswith("decide"):
        process.step()
    process.step()
    return process


def _until_prepared(database: Database, call: Call[Any]) -> Mortal:
    process = Mortal(database, call)
    while not process.wires[0].operation.name.startswith("decide"):
        process.step()
    return process


@pytest.mark.parametrize("move", MOVES)
def test_death_at_any_point_leaves_the_state_before_or_after(
    move: str, database: Database, rescue: Database, raw_cluster: Raw
) -> None:
    _settle_the_town(raw_cluster, database)
    before = survey(raw_cluster)
    database.run(MOVES[move]())
    after = survey(raw_cluster)
    assert before != after
    seen = set()
    for rounds in range(MOST_ROUNDS):
        for sent in _subsets(_due(raw_cluster, database, move, rounds)):
            _settle_the_town(raw_cluster, database)
            process = _advanced(database, MOVES[move](), rounds)
            assert process is not None
            process.send(sent)
            recover_all(rescue)
            found = survey(raw_cluster)
            assert found in (before, after), (rounds, sent)
            seen.add(found == after)
    assert seen == {True, False}


def _due(raw: Raw, database: Database, move: str, rounds: int) -> int:
    """Return how many commands this round trip sends; -1 if the call is over by then."""
    _settle_the_town(raw, database)
    process = _advanced(database, MOVES[move](), rounds)
    return -1 if process is None else len(process.wires)


@pytest.mark.parametrize("sent", [True, False], ids=["commands sent", "commands unsent"])
@pytest.mark.parametrize("rounds", range(7))
def test_a_process_that_wakes_up_after_recovery_changes_nothing(
    rounds: int, sent: bool, database: Database, rescue: Database, raw_cluster: Raw
) -> None:
    sleeper = _advanced(database, home.assign("ann", "one"), rounds)
    assert sleeper is not None
    due = range(len(sleeper.wires))
    replies = sleeper.send(due) if sent else None
    recover_all(rescue)
    rescue.run(home.replace("ann", "six"))
    moved_on = survey(raw_cluster)
    # It finds that it was undone and that ann is taken by now, or that others finished for it.
    with suppress(TakenError, StopIteration):
        sleeper.receive(sleeper.send(due) if replies is None else replies)
        sleeper.finish()
    recover_all(rescue)
    assert survey(raw_cluster) == moved_on
    assert_whole(moved_on)


def test_a_reader_finishes_a_committed_intent_that_it_meets(
    database: Database, rescue: Database, raw_cluster: Raw
) -> None:
    _settle_the_town(raw_cluster, database)
    _until_decided(database, home.replace("ann", "two"))
    assert rescue.run(home.of("ann")) == "two"
    assert_whole(survey(raw_cluster))


def test_a_reader_that_meets_an_undecided_intent_sees_the_stored_value(
    database: Database, raw_cluster: Raw
) -> None:
    _settle_the_town(raw_cluster, database)
    _until_prepared(database, home.replace("ann", "two"))
    assert database.run(home.of("ann")) == "one"


def test_a_writer_finishes_an_intent_it_meets_and_continues(
    database: Database, rescue: Database, raw_cluster: Raw
) -> None:
    _settle_the_town(raw_cluster, database)
    _until_decided(database, home.replace("ann", "two"))
    assert rescue.run(home.replace("ann", "six"))
    found = survey(raw_cluster)
    assert found.members("house:six:residents") == {"ann"}
    assert_whole(found)


def test_two_recoverers_at_once_agree(
    cluster_url: str, open_database: Opener, database: Database, raw_cluster: Raw
) -> None:
    _settle_the_town(raw_cluster, database)
    for move in MOVES.values():
        _until_decided(database, move())
    recoverers = [open_database(cluster_url, MINUTE) for _ in range(2)]
    threads = [threading.Thread(target=recover_all, args=(recoverer,)) for recoverer in recoverers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert survey(raw_cluster).values["person:ann:desk"] == "two"
    assert_whole(survey(raw_cluster))


def test_recoverers_that_die_themselves_leave_the_rest_to_the_next(
    database: Database, rescue: Database, raw_cluster: Raw
) -> None:
    """Both directions of a recovery, finishing and undoing, are cut short at every round trip."""
    for prepare in (_until_decided, _until_prepared):
        for rounds in range(MOST_ROUNDS):
            _settle_the_town(raw_cluster, database)
            prepare(database, home.replace("ann", "two"))
            recoverer = _advanced(rescue, recover(grace=timedelta(0)), rounds)
            if recoverer is not None:
                recoverer.send(range(1))
            recover_all(rescue)
            assert_whole(survey(raw_cluster))


def test_a_young_undecided_intent_makes_others_give_up_after_bounded_attempts(
    database: Database, raw_cluster: Raw
) -> None:
    _settle_the_town(raw_cluster, database)
    before = survey(raw_cluster)
    _until_prepared(database, home.replace("ann", "two"))
    with pytest.raises(ConflictError, match="changed nothing"):
        database.run(home.replace("ann", "six"))
    assert survey(raw_cluster)._replace(journal=frozenset()) == before


def test_an_old_undecided_intent_is_undone_by_the_writer_that_meets_it(
    database: Database, rescue: Database, raw_cluster: Raw
) -> None:
    _settle_the_town(raw_cluster, database)
    _until_prepared(database, home.replace("ann", "two"))
    assert rescue.run(home.replace("ann", "six"))
    assert_whole(survey(raw_cluster))


def test_an_intent_that_cannot_be_finished_does_not_keep_others_from_recovery(
    database: Database, rescue: Database, raw_cluster: Raw
) -> None:
    _settle_the_town(raw_cluster, database)
    _until_decided(database, home.replace("ann", "two"))
    raw_cluster("HSET", "house:two:residents", "a", "stray")
    for person in ("bob", "cleo", "dora", "emil"):
        _until_decided(database, home.assign(person, "six"))
    with pytest.raises(WrongTypeError):
        recover_all(rescue)
    assert raw_cluster("SCARD", "house:six:residents") == 4
    raw_cluster("DEL", "house:two:residents")
    recover_all(rescue)
    assert_whole(survey(raw_cluster))


def test_a_commit_that_fails_in_preparation_gives_its_keys_back_at_once(
    database: Database, raw_cluster: Raw
) -> None:
    raw_cluster("HSET", "seated", "a", "stray")
    with pytest.raises(WrongTypeError):
        database.run(desk.replace("ann", "one"))
    assert raw_cluster.names() == {b"seated"}


@pytest.mark.parametrize("rounds", range(MOST_ROUNDS))
def test_erasing_while_another_writer_relates_leaves_no_half_relation(
    rounds: int, database: Database, rescue: Database, raw_cluster: Raw
) -> None:
    _settle_the_town(raw_cluster, database)
    eraser = _advanced(database, erase(Person("ann")), rounds)
    for call in (home.replace("ann", "six"), club.assign("ann", "two"), desk.replace("ann", "six")):
        rescue.run(call)
    if eraser is not None:
        eraser.finish()
    recover_all(rescue)
    assert_whole(survey(raw_cluster))


@pytest.mark.parametrize("rounds", range(6))
def test_erasing_on_one_server_while_another_writer_relates_leaves_no_half_relation(
    rounds: int, redis_url: str, open_database: Opener, raw: Raw
) -> None:
    database = open_database(redis_url)
    _settle_the_town(raw, database)
    eraser = _advanced(database, erase(Person("ann")), rounds)
    for call in (home.replace("ann", "six"), club.assign("ann", "two"), desk.replace("ann", "six")):
        database.run(call)
    if eraser is not None:
        eraser.finish()
    assert_whole(survey(raw))


def test_erasing_ends_a_membership_that_only_one_side_knows(
    redis_url: str, open_database: Opener, raw: Raw
) -> None:
    raw("SADD", "club:one:members", "ann")
    open_database(redis_url).run(erase(Club("one")))
    assert raw.names() == set()


@pytest.mark.parametrize("url", ["redis_url", "cluster_url"])
def test_a_key_of_another_type_keeps_a_relation_from_being_half_written(
    url: str, request: pytest.FixtureRequest, open_database: Opener
) -> None:
    database = open_database(request.getfixturevalue(url))
    raw = request.getfixturevalue("raw" if url == "redis_url" else "raw_cluster")
    raw("HSET", "house:one:residents", "a", "stray")
    with pytest.raises(WrongTypeError):
        database.run(home.assign("ann", "one"))
    assert raw("EXISTS", "person:ann:home") == 0
    assert raw("EXISTS", "housed") == 0


def test_a_lost_answer_to_an_assignment_is_found_out_by_reading(
    redis_url: str, make_proxy: Callable[[str], Proxy], open_database: Opener, raw: Raw
) -> None:
    proxy = make_proxy(redis_url)
    database = open_database(proxy.url)
    database.run(home.assign("bob", "one"))
    proxy.cut_before_reply(2)
    assert database.run(home.assign("ann", "one")) is False
    assert_whole(survey(raw))
    assert raw("SCARD", "house:one:residents") == 2


def test_a_lost_command_of_an_assignment_is_sent_again(
    redis_url: str, make_proxy: Callable[[str], Proxy], open_database: Opener, raw: Raw
) -> None:
    proxy = make_proxy(redis_url)
    database = open_database(proxy.url)
    database.run(home.assign("bob", "one"))
    proxy.cut_after_commands(1)
    assert database.run(home.assign("ann", "one")) is True
    assert_whole(survey(raw))


def test_a_write_that_is_not_idempotent_is_not_repeated_when_the_answer_is_lost(
    redis_url: str, make_proxy: Callable[[str], Proxy], open_database: Opener, raw: Raw
) -> None:
    proxy = make_proxy(redis_url)
    database = open_database(proxy.url)
    database.run(home.assign("bob", "one"))
    proxy.cut_before_reply(2)
    with pytest.raises(OutcomeUnknownError):
        database.run(home.assign("ann", "one", also=[Moves().add(1)]))
    assert raw("GET", "moves") == b"1"
    assert_whole(survey(raw))


def test_also_takes_a_call_that_does_nothing_but_not_another_relation(
    redis_url: str, open_database: Opener, raw: Raw
) -> None:
    database = open_database(redis_url)
    nothing: Call[int] = Residents("six").add()
    assert database.run(home.assign("ann", "one", also=[nothing])) is True
    with pytest.raises(UsageError, match="reads before it writes"):
        database.run(home.replace("ann", "two", also=[club.assign("ann", "one")]))
    assert raw("GET", "person:ann:home") == b"one"
