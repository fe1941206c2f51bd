"""The property test of codecs: what every codec must do with any value and any bytes. It needs hypothesis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from keywright.errors import dependencies_of
from keywright.keyspace.codecs import Codec, CodecError

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

__all__ = ["assert_codec", "stored_bytes"]

T = TypeVar("T")

LONGEST_MESSAGE = 500


class Stranger:
    """A value that no codec knows; its repr must not be called, since that of a user may do anything."""

    def __repr__(self) -> str:
        raise AssertionError("a codec printed a foreign value with repr(); use self.refusal(value)")


STRANGERS: tuple[Any, ...] = (
    Stranger(),
    ...,
    1j,
    10**5000,
    -(10**5000),
    "\ud800",
    float("nan"),
    b"\xff",
    {1: {}},
)


def stored_bytes(codec: Codec[Any]) -> SearchStrategy[bytes]:
    """Return a strategy of stored bytes: any bytes, those of the codec's samples, and damaged ones."""
    with dependencies_of("the property test of a codec", install="hypothesis"):
        from hypothesis import strategies as st
    written = [bytes(codec.encode(sample)) for sample in codec.samples]
    anything = st.binary(max_size=100) | st.text(max_size=40).map(lambda text: text.encode(errors="replace"))
    numbers = st.integers().map(lambda number: b"%d" % number) | st.floats().map(lambda x: repr(x).encode())
    digits = st.integers(1, 5000).map(lambda count: b"9" * count)
    if not written:
        return anything | numbers | digits
    place = st.integers(0, max(map(len, written)))
    whole = st.sampled_from(written)
    damaged = st.builds(_damaged, whole, place, place, st.binary(max_size=4))
    return anything | numbers | digits | whole | damaged


def assert_codec(codec: Codec[T], values: SearchStrategy[T] | None = None, *, examples: int = 100) -> None:
    """Raise AssertionError unless a codec does what the library requires, with a counterexample.

    - It has samples, and they and `values` are read back as they were written.
    - It reads any bytes, or refuses them with CodecError and no other error; a value that it read is written
      and read back as the same value.
    - It writes any value, or refuses it with CodecError and a short message without its repr.
    """
    with dependencies_of("the property test of a codec", install="hypothesis"):
        from hypothesis import HealthCheck, given, settings
    assert codec.samples, f"{codec!r} has no samples: add values that the proof can write and read back"
    for sample in codec.samples:
        _assert_round_trip(codec, sample)
    for stranger in STRANGERS:
        _assert_writes_or_refuses(codec, stranger)
    bounded = settings(
        max_examples=examples,
        deadline=None,
        report_multiple_bugs=False,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
    )

    @bounded
    @given(stored_bytes(codec))
    def reads(data: bytes) -> None:
        _assert_reads_or_refuses(codec, data)

    reads()
    if values is not None:
        bounded(given(values)(lambda value: _assert_round_trip(codec, value)))()


def _assert_round_trip(codec: Codec[Any], value: Any) -> None:
    written = codec.encode(value)
    assert isinstance(written, bytes), f"encode() of {codec!r} returned {type(written).__name__}, not bytes"
    found = codec.decode(written)
    assert _same(found, value), f"{codec!r} wrote {value!r} as {written!r} and read it back as {found!r}"
    assert codec.decode_many([written, None]) == [found, None] or found != found


def _assert_reads_or_refuses(codec: Codec[Any], data: bytes) -> None:
    try:
        found = codec.decode(data)
    except CodecError as error:
        _assert_short(codec, error)
        return
    except Exception as error:
        raise AssertionError(f"decode({data!r}) of {codec!r} raised {error!r}, not CodecError") from error
    if found is False and getattr(codec, "absent_when_false", False):
        return
    try:
        again = codec.decode(codec.encode(found))
    except CodecError as error:
        raise AssertionError(f"{codec!r} reads {data!r} and cannot write what it read: {error}") from error
    assert _same(again, found), f"{codec!r} reads {data!r} as {found!r}, which it writes as {again!r}"


def _assert_writes_or_refuses(codec: Codec[Any], stranger: Any) -> None:
    try:
        written = codec.encode(stranger)
    except CodecError as error:
        _assert_short(codec, error)
        return
    except Exception as error:
        kind = type(stranger).__name__
        raise AssertionError(f"encode() of a {kind} by {codec!r} raised {error!r}, not CodecError") from error
    assert isinstance(written, bytes), f"encode() of {codec!r} returned {type(written).__name__}, not bytes"


def _assert_short(codec: Codec[Any], error: CodecError) -> None:
    assert len(error.found) <= LONGEST_MESSAGE, f"{codec!r} quotes {len(error.found)} characters of a value"


def _same(one: Any, other: Any) -> bool:
    return bool(one == other) or (one != one and other != other)


def _damaged(data: bytes, start: int, end: int, patch: bytes) -> bytes:
    return data[:start] + patch + data[end:]
