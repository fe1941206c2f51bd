"""Gateway packets from a file or a pipe into a cache: one JSON object a line, in windows.

A line that cannot be applied is told and passed over, whatever is wrong with it: one bad line does
not cost the rest of a recording. Of a packet only the envelope is decoded here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from keywright import Call
from keywright.errors import EngineError, KeywrightError
from keywright.operations import Steps, procedure
from keywright_discord.event_cache import EventCache, Refused
from keywright_discord.interpreter import EVENTS

if TYPE_CHECKING:
    pass

T = TypeVar("T")

LONGEST_LINE = 16 * 1024 * 1024
WINDOW_EVENTS = 200
WINDOW_BYTES = 16 * 1024 * 1024
EXCERPT = 1024
DISPATCH = 0


class Packet(msgspec.Struct):
    """A line that is a packet."""

    line: int
    text: bytes
    event: str
    data: bytes


class Reject(msgspec.Struct):
    """A line that was not applied, and why; of an overlong one `text` is the beginning."""

    line: int
    reason: str
    text: str


class Ignored(msgspec.Struct):
    """A packet that changes no cache: no dispatch, or one of an event that nothing is kept of."""

    line: int


class _Envelope(msgspec.Struct):
    op: int
    t: str | None = None
    d: msgspec.Raw | UnsetType = UNSET


_envelope = msgspec.json.Decoder(_Envelope).decode


def packets(stream: BinaryIO) -> Iterator[Packet | Reject | Ignored]:
    """The lines of a stream; blank ones are passed over. No more than one line is held at a time."""
    number = 0
    while text := stream.readline(LONGEST_LINE + 1):
        number += 1
        if len(text) > LONGEST_LINE and not text.endswith(b"\n"):
            _skip_line(stream)
            yield Reject(number, f"longer than {LONGEST_LINE:,} bytes", shown(text[:EXCERPT]))
        elif not text.isspace():
            yield _packet(number, text.strip())


def windows(found: Iterable[Packet]) -> Iterator[list[Packet]]:
    """Packets in the portions that are applied together, bounded in number and bytes."""
    window: list[Packet] = []
    size = 0
    for packet in found:
        window.append(packet)
        size += len(packet.text)
        if len(window) == WINDOW_EVENTS or size >= WINDOW_BYTES:
            yield window
            window, size = [], 0
    if window:
        yield window


@procedure
def apply_window(
    cache: EventCache[Any], window: list[Packet], mark: Callable[[Packet], Call[Any]] | None = None
) -> Steps[list[Reject]]:
    """Apply packets in order; those that were refused. `mark` notes how far it got, as in `EventCache.apply`.

    Where one cannot be applied to what is stored, they are applied once more, one by one, to find out
    which: applying an event twice leaves the same state.
    """

    def noted(place: int) -> Call[Any]:
        assert mark is not None
        return mark(window[place])

    try:
        events = [(each.event, each.data) for each in window]
        return _rejects(window, (yield cache.apply(events, noted if mark else None)))
    except EngineError:
        raise  # the server's trouble is no line's
    except KeywrightError as error:
        if len(window) == 1:
            return [_reject(window[0], str(error))]
    rejects: list[Reject] = []
    for packet in window:
        rejects += yield apply_window(cache, [packet], mark)
    return rejects


def shown(text: bytes) -> str:
    """Bytes of a line as text, whatever they are."""
    return text.decode("utf-8", "backslashreplace")


def _packet(number: int, text: bytes) -> Packet | Reject | Ignored:
    try:
        text.decode()  # what is taken over undecoded must be text all the same
        envelope = _envelope(text)
    except (UnicodeDecodeError, msgspec.MsgspecError, RecursionError) as error:
        return Reject(number, f"no packet: {error}", shown(text))
    if envelope.op != DISPATCH:
        return Ignored(number)
    if envelope.t is None or envelope.d is UNSET:
        return Reject(number, "no packet: a dispatch has `t` and `d`", shown(text))
    if envelope.t not in EVENTS:
        return Ignored(number)
    return Packet(number, text, envelope.t, bytes(envelope.d))


def _rejects(window: list[Packet], refused: Iterable[Refused]) -> list[Reject]:
    return [_reject(window[each.place], each.reason) for each in refused]


def _reject(packet: Packet, reason: str) -> Reject:
    return Reject(packet.line, f"{packet.event}: {reason}", shown(packet.text))


def _skip_line(stream: BinaryIO) -> None:
    while (rest := stream.readline(LONGEST_LINE)) and not rest.endswith(b"\n"):
        pass
