"""Calls that cannot be part of a commit are refused before anything is sent."""

from __future__ import annotations

import msgspec
import pytest

from keywright import Context, Id, Keyspace, Set, Stream, erase
from keywright.errors import UsageError
from keywright.keyspace.commits.work import NEEDS, bind
from keywright.keyspace.layouts import LAYOUTS
from keywright.operations import Command, Effect, Operation, as_is

space = Keyspace("refusals", "Keys of this test.")


class Basket(Set[Id], key="basket:<owner>", space=space):
    """Things in a basket."""

    owner: Id


class Entry(msgspec.Struct):
    text: str


class Log(Stream[Entry], key="log", space=space):
    """What happened."""


@pytest.mark.parametrize("verb", [b"SMOVE", b"SUNIONSTORE", b"RENAME", b"SET", b"HSET"])
def test_a_command_that_commits_do_not_write_to_a_key_of_this_type_is_refused(verb: bytes) -> None:
    custom = Command(Operation("custom", verb, Effect.ONCE), Basket("a"), ("x", "y"), as_is)
    with pytest.raises(UsageError, match=f"{verb.decode()} cannot be part of a commit.*run it by itself"):
        bind(Context(), [], [custom])


SEVERAL_KEYS = {"mset", "smove", "lmove", "blpop", "brpop", "xreadgroup"}
FIELD_EXPIRY = {"hpexpire", "hpexpireat", "hpersist"}  # which older servers lack
NEED_A_GROUP = {"xgroup", "xautoclaim", "xclaim", "xsetid"}


@pytest.mark.parametrize("redis_type", LAYOUTS)
def test_a_commit_may_write_every_command_of_the_kinds_that_changes_one_key(redis_type: str) -> None:
    commits = {verb.decode().lower() for verb, needed in NEEDS.items() if needed == redis_type}
    kinds = set(LAYOUTS[redis_type].writes) - SEVERAL_KEYS - NEED_A_GROUP
    assert commits - FIELD_EXPIRY == kinds


def test_a_command_on_several_keys_cannot_be_part_of_a_commit() -> None:
    with pytest.raises(UsageError, match="several keys"):
        bind(Context(), [], [Basket("a").move("apple", Basket("b"))])


def test_a_call_that_reads_before_it_writes_cannot_be_part_of_a_commit() -> None:
    with pytest.raises(UsageError, match="reads before it writes"):
        bind(Context(), [], [erase(Basket("a"))])


def test_a_write_that_would_fail_in_mid_commit_is_refused_before() -> None:
    fields = tuple(f"f{number}" for number in range(9_000))
    huge = Command(Operation("add", b"XADD", Effect.ONCE), Log(), ("*", *fields), as_is)
    with pytest.raises(UsageError, match=r"XADD with 9001 arguments is too large.*Split it"):
        bind(Context(), [], [huge])
