"""Back-off: how long to wait between attempts, and retrying until one of them works."""

from __future__ import annotations

import asyncio
import logging
import random as chance
from collections.abc import Awaitable, Callable
from typing import NamedTuple, TypeVar

__all__ = ["Backoff", "Sleep", "retry"]

T = TypeVar("T")

Sleep = Callable[[float], Awaitable[None]]

log = logging.getLogger("keywright.service")

# 2.0 ** 1024 is an OverflowError; any pause is as long as it gets long before.
_MOST_DOUBLINGS = 60


class Backoff(NamedTuple):
    """Pauses that double from the first to the longest; `jitter` is the part of each that is random.

    The jitter keeps processes that failed together from retrying together.
    """

    first_seconds: float = 0.2
    longest_seconds: float = 5.0
    jitter: float = 0.5

    @classmethod
    def constant(cls, seconds: float) -> Backoff:
        """The same pause after every failure, without jitter."""
        return cls(seconds, seconds, 0.0)

    def pause(self, failures: int, random: Callable[[], float] = chance.random) -> float:
        """Return how many seconds to wait after so many failures in a row, from 1 on."""
        doublings = min(failures - 1, _MOST_DOUBLINGS)
        longest = min(self.longest_seconds, self.first_seconds * 2.0**doublings)
        return longest * (1 - self.jitter + self.jitter * random())


DEFAULT = Backoff()


async def retry(
    attempt: Callable[[], Awaitable[T]],
    what: str,
    *,
    on: type[Exception] | tuple[type[Exception], ...],
    backoff: Backoff = DEFAULT,
    attempts: int | None = None,
    sleep: Sleep = asyncio.sleep,
) -> T:
    """Call `attempt` until it does not raise one of `on`, with back-off in between; return its result.

    The first failure is logged, and the recovery: "cannot `what`", "could `what` again". After the last of
    `attempts`, if they are limited, the error is raised.
    """
    failures = 0
    while True:
        try:
            result = await attempt()
        except on as error:
            failures += 1
            if failures == attempts:
                raise
            if failures == 1:
                log.warning("cannot %s, trying on: %s", what, error)
            await sleep(backoff.pause(failures))
        else:
            if failures:
                log.info("could %s again, after %d failures", what, failures)
            return result
