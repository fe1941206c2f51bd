"""Deliveries: retries, redirections and deadlines of a batch, without a server."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta

import pytest

from engines import Log, Tally, Word
from keywright import Call, Context, Retry, Settings, preview
from keywright.engine.delivery import MOST_BYTES, MOST_WIRES, Delivery, Shipment
from keywright.engine.nodes import NodeReader
from keywright.engine.topology import Node, Topology
from keywright.engine.wire_format import ErrorReply, Packed
from keywright.errors import (
    ConnectionLostError,
    DeadlineError,
    KeywrightError,
    OutcomeUnknownError,
    ServerRefusedError,
)
from keywright.keyspace.slots import SLOTS
from keywright.operations import Wire, slot_of

HOME, OTHER, THIRD = Node("a", 1), Node("b", 2), Node("c", 3)
SLOT = slot_of(b"word:a")
LOST = OSError("it closed")


class Seconds:
    """A clock that a test moves."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def _wires(*calls: Call[object]) -> list[Wire]:
    return [wire for call in calls for wire in preview(call, Context(sharded=True))]


def _delivery(*calls: Call[object], attempts: int = 4) -> Delivery:
    topology = Topology([HOME] * SLOTS, {HOME: []})
    return Delivery(_wires(*calls), Settings(retry=Retry(attempts=attempts)), "a cluster", topology)


def _next(delivery: Delivery) -> Shipment:
    assert delivery.next_attempt() is not None
    (shipment,) = delivery.shipments()
    return shipment


def test_each_call_that_misses_the_deadline_has_an_error_of_its_own() -> None:
    """Callers that raise one exception all add to its traceback: a thousand of them, a thousand frames."""
    delivery = _delivery(Word("a").get(), Word("b").get())
    delivery.overdue(_next(delivery), 0, 5.0)
    first, second = delivery.replies
    assert isinstance(first, DeadlineError)
    assert isinstance(second, DeadlineError)
    assert first is not second


def test_a_moved_key_is_asked_for_where_it_is_now_and_so_are_others_of_its_slot() -> None:
    delivery = _delivery(Word("a").get())
    delivery.answered(_next(delivery), [ErrorReply(f"MOVED {SLOT} b:2")])
    assert delivery.stale_topology
    shipment = _next(delivery)
    assert (shipment.node, shipment.asking) == (OTHER, False)
    assert delivery.topology is not None
    assert delivery.topology.owner(SLOT) == OTHER
    delivery.answered(shipment, [b"x"])
    assert (delivery.replies, dict(delivery.pending)) == ([b"x"], {})


@pytest.mark.parametrize("host", [b"", b"?", None], ids=["empty", "unset", "null"])
def test_a_node_without_a_host_has_the_host_of_the_node_that_was_asked(host: bytes | None) -> None:
    """`?` is sent where hostnames are preferred and this node has none."""
    slots = [[0, SLOTS - 1, [host, 7001, b"id"], [host, 7002, b"id"]]]
    topology = Topology.parse(slots, Node("10.0.0.1", 7003))
    assert topology.owner(SLOT) == Node("10.0.0.1", 7001)
    assert topology.replicas == {Node("10.0.0.1", 7001): [Node("10.0.0.1", 7002, replica=True)]}
    delivery = _delivery(Word("a").get())
    delivery.answered(_next(delivery), [ErrorReply(f"MOVED {SLOT} {(host or b'').decode()}:2")])
    assert _next(delivery).node == Node("a", 2)


def test_a_key_that_is_on_its_way_is_asked_for_there_and_the_slot_stays() -> None:
    delivery = _delivery(Word("a").get())
    delivery.answered(_next(delivery), [ErrorReply(f"ASK {SLOT} b:2")])
    shipment = _next(delivery)
    assert (shipment.node, shipment.asking) == (OTHER, True)
    assert delivery.topology is not None
    assert delivery.topology.owner(SLOT) == HOME


def test_a_node_that_was_named_and_is_lost_is_not_asked_again() -> None:
    delivery = _delivery(Word("a").get())
    delivery.answered(_next(delivery), [ErrorReply(f"MOVED {SLOT} b:2")])
    delivery.lost(_next(delivery), 0, LOST, sent=True)
    delivery.topology = Topology([THIRD] * SLOTS, {THIRD: []})  # who took over
    assert _next(delivery).node == THIRD


