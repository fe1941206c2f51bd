"""List: an ordered sequence, cheap at both ends."""

from __future__ import annotations

from datetime import timedelta

import pytest

from keywright import Id, Keyspace, List, SnowflakeId, preview
from keywright.errors import (
    CrossSlotError,
    ServerRefusedError,
    StoredDataError,
    ValueRefusedError,
    WrongTypeError,
)
from keywright.testing.runs import Raw, Run

space = Keyspace("queues", "Who waits where.")

ABOVE_DOUBLES = 2**53 + 1


class Queue(List[SnowflakeId], key="queue:<desk>", space=space):
    """Who waits at a desk."""

    desk: Id


class Lane(List[SnowflakeId], key="{hall:<hall>}:lane:<lane>", space=space):
    """Who waits in a lane; the lanes of a hall share a slot."""

    hall: Id
    lane: Id


def test_push_adds_at_either_end(run: Run, raw: Raw) -> None:
    assert run(Queue("a").push(ABOVE_DOUBLES, 2)) == 2
    assert run(Queue("a").push(0, end="left")) == 3
    assert raw("LRANGE", "queue:a", 0, -1) == [b"0", b"9007199254740993", b"2"]
    assert run(Queue("a").range()) == [0, ABOVE_DOUBLES, 2]


def test_push_without_items_returns_the_length_and_writes_nothing(run: Run, raw: Raw) -> None:
    (wire,) = preview(Queue("a").push())
    assert wire.arguments == (b"LLEN", b"queue:a")
    assert run(Queue("a").push()) == 0
    assert raw("EXISTS", "queue:a") == 0


def test_pop_takes_from_either_end(run: Run, raw: Raw) -> None:
    run(Queue("a").push(1, 2, 3, 4, 5))
    assert run(Queue("a").pop()) == 1
    assert run(Queue("a").pop(end="right")) == 5
    assert run(Queue("a").pop_many(2)) == [2, 3]
    assert run(Queue("a").pop_many(9, end="right")) == [4]
    assert run(Queue("a").pop()) is None
    assert run(Queue("a").pop_many(2)) == []
    assert raw("EXISTS", "queue:a") == 0


def test_wait_returns_at_once_when_there_is_an_item(run: Run) -> None:
    run(Queue("a").push(1, 2))
    assert run(Queue("a").wait(timedelta(seconds=5))) == 1
    assert run(Queue("a").wait(timedelta(seconds=5), end="right")) == 2


@pytest.mark.parametrize("milliseconds", [0, 1, 20])
def test_wait_gives_up_after_its_time(run: Run, milliseconds: int) -> None:
    assert run(Queue("a").wait(timedelta(milliseconds=milliseconds))) is None


def test_items_are_read_by_place(run: Run) -> None:
    run(Queue("a").push(10, 20, 30, 20))
    assert run(Queue("a").range(1, -2)) == [20, 30]
    assert run(Queue("a").length()) == 4
    assert run(Queue("a").at(0)) == 10
    assert run(Queue("a").at(-1)) == 20
    assert run(Queue("a").at(9)) is None
    assert run(Queue("a").find(20)) == 1
    assert run(Queue("a").find(99)) is None


def test_put_at_writes_a_place_that_exists(run: Run, raw: Raw) -> None:
    run(Queue("a").push(1, 2))
    run(Queue("a").put_at(1, 9))
    assert raw("LRANGE", "queue:a", 0, -1) == [b"1", b"9"]
    with pytest.raises(ServerRefusedError) as refused:
        run(Queue("a").put_at(5, 9))
    assert refused.value.command == "LSET"
    assert refused.value.key == b"queue:a"


def test_insert_returns_whether_it_found_the_item(run: Run, raw: Raw) -> None:
    run(Queue("a").push(1, 3))
    assert run(Queue("a").insert(2, before=3)) is True
    assert run(Queue("a").insert(2, before=99)) is False
    assert run(Queue("none").insert(2, before=3)) is False
    assert raw("LRANGE", "queue:a", 0, -1) == [b"1", b"2", b"3"]


def test_remove_counts_the_equal_items(run: Run, raw: Raw) -> None:
    run(Queue("a").push(1, 2, 1, 2, 1))
    assert run(Queue("a").remove(1, count=1)) == 1
    assert run(Queue("a").remove(1, count=-1)) == 1
    assert raw("LRANGE", "queue:a", 0, -1) == [b"2", b"1", b"2"]
    assert run(Queue("a").remove(2)) == 2
    assert run(Queue("a").remove(2)) == 0


def test_trim_keeps_the_middle(run: Run, raw: Raw) -> None:
    run(Queue("a").push(1, 2, 3, 4))
    run(Queue("a").trim(1, 2))
    assert raw("LRANGE", "queue:a", 0, -1) == [b"2", b"3"]


def test_replace_leaves_only_the_given_entries(run: Run, raw: Raw) -> None:
    run(Queue("a").push(1, 2))
    run(Queue("a").replace([3, 3]))
    assert raw("LRANGE", "queue:a", 0, -1) == [b"3", b"3"]
    run(Queue("a").replace([]))
    assert raw("EXISTS", "queue:a") == 0


def test_move_takes_one_item_along(run: Run, raw: Raw) -> None:
    run(Queue("a").push(1, 2))
    assert run(Queue("a").move(Queue("b"))) == 1
    assert run(Queue("a").move(Queue("b"), take="right", put="left")) == 2
    assert run(Queue("a").move(Queue("b"))) is None
    assert raw("LRANGE", "queue:b", 0, -1) == [b"2", b"1"]


def test_an_item_of_another_type_is_not_sent() -> None:
    with pytest.raises(ValueRefusedError) as refused:
        Queue("a").push(2**64)
    assert refused.value.template == "queue:<desk>"


def test_a_stored_item_that_does_not_decode_names_the_key(run: Run, raw: Raw) -> None:
    raw("RPUSH", "queue:a", "Anna")
    with pytest.raises(StoredDataError) as wrong:
        run(Queue("a").range())
    assert wrong.value.key == b"queue:a"
    assert wrong.value.template == "queue:<desk>"
    assert wrong.value.found == "b'Anna'"


def test_a_string_under_the_name_is_named(run: Run, raw: Raw) -> None:
    raw("SET", "queue:a", "x")
    with pytest.raises(WrongTypeError) as wrong:
        run(Queue("a").push(1))
    assert wrong.value.expected == "a list (list)"


def test_lanes_of_one_hall_exchange_items_on_a_cluster(cluster_run: Run, raw_cluster: Raw) -> None:
    cluster_run(Lane("h", "1").push(7))
    assert cluster_run(Lane("h", "1").move(Lane("h", "2"))) == 7
    assert raw_cluster("LRANGE", "{hall:h}:lane:2", 0, -1) == [b"7"]


def test_untagged_lists_do_not_exchange_items_on_a_cluster(cluster_run: Run, raw_cluster: Raw) -> None:
    cluster_run(Queue("a").push(7))
    with pytest.raises(CrossSlotError):
        cluster_run(Queue("a").move(Queue("b")))
    assert raw_cluster("LRANGE", "queue:a", 0, -1) == [b"7"]


def test_waiting_works_on_a_cluster(cluster_run: Run) -> None:
    cluster_run(Queue("a").push(7))
    assert cluster_run(Queue("a").wait(timedelta(seconds=5))) == 7
