"""LZF, the compression of long strings in a dump."""

from __future__ import annotations

__all__ = ["decompress"]


def decompress(data: bytes, size: int) -> bytes:
    """Return the `size` bytes that compressed data holds. Raise ValueError if it holds others.

    The result is at most 88 times as long as the data, whatever `size` claims.
    """
    out = bytearray()
    position, end = 0, len(data)
    try:
        while position < end:
            control = data[position]
            position += 1
            if control < 32:
                stop = position + control + 1
                out += data[position:stop]
                position = stop
                continue
            length = control >> 5
            if length == 7:
                length += data[position]
                position += 1
            length += 2
            distance = ((control & 31) << 8) + data[position] + 1
            position += 1
            start = len(out) - distance
            if start < 0:
                raise ValueError("compressed data refers to what is before its beginning")
            if length <= distance:
                out += out[start : start + length]
            else:  # it repeats what it has just written
                piece = out[start:]
                out += (piece * (length // distance + 1))[:length]
    except IndexError:
        raise ValueError("compressed data is truncated") from None
    if position != end or len(out) != size:
        raise ValueError(f"compressed data has {len(out)} bytes, not {size}")
    return bytes(out)
