"""HyperLogLog: estimates of distinct members."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

import pytest

from keywright import HyperLogLog, Id, Keyspace, Sealed, SnowflakeId, expires_in, preview
from keywright.errors import CrossSlotError, DeclarationError, StoredDataError, ValueRefusedError
from keywright.keyspace.codecs import CodecError
from keywright.testing.runs import Raw, Run
from keywright.tools.describe.inspection import inspect

space = Keyspace("visits", "Who looked at which page.")


class Visitors(HyperLogLog[SnowflakeId], key="visitors:<page>", space=space):
    """The visitors of a page."""

    page: Id


class Daily(HyperLogLog[SnowflakeId], key="{visitors:<page>}:<day>", space=space):
    """The visitors of a page by day; the days of a page share a slot."""

    page: Id
    day: Id


class Brief(
    HyperLogLog[SnowflakeId], key="brief:<page>", space=space, expiry=expires_in(timedelta(minutes=1))
):
    """Visitors that are soon forgotten."""

    page: Id


def test_a_member_counts_once(run: Run, raw: Raw) -> None:
    assert run(Visitors("home").add(1, 2, 2**53 + 1)) is True
    assert run(Visitors("home").add(2)) is False
    assert run(Visitors("home").estimate()) == 3
    assert raw("PFCOUNT", "visitors:home") == 3


def test_a_missing_key_has_an_estimate_of_0(run: Run) -> None:
    assert run(Visitors("none").estimate()) == 0


def test_members_in_several_keys_count_once(run: Run) -> None:
    run(Visitors("a").add(1, 2))
    run(Visitors("b").add(2, 3))
    assert run(Visitors("a").estimate(Visitors("b"))) == 3


def test_merge_adds_to_the_members_that_are_there(run: Run, raw: Raw) -> None:
    run(Visitors("a").add(1))
    run(Visitors("b").add(2))
    run(Visitors("all").add(3))
    run(Visitors("all").merge(Visitors("a"), Visitors("b")))
    assert raw("PFCOUNT", "visitors:all") == 3
    assert raw("PFCOUNT", "visitors:a") == 1


def test_writes_give_the_written_key_its_expiry(run: Run, raw: Raw) -> None:
    run(Brief("a").add(1))
    assert 0 < raw("PTTL", "brief:a") <= 60_000
    raw("PERSIST", "brief:a")
    run(Brief("all").merge(Brief("a")))
    assert 0 < raw("PTTL", "brief:all") <= 60_000
    assert raw("PTTL", "brief:a") == -1


def test_calls_without_members_send_nothing() -> None:
    assert preview(Visitors("a").add()) == []


def test_a_member_outside_the_type_is_not_sent() -> None:
    with pytest.raises(ValueRefusedError):
        Visitors("a").add(-1)


def test_members_cannot_be_sealed() -> None:
    with pytest.raises(DeclarationError):

        class Wrong(HyperLogLog[Annotated[str, Sealed]], key="wrong", space=Keyspace("w", "Wrong.")):
            """Sealed members."""


def test_a_string_that_is_not_one_is_an_error_of_the_server(run: Run, raw: Raw) -> None:
    raw("SET", "visitors:home", "x")
    with pytest.raises(StoredDataError) as wrong:
        run(inspect(Visitors("home")))
    assert wrong.value.key == b"visitors:home"


@pytest.mark.parametrize("count", [0, 1, 100, 3_000, 100_000])
def test_the_estimate_of_stored_bytes_is_that_of_the_server(count: int, run: Run, raw: Raw) -> None:
    if count == 0:
        raw("PFADD", "visitors:home")
    for start in range(0, count, 5_000):
        run(Visitors("home").add(*range(start, min(count, start + 5_000))))
    stored = raw("GET", "visitors:home")
    assert (stored[4] == 0) is (count >= 3_000), "few members are stored sparsely, many densely"
    codec = Visitors.declaration.storage.item
    before = codec.decode(stored)
    expected = raw("PFCOUNT", "visitors:home")
    assert before == expected
    assert codec.decode(raw("GET", "visitors:home")) == expected
    assert raw("GET", "visitors:home")[15] & 0x80 == 0, "the second is the cached one"


@pytest.mark.parametrize(
    "damage",
    [
        lambda _: b"",
        lambda data: data[:10],
        lambda data: b"HXLL" + data[4:],
        lambda data: data[:4] + b"\x07" + data[5:],
        lambda data: data[:-1],
        lambda data: data + b"\x00",
        lambda data: data[:4] + b"\x00" + data[5:],
    ],
)
def test_damaged_bytes_are_malformed(damage: object, raw: Raw) -> None:
    raw("PFADD", "visitors:home", "1", "2")
    assert callable(damage)
    with pytest.raises(CodecError):
        Visitors.declaration.storage.item.decode(damage(raw("GET", "visitors:home")))


def test_tagged_keys_are_estimated_and_merged_on_a_cluster(cluster_run: Run, raw_cluster: Raw) -> None:
    monday, tuesday = Daily("home", "mon"), Daily("home", "tue")
    cluster_run(monday.add(1, 2))
    cluster_run(tuesday.add(2, 3))
    assert cluster_run(monday.estimate(tuesday)) == 3
    cluster_run(Daily("home", "week").merge(monday, tuesday))
    assert raw_cluster("PFCOUNT", "{visitors:home}:week") == 3


def test_untagged_keys_are_refused_on_a_cluster_before_anything_is_sent(
    cluster_run: Run, raw_cluster: Raw
) -> None:
    cluster_run(Visitors("a").add(1))
    for call in (Visitors("b").estimate(Visitors("a")), Visitors("b").merge(Visitors("a"))):
        with pytest.raises(CrossSlotError):
            cluster_run(call)
    assert raw_cluster("EXISTS", "visitors:b") == 0
