"""Keys that had another name: every operation finds them, and brings them home once."""

from __future__ import annotations

from collections.abc import Callable, Generator
from datetime import timedelta
from typing import Annotated, Any

import pytest

from keywright import Call, Id, Keyspace, Sealed, Value, atomic, check, gather
from keywright.errors import DeclarationError
from keywright.keyspace.renames import Arrival, moved
from keywright.operations import Procedure
from keywright.testing.runs import OpenRun, Raw, Run
from keywright.tools.describe.description import describe
from migrating import (
    Book,
    BooksAt,
    Fines,
    HomeOf,
    Loans,
    OldLoans,
    Profile,
    Queue,
    Shelf,
    Tag,
    Visits,
    book_home,
    now,
)
from moved_modules import moved_with_future, moved_without_future

MINUTE_MS = 60_000

Place = tuple[Run, Raw]


@pytest.fixture(params=["server", "cluster"])
def place(request: pytest.FixtureRequest, open_run: OpenRun) -> Place:
    """A database and redis-py beside it: on one server, and on a cluster where most moves cross slots."""
    kind = request.param
    url = request.getfixturevalue("redis_url" if kind == "server" else "cluster_url")
    raw = request.getfixturevalue("raw" if kind == "server" else "raw_cluster")
    return open_run(url), raw


# How each kind is stored under its former name, the first call, and what it gives.
FIRST_CALLS: list[tuple[tuple[Any, ...], Callable[[], Call[Any]], object]] = [
    (("SADD", "loans:ann", "dune"), lambda: Loans("ann").members(), {"dune"}),
    (("SADD", "loans:ann", "dune"), lambda: Loans("ann").add("emma"), 1),
    (("HSET", "shelf:east:a", "dune", "2"), lambda: Shelf("east", "a").get("dune"), 2),
    (("HSET", "shelf:east:a", "dune", "2"), lambda: Shelf("east", "a").add("dune", 3), 5),
    (("SET", "tag:dune", "red"), lambda: Tag("dune").get(), "red"),
    (("SET", "label:dune", "red"), lambda: Tag("dune").swap("blue"), "red"),
    (("SET", "visits:ann", "41"), lambda: Visits("ann").add(), 42),
    (("SET", "visits:ann", "41"), lambda: Visits.get_many(["ann", "ben"]), [41, 0]),
    (("RPUSH", "queue:dune", "ann", "ben"), lambda: Queue("dune").push("cat"), 3),
    (("ZADD", "fines:ann", "5", "dune"), lambda: Fines("ann").score("dune"), 5),
    (("HSET", "profile:ann", "title", "Dr"), lambda: Profile("ann").get(), Book("Dr")),
    (("HSET", "profile:ann", "title", "Dr"), lambda: Profile("ann").update(pages=3), True),
    (("SET", "tag:dune", "red"), lambda: Tag.get_many(["dune", "emma"]), ["red", None]),
]


@pytest.mark.parametrize(("stored", "call", "answer"), FIRST_CALLS)
def test_the_first_operation_finds_the_former_name_and_moves_it(
    place: Place, stored: tuple[Any, ...], call: Callable[[], Call[Any]], answer: object
) -> None:
    run, raw = place
    raw(*stored)
    assert run(call()) == answer
    assert not raw("EXISTS", stored[1])


def test_a_move_keeps_the_time_that_is_left(place: Place) -> None:
    run, raw = place
    raw("SET", "tag:dune", "red", "PX", MINUTE_MS)
    raw("SADD", "loans:ann", "dune")
    assert run(moved(Tag("dune"))) is Arrival.MOVED
    assert run(moved(Loans("ann"))) is Arrival.MOVED
    assert 0 < raw("PTTL", "tag:{dune}") <= MINUTE_MS
    assert raw("PTTL", "reader:ann:loans") == -1


def test_where_there_is_nothing_old_nothing_is_moved(place: Place) -> None:
    run, _ = place
    run(Tag("dune").set("red"))
    assert run(moved(Tag("dune"))) is Arrival.NOTHING
    assert run(Tag("dune").get()) == "red"
    assert run(Tag("emma").get()) is None


def test_a_large_set_and_a_large_map_are_moved_whole(place: Place) -> None:
    run, raw = place
    members = [f"book-{number}" for number in range(3000)]
    raw("SADD", "loans:ann", *members)
    raw("HSET", "shelf:east:a", *(word for member in members for word in (member, "1")))
    assert run(Loans("ann").members()) == set(members)
    assert run(Shelf("east", "a").size()) == 3000


def test_an_interrupted_copy_is_finished_by_the_next_operation(cluster_run: Run, raw_cluster: Raw) -> None:
    """A process that died after copying leaves both names, with the same content."""
    members = [f"book-{number}" for number in range(2000)]
    for name in ("loans:ann", "reader:ann:loans"):
        raw_cluster("SADD", name, *(members if name == "loans:ann" else reversed(members)))
    assert cluster_run(Loans("ann").add("last")) == 1
    assert not raw_cluster("EXISTS", "loans:ann")
    assert raw_cluster("SCARD", "reader:ann:loans") == 2001


