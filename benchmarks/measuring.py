"""Time contestants in turns: interleaved rounds, medians, spread, ratios, targets.

A sampler executes one contestant several times and returns the seconds of each execution. A race warms up
all samplers, then runs them in turns, each round beginning with the next one. The figure of a round is the
median of its executions; the figure of the race is the median of its rounds. A ratio is taken round by round,
so that a change of the machine's speed affects both of its sides.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from time import perf_counter
from typing import Literal, NamedTuple, TypeAlias

import msgspec

ROUNDS = 7
QUICK_ROUNDS = 3
MORE_IS_BETTER = frozenset({"ops_per_second", "keys_per_second", "share"})

Sampler: TypeAlias = Callable[[], list[float]]
Unit: TypeAlias = Literal[
    "ops_per_second",
    "keys_per_second",
    "share",
    "microseconds",
    "seconds",
    "megabytes",
    "bytes",
    "commands",
    "count",
]


class Figure(NamedTuple):
    """A median over the rounds, with the lowest and the highest round."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, rounds: Sequence[float]) -> Figure:
        return cls(median(rounds), min(rounds), max(rounds))


class Target(msgspec.Struct, frozen=True):
    """A bound of a ratio."""

    bound: Literal["at least", "at most"]
    ratio: float

    def met_by(self, ratio: float) -> bool:
        return ratio >= self.ratio if self.bound == "at least" else ratio <= self.ratio


def at_least(ratio: float) -> Target:
    return Target("at least", ratio)


def at_most(ratio: float) -> Target:
    return Target("at most", ratio)


class Result(msgspec.Struct, frozen=True, tag="result", kw_only=True):
    """One comparison.

    The ratio is ours by theirs, in the unit. Of a limit it is how many times the time of the limit we take.
    """

    benchmark: str
    subject: str
    unit: Unit
    ours: Figure
    peer: str
    theirs: Figure
    ratio: Figure
    limit: bool = False
    target: Target | None = None
    met: bool | None = None

    @classmethod
    def of(
        cls,
        benchmark: str,
        subject: str,
        unit: Unit,
        ours: Sequence[float],
        peer: str,
        theirs: Sequence[float],
        target: Target | None = None,
        *,
        limit: bool = False,
    ) -> Result:
        """Compare rounds. Those of both sides were taken in turns if they are as many."""
        above, below = (theirs, ours) if limit and unit in MORE_IS_BETTER else (ours, theirs)
        return cls(
            benchmark=benchmark,
            subject=subject,
            unit=unit,
            ours=Figure.of(ours),
            peer=peer,
            theirs=Figure.of(theirs),
            ratio=_ratio(above, below),
            limit=limit,
            target=target,
            met=None if target is None else target.met_by(_ratio(above, below).value),
        )


def _ratio(above: Sequence[float], below: Sequence[float]) -> Figure:
    if len(above) == len(below):
        return Figure.of([one / other for one, other in zip(above, below, strict=True)])
    one, other = Figure.of(above), Figure.of(below)
    return Figure(one.value / other.value, one.low / other.high, one.high / other.low)


class Point(msgspec.Struct, frozen=True, tag="point", kw_only=True):
    """The cost of one contestant at one size."""

    growth: str
    series: str
    size: int
    unit: Unit
    figure: Figure


class Effort(NamedTuple):
    """How long a run may take."""

    quick: bool = False
    largest: bool = False
    most_rounds: int | None = None

    def rounds(self, full: int = ROUNDS) -> int:
        most = QUICK_ROUNDS if self.quick else self.most_rounds
        return full if most is None else min(most, full)

    def pick(self, full: int, quick: int) -> int:
        return quick if self.quick else full


FULL = Effort()


@dataclass(frozen=True)
class Race:
    """Several implementations of the same work, by name, the first of them ours."""

    benchmark: str
    subject: str
    contestants: Mapping[str, Sampler]
    rounds: int = ROUNDS
    targets: Mapping[str, Target] = field(default_factory=dict)
    limits: frozenset[str] = frozenset()

    def throughput(self, operations: int) -> Iterator[Result]:
        """Yield operations per second, if one execution does that many: ours against each other's."""
        return self._results("ops_per_second", lambda seconds: operations / seconds)

    def latency(self) -> Iterator[Result]:
        """Yield the microseconds of one execution: ours against each other's."""
        return self._results("microseconds", lambda seconds: seconds * 1e6)

    def times(self) -> dict[str, list[float]]:
        """Return the seconds of one execution, by contestant and round."""
        names = list(self.contestants)
        taken: dict[str, list[float]] = {name: [] for name in names}
        for name in names:
            self.contestants[name]()
        for number in range(self.rounds):
            first = number % len(names)
            for name in names[first:] + names[:first]:
                taken[name].append(median(_undisturbed(self.contestants[name])))
        return taken

    def _results(self, unit: Unit, measure: Callable[[float], float]) -> Iterator[Result]:
        taken = {name: [measure(each) for each in rounds] for name, rounds in self.times().items()}
        ours, *peers = taken
        for peer in peers:
            yield Result.of(
                self.benchmark,
                self.subject,
                unit,
                taken[ours],
                peer,
                taken[peer],
                self.targets.get(peer),
                limit=peer in self.limits,
            )


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
        return next(self._race("at least", at_least).throughput(operations))

    def latency(self, *, at_most: float | None = None) -> Result:
        """Return the microseconds of one execution."""
        return next(self._race("at most", at_most).latency())

    def _race(self, bound: Literal["at least", "at most"], ratio: float | None) -> Race:
        sides = {"keywright": self.ours, self.peer: self.theirs}
        targets = {} if ratio is None else {self.peer: Target(bound, ratio)}
        return Race(self.benchmark, self.subject, sides, self.rounds, targets)


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
