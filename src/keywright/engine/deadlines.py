"""Time in a round trip: pauses between steps, deadlines, and waiting for replicas."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from keywright.engine.settings import Durability, Settings
from keywright.engine.wire_format import ErrorReply, Packed
from keywright.errors import UnderReplicatedError
from keywright.keyspace.wires import Effect, Reply, Resting, Waiting, Wire, sorts_of

# The timeouts that a walk may use up at a server that does not answer.
WALK_TIMEOUTS = 4


def without_pauses(
    wires: Sequence[Wire],
) -> tuple[Sequence[Wire], float, Callable[[list[Reply]], list[Reply]]]:
    """Return the wires to send, the longest pause, and a function that adds the replies of the pauses."""
    if Resting not in sorts_of(wires):
        return wires, 0.0, _unchanged
    sent = [wire for wire in wires if not isinstance(wire, Resting)]
    pause = max(wire.arguments[0] for wire in wires if isinstance(wire, Resting))

    def merge(replies: list[Reply]) -> list[Reply]:
        answers = iter(replies)
        return [None if isinstance(wire, Resting) else next(answers) for wire in wires]

    return sent, pause, merge


def makes_wait(wires: Sequence[Wire]) -> bool:
    """Return whether a blocking command is among the wires."""
    return Waiting in sorts_of(wires)


def wait_command(wires: Sequence[Wire], durability: Durability) -> bytes:
    """Return the WAIT to send after the wires, or b"" if no replica needs to confirm a write."""
    if all(wire.operation.effect is Effect.READ for wire in wires):
        return b""
    return durability.command


def deadline_of(packed: Packed, settings: Settings) -> float:
    """Return the timeout of a batch in seconds, including the waits of its blocking commands."""
    seconds = settings.timeout_seconds
    if packed.waits:
        seconds += sum(wire.operation.blocking for wire in packed.wires)
    return seconds if settings.durability is None else seconds + settings.durability.within_ms / 1000


def time_of(wires: Sequence[Wire], settings: Settings, *, walk: bool) -> tuple[float, float]:
    """Return the seconds in which attempts at a batch may begin, and those in which it is answered or fails.

    A `walk` over a whole server is worth waiting for: by default it has the timeout several times.
    """
    timeout, within = settings.timeout_seconds, settings.retry.within_seconds
    if within is None:
        within = timeout * WALK_TIMEOUTS if walk else timeout
    waits = sum(wire.operation.blocking for wire in wires) if makes_wait(wires) else 0.0
    if settings.durability is not None:
        waits += settings.durability.within_ms / 1000
    return within + waits, max(timeout, within) + waits


def check_durability(
    replies: list[Reply], confirmed: Reply, wires: Sequence[Wire], durability: Durability
) -> list[Reply]:
    """Return the replies, those of writes replaced by an error if too few replicas confirmed in time.

    Where the connection broke, `confirmed` is None and replies may be fewer than wires.
    """
    if isinstance(confirmed, int) and confirmed >= durability.replicas:
        return replies
    count = confirmed if isinstance(confirmed, int) else 0
    return [
        reply
        if wire.operation.effect is Effect.READ or isinstance(reply, ErrorReply)
        else UnderReplicatedError(durability.replicas, count, reply)
        for reply, wire in zip(replies, wires, strict=False)
    ]


def _unchanged(replies: list[Reply]) -> list[Reply]:
    return replies
