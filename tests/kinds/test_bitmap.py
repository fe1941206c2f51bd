"""Bitmap: bits by their offset."""

from __future__ import annotations

from datetime import timedelta

import pytest

from keywright import Bitmap, Id, Keyspace, expires_in, preview
from keywright.errors import DeclarationError, StoredDataError, ValueRefusedError, WrongTypeError
from keywright.testing.runs import Raw, Run
from keywright.tools.describe.inspection import inspect

space = Keyspace("seats", "Which seats are taken.")


class Taken(Bitmap, key="taken:<hall>", space=space, bits=100):
    """The taken seats of a hall."""

    hall: Id


class Unbounded(Bitmap, key="unbounded", space=space):
    """Bits without a limit."""


class Brief(Bitmap, key="brief", space=space, bits=8, expiry=expires_in(timedelta(minutes=1))):
    """Bits that are soon forgotten."""


def test_a_bit_is_set_cleared_and_read(run: Run, raw: Raw) -> None:
    assert run(Taken("a").get(7)) is False
    assert run(Taken("a").set(7)) is False
    assert run(Taken("a").set(7)) is True
    assert raw("GET", "taken:a") == b"\x01"
    assert run(Taken("a").get(7)) is True
    assert run(Taken("a").set(7, False)) is True
    assert raw("GETBIT", "taken:a", 7) == 0


def test_many_bits_are_set_and_read_in_one_command(run: Run, raw: Raw) -> None:
    call = Taken("a").set_many({0: True, 9: True, 99: True, 1: False})
    assert [wire.arguments[0] for wire in preview(call)] == [b"BITFIELD"]
    assert run(call) == {0: False, 9: False, 99: False, 1: False}
    assert raw("GETBIT", "taken:a", 99) == 1
    assert run(Taken("a").get_many([0, 1, 9, 98])) == {0: True, 1: False, 9: True, 98: False}


def test_bits_are_counted_and_the_first_is_found(run: Run) -> None:
    run(Taken("a").set_many({3: True, 9: True, 17: True}))
    assert run(Taken("a").count()) == 3
    assert run(Taken("a").count(1, 1)) == 1
    assert run(Taken("a").first()) == 3
    assert run(Taken("a").first(True, 1)) == 9
    assert run(Taken("a").first(False)) == 0
    assert run(Taken("none").first()) is None
    assert run(Taken("none").count()) == 0


def test_ranges_of_bits_are_those_of_the_server(run: Run, raw: Raw) -> None:
    if str(raw("INFO", "server")["redis_version"]).startswith("6."):
        pytest.skip("Redis 6.2 has ranges of bytes only")
    run(Taken("a").set_many({3: True, 9: True, 17: True}))
    assert run(Taken("a").count(4, 17, unit="bit")) == 2
    assert run(Taken("a").first(True, 4, unit="bit")) == 9
    assert run(Taken("a").first(True, 10, 16, unit="bit")) is None


@pytest.mark.parametrize("offset", [-1, 100, 2**40, True, "1", None])
def test_an_offset_beyond_the_declared_bits_is_not_sent(offset: int) -> None:
    for call in (
        lambda: Taken("a").set(offset),
        lambda: Taken("a").get(offset),
        lambda: Taken("a").set_many({offset: True}),
        lambda: Taken("a").get_many([offset]),
    ):
        with pytest.raises(ValueRefusedError, match="from 0 to 99"):
            call()


def test_an_offset_that_no_server_takes_is_not_sent() -> None:
    with pytest.raises(ValueRefusedError):
        Unbounded().get(2**32)


@pytest.mark.parametrize("bits", [0, -1, 2**32 + 1, True, "8"])
def test_a_number_of_bits_that_cannot_be_is_a_declaration_error(bits: int) -> None:
    with pytest.raises(DeclarationError):

        class Wrong(Bitmap, key="wrong", space=Keyspace("w", "Wrong."), bits=bits):
            """Wrong."""


def test_calls_without_offsets_send_nothing() -> None:
    assert preview(Taken("a").set_many({})) == preview(Taken("a").get_many([])) == []


def test_writes_give_the_key_its_expiry(run: Run, raw: Raw) -> None:
    run(Brief().set(1))
    assert 0 < raw("PTTL", "brief") <= 60_000
    raw("PERSIST", "brief")
    run(Brief().set_many({2: True}))
    assert 0 < raw("PTTL", "brief") <= 60_000


def test_more_bytes_than_declared_are_malformed(run: Run, raw: Raw) -> None:
    raw("SETBIT", "taken:a", 104, 1)
    with pytest.raises(StoredDataError, match="at most 100 bits"):
        run(inspect(Taken("a")))


def test_a_set_under_the_name_is_named(run: Run, raw: Raw) -> None:
    raw("SADD", "taken:a", "x")
    with pytest.raises(WrongTypeError):
        run(Taken("a").set(1))


def test_bits_are_set_on_a_cluster(cluster_run: Run, raw_cluster: Raw) -> None:
    cluster_run(Taken("a").set_many({1: True, 2: True}))
    assert cluster_run(Taken("a").get_many([1, 3])) == {1: True, 3: False}
    assert raw_cluster("BITCOUNT", "taken:a") == 2
