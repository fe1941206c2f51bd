"""Time in a round trip: pauses between steps, deadlines, and waiting for replicas."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from keywright.engine.settings import Durability, Settings
from keywright.engine.wire_format import ErrorReply, Packed
from keywright.errors import UnderReplicatedError
from keywright.keyspace.wires import Effect, Reply, Resting, Waiting, Wire


def without_pauses(wires: list[Wire]) -> tuple[list[Wire], float, Callable[[list[Reply]], list[Reply]]]:
    """The wires to send, the longest pause among them, and how to put the pauses' replies back."""
    if Resting not in set(map(type, wires)):
        return wires, 0.0, _unchanged
    sent = [wire for wire in wires if not isinstance(wire, Resting)]
    pause = max(wire.arguments[0] for wire in wires if isinstance(wire, Resting))

    def merge(replies: list[Reply]) -> list[Reply]:
        answers = iter(replies)
        return [None if isinstance(wire, Resting) else next(answers) for wire in wires]

    return sent, pause, merge


def makes_wait(wires: Sequence[Wire]) -> bool:
    """Whether the server may wait before it answers."""
    return Waiting in set(map(type, wires))


def deadline_of(packed: Packed, settings: Settings) -> float:
    """Seconds until an answer is overdue, counting what the server was asked to wait."""
    seconds = settings.timeout_seconds
    if packed.waits:
        seconds += sum(wire.operation.blocking for wire in packed.wires)
    return seconds if settings.durability is None else seconds + settings.durability.within_ms / 1000


def check_durability(
    replies: list[Reply], confirmed: Reply, wires: Sequence[Wire], durability: Durability
) -> list[Reply]:
    """The replies, with those of writes replaced by an error when too few replicas confirmed in time.

    Where the connection broke, `confirmed` is None and replies may be fewer than wires.
    """
    if isinstance(confirmed, int) and confirmed >= durability.replicas:
        return replies
    error = UnderReplicatedError(durability.replicas, confirmed if isinstance(confirmed, int) else 0)
    return [
        reply if wire.operation.effect is Effect.READ or isinstance(reply, ErrorReply) else error
        for reply, wire in zip(replies, wires, strict=False)
    ]


def _unchanged(replies: list[Reply]) -> list[Reply]:
    return replies
