"""Moments and durations. Moments are always aware, always UTC once read."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Any, Literal, get_args

import msgspec

from keywright.keyspace.codecs.contract import Codec
from keywright.keyspace.codecs.numeric import Int64
from keywright.keyspace.misuse import explained_constructor

__all__ = ["Duration", "EpochFloat", "EpochMs", "EpochSeconds", "Rfc3339"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ON_THE_SECOND = datetime(2019, 8, 8, 17, 30, tzinfo=UTC)
_BEFORE_THE_EPOCH = datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC)

# RFC 3339, 5.6; fromisoformat alone would also read week dates, basic forms and naive times.
_RFC3339 = re.compile(
    rb"\d{4}-\d\d-\d\d[Tt](?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,9})?(?:[Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)"
).fullmatch

# As Python and Redis print a float, too; more digits than a double has are not a number of seconds.
_NUMBER = re.compile(rb"-?\d{1,20}(?:\.\d{1,20})?(?:[eE][+-]?\d{1,3})?").fullmatch
# As `encode` writes a time, without and with microseconds.
_WRITTEN_LENGTHS = frozenset({25, 32})
_T = ord("T")
_json = msgspec.json.Encoder().encode
_from_json = msgspec.json.Decoder(datetime).decode
_MICROSECOND = timedelta(microseconds=1)
_SECOND = timedelta(seconds=1)

Unit = Literal["s", "ms"]
_UNITS: dict[str, tuple[str, timedelta]] = {
    "s": ("seconds", _SECOND),
    "ms": ("milliseconds", timedelta(milliseconds=1)),
}


class Rfc3339(Codec[datetime]):
    """Written in UTC as `2019-08-08T17:30:00+00:00`, with microseconds only where there are some.

    Read with `Z` or any offset, in either case, with up to nine digits of fraction; what is finer than a
    microsecond is cut. A leap second (`:60`) is refused: datetime cannot hold it.
    """

    expected = "an RFC 3339 time"
    python_type = datetime
    samples = (_ON_THE_SECOND, _ON_THE_SECOND.replace(microsecond=1), _BEFORE_THE_EPOCH)

    def encode(self, value: datetime) -> bytes:
        if value.__class__ is datetime and value.tzinfo is UTC:
            return _json(value)[1:-2] + b"+00:00"  # in a quarter of the time of isoformat
        return _in_utc(self, value).isoformat().encode()

    def decode(self, data: bytes) -> datetime:
        if len(data) in _WRITTEN_LENGTHS and data[10] == _T and data[-6:] == b"+00:00":
            try:
                return _from_json(b'"' + data + b'"')
            except msgspec.MsgspecError:
                pass  # the slow way reports it
        if not _RFC3339(data):
            raise self.refusal(data)
        try:
            value = datetime.fromisoformat(data.decode().upper())
            return value if value.tzinfo is UTC else value.astimezone(UTC)
        except (ValueError, OverflowError) as exc:
            raise self.refusal(data, exc) from exc


class _Epoch(Codec[datetime]):
    """Units since 1970 as a decimal integer. A finer moment is floored to its unit, before 1970 too."""

    python_type = datetime
    samples: tuple[datetime, ...] = (_EPOCH, _ON_THE_SECOND, _BEFORE_THE_EPOCH)
    _unit: timedelta
    _integer = Int64()

    def encode(self, value: datetime) -> bytes:
        return b"%d" % ((_in_utc(self, value) - _EPOCH) // self._unit)

    def decode(self, data: bytes) -> datetime:
        try:
            return _EPOCH + self._integer.decode(data) * self._unit
        except (ValueError, OverflowError) as exc:
            raise self.refusal(data) from exc


class EpochMs(_Epoch):
    """A time as an integer of milliseconds since 1970, in UTC."""

    expected = "a time in milliseconds since 1970"
    samples = (*_Epoch.samples, _ON_THE_SECOND.replace(microsecond=1000))
    _unit = timedelta(milliseconds=1)


class EpochSeconds(_Epoch):
    """A time as an integer of seconds since 1970, in UTC."""

    expected = "a time in seconds since 1970"
    _unit = timedelta(seconds=1)


class EpochFloat(Codec[datetime]):
    """Seconds since 1970 with a fraction, as `str(time.time())` writes them: `1700000000.123`.

    Every decimal number is read; a fraction of a microsecond is rounded.
    """

    expected = "a time in seconds since 1970, with a fraction"
    python_type = datetime
    samples = (*_Epoch.samples, _ON_THE_SECOND.replace(microsecond=1))

    def encode(self, value: datetime) -> bytes:
        written = _decimal(_in_utc(self, value) - _EPOCH, _SECOND)
        return written if b"." in written else written + b".0"

    def decode(self, data: bytes) -> datetime:
        try:
            return _EPOCH + _span(self, data, _SECOND)
        except OverflowError as exc:
            raise self.refusal(data) from exc


@explained_constructor
class Duration(Codec[timedelta]):
    """A number of seconds or milliseconds, with a fraction only if there is one: `90`, `0.25`, `-1.5`.

    Every decimal number is read, `1e-05` and `90.0` too; a fraction of a microsecond is rounded.
    """

    python_type = timedelta

    def __init__(self, unit: Unit = "s") -> None:
        if unit not in get_args(Unit):
            raise TypeError(f"a Duration is in 's' (seconds) or 'ms' (milliseconds), not {unit!r}")
        words, self.unit = _UNITS[unit]
        self.symbol = unit
        self.expected = f"a duration in {words}"
        self.samples = (
            timedelta(0),
            timedelta(seconds=90),
            timedelta(microseconds=-1),
            timedelta(days=365_000, microseconds=250_001),
        )

    def encode(self, value: timedelta) -> bytes:
        if not isinstance(value, timedelta):
            raise self.refusal(value)
        return _decimal(value, self.unit)

    def decode(self, data: bytes) -> timedelta:
        return _span(self, data, self.unit)


def _decimal(span: timedelta, unit: timedelta) -> bytes:
    """Return a span in units, exactly, with a fraction only if there is one."""
    whole, fraction = divmod(abs(span) // _MICROSECOND, unit // _MICROSECOND)
    sign = "-" if span < timedelta(0) else ""
    digits = len(str(unit // _MICROSECOND)) - 1
    return f"{sign}{whole}{f'.{fraction:0{digits}}'.rstrip('0') if fraction else ''}".encode()


def _span(codec: Codec[Any], data: bytes, unit: timedelta) -> timedelta:
    if not _NUMBER(data):
        raise codec.refusal(data)
    microseconds = Decimal(data.decode()) * (unit // _MICROSECOND)
    try:
        return int(microseconds.to_integral_value(ROUND_HALF_EVEN)) * _MICROSECOND
    except OverflowError as exc:
        raise codec.refusal(data) from exc


def _in_utc(codec: Codec[datetime], value: datetime) -> datetime:
    if not isinstance(value, datetime):
        raise codec.refusal(value)
    try:
        if value.tzinfo is UTC:
            return value
        if value.utcoffset() is not None:
            return value.astimezone(UTC)
    except (ValueError, OverflowError) as exc:
        raise codec.refusal(value, exc) from exc
    raise codec.refusal(value, "without a time zone; give it one, such as UTC")
