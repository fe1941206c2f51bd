"""Numbers as Redis writes them: decimal text, never through a float unless it is one."""

from __future__ import annotations

from keywright.keyspace.codecs.contract import Codec

__all__ = ["Float", "Int64", "Uint64"]


_MOST_DIGITS = len(str(2**64 - 1))
_ZERO = ord("0")
_SPACE = ord(" ")


def _inline_encode(low: int, high: int) -> str:
    return f"b'%d' % {{0}} if {{0}}.__class__ is int and {low} <= {{0}} <= {high} else {{1}}({{0}})"


class _Integer(Codec[int]):
    """Canonical decimal: no sign but minus, no leading zero, no space."""

    python_type = int
    # Positive numbers of less digits than the limits have; `decode` knows the others.
    inline_decode = "int({0}) if {0}.isdigit() and {0}[0] != 48 and len({0}) < 19 else {1}({0})"
    _low: int
    _high: int

    def encode(self, value: int) -> bytes:
        # The exact class: bool is an int, and would be written as a number.
        if value.__class__ is int and self._low <= value <= self._high:
            return b"%d" % value
        if isinstance(value, int) and not isinstance(value, bool) and value.__class__ is not int:
            return self.encode(int(value))
        raise self.refusal(value)

    def decode(self, data: bytes) -> int:
        if len(data) <= _MOST_DIGITS and data.isdigit() and data[0] != _ZERO:
            value = int(data)
            if value <= self._high:
                return value
        return self._decode_carefully(data)

    def _decode_carefully(self, data: bytes) -> int:
        """Decode zero and negative numbers. Raise CodecError for everything else."""
        if data == b"0":
            return 0
        try:
            value = int(data)
        except ValueError as exc:
            raise self.refusal(data) from exc
        if self._low <= value <= self._high and b"%d" % value == data:
            return value
        raise self.refusal(data)


class Int64(_Integer):
    """Signed: the range of INCR and of Redis' own integers."""

    expected = "a signed 64-bit integer"
    samples = (0, 1, -1, 2**53 + 1, 2**63 - 1, -(2**63))
    inline_encode = _inline_encode(-(2**63), 2**63 - 1)
    _low = -(2**63)
    _high = 2**63 - 1


class Uint64(_Integer):
    """Unsigned. Above 2**63-1 the server cannot INCR it."""

    expected = "an unsigned 64-bit integer"
    samples = (0, 1, 2**53 + 1, 2**63, 2**64 - 1)
    inline_encode = _inline_encode(0, 2**64 - 1)
    _low = 0
    _high = 2**64 - 1


class Float(Codec[float]):
    """The shortest decimal that reads back as the same double; `inf`, `-inf`, `nan` as Redis prints them."""

    expected = "a number"
    python_type = float
    samples = (0.0, -0.5, 0.1, 1e300, 5e-324, float("inf"), float("-inf"))
    inline_encode = "repr({0}).encode() if {0}.__class__ is float else {1}({0})"

    def encode(self, value: float) -> bytes:
        if value.__class__ is float:
            return repr(value).encode()
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return self._encode_converted(value)
        raise self.refusal(value)

    def _encode_converted(self, value: float) -> bytes:
        """Encode an int as a float, as in the type system, if no digit is lost."""
        try:
            converted = float(value)
        except OverflowError as exc:
            raise self.refusal(value) from exc
        if converted == value:
            return repr(converted).encode()
        raise self.refusal(value)

    def decode(self, data: bytes) -> float:
        try:
            value = float(data)
        except ValueError as exc:
            raise self.refusal(data) from exc
        # float() also reads " 1_0 ", and 1e999 as infinity: value - value is 0.0 for finite numbers only.
        if data[0] <= _SPACE or data[-1] <= _SPACE or b"_" in data:
            raise self.refusal(data)
        if value - value != 0.0 and b"n" not in data.lower():
            raise self.refusal(data)
        return value
