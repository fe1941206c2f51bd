"""Recorded gateway packets applied to a cache: one JSON object per line, in batches.

A line that cannot be applied gets a problem and is skipped: one bad line does not cost the rest of a
recording. Only the envelope of a packet is decoded here.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Any, BinaryIO

import msgspec
from msgspec import UNSET, UnsetType

from keywright import Database
from keywright.errors import EngineError
from keywright_discord.event_cache import Event, EventCache, Refused, next_window
from keywright_discord.interpreter import EVENTS

__all__ = ["EXCERPT", "LONGEST_LINE", "IngestError", "Line", "ingest"]

LONGEST_LINE = 16 * 1024 * 1024
EXCERPT = 1024
DISPATCH = 0
# An outage is waited for this long: longer than a failover of Sentinel or a cluster with their defaults.
PATIENCE_SECONDS = 60.0
PAUSE_SECONDS = 0.25


class IngestError(EngineError):
    """The server failed while a batch of lines was applied; the lines before it are applied."""

    def __init__(self, line: int, error: EngineError) -> None:
        self.line = line
        self.error = error
        super().__init__(
            f"line {line}: {error} The lines before it are applied. Ingest the recording again from line "
            f"{line}: a line that was applied already leaves the same state."
        )


class Line(msgspec.Struct):
    """A line that is not blank: rejected if it has a problem, applied if it has an event, else ignored."""

    number: int
    size: int
    text: bytes
    """The line; of an overlong one the beginning."""
    event: str | None = None
    data: bytes = b""
    problem: str | None = None


class _Envelope(msgspec.Struct):
    op: int
    t: str | None = None
    d: msgspec.Raw | UnsetType = UNSET


_envelope = msgspec.json.Decoder(_Envelope).decode


def ingest(stream: BinaryIO, cache: EventCache[Any], db: Database) -> Iterator[list[Line]]:
    """Apply the packets of a recording in order. Yield its lines in batches that have been applied.

    Wait a minute for a server that is away. Raise IngestError with the first line that may not be applied.
    """
    lines = _lines(stream)
    while window := next_window(lines, attrgetter("size")):
        packets = [line for line in window if line.event is not None]
        events = [(line.event or "", line.data) for line in packets]
        try:
            found = _applied(events, cache, db)
        except EngineError as error:
            raise IngestError(window[0].number, error) from error
        for refused in found:
            packets[refused.place].problem = f"{refused.event}: {refused.reason}"
        yield window


def _applied(events: Sequence[Event], cache: EventCache[Any], db: Database) -> list[Refused]:
    """Apply a batch, and again after an outage: applying an event twice leaves the same state."""
    give_up: float | None = None
    while True:
        try:
            return db.run(cache.apply(events))
        except EngineError as error:
            give_up = give_up or time.monotonic() + PATIENCE_SECONDS
            if not error.is_transient or time.monotonic() > give_up:
                raise
        time.sleep(PAUSE_SECONDS)


def _lines(stream: BinaryIO) -> Iterator[Line]:
    number = 0
    while text := stream.readline(LONGEST_LINE + 1):
        number += 1
        if len(text) > LONGEST_LINE and not text.endswith(b"\n"):
            size = len(text) + _skip_line(stream)
            yield Line(number, size, text[:EXCERPT], problem=f"longer than {LONGEST_LINE:,} bytes")
        elif not text.isspace():
            yield _decoded(Line(number, len(text), text.strip()))


def _decoded(line: Line) -> Line:
    """Return the line with its event, or with the problem that it is not a packet."""
    try:
        line.text.decode()  # `d` is stored without decoding it, and must be UTF-8 all the same
        envelope = _envelope(line.text)
    except (UnicodeDecodeError, msgspec.MsgspecError, RecursionError) as error:
        line.problem = f"not a packet: {error}"
        return line
    if envelope.op != DISPATCH:
        return line
    if envelope.t is None or envelope.d is UNSET:
        line.problem = "not a packet: a dispatch has `t` and `d`"
    elif envelope.t in EVENTS:
        line.event, line.data = envelope.t, bytes(envelope.d)
    return line


def _skip_line(stream: BinaryIO) -> int:
    """Read to the end of the line. Return the number of bytes."""
    size = 0
    while rest := stream.readline(LONGEST_LINE):
        size += len(rest)
        if rest.endswith(b"\n"):
            break
    return size