def test_nodes_that_send_a_call_to_each_other_are_asked_a_bounded_number_of_times() -> None:
    delivery = _delivery(Word("a").get(), attempts=5)
    asked: list[Node | None] = []
    while delivery.pending and delivery.next_attempt() is not None:
        for shipment in delivery.shipments():
            asked.append(shipment.node)
            there = "a:1" if shipment.node == OTHER else "b:2"
            delivery.answered(shipment, [ErrorReply(f"MOVED {SLOT} {there}")])
    assert asked == [HOME, OTHER, HOME, OTHER, HOME]
    assert isinstance(delivery.replies[0], ServerRefusedError)


@pytest.mark.parametrize(
    ("call", "sent", "error"),
    [
        (Word("a").get(), True, None),
        (Word("a").set("x"), True, None),
        (Tally("a").add(1), True, OutcomeUnknownError),
        (Tally("a").add(1), False, None),
    ],
    ids=["a read", "a write", "once, sent", "once, unsent"],
)
def test_lost_commands_are_retried_where_that_is_safe(
    call: Call[object], sent: bool, error: type[KeywrightError] | None
) -> None:
    delivery = _delivery(call)
    delivery.lost(_next(delivery), 0, LOST, sent=sent)
    if error is None:
        assert _next(delivery).indexes == [0]
    else:
        assert isinstance(delivery.replies[0], error)
        assert not delivery.pending


def test_only_unanswered_commands_are_retried() -> None:
    delivery = Delivery(_wires(Word("a").get(), Word("b").get()), Settings(), "a server", None)
    shipment = _next(delivery)
    delivery.answered(shipment, [b"x"])
    delivery.lost(shipment, 1, LOST, sent=True)
    assert _next(delivery).indexes == [1]


def test_a_server_that_stays_away_is_reported_after_the_last_attempt() -> None:
    delivery = _delivery(Word("a").get(), attempts=3)
    tries = 0
    while delivery.pending and delivery.next_attempt() is not None:
        for shipment in delivery.shipments():
            tries += 1
            delivery.lost(shipment, 0, LOST, sent=False)
    assert tries == 3
    assert isinstance(delivery.replies[0], ConnectionLostError)


def _tries(delivery: Delivery, clock: Seconds, seconds: float) -> int:
    """Let every attempt fail after some seconds. Return how many there were."""
    tries = 0
    while delivery.pending and (pause := delivery.next_attempt()) is not None:
        clock.now += pause + seconds
        for shipment in delivery.shipments():
            tries += 1
            delivery.lost(shipment, 0, LOST, sent=False)
    assert isinstance(delivery.replies[0], ConnectionLostError)
    return tries


@pytest.mark.parametrize(
    ("retry", "attempt_seconds", "least", "most", "ends"),
    [
        (Retry(), 2.0, 3, 3, 6.1),
        (Retry(), 0.0, 13, 40, 5.0),
        (Retry(within_seconds=60), 2.0, 24, 30, 62.1),
        (Retry(within_seconds=1), 2.0, 1, 1, 2.0),
        (Retry(attempts=2, within_seconds=60), 2.0, 2, 2, 4.1),
    ],
    ids=["silent", "refused", "a longer limit", "a shorter limit", "a number too"],
)
def test_attempts_begin_within_the_timeout_or_the_limit_of_the_retries(
    retry: Retry, attempt_seconds: float, least: int, most: int, ends: float
) -> None:
    clock = Seconds()
    settings = Settings(timeout_seconds=5, retry=retry)
    delivery = Delivery(_wires(Tally("a").add(1)), settings, "a server", None, clock=clock)
    assert least <= _tries(delivery, clock, attempt_seconds) <= most
    assert clock.now <= ends


def test_an_attempt_has_only_the_time_that_is_left() -> None:
    clock = Seconds()
    delivery = Delivery(_wires(Word("a").get()), Settings(), "a server", None, clock=clock)
    shipment = _next(delivery)
    packed = Packed(shipment.wires)
    assert delivery.reply_seconds(packed) == 5.0
    clock.now = 3.0
    delivery.lost(shipment, 0, LOST, sent=True)
    _next(delivery)
    assert delivery.time_left() == delivery.reply_seconds(packed) == 2.0


def test_a_batch_that_is_sent_in_parts_has_the_timeout_for_each_part() -> None:
    clock = Seconds()
    calls = [Word("a").get()] * (2 * MOST_WIRES + 1)
    delivery = Delivery(_wires(*calls), Settings(), "a server", None, clock=clock)
    for _ in range(3):
        shipment = _next(delivery)
        clock.now += 4.0
        delivery.answered(shipment, [b"x"] * len(shipment.wires))
    assert not delivery.pending


