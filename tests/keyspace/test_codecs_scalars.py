"""Text, numbers, choices and times."""

from __future__ import annotations

import enum
from datetime import UTC, datetime, timedelta, timezone
from math import isnan
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keywright import (
    Boolean,
    Codec,
    CodecError,
    Duration,
    EpochFloat,
    EpochMs,
    EpochSeconds,
    Flag,
    Int64,
    Raw,
)
from keywright.errors import UsageError
from keywright.keyspace.codecs import EnumOf, Float, LiteralOf, Rfc3339, Text, Uint64

zones = st.builds(timezone, st.timedeltas(timedelta(hours=-23), timedelta(hours=23)))
moments = st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1), timezones=zones)


def round_trip(codec: Codec[Any], value: Any) -> Any:
    return codec.decode(codec.encode(value))


def refuses_to_write(codec: Codec[Any], value: object) -> bool:
    with pytest.raises(CodecError):
        codec.encode(value)
    return True


def refuses_to_read(codec: Codec[Any], data: bytes) -> bool:
    with pytest.raises(CodecError):
        codec.decode(data)
    return True


@given(st.text())
def test_text_round_trips(value: str) -> None:
    assert round_trip(Text(), value) == value


def test_text_refuses_bytes_and_lone_surrogates() -> None:
    assert refuses_to_write(Text(), b"abc")
    assert refuses_to_write(Text(), "\ud800")
    assert refuses_to_read(Text(), b"\xed\xa0\x80")


@given(st.binary())
def test_raw_bytes_are_untouched(value: bytes) -> None:
    assert Raw().encode(value) == value == Raw().decode(value)


@given(st.integers(-(2**63), 2**63 - 1))
def test_signed_integers_round_trip(value: int) -> None:
    assert round_trip(Int64(), value) == value


@given(st.integers(0, 2**64 - 1))
def test_unsigned_integers_round_trip(value: int) -> None:
    assert round_trip(Uint64(), value) == value


@pytest.mark.parametrize("value", [0, 2**53 + 1, 10**18, 10**18 - 1, 10**18 + 1, 2**63 - 1])
def test_integers_are_exact_to_the_last_digit(value: int) -> None:
    assert Int64().encode(value) == str(value).encode()
    assert round_trip(Int64(), value) == round_trip(Uint64(), value) == value


def test_integers_end_where_64_bits_end() -> None:
    assert round_trip(Uint64(), 2**64 - 1) == 2**64 - 1
    assert round_trip(Int64(), -(2**63)) == -(2**63)
    assert refuses_to_write(Int64(), 2**63)
    assert refuses_to_write(Uint64(), 2**64)
    assert refuses_to_write(Uint64(), -1)
    assert refuses_to_read(Int64(), b"9223372036854775808")
    assert refuses_to_read(Uint64(), b"18446744073709551616")
    assert refuses_to_read(Uint64(), b"-1")


@pytest.mark.parametrize("value", ["5", True, 5.0, None])
def test_integers_refuse_other_values(value: object) -> None:
    assert refuses_to_write(Int64(), value)


@pytest.mark.parametrize(
    "data", [b"", b"+1", b"01", b"-0", b"1_0", b" 1", b"1\n", b"1.0", b"\xd9\xa1", b"9" * 5000]
)
def test_integers_are_read_in_canonical_form_only(data: bytes) -> None:
    assert refuses_to_read(Int64(), data)
    assert refuses_to_read(Uint64(), data)


@given(st.floats(allow_nan=False))
def test_floats_round_trip(value: float) -> None:
    assert round_trip(Float(), value) == value


def test_floats_spell_the_infinite_as_redis_does() -> None:
    assert Float().encode(float("inf")) == b"inf"
    assert Float().encode(float("-inf")) == b"-inf"
    assert Float().encode(float("nan")) == b"nan"
    assert isnan(Float().decode(b"nan"))


def test_floats_take_integers_that_lose_no_digit() -> None:
    assert Float().encode(3) == b"3.0"
    assert Float().decode(b"3") == 3.0
    assert refuses_to_write(Float(), 2**53 + 1)
    assert refuses_to_write(Float(), True)


