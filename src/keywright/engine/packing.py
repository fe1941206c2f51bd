"""Wires into bytes, and raw replies back to one reply a wire."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import hiredis

from keywright.keyspace.call import Reply, Transacted, Wire

# hiredis declares a tuple of one element; it takes any number.
pack_command: Callable[[tuple[Any, ...]], bytes] = hiredis.pack_command

MULTI = pack_command((b"MULTI",))
EXEC = pack_command((b"EXEC",))
ASKING = pack_command((b"ASKING",))


class ErrorReply(Exception):  # noqa: N818  # a reply, not a fault of ours
    """An error as the server wrote it, before it is translated."""

    @property
    def code(self) -> str:
        return str(self).split(" ", 1)[0]


class Packed:
    """One buffer to write and how many raw replies it will have."""

    __slots__ = ("buffer", "count", "extra", "plain", "wires")

    def __init__(self, wires: Sequence[Wire], *, asking: bool = False, extra: bytes = b"") -> None:
        pieces: list[bytes] = []
        add = pieces.append
        count = 0
        for wire in wires:
            if asking:
                add(ASKING)
                count += 1
            if wire[2][1] == b"MULTI":
                add(MULTI)
                pieces.extend(map(pack_command, wire[0]))
                add(EXEC)
                count += len(wire[0]) + 2
            else:
                add(pack_command(wire[0]))
                count += 1
        if extra:
            add(extra)
            count += 1
        self.wires = wires
        self.extra = bool(extra)
        self.buffer = b"".join(pieces)
        self.count = count
        self.plain = count == len(wires)

    def replies(self, raw: list[Reply], *, asking: bool = False) -> list[Reply]:
        """One reply a wire, for as many wires as were answered whole."""
        if self.plain:
            return raw
        replies: list[Any] = []
        place = 0
        for wire in self.wires:
            place += asking
            size = len(wire[0]) + 2 if wire[2][1] == b"MULTI" else 1
            if place + size > len(raw):
                break
            answers = raw[place : place + size]
            replies.append(answers[0] if size == 1 else _executed(answers))
            place += size
        return replies


def _executed(answers: list[Reply]) -> Reply:
    """EXEC's own reply, or the error that kept the transaction from being run."""
    last = answers[-1]
    if isinstance(last, ErrorReply):
        return next((answer for answer in answers if isinstance(answer, ErrorReply)), last)
    if last is None:
        return ErrorReply("EXECABORT the transaction was given up by the server")
    return Transacted(last)


class _Nothing:
    __slots__ = ()


NOTHING = _Nothing()


class Parser:
    """Raw replies out of received bytes; errors come as values and are counted."""

    __slots__ = ("errors", "feed", "gets")

    def __init__(self) -> None:
        parser = hiredis.Reader(replyError=self._error, notEnoughData=NOTHING)
        self.errors = 0
        self.feed = parser.feed
        self.gets = parser.gets

    def take(self, into: list[Reply], most: int) -> None:
        """Move complete replies into a list, until it holds `most`."""
        gets, nothing, add = self.gets, NOTHING, into.append
        for _ in range(most - len(into)):
            reply = gets()
            if reply is nothing:
                return
            add(reply)

    def _error(self, text: str) -> ErrorReply:
        self.errors += 1
        return ErrorReply(text)
