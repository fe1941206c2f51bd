"""Values in one of several forms, and pickles that are never loaded."""

from __future__ import annotations

import os
import pickle
from typing import Annotated, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from declaring import key_class
from keywright import (
    CodecError,
    EmptyAsNone,
    FirstOf,
    Int64,
    Json,
    Keyspace,
    Pickled,
    Raw,
    Sealed,
    Value,
    Zlib,
    check,
)
from keywright.errors import UsageError
from keywright.keyspace.codecs import Text, UnpackedTooLarge, unpacking_at_most
from keywright.tools.describe.description import describe

integer_or_pickle = FirstOf(Int64(), Pickled())


class Bomb:
    def __reduce__(self) -> Any:
        return os._exit, (17,)


class Order(msgspec.Struct):
    name: str


@given(st.integers(-(2**63), 2**63 - 1))
def test_an_integer_is_written_so_that_incr_works(value: int) -> None:
    assert integer_or_pickle.encode(value) == b"%d" % value
    assert integer_or_pickle.decode(b"%d" % value) == value


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner),
        max_leaves=8,
    ),
    st.integers(0, pickle.HIGHEST_PROTOCOL),
)
def test_every_pickle_is_recognised(value: Any, protocol: int) -> None:
    data = pickle.dumps(value, protocol)
    assert integer_or_pickle.decode(data) == data == integer_or_pickle.encode(data)


def test_a_pickle_is_not_loaded() -> None:
    data = pickle.dumps(Bomb())
    assert Pickled().decode(data) == data  # loading it would end this process


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b".",
        b"abc",
        b"\x80\x04K\x01",
        b"\x80\x04K\x01.x",
        b"\x80\x04K\x01.N.",
        b"\x8e" + b"\xff" * 8 + b".",
    ],
)
def test_what_is_not_one_whole_pickle_is_refused(data: bytes) -> None:
    with pytest.raises(CodecError):
        Pickled().decode(data)


def test_a_long_pickle_is_checked_to_a_bound() -> None:
    assert Pickled(most=10).decode(b"\x80\x04" + b"N" * 100 + b"\xff.")
    with pytest.raises(CodecError):
        Pickled(most=1000).decode(b"\x80\x04" + b"N" * 100 + b"\xff.")


def test_a_value_that_would_be_read_as_another_is_not_written() -> None:
    codec = FirstOf(Int64(), Text())
    assert codec.encode("five") == b"five"
    with pytest.raises(CodecError, match="read as a signed 64-bit integer"):
        codec.encode("5")
    with pytest.raises(CodecError):
        codec.encode(5.5)


def test_a_value_too_large_to_unpack_is_not_taken_for_the_next_form() -> None:
    codec = FirstOf(Zlib(Raw(), min_size=0), Raw())
    packed = codec.encode(bytes(5000))
    with unpacking_at_most(100), pytest.raises(UnpackedTooLarge):
        codec.decode(packed)


def test_undeclared_members_are_those_of_the_form_that_is_stored() -> None:
    search = FirstOf(Int64(), Json(Order)).undeclared
    assert search is not None
    assert search(b'{"name":"a","password":"b"}') == ["password"]
    assert search(b"5") == search(b"?") == []


def test_the_proof_finds_forms_that_cannot_be_distinguished() -> None:
    space = Keyspace("forms", "Values of several forms.")
    key_class(space, "good", {}, base=Value[Annotated[Any, integer_or_pickle]])
    key_class(space, "bad", {}, name="Bad", base=Value[Annotated[Any, EmptyAsNone(FirstOf(Text(), Int64()))]])
    found = [finding for finding in check(space) if finding.severity == "error"]
    assert {(each.code, each.template) for each in found} == {("codecs-not-distinct", "bad")}
    assert "Put the codec that reads less before the other" in found[0].reason


def test_the_description_names_every_form() -> None:
    space = Keyspace("forms", "Values of several forms.")
    key_class(space, "good", {}, base=Value[Annotated[Any, integer_or_pickle]])
    value = describe(space).keys[0].value
    assert value is not None
    assert value.words == "a signed 64-bit integer, or a pickle"


def test_alternatives_are_codecs_and_not_sealed() -> None:
    with pytest.raises(UsageError, match="two codecs"):
        FirstOf(Int64())
    with pytest.raises(UsageError, match="around FirstOf"):
        FirstOf(Int64(), Sealed(Text()))
