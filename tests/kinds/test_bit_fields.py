"""BitFields: integers with names in the bits of a string."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keywright import BitFields, Bits, Id, Keyspace, preview
from keywright.errors import DeclarationError, StoredDataError, UsageError, ValueRefusedError
from keywright.testing.runs import Raw, Run
from keywright.tools.describe.inspection import inspect

space = Keyspace("players", "Small numbers about players.")


class State(msgspec.Struct):
    level: Annotated[int, Bits(5)]
    mood: Annotated[int, Bits(7, signed=True, overflow="saturate")]
    turn: Annotated[int, Bits(3, overflow="wrap")]
    score: Annotated[int, Bits(64, signed=True, at=16)]


class Player(BitFields[State], key="player:<player>", space=space):
    """The state of a player."""

    player: Id


@dataclass
class Pair:
    left: Annotated[int, Bits(1)]
    right: Annotated[int, Bits(63)]


class Two(BitFields[Pair], key="two", space=space):
    """Two numbers."""


def test_members_are_written_and_read_in_one_command(run: Run, raw: Raw) -> None:
    state = State(31, -64, 7, -(2**63))
    assert [wire.arguments[0] for wire in preview(Player("a").put(state))] == [b"BITFIELD"]
    run(Player("a").put(state))
    assert run(Player("a").get()) == state
    fields: list[str | int] = ["GET", "u5", 0, "GET", "i7", 5, "GET", "u3", 12, "GET", "i64", 16]
    assert raw("BITFIELD", "player:a", *fields) == [31, -64, 7, -(2**63)]


def test_members_of_a_missing_key_are_0(run: Run, raw: Raw) -> None:
    assert run(Player("none").get()) == State(0, 0, 0, 0)
    assert raw("EXISTS", "player:none") == 0


def test_some_members_are_changed_and_read(run: Run) -> None:
    run(Player("a").put(State(1, 2, 3, 4)))
    assert run(Player("a").update(level=9, mood=-5)) == {"level": 1, "mood": 2}
    assert run(Player("a").pick("mood", "level")) == {"mood": -5, "level": 9}
    assert run(Player("a").get()) == State(9, -5, 3, 4)


def test_an_overflow_is_refused_stops_at_the_limit_or_wraps_around(run: Run) -> None:
    run(Player("a").put(State(30, 60, 6, 0)))
    assert run(Player("a").add("level")) == 31
    assert run(Player("a").add("level")) is None
    assert run(Player("a").add("mood", 10)) == 63
    assert run(Player("a").add("mood", -1000)) == -64
    assert run(Player("a").add("turn", 3)) == 1
    assert run(Player("a").get()) == State(31, -64, 1, 0)


def test_calls_without_members_send_nothing() -> None:
    assert preview(Player("a").update()) == preview(Player("a").pick()) == []


@pytest.mark.parametrize("wrong", [{"level": 32}, {"level": -1}, {"level": True}, {"mood": "1"}, {"no": 1}])
def test_a_value_outside_the_bits_is_not_sent(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueRefusedError):
        Player("a").update(**wrong)


def test_an_unknown_member_is_named_with_the_known_ones() -> None:
    with pytest.raises(ValueRefusedError, match="level, mood, turn, score"):
        Player("a").add("none")


def test_a_member_without_bits_is_a_declaration_error() -> None:
    class Wrong(msgspec.Struct):
        level: int

    with pytest.raises(DeclarationError, match="how many bits"):

        class Player(BitFields[Wrong], key="wrong", space=Keyspace("w", "Wrong.")):
            """Wrong."""


def test_members_that_share_a_bit_are_a_declaration_error() -> None:
    class Wrong(msgspec.Struct):
        first: Annotated[int, Bits(8)]
        second: Annotated[int, Bits(8, at=7)]

    with pytest.raises(DeclarationError, match="'first' and 'second' share bit 7"):

        class Player(BitFields[Wrong], key="wrong", space=Keyspace("w", "Wrong.")):
            """Wrong."""


@pytest.mark.parametrize(("width", "signed"), [(0, False), (64, False), (65, True), (-1, True)])
def test_a_width_that_no_server_takes_is_refused(width: int, signed: bool) -> None:
    with pytest.raises(UsageError):
        Bits(width, signed=signed)


def test_more_bytes_than_declared_are_malformed(run: Run, raw: Raw) -> None:
    raw("SET", "player:a", "12345678901")
    with pytest.raises(StoredDataError, match="at most 10 bytes"):
        run(inspect(Player("a")))


@given(st.binary(max_size=8))
def test_stored_bytes_are_read_as_the_layout_says(data: bytes) -> None:
    bits = "".join(f"{byte:08b}" for byte in data).ljust(64, "0")
    assert Two.declaration.storage.value(data) == Pair(int(bits[0]), int(bits[1:], 2))


def test_members_are_changed_on_a_cluster(cluster_run: Run, raw_cluster: Raw) -> None:
    cluster_run(Player("a").update(level=3))
    assert cluster_run(Player("a").add("level")) == 4
    assert raw_cluster("GET", "player:a") == b"\x20"