def test_writes_of_an_older_program_after_the_move_are_not_removed(place: Place) -> None:
    run, raw = place
    run(Loans("ann").add("dune"))
    raw("SADD", "loans:ann", "emma")
    assert run(Loans("ann").members()) == {"dune"}
    assert run(moved(Loans("ann"))) is Arrival.BOTH
    assert raw("SMEMBERS", "loans:ann") == {b"emma"}
    assert run(moved(Loans("ann"), discard=True)) is Arrival.MOVED
    assert not raw("EXISTS", "loans:ann")
    assert run(Loans("ann").members()) == {"dune"}


def test_the_first_of_several_former_names_wins(place: Place) -> None:
    run, raw = place
    raw("SET", "tag:dune", "red")
    raw("SET", "label:dune", "blue")
    assert run(moved(Tag("dune"))) is Arrival.BOTH
    assert run(Tag("dune").get()) == "red"


def test_a_relation_whose_sides_are_under_former_names_is_assigned_whole(place: Place) -> None:
    run, raw = place
    raw("SET", "home:dune", "east")
    raw("SADD", "books:east", "dune", "emma")
    run(book_home.replace("dune", "west"))
    assert run(gather(HomeOf("dune").get(), BooksAt("east").members(), BooksAt("west").members())) == (
        "west",
        {"emma"},
        {"dune"},
    )


def test_a_transaction_begins_after_the_moves(place: Place) -> None:
    run, raw = place
    raw("HSET", "shelf:east:a", "dune", "2")
    raw("HSET", "shelf:east:b", "emma", "1")
    a, b = Shelf("east", "a"), Shelf("east", "b")
    assert run(atomic(a.add("dune", -1), b.add("dune", 1))) == (1, 1)
    assert run(gather(a.all(), b.all())) == ({"dune": 1}, {"emma": 1, "dune": 1})
    run(Profile("ann").put(Book("Dr", 2)))
    assert run(Profile("ann").get()) == Book("Dr", 2)


def test_many_writes_take_the_place_of_former_names(place: Place) -> None:
    run, raw = place
    raw("SET", "tag:dune", "red")
    run(Tag.set_many([("dune", "blue"), ("emma", "green")]))
    run(Tag.set_along((), ["ivanhoe"], ["white"]))
    assert run(Tag.get_many(["dune", "emma", "ivanhoe"])) == ["blue", "green", "white"]
    assert not raw("EXISTS", "tag:dune")
    assert (run(Tag("dune").ttl()) or timedelta()) > timedelta(hours=23)


def test_a_sealed_key_cannot_just_be_renamed() -> None:
    space = Keyspace("refused", "Nothing of it is kept.")
    with pytest.raises(DeclarationError, match="Upgrade with moved_from"):

        class Pin(Value[Annotated[str, Sealed]], key="pin:{<card>}", space=space, moved_from="pin:<card>"):
            """Sealed under its template."""

            card: Id


def test_a_former_name_that_another_key_has_is_found() -> None:
    space = Keyspace("mistaken", "Its former names are in use.")

    class New(Value[str], key="new:<each>", space=space, moved_from="old:<each>"):
        """Moved."""

        each: Id

    class Other(Value[str], key="old:<each>", space=space):
        """What has the name now."""

        each: Id

    codes = [finding.code for finding in check(space)]
    assert codes == ["former-name-in-use"]


def test_the_keyspace_of_these_tests_is_proved() -> None:
    assert [finding for finding in check(now) if finding.severity == "error"] == []


def test_writes_of_an_older_program_during_the_copy_are_copied_too(
    cluster_run: Run, raw_cluster: Raw
) -> None:
    """The write comes between the copy and the removal: the copy is taken back and made again."""
    raw_cluster("SADD", "loans:ann", "dune")

    def late() -> Generator[Call[Any], Any, None]:
        yield OldLoans("nobody").exists()  # meanwhile it is found that there is something
        yield OldLoans("nobody").exists()  # and that is taken
        yield OldLoans("ann").add("emma")

    arrival, _ = cluster_run(gather(moved(Loans("ann")), Procedure(late, "an older program")))
    assert arrival is Arrival.MOVED
    assert raw_cluster("SMEMBERS", "reader:ann:loans") == {b"dune", b"emma"}
    assert not raw_cluster("EXISTS", "loans:ann")


def test_former_names_are_described() -> None:
    (loans,) = (key for key in describe(now).keys if key.name == "Loans")
    assert [(each.moved, each.moved_from) for each in loans.upgrades] == [(True, "loans:<reader>")]


@pytest.mark.parametrize("module", [moved_with_future, moved_without_future], ids=["text", "objects"])
@pytest.mark.parametrize("operation", ["count", "count_unannotated"])
def test_an_operation_of_a_users_own_class_moves_first_however_it_is_annotated(
    module: Any, operation: str, run: Run, raw: Raw
) -> None:
    raw("SADD", "lent:ann", "dune", "emma")
    assert run(getattr(module.Borrowed("ann"), operation)()) == 2
    assert raw.names() == {b"borrowed:ann"}


def test_a_method_that_is_not_an_operation_stays_as_it_is() -> None:
    assert moved_with_future.Borrowed("ann").words() == "borrowed"


def test_an_operation_made_of_operations_moves_once(run: Run, raw: Raw) -> None:
    raw("SADD", "lent:ann", "dune")
    run(moved_with_future.Borrowed("ben").members())  # loads the script
    raw("CONFIG", "RESETSTAT")
    assert run(moved_with_future.Borrowed("ann").members_twice()) == {"dune"}
    assert raw.calls_of("evalsha") == 1