@pytest.mark.parametrize("data", [b"", b"1_0", b" 1", b"1 ", b"\x1c1", b"0x10", b"1e999", b"one"])
def test_floats_refuse_what_python_alone_would_guess(data: bytes) -> None:
    assert refuses_to_read(Float(), data)


def test_booleans_are_one_and_zero_unless_spelled() -> None:
    assert [Boolean().encode(value) for value in (True, False)] == [b"1", b"0"]
    assert [Boolean(true="yes", false="no").encode(value) for value in (True, False)] == [b"yes", b"no"]
    assert refuses_to_read(Boolean(), b"true")
    assert refuses_to_write(Boolean(), 1)


def test_a_boolean_needs_two_spellings() -> None:
    with pytest.raises(UsageError, match="two spellings"):
        Boolean(true="x", false="x")


def test_a_flag_is_its_word_or_nothing() -> None:
    admin = Flag("admin")
    assert admin.encode(True) == b"admin"
    assert admin.decode(b"admin") is True
    assert admin.decode(b"") is False
    assert admin.absent_when_false
    with pytest.raises(CodecError, match="leaving the member out"):
        admin.encode(False)
    assert refuses_to_read(admin, b"1")


class Colour(enum.StrEnum):
    red = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = -2


class Mixed(enum.Enum):
    NUMBER = 1
    TEXT = "1"


class Real(enum.Enum):
    HALF = 0.5


class Bits(enum.IntFlag):
    LOW = 1


@given(st.sampled_from([*Colour, *Level]))
def test_enums_are_written_by_value(member: Colour | Level) -> None:
    codec = EnumOf(type(member))
    assert codec.encode(member) == str(member.value).encode()
    assert codec.decode(codec.encode(member)) is member


def test_enums_refuse_plain_values_and_unknown_ones() -> None:
    assert refuses_to_write(EnumOf(Colour), "red")
    assert refuses_to_write(EnumOf(Level), 1)
    assert refuses_to_read(EnumOf(Colour), b"green")


def test_enums_with_equal_stored_forms_are_refused_when_declared() -> None:
    with pytest.raises(TypeError, match="written alike"):
        EnumOf(Mixed)
    with pytest.raises(TypeError, match="neither a string nor an integer"):
        EnumOf(Real)
    with pytest.raises(TypeError, match="Flag as int"):
        EnumOf(Bits)


@given(st.sampled_from(["open", "shut"]))
def test_literals_round_trip(word: str) -> None:
    assert round_trip(LiteralOf("open", "shut"), word) == word


def test_literals_refuse_other_words() -> None:
    assert refuses_to_write(LiteralOf("open"), "ajar")
    assert refuses_to_write(LiteralOf("open"), ["open"])
    assert refuses_to_read(LiteralOf("open"), b"ajar")


@given(moments)
def test_rfc3339_is_written_as_by_isoformat(moment: datetime) -> None:
    assert Rfc3339().encode(moment) == moment.astimezone(UTC).isoformat().encode()
    assert Rfc3339().encode(moment.astimezone(UTC)) == moment.astimezone(UTC).isoformat().encode()


@given(moments)
def test_rfc3339_round_trips_in_utc(moment: datetime) -> None:
    read = round_trip(Rfc3339(), moment)
    assert read == moment
    assert read.tzinfo is UTC


@pytest.mark.parametrize(
    ("data", "microsecond"),
    [
        (b"2019-08-08T17:30:00Z", 0),
        (b"2019-08-08t17:30:00z", 0),
        (b"2019-08-08T19:30:00+02:00", 0),
        (b"2019-08-08T12:00:00.5-05:30", 500_000),
        (b"2019-08-08T17:30:00.123456789Z", 123_456),
        (b"2019-08-08T17:30:00-00:00", 0),
    ],
)
def test_rfc3339_is_read_in_every_form(data: bytes, microsecond: int) -> None:
    assert Rfc3339().decode(data) == datetime(2019, 8, 8, 17, 30, 0, microsecond, UTC)


