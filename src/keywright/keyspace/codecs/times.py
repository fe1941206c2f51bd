"""Moments. Always aware, always UTC once read."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from keywright.keyspace.codecs.contract import Codec
from keywright.keyspace.codecs.numeric import Int64

__all__ = ["EpochMs", "EpochSeconds", "Rfc3339"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ON_THE_SECOND = datetime(2019, 8, 8, 17, 30, tzinfo=UTC)
_BEFORE_THE_EPOCH = datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC)

# RFC 3339, 5.6; fromisoformat alone would also read week dates, basic forms and naive times.
_RFC3339 = re.compile(
    rb"\d{4}-\d\d-\d\d[Tt](?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,9})?(?:[Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)"
).fullmatch


class Rfc3339(Codec[datetime]):
    """Written in UTC as `2019-08-08T17:30:00+00:00`, with microseconds only where there are some.

    Read with `Z` or any offset, in either case, with up to nine digits of fraction; what is finer than a
    microsecond is cut. A leap second (`:60`) is refused: datetime cannot hold it.
    """

    expected = "an RFC 3339 time"
    python_type = datetime
    samples = (_ON_THE_SECOND, _ON_THE_SECOND.replace(microsecond=1), _BEFORE_THE_EPOCH)

    def encode(self, value: datetime) -> bytes:
        return _in_utc(self, value).isoformat().encode()

    def decode(self, data: bytes) -> datetime:
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
    expected = "a time in milliseconds since 1970"
    samples = (*_Epoch.samples, _ON_THE_SECOND.replace(microsecond=1000))
    _unit = timedelta(milliseconds=1)


class EpochSeconds(_Epoch):
    expected = "a time in seconds since 1970"
    _unit = timedelta(seconds=1)


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
