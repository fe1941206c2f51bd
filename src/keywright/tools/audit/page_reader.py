"""The commands that read one page of names, and what their replies are: one batch, bounded replies.

Every key of a template with an expiry is asked for its TTL, every collection for its memory. Of strings,
whose memory follows from their length, and of keys that need not expire, one in `EVERY` is asked. Strings
are read by MGET on one server. A collection is read by its first page; the rest follows if there is one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

from keywright.engine.wire_format import ErrorReply
from keywright.errors import ServerRefusedError
from keywright.keyspace.wires import Reply
from keywright.tools.audit.value_checks import Checker

__all__ = ["ENTRIES", "EVERY", "MOST_BYTES", "Page", "Reading", "first_page", "next_page", "told"]

EVERY = 16
ENTRIES = 512
TOGETHER = 128
MOST_BYTES = 1 << 20  # of a string that is read whole; a larger one is measured, not read

_COUNT = b"$5\r\nCOUNT\r\n$3\r\n512\r\n"
_ZERO = b"$1\r\n0\r\n"
_READS: dict[str, tuple[bytes, bytes]] = {
    "hash": (b"*5\r\n$5\r\nHSCAN\r\n", _ZERO + _COUNT),
    "set": (b"*5\r\n$5\r\nSSCAN\r\n", _ZERO + _COUNT),
    "zset": (b"*5\r\n$5\r\nZSCAN\r\n", _ZERO + _COUNT),
    "list": (b"*4\r\n$6\r\nLRANGE\r\n", _ZERO + b"$3\r\n511\r\n"),
    "stream": (b"*6\r\n$6\r\nXRANGE\r\n", b"$1\r\n-\r\n$1\r\n+\r\n" + _COUNT),
    "string": (b"*2\r\n$3\r\nGET\r\n", b""),
}
_TTL = b"*2\r\n$4\r\nPTTL\r\n"
_MEMORY = b"*3\r\n$6\r\nMEMORY\r\n$5\r\nUSAGE\r\n"


class Page(NamedTuple):
    """What was read of one collection: its entries, and how to go on (None at the end)."""

    entries: Any
    more: int | bytes | None


class Reading:
    """The names of one template on one page, what to ask about them, and the answers in the same order."""

    def __init__(self, checker: Checker, names: list[bytes], turn: int, *, together: bool) -> None:
        self.checker = checker
        self.names = names
        strings = checker.kind.redis_type == "string"
        self._together = together and strings
        everyone = range(len(names))
        some = range(-turn % EVERY, len(names), EVERY)
        self.timed: Sequence[int] = everyone if checker.expiry is not None else some
        self.measured: Sequence[int] = some if strings else everyone
        self.ttls: list[int] = []
        self.sizes: list[int | None] = []
        self.stored: list[Reply] = []

    def commands(self) -> Iterator[bytes]:
        blocks = [b"$%d\r\n%b\r\n" % (len(name), name) for name in self.names]
        yield from [_TTL + blocks[number] for number in self.timed]
        yield from [_MEMORY + blocks[number] for number in self.measured]
        if self._together:
            for start in range(0, len(blocks), TOGETHER):
                part = blocks[start : start + TOGETHER]
                yield b"*%d\r\n$4\r\nMGET\r\n" % (len(part) + 1) + b"".join(part)
        else:
            verb, rest = _READS[self.checker.kind.redis_type]
            yield from [verb + block + rest for block in blocks]

    def take(self, replies: list[Reply], start: int) -> int:
        """Take the answers, in the order of the commands, from a place in all replies; the place after."""
        middle = start + len(self.timed)
        end = middle + len(self.measured)
        self.ttls = told(replies[start:middle])
        self.sizes = replies[middle:end]  # some servers do not tell, and bytes are no finding
        after = end + (-(-len(self.names) // TOGETHER) if self._together else len(self.names))
        stored = told(replies[end:after])
        self.stored = list(chain.from_iterable(stored)) if self._together else stored
        return after


def told(replies: list[Reply]) -> list[Reply]:
    """Replies that tell something about keys, that they are of another type too.

    ServerRefusedError where the server would not tell, as a user without the right: what was not read must
    not pass for sound.
    """
    if ErrorReply in set(map(type, replies)):
        for reply in replies:
            if isinstance(reply, ErrorReply) and reply.code != "WRONGTYPE":
                raise ServerRefusedError("reading", b"", str(reply))
    return replies


def first_page(redis_type: str, reply: Reply) -> Page:
    """The reply to a reading command as entries and how to go on."""
    if redis_type in ("hash", "set", "zset"):
        cursor = int(reply[0])
        return Page(reply[1], cursor or None)
    if redis_type == "list":
        return Page(reply, ENTRIES if len(reply) == ENTRIES else None)
    if redis_type == "stream":
        return Page(reply, reply[-1][0] if len(reply) == ENTRIES else None)
    return Page(reply, None)


def next_page(redis_type: str, name: bytes, more: int | bytes) -> tuple[bytes | int, ...]:
    """The command that reads on."""
    if redis_type == "list":
        assert isinstance(more, int)
        return b"LRANGE", name, more, more + ENTRIES - 1
    if redis_type == "stream":
        assert isinstance(more, bytes)
        return b"XRANGE", name, b"(" + more, b"+", b"COUNT", ENTRIES
    verb = {"hash": b"HSCAN", "set": b"SSCAN", "zset": b"ZSCAN"}[redis_type]
    return verb, name, more, b"COUNT", ENTRIES