def test_rfc3339_is_written_in_one_form() -> None:
    moment = datetime(2019, 8, 8, 19, 30, tzinfo=timezone(timedelta(hours=2)))
    assert Rfc3339().encode(moment) == b"2019-08-08T17:30:00+00:00"
    assert Rfc3339().encode(moment.replace(microsecond=5)) == b"2019-08-08T17:30:00.000005+00:00"


@pytest.mark.parametrize(
    "data",
    [
        b"2019-08-08T17:30:00",
        b"2019-W32-4T17:30:00+00:00",
        b"20190808T173000Z",
        b"2019-08-08T24:00:00Z",
        b"2019-08-08T23:59:60Z",
        b"2019-02-30T00:00:00Z",
        b"2019-08-08T17:30:00.1234567890Z",
        b"2019-08-08T17:30:00Z\n",
        b"0001-01-01T00:00:00+01:00",
        b"2019-08-08 17:30:00+00:00",
        b"2019-08-08T17:30:60+00:00",
        b"2019-08-08T173000.1+00:00",
        b'2019-08-08T17:30:0""+00:00',
        b"2019-02-30T00:00:00.000001+00:00",
    ],
)
def test_what_is_not_rfc3339_is_refused(data: bytes) -> None:
    assert refuses_to_read(Rfc3339(), data)


@pytest.mark.parametrize("codec", [Rfc3339(), EpochMs(), EpochSeconds(), EpochFloat()], ids=repr)
def test_times_without_zone_are_refused(codec: Codec[datetime]) -> None:
    with pytest.raises(CodecError, match="without a time zone"):
        codec.encode(datetime(2019, 8, 8))


@given(moments)
def test_epochs_floor_to_their_unit(moment: datetime) -> None:
    for codec, unit in ((EpochMs(), timedelta(milliseconds=1)), (EpochSeconds(), timedelta(seconds=1))):
        lost = moment - round_trip(codec, moment)
        assert timedelta(0) <= lost < unit


def test_epochs_are_whole_numbers() -> None:
    moment = datetime(2019, 8, 8, 17, 30, 0, 123_999, UTC)
    assert EpochMs().encode(moment) == b"1565285400123"
    assert EpochSeconds().encode(moment) == b"1565285400"
    assert EpochSeconds().encode(datetime(1969, 12, 31, 23, 59, 59, 1, UTC)) == b"-1"
    assert refuses_to_read(EpochMs(), b"9223372036854775807")
    assert refuses_to_read(EpochMs(), b"1565285400.5")


@given(moments)
def test_epochs_with_a_fraction_are_exact_to_the_microsecond(moment: datetime) -> None:
    assert round_trip(EpochFloat(), moment) == moment


@given(st.floats(0, 4e9))
def test_what_python_prints_for_a_time_is_read(seconds: float) -> None:
    assert abs(EpochFloat().decode(repr(seconds).encode()).timestamp() - seconds) < 2e-6


@given(st.timedeltas())
def test_durations_round_trip(span: timedelta) -> None:
    assert round_trip(Duration("s"), span) == round_trip(Duration("ms"), span) == span


def test_a_duration_has_a_fraction_only_if_there_is_one() -> None:
    assert Duration().encode(timedelta(minutes=1.5)) == b"90"
    assert Duration().encode(timedelta(milliseconds=-250)) == b"-0.25"
    assert Duration("ms").encode(timedelta(seconds=90, microseconds=1)) == b"90000.001"
    assert Duration().decode(b"90.0") == timedelta(seconds=90)
    assert Duration().decode(b"1e-05") == timedelta(microseconds=10)
    with pytest.raises(UsageError, match="'ms'"):
        Duration("minutes")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "data", [b"", b"1_0", b" 1", b"inf", b"nan", b"1e999", b"9" * 30, b"\xd9\xa1", b"PT1S"]
)
def test_what_is_not_a_number_of_seconds_is_refused(data: bytes) -> None:
    assert refuses_to_read(Duration(), data)
    assert refuses_to_read(EpochFloat(), data)
