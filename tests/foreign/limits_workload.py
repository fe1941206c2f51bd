"""limits at work: every strategy with several limits, for subjects of one word, of several and of none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from limits import parse_many
from limits.storage import storage_from_string
from limits.strategies import FixedWindowRateLimiter, MovingWindowRateLimiter, SlidingWindowCounterRateLimiter

from foreign.workload import URL, announce, turns

LIMITS = (
    "3 per second; 5 per 2 second; 100 per 30 minute; 1000 per 2 hour; 5000 per day; "
    "90000 per 3 month; 900000 per year"
)
SUBJECTS = 12


def _limits(namespace: str) -> list[Any]:
    limits: list[Any] = parse_many(LIMITS)
    for limit in limits:
        limit.namespace = namespace
    return limits


def hit(limiter: Any, limits: list[Any], turn: int) -> None:
    """Take from all limits for a user, for an address with a route, and for everyone."""
    for subject in ((f"user-{turn % SUBJECTS}",), (f"192.168.0.{turn % SUBJECTS}", "GET /orders/{id}"), ()):
        for limit in limits:
            if turn % 5 == 0:
                limiter.test(limit, *subject)
                limiter.get_window_stats(limit, *subject)
            limiter.hit(limit, *subject, cost=1 + turn % 2)


def work(limiters: list[tuple[Any, list[Any]]], ready: Callable[[], object]) -> None:
    """Take from all limiters until the test has seen enough, and forget some of it."""
    announced = False
    for turn in turns():
        for limiter, limits in limiters:
            hit(limiter, limits, turn)
        if not announced and ready():
            announced = True
            announce()
        if turn % 10 == 9:
            limiter, limits = limiters[0]
            limiter.clear(limits[2], f"user-{turn % SUBJECTS}")


def main() -> None:
    storage: Any = storage_from_string(URL)
    limiters = [
        (FixedWindowRateLimiter(storage), _limits("LIMITER")),
        (FixedWindowRateLimiter(storage), _limits("login")[:2]),
        (SlidingWindowCounterRateLimiter(storage), _limits("LIMITER")),
    ]
    work(limiters, lambda: storage.storage.keys("LIMITS:*/-1"))


def main_moving() -> None:
    storage: Any = storage_from_string(URL)
    work([(MovingWindowRateLimiter(storage), _limits(each)) for each in ("LIMITER", "login")], lambda: True)
