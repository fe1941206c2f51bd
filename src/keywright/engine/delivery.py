"""The state of a batch: unanswered commands, retries and redirections. No I/O.

The engines, blocking and asyncio, ask a delivery for the next shipments, send them, and report the outcome:
replies, a lost connection, a deadline. The delivery decides which commands are retried and where.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import islice
from typing import NamedTuple

from keywright.engine.deadlines import deadline_of, time_of
from keywright.engine.nodes import NodeReader
from keywright.engine.retry import is_spent
from keywright.engine.settings import Settings
from keywright.engine.topology import Node, Topology, parse_redirection
from keywright.engine.translation import refusal, verb_of
from keywright.engine.wire_format import DEMOTED, ErrorReply, Packed
from keywright.errors import (
    ConnectionLostError,
    DeadlineError,
    KeywrightError,
    OutcomeUnknownError,
    UsageError,
)
from keywright.keyspace.slots import slot_of
from keywright.keyspace.wires import Effect, Reply, Transacted, Wire

# Bounds on one shipment, so that neither side buffers without limit.
MOST_WIRES = 10_000
MOST_BYTES = 8 * 1024 * 1024
# Attempts at a replica before falling back to its primary.
REPLICA_ATTEMPTS = 4
# The least time to read replies that may have been received already, after another node used up the deadline.
LEAST_SECONDS = 0.1


class Shipment(NamedTuple):
    """Wires for one node, sent in one write."""

    node: Node | None
    asking: bool
    indexes: Sequence[int]
    wires: Sequence[Wire]


class Delivery:
    """A batch in flight. `replies` is complete once `pending` is empty.

    With one reader everything goes to its node, with several to those of the keys' slots, and only a
    redirection leads elsewhere. Without readers and without a topology there is only one node.
    """

    def __init__(
        self,
        wires: Sequence[Wire],
        settings: Settings,
        server: str,
        topology: Topology | None,
        readers: Sequence[NodeReader] = (),
        *,
        resend_late: bool = False,
        started: float | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        # Of a cluster each is looked at, for its slot.
        self.wires = wires if topology is None else list(wires)
        self.settings = settings
        self.retry = settings.retry
        self.server = server
        self.topology = topology
        self.readers = readers
        self.resend_late = resend_late
        self.replies: list[Reply] = []
        self.attempt = 0
        self.stale_topology = False
        self._sent_to: dict[int, tuple[Node, bool]] = {}
        self._trouble: dict[int, KeywrightError] = {}
        self._lost_replicas: set[Node] = set()
        self._late = False
        self._clock = clock
        self._started = clock() if started is None else started
        self._seconds: tuple[float, float] | None = None
        self._pending: dict[int, None] | None = None

    @property
    def pending(self) -> dict[int, None]:
        """Return the indexes without a reply. Made on demand: most batches are answered at once."""
        if self._pending is None:
            self.replies = [None] * len(self.wires)
            self._pending = dict.fromkeys(range(len(self.wires)))
        return self._pending

    def complete(self, replies: list[Reply], packed: Packed) -> None:
        """Take the replies of the whole batch, none of which has an error."""
        self.replies = packed.sound(replies) if packed.plain else replies
        self._pending = {}

    def shipments(self) -> list[Shipment]:
        """Return the next shipments, at most one per node. Wires that do not fit wait for the next round."""
        if self.topology is None:
            node = self.readers[0].node if self.readers else None
            return [self._shipment(node, False, list(islice(self.pending, MOST_WIRES)))]
        groups: dict[tuple[Node, bool], list[int]] = {}
        for index in self.pending:
            groups.setdefault(self._target(index, self.topology), []).append(index)
        chosen: dict[Node, Shipment] = {}
        for (node, asking), indexes in groups.items():
            if node not in chosen:
                chosen[node] = self._shipment(node, asking, indexes)
        # One order for all threads prevents a deadlock: each could hold a connection that the other needs.
        return [chosen[node] for node in sorted(chosen)]

    def _target(self, index: int, topology: Topology) -> tuple[Node, bool]:
        if index in self._sent_to:
            return self._sent_to[index]
        if len(self.readers) == 1:
            return self._where(self.readers[0]), False
        name = self.wires[index].name
        node = topology.owner(slot_of(name)) if name else None
        if self.readers:
            # A wrong guess is answered with a redirection.
            node = self._where(next((r for r in self.readers if r.primary == node), self.readers[0]))
        return node or topology.primaries[0], False

    def _shipment(self, node: Node | None, asking: bool, indexes: list[int]) -> Shipment:
        indexes = indexes[:MOST_WIRES]
        room = MOST_BYTES
        for place, index in enumerate(indexes):
            room -= _size(self.wires[index])
            if room < 0 and place:
                indexes = indexes[:place]
                break
        return Shipment(node, asking, indexes, [self.wires[index] for index in indexes])

    def answered(self, shipment: Shipment, replies: Sequence[Reply]) -> None:
        """Take the replies of the first wires of a shipment."""
        for index, reply in zip(shipment.indexes, replies, strict=False):
            settled = self._settle(index, reply, shipment)
            if settled is not _AGAIN:
                self._done(index, settled)

    def lost(self, shipment: Shipment, answered: int, reason: Exception, *, sent: bool) -> None:
        """Record a lost connection. The first `answered` wires have their replies already."""
        self.stale_topology = self.topology is not None
        self._note(shipment)
        for index in shipment.indexes[answered:]:
            wire = self.wires[index]
            self._sent_to.pop(index, None)
            if sent and wire.operation.effect is Effect.ONCE:
                self._done(index, OutcomeUnknownError(self._name(shipment), verb_of(wire), wire.name))
            else:
                self._trouble[index] = ConnectionLostError(self._name(shipment), str(reason) or "it closed")

    def refused(self, shipment: Shipment, error: KeywrightError) -> None:
        """Record a failed connection attempt. It is retried unless the server itself refused it."""
        if not isinstance(error, ConnectionLostError) and not _at_replica(shipment):
            for index in shipment.indexes:
                self._done(index, error)
            return
        self.lost(shipment, 0, Exception(getattr(error, "reason", str(error))), sent=False)

    def unsendable(self, shipment: Shipment, error: Exception) -> None:
        """Fail the wires with an argument of an invalid type. The others are still to be sent."""
        culprits = [index for index in shipment.indexes if not _is_sendable(self.wires[index])]
        for index in culprits or shipment.indexes:
            wire = self.wires[index]
            self._done(
                index,
                UsageError(
                    f"{verb_of(wire)} {wire.name!r} cannot be sent: {str(error).rstrip('.')}. "
                    f"Pass arguments of the types that the method declares."
                ),
            )

    def overdue(self, shipment: Shipment, answered: int, seconds: float) -> None:
        """Record a missed deadline. No retry unless `resend_late`: the server may still be working."""
        self._late = True
        self.stale_topology = self.topology is not None  # a replica may have replaced the node
        self._note(shipment)
        for index in shipment.indexes[answered:]:
            # One for each: callers that raise the same exception would all add to its traceback.
            error = DeadlineError(self._name(shipment), seconds)
            if self.resend_late:
                self._trouble[index] = error
            else:
                self._done(index, error)

    def next_attempt(self) -> float | None:
        """Return the back-off in seconds before the next shipments; None once all is answered or failed."""
        if not self._trouble:
            self._started = self._clock()  # all shipments so far were answered: the next have their own time
            return 0.0
        self.attempt += 1
        at_end = self._late or self.attempt >= REPLICA_ATTEMPTS or is_spent(self.retry, self.attempt)
        self._late = False
        if at_end and self._fell_back():
            self.attempt, self._started = 0, self._clock()
        pause = self.retry.pause(self.attempt)
        if not is_spent(self.retry, self.attempt) and self._elapsed() + pause < self._time()[0]:
            self._trouble.clear()
            return pause
        for index, error in self._trouble.items():
            self._done(index, error)
        self._trouble.clear()
        return 0.0 if self.pending else None  # wires that did not fit into the last shipments

    def time_left(self) -> float:
        """Return the seconds in which the batch is to be answered, or to fail."""
        return max(self._time()[1] - self._elapsed(), LEAST_SECONDS)

    def reply_seconds(self, packed: Packed) -> float:
        """Return how long to wait for the replies to a shipment. A blocking command has its whole wait."""
        seconds = deadline_of(packed, self.settings)
        is_first = self.attempt == 0 and len(packed.wires) == len(self.wires)
        return seconds if is_first or packed.waits else min(seconds, self.time_left())

    def _elapsed(self) -> float:
        return self._clock() - self._started

    def _time(self) -> tuple[float, float]:
        if self._seconds is None:
            self._seconds = time_of(self.wires, self.settings, walk=self.resend_late)
        return self._seconds

    def _where(self, reader: NodeReader) -> Node:
        assert reader.node is not None  # in a cluster, where there is a topology
        return reader.node

    def _note(self, shipment: Shipment) -> None:
        if _at_replica(shipment):
            assert shipment.node is not None
            self._lost_replicas.add(shipment.node)

    def _fell_back(self) -> bool:
        """Fall back to the primaries of replicas that do not answer. Return False if there are none."""
        lost = [reader for reader in self.readers if reader.replica in self._lost_replicas]
        for reader in lost:
            reader.fall_back()
        self._lost_replicas.clear()
        return bool(lost)

    def _settle(self, index: int, reply: Reply, shipment: Shipment) -> Reply:
        if isinstance(reply, ErrorReply):
            return self._error(index, reply, shipment)
        if type(reply) is Transacted:
            failed = next((item for item in reply if isinstance(item, ErrorReply)), None)
            if failed is not None:
                return refusal(failed, self.wires[index], self._name(shipment))
        return reply

    def _error(self, index: int, reply: ErrorReply, shipment: Shipment) -> Reply:
        code, wire = reply.code, self.wires[index]
        if code in ("MOVED", "ASK") and shipment.node is not None and self.topology is not None:
            target = parse_redirection(str(reply), shipment.node)
            self._sent_to[index] = (target.node, target.asking)
            if not target.asking:
                self.topology.moved(target.slot, target.node)
                self.stale_topology = True
            return self._again(index, reply)
        if code == "NOSCRIPT" and wire.operation.script is not None:
            whole = (b"EVAL", wire.operation.script.source, *wire.arguments[2:])
            if not isinstance(self.wires, list):
                self.wires = list(self.wires)
            self.wires[index] = wire.with_arguments(whole)
            return _AGAIN
        if code in UNREADY or code in DEMOTED:
            self.stale_topology = self.topology is not None
            self._note(shipment)
            return self._again(index, reply)
        return refusal(reply, wire, self._name(shipment))

    def _again(self, index: int, reply: ErrorReply) -> Reply:
        self._trouble[index] = refusal(reply, self.wires[index], self.server)
        return _AGAIN

    def _done(self, index: int, reply: Reply) -> None:
        del self.pending[index]
        self.replies[index] = reply
        self._sent_to.pop(index, None)

    def _name(self, shipment: Shipment) -> str:
        return str(shipment.node) if shipment.node is not None else self.server


_AGAIN = object()
# The server executed nothing, and may do so a moment later.
UNREADY = frozenset(["TRYAGAIN", "LOADING", "CLUSTERDOWN", "MASTERDOWN", "BUSY"])


def _at_replica(shipment: Shipment) -> bool:
    return shipment.node is not None and shipment.node.replica


def _is_sendable(wire: Wire) -> bool:
    try:
        return bool(Packed([wire]).buffer)
    except Exception:  # noqa: BLE001  # the caller reports the error
        return False


def _size(wire: Wire) -> int:
    return sum(len(part) if isinstance(part, bytes | str | tuple) else 8 for part in wire.arguments)
