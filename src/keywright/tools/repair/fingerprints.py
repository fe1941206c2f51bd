"""Fingerprints of keys: the same content has the same fingerprint.

Redis serialises sets and hashes in the order of their hash tables, which reading alone may change, so
their entries are sorted first. The rest of the format (the types and lengths of an RDB file) is read
only as far as that needs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

__all__ = ["exact", "fingerprint"]

SET, HASH = 2, 4
FOOTER = 10  # two bytes of version, eight of checksum
_INTEGERS = {0: 1, 1: 2, 2: 4}


def exact(dump: bytes) -> str:
    """Return the SHA-1 of a serialisation, as `redis.sha1hex` does. It detects changes, not attacks."""
    return hashlib.sha1(dump, usedforsecurity=False).hexdigest()


def fingerprint(dump: bytes) -> str:
    """Return the SHA-1 of the content of a serialisation, independent of the order of a set or hash."""
    body = dump[:-FOOTER]
    if body[:1] and body[0] in (SET, HASH):
        entries = list(_strings(body))
        if body[0] == HASH:
            entries = [name + value for name, value in zip(entries[::2], entries[1::2], strict=True)]
        body = body[:1] + b"".join(sorted(entries))
    return hashlib.sha1(body, usedforsecurity=False).hexdigest()


def _strings(body: bytes) -> Iterator[bytes]:
    """Yield the encoded strings of a set or hash."""
    place, _, _ = _length(body, 1)
    while place < len(body):
        start = place
        place, length, special = _length(body, place)
        if not special:
            place += length
        elif length in _INTEGERS:
            place += _INTEGERS[length]
        else:  # compressed: its length there, its true length, its bytes
            place, packed, _ = _length(body, place)
            place, _, _ = _length(body, place)
            place += packed
        yield body[start:place]


def _length(body: bytes, place: int) -> tuple[int, int, bool]:
    """Return the index after a length, the length, and whether it is a special encoding instead."""
    first = body[place]
    form = first >> 6
    if form == 0:
        return place + 1, first & 63, False
    if form == 1:
        return place + 2, (first & 63) << 8 | body[place + 1], False
    if form == 3:
        return place + 1, first & 63, True
    width = 8 if first == 0x81 else 4
    return place + 1 + width, int.from_bytes(body[place + 1 : place + 1 + width]), False
