"""Time two contestants: interleaved rounds, medians, and the reported figures.

A sampler executes one contestant several times and returns the seconds of each execution. A contest
warms up both samplers, then runs them in turns, alternating which one starts. The figure of a round is the
median of its executions; the figure of the contest is the median of its rounds.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import NamedTuple, TypeAlias

ROUNDS = 7

Sampler: TypeAlias = Callable[[], list[float]]


class Figure(NamedTuple):
    """A median over the rounds, with the lowest and the highest round."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, rounds: list[float]) -> Figure:
        return cls(median(rounds), min(rounds), max(rounds))


class Result(NamedTuple):
    """One comparison. `target` bounds the ratio: from below for throughput, from above for latency."""

    benchmark: str
    subject: str
    unit: str
    ours: Figure
    peer: str
    theirs: Figure
    target: float | None

    @property
    def ratio(self) -> float:
        return self.ours.value / self.theirs.value

    @property
    def met(self) -> bool | None:
        if self.target is None:
            return None
        return self.ratio <= self.target if self.unit == "microseconds" else self.ratio >= self.target


@dataclass(frozen=True)
class Contest:
    """Two implementations of the same work."""

    benchmark: str
    subject: str
    ours: Sampler
    peer: str
    theirs: Sampler
    rounds: int = ROUNDS

    def throughput(self, operations: int, *, at_least: float | None = None) -> Result:
        """Return operations per second, if one execution does that many."""
        ours, theirs = ([operations / seconds for seconds in side] for side in self._race())
        return self._result("ops_per_second", ours, theirs, at_least)

    def latency(self, *, at_most: float) -> Result:
        """Return the microseconds of one execution."""
        ours, theirs = ([seconds * 1e6 for seconds in side] for side in self._race())
        return self._result("microseconds", ours, theirs, at_most)

    def _race(self) -> tuple[list[float], list[float]]:
        sides = [(self.ours, list[float]()), (self.theirs, list[float]())]
        for sampler, _ in sides:
            sampler()
        for number in range(self.rounds):
            for sampler, medians in sides if number % 2 == 0 else reversed(sides):
                medians.append(median(_undisturbed(sampler)))
        return sides[0][1], sides[1][1]

    def _result(self, unit: str, ours: list[float], theirs: list[float], target: float | None) -> Result:
        return Result(
            self.benchmark, self.subject, unit, Figure.of(ours), self.peer, Figure.of(theirs), target
        )


def blocking(work: Callable[[], object], executions: int) -> Sampler:
    """Return a sampler of a function."""

    def sample() -> list[float]:
        seconds = []
        for _ in range(executions):
            start = perf_counter()
            work()
            seconds.append(perf_counter() - start)
        return seconds

    return sample


def in_loop(runner: asyncio.Runner, work: Callable[[], Awaitable[object]], executions: int) -> Sampler:
    """Return a sampler of a coroutine function; entering and leaving the event loop is not timed."""

    async def sample() -> list[float]:
        seconds = []
        for _ in range(executions):
            start = perf_counter()
            await work()
            seconds.append(perf_counter() - start)
        return seconds

    return lambda: runner.run(sample())


def _undisturbed(sampler: Sampler) -> list[float]:
    gc.collect()
    gc.disable()
    try:
        return sampler()
    finally:
        gc.enable()
