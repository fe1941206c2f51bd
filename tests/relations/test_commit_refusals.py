"""Calls that cannot be part of a commit are refused before anything is sent."""

from __future__ import annotations

import pytest

from keywright import Context, Id, Keyspace, Set, erase
from keywright.errors import UsageError
from keywright.keyspace.commits.work import bind
from keywright.operations import Command, Effect, Operation, as_is

space = Keyspace("refusals", "Keys of this test.")


class Basket(Set[Id], key="basket:<owner>", space=space):
    """Things in a basket."""

    owner: Id


def test_a_command_on_several_keys_cannot_be_part_of_a_commit() -> None:
    with pytest.raises(UsageError, match="several keys"):
        bind(Context(), [], [Basket("a").move("apple", Basket("b"))])


def test_a_call_that_reads_before_it_writes_cannot_be_part_of_a_commit() -> None:
    with pytest.raises(UsageError, match="reads before it writes"):
        bind(Context(), [], [erase(Basket("a"))])


def test_a_write_that_would_fail_in_mid_commit_is_refused_before() -> None:
    fields = tuple(f"f{number}" for number in range(9_000))
    huge = Command(Operation("add", b"XADD", Effect.ONCE), Basket("a"), ("*", *fields), as_is)
    with pytest.raises(UsageError, match=r"XADD with 9001 arguments is too large.*Split it"):
        bind(Context(), [], [huge])
