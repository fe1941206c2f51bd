"""The limit of unsettled deliveries over several queues, against a model of the server."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keywright_messaging.amqp.credit import Polls, Shares

QUEUES = (b"0", b"1", b"2")


class Server:
    """Delivers to consumers up to their limits, from queues that are never empty."""

    def __init__(self, shares: Shares) -> None:
        self.shares = shares
        self.limits = dict.fromkeys(QUEUES, shares.share)
        self.unsettled: dict[int, bytes] = {}
        self.tags = 0
        self.moves = 0

    def deliver(self, consumer: bytes) -> None:
        if Counter(self.unsettled.values())[consumer] < self.limits.get(consumer, 0):
            self.tags += 1
            self.unsettled[self.tags] = consumer
            self.shares.arrived(consumer, self.tags)

    def settle(self, place: int) -> None:
        if self.unsettled:
            tag = list(self.unsettled)[place % len(self.unsettled)]
            del self.unsettled[tag]
            self.shares.settled([tag])

    def balance(self) -> None:
        if (needy := self.shares.needy()) is None:
            return
        if self.shares.extra is not None:
            del self.limits[self.shares.extra]
            self.shares.cancelled()
        self.moves += 1
        consumer = b"%b+%d" % (needy, self.moves)
        self.limits[consumer] = self.shares.moved(needy, consumer)
        assert self.limits[consumer] > 0


@given(st.integers(3, 60), st.lists(st.tuples(st.sampled_from("dddsb"), st.integers(0, 9)), max_size=300))
def test_consumers_never_have_more_unsettled_than_the_limit(limit: int, steps: list[tuple[str, int]]) -> None:
    server = Server(Shares(QUEUES, limit))
    for step, number in steps:
        if step == "d":
            consumers = list(server.limits)
            server.deliver(consumers[number % len(consumers)])
        elif step == "s":
            server.settle(number)
        else:
            server.balance()
        assert len(server.unsettled) <= limit


@pytest.mark.parametrize("limit", [4, 10, 30, 100])
def test_the_rest_is_given_to_the_queue_that_is_full_and_moves_to_the_next(limit: int) -> None:
    server = Server(Shares(QUEUES, limit))
    for busy in (b"2", b"0"):
        for _ in range(limit):
            server.deliver(busy)
        server.balance()
        assert server.shares.holder == busy
        for _ in range(limit):
            server.deliver(server.shares.extra or b"")
        assert len(server.unsettled) == limit - 2 * server.shares.share
        while server.unsettled:
            server.settle(0)


def test_queues_that_are_polled_are_asked_in_turn_and_within_the_limit() -> None:
    polls = Polls(QUEUES, 2)
    polls.begin()
    assert polls.requests() == [b"0", b"1"]
    assert polls.requests() == []
    polls.nothing()
    assert polls.requests() == [b"2"]
    assert polls.arrived() == b"1"
    polls.nothing()
    assert polls.requests() == [b"1"]
    polls.nothing()
    assert polls.requests() == []
    polls.begin()
    assert polls.requests() == [b"0"]
    polls.settled(1)
    assert polls.requests() == [b"1"]