def test_a_blocking_command_that_is_sent_again_has_its_whole_wait() -> None:
    clock = Seconds()
    call = Log("a").read(wait=timedelta(seconds=20))
    delivery = Delivery(_wires(call), Settings(), "a server", None, clock=clock)
    shipment = _next(delivery)
    clock.now = 19.0
    delivery.lost(shipment, 0, LOST, sent=True)
    assert delivery.reply_seconds(Packed(_next(delivery).wires)) == 25.0


@pytest.mark.parametrize("code", ["READONLY", "UNBLOCKED"])
def test_what_a_demoted_primary_refused_is_sent_again_whatever_it_is(code: str) -> None:
    delivery = _delivery(Tally("a").add(1))
    delivery.answered(_next(delivery), [ErrorReply(f"{code} it is a replica now")])
    assert delivery.stale_topology
    assert _next(delivery).indexes == [0]


@pytest.mark.parametrize(
    ("calls", "most"),
    [
        ([Word("a").get()] * (MOST_WIRES + 1), MOST_WIRES),
        ([Word("a").set("x" * (MOST_BYTES // 4))] * 5, 3),
        ([Word("a").set("x" * (MOST_BYTES + 1))] * 2, 1),
    ],
    ids=["by number", "by size", "one at least"],
)
@pytest.mark.parametrize("sharded", [True, False], ids=["cluster", "server"])
def test_a_shipment_is_bounded(calls: list[Call[object]], most: int, sharded: bool) -> None:
    delivery = _delivery(*calls)
    delivery.topology = delivery.topology if sharded else None
    assert len(_next(delivery).wires) == most


def test_a_delivery_to_one_node_goes_there_whatever_its_keys_are() -> None:
    reader = NodeReader(OTHER, "a cluster")
    delivery = Delivery(_wires(Word("a").get()), Settings(), "a cluster", None, [reader])
    assert _next(delivery).node == OTHER
    delivery = _delivery_at(reader)
    shipment = _next(delivery)
    assert shipment.node == OTHER
    delivery.answered(shipment, [ErrorReply(f"MOVED {SLOT} c:3")])
    assert _next(delivery).node == THIRD


REPLICA = Node("r", 9, replica=True)


def _delivery_at(
    *readers: NodeReader,
    attempts: int | None = None,
    resend_late: bool = True,
    clock: Callable[[], float] = time.perf_counter,
) -> Delivery:
    topology = Topology([HOME] * SLOTS, {HOME: [REPLICA], OTHER: []})
    wires = _wires(Word("a").get())
    settings = Settings(retry=Retry(attempts))
    return Delivery(wires, settings, "a cluster", topology, readers, resend_late=resend_late, clock=clock)


def test_of_several_readers_that_of_the_slot_is_asked() -> None:
    readers = NodeReader(OTHER, "a cluster"), NodeReader(HOME, "a cluster", REPLICA)
    assert _next(_delivery_at(*readers)).node == REPLICA


@pytest.mark.parametrize("attempts", [1, 2, 12])
def test_a_lost_replica_is_tried_a_few_times_and_then_its_primary(attempts: int) -> None:
    reader = NodeReader(HOME, "a cluster", REPLICA)
    delivery = _delivery_at(reader, attempts=attempts)
    asked: list[Node | None] = []
    while delivery.pending and delivery.next_attempt() is not None:
        for shipment in delivery.shipments():
            asked.append(shipment.node)
            delivery.lost(shipment, 0, LOST, sent=False)
    assert asked == [REPLICA] * min(4, attempts) + [HOME] * attempts
    assert isinstance(delivery.replies[0], ConnectionLostError)
    assert reader.label == "a:1"


def test_a_replica_that_refuses_the_connection_is_replaced_too() -> None:
    delivery = _delivery_at(NodeReader(HOME, "a cluster", REPLICA), attempts=2)
    for _ in range(2):
        delivery.refused(_next(delivery), ServerRefusedError("AUTH", b"", "WRONGPASS"))
    assert _next(delivery).node == HOME


def test_a_late_answer_is_asked_for_again_only_where_that_was_chosen() -> None:
    reader = NodeReader(HOME, "a cluster")
    delivery = _delivery_at(reader, resend_late=False)
    delivery.overdue(_next(delivery), 0, 5.0)
    assert isinstance(delivery.replies[0], DeadlineError)

    clock = Seconds()
    delivery = _delivery_at(reader, clock=clock)
    tries = 0
    while delivery.pending and delivery.next_attempt() is not None:
        for shipment in delivery.shipments():
            tries += 1
            clock.now += 5.0
            delivery.overdue(shipment, 0, 5.0)
    assert tries == 4  # of 5 seconds each
    assert isinstance(delivery.replies[0], DeadlineError)
