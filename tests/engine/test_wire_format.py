"""Batches are packed into the bytes that hiredis makes of their commands."""

from __future__ import annotations

from typing import Any

import hiredis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keywright.engine.packed_commands import ROWS_A_CHUNK
from keywright.engine.wire_format import Packed
from keywright.keyspace.call import Command, as_is
from keywright.keyspace.wires import (
    TIME,
    TRANSACTION,
    CommandBatch,
    Effect,
    Operation,
    ReplacementBatch,
    Transaction,
    Wire,
)

words = st.sampled_from([b"", b"a", b"\r\n", b"longer", b"x" * 5000])
arguments = st.one_of(
    words,
    st.sampled_from(["a", "é", 0, 1, 0.0, -0.0, 1.0, 1e16, 1e-5]),
    st.integers(),
    st.floats(allow_nan=False),
)


@st.composite
def batches(draw: st.DrawFn) -> list[Any]:
    """Commands on keys. Most differ in their values only, and some arguments are the same in all of them."""
    width = draw(st.integers(0, 7))
    rows = draw(st.sampled_from([2, 16]))
    columns = []
    for _ in range(width):
        alike = draw(
            st.sampled_from([words, st.integers(), st.floats(allow_nan=False), st.text("aé", max_size=3)])
        )
        values = st.lists(alike, min_size=rows, max_size=rows)
        columns.append(draw(st.one_of(values, alike.map(lambda value: [value] * rows), values)))
    names = draw(st.lists(words, min_size=rows, max_size=rows))
    batch = [(b"VERB", *row) for row in zip(names, *columns, strict=True)]
    if draw(st.booleans()):
        batch[draw(st.integers(0, rows - 1))] = (b"OTHER", b"key", *draw(st.lists(arguments, max_size=7)))
    return batch


def packed(*commands: Any) -> bytes:
    return b"".join(hiredis.pack_command(each) for each in commands)


@given(batches())
def test_commands_are_packed_as_by_hiredis(batch: list[Any]) -> None:
    wires = [Wire(each, b"", TIME, None) for each in batch]
    assert Packed(wires).buffer == packed(*batch)
    assert Packed(wires).count == len(batch)


class Named:
    """Stands for a key."""

    def __init__(self, name: bytes) -> None:
        self._name = name


@given(batches(), st.data())
def test_commands_that_are_not_made_into_wires_are_packed_as_their_wires(
    batch: list[Any], data: st.DataObject
) -> None:
    commands: list[Any] = [
        Command(Operation("verb", verb, Effect.READ), Named(name), tuple(operands), as_is)  # type: ignore[arg-type]
        for verb, name, *operands in batch
    ]
    made = CommandBatch(commands, {Named: b"lead:"})  # type: ignore[dict-item]
    wires = list(made)
    assert [wire.arguments for wire in wires] == [(v, b"lead:" + n, *rest) for v, n, *rest in batch]
    assert Packed(made).buffer == Packed(wires).buffer
    assert Packed(made).count == len(made) == len(batch)
    assert Packed(made, asking=True).buffer == Packed(wires, asking=True).buffer
    place = data.draw(st.integers(0, len(batch) - 1))
    assert made[place].arguments == wires[place].arguments
    assert [each.name for each in made[place:]] == [each.name for each in wires[place:]]


@given(batches())
def test_replacements_are_packed_as_their_transactions(batch: list[Any]) -> None:
    operation = Operation("verb", b"VERB", Effect.READ)
    commands: list[Any] = [
        Command(operation, Named(name), tuple(operands), as_is)  # type: ignore[arg-type]
        for _, name, *operands in batch
    ]
    made = ReplacementBatch(commands, {Named: b"lead:"})  # type: ignore[dict-item]
    wires = list(made)
    assert [wire.arguments for wire in wires] == [
        ((b"UNLINK", b"lead:" + n), (b"VERB", b"lead:" + n, *rest)) for _, n, *rest in batch
    ]
    assert Packed(made).buffer == Packed(wires).buffer
    assert Packed(made).count == 4 * len(batch)
    assert Packed(made, asking=True).buffer == Packed(wires, asking=True).buffer


@pytest.mark.parametrize("rows", [ROWS_A_CHUNK, ROWS_A_CHUNK + 1, 3 * ROWS_A_CHUNK])
@pytest.mark.parametrize("width", [0, 1, 2, 5])
@pytest.mark.parametrize("kind", [CommandBatch, ReplacementBatch])
def test_a_large_batch_is_packed_in_parts(kind: type[CommandBatch], width: int, rows: int) -> None:
    operation = Operation("verb", b"VERB", Effect.READ)
    commands: list[Any] = [
        Command(operation, Named(b"%d" % n), tuple(b"x" * n for _ in range(width)), as_is)  # type: ignore[arg-type]
        for n in range(rows)
    ]
    made = kind(commands, {Named: b"lead:"})  # type: ignore[dict-item]
    chunks, size = Packed(made).sized_chunks()
    parts = list(chunks)
    assert len(parts) == -(-rows // ROWS_A_CHUNK)
    assert b"".join(parts) == Packed(list(made)).buffer
    assert size == pytest.approx(sum(map(len, parts)), rel=0.5)


@pytest.mark.parametrize("odd", [b"x", b"x" * 5000, "text", 7, 10**30])
@pytest.mark.parametrize("lengths", [(100,), (64, 1500), (3000, 3000, 70), (100, 3)])
def test_long_commands_are_packed_as_by_hiredis(lengths: tuple[int, ...], odd: Any) -> None:
    batch = [(b"MGET", *(b"%d" % n for n in range(length - 2)), odd) for length in lengths]
    wires = [Wire(each, b"", TIME, None) for each in batch]
    chunks, size = Packed(wires).sized_chunks()
    whole = b"".join(chunks)
    assert whole == Packed(wires).buffer == packed(*batch)
    assert size == pytest.approx(len(whole), rel=0.5)


@given(batches(), batches())
def test_transactions_are_packed_as_by_hiredis(first: list[Any], second: list[Any]) -> None:
    together = list(zip(first, second, strict=False))
    wires: list[Wire] = [Transaction(each, b"", TRANSACTION, None) for each in together]
    framed = [command for each in together for command in ((b"MULTI",), *each, (b"EXEC",))]
    assert Packed(wires).buffer == packed(*framed)
    assert Packed(wires).count == len(framed)
    mixed = [*wires, Wire((b"PING",), b"", TIME, None)]
    assert Packed(mixed).buffer == packed(*framed, (b"PING",))
