"""The counts of an audit: keys, bytes and expiries by template, findings by code. Bounded, and mergeable."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Sequence
from operator import mul

import msgspec

from keywright.tools.audit.findings import Finding

__all__ = ["LEAST", "Found", "Measure", "Tally"]

LEAST = 64
"""So many keys of each template are measured, whatever the sample is."""
LARGEST = 3
MOST_PATTERNS = 200
DEVIATIONS = 1.96
"""Of a normal distribution, for 95 % confidence."""


class Measure(msgspec.Struct):
    """The counts of one template.

    Of `read` keys the values were read, of `sized` ones the size is known, `asked` ones were asked for their
    TTL. Where those are fewer than the keys, totals are estimates.
    """

    keys: int = 0
    read: int = 0
    sized: int = 0
    known_bytes: float = 0.0
    squares: float = 0.0
    asked: int = 0
    timed: int = 0
    expiring: int = 0
    samples: int = 0
    overhead: float = 0.0
    overhead_squares: float = 0.0
    sealed: int = 0
    in_clear: int = 0
    """Values that are declared sealed, by how they are stored."""
    largest: list[tuple[int, bytes]] = []

    @property
    def total_bytes(self) -> int | None:
        """Return the bytes of all keys; None if the size of none is known."""
        if not self.sized:
            return None if self.keys else 0
        return round((self.known_bytes / self.sized + self.overhead) * self.keys)

    @property
    def bytes_error(self) -> float:
        """Return the margin of `total_bytes` at 95 % confidence, as a share of it; 0 if it is exact."""
        total = self.total_bytes
        if not total:
            return 0.0
        unsized = _margin(self.sized, self.keys, self.known_bytes, self.squares)
        unmeasured = (
            _margin(self.samples, self.keys, self.overhead * self.samples, self.overhead_squares)
            if self.samples
            else 0.0
        )
        return min(1.0, math.hypot(unsized, unmeasured) / total)

    @property
    def coverage(self) -> float | None:
        """Return the share of keys that expire; None if no TTL was read."""
        return self.expiring / self.timed if self.timed else None

    @property
    def coverage_error(self) -> float:
        """Return the margin of `coverage` at 95 % confidence; 0 if it is exact."""
        if self.coverage is None or self.asked >= self.keys:
            return 0.0
        # The interval of Wilson, which is right for shares of 0 and 1 too.
        count, share = self.timed, self.coverage
        half = DEVIATIONS * math.sqrt(share * (1 - share) / count + DEVIATIONS**2 / (4 * count**2))
        return (half + abs(share - 0.5) * DEVIATIONS**2 / count) / (1 + DEVIATIONS**2 / count)

    def add_sizes(self, sizes: Sequence[int], names: Sequence[bytes]) -> None:
        """Count keys with their sizes, and keep the largest. The overhead is added to the totals."""
        if not sizes:
            return
        self.sized += len(sizes)
        self.known_bytes += sum(sizes)
        self.squares += sum(map(mul, sizes, sizes))
        extra = round(self.overhead)
        least = min(self.largest)[0] if len(self.largest) == LARGEST else -1
        if max(sizes) + extra <= least:
            return
        top = heapq.nlargest(LARGEST, zip(sizes, names, strict=True))
        known = {*self.largest, *((size + extra, name) for size, name in top)}
        self.largest = heapq.nlargest(LARGEST, dict.fromkeys(sorted(known)))

    def add_overhead(self, extra: float) -> None:
        """Record the bytes that a measured string takes beside its name and value."""
        self.samples += 1
        self.overhead += (extra - self.overhead) / self.samples
        self.overhead_squares += extra * extra

    def merge(self, other: Measure) -> None:
        samples = self.samples + other.samples
        if samples:
            self.overhead = (self.overhead * self.samples + other.overhead * other.samples) / samples
        for name in _SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.largest = heapq.nlargest(LARGEST, {*self.largest, *other.largest})


_SUMS = (
    "keys",
    "read",
    "sized",
    "known_bytes",
    "squares",
    "asked",
    "timed",
    "expiring",
    "samples",
    "overhead_squares",
    "sealed",
    "in_clear",
)


def _margin(count: int, population: int, total: float, squares: float) -> float:
    """Return the margin of the total of a population, given the sum and sum of squares of a sample of it."""
    if count >= population:
        return 0.0
    if count < 2:
        return math.inf
    variance = max(0.0, (squares - total * total / count) / (count - 1))
    return DEVIATIONS * population * math.sqrt(variance / count * (1 - count / population))


class Found(msgspec.Struct):
    """The findings of one code: their number, and the first of them."""

    count: int = 0
    kept: list[Finding] = []


class Tally(msgspec.Struct):
    """All counts of one node, or the sum of several."""

    templates: dict[str, Measure] = {}
    findings: dict[str, Found] = {}
    patterns: dict[str, int] = {}
    names: int = 0
    outside: int = 0
    truncated: int = 0

    def measure(self, template: str) -> Measure:
        found = self.templates.get(template)
        if found is None:
            found = self.templates[template] = Measure()
        return found

    def add(self, finding: Finding, most: int) -> None:
        found = self.findings.setdefault(finding.code, Found())
        found.count += 1
        if len(found.kept) < most:
            found.kept.append(finding)

    def add_pattern(self, pattern: str) -> None:
        if pattern not in self.patterns and len(self.patterns) >= MOST_PATTERNS:
            pattern = "(others)"
        self.patterns[pattern] = self.patterns.get(pattern, 0) + 1

    @classmethod
    def merged(cls, tallies: Iterable[Tally], most: int) -> Tally:
        total = cls()
        for tally in tallies:
            for template, measure in tally.templates.items():
                total.measure(template).merge(measure)
            for code, found in tally.findings.items():
                into = total.findings.setdefault(code, Found())
                into.count += found.count
                into.kept = _distinct([*into.kept, *found.kept])[:most]
            for pattern, count in tally.patterns.items():
                total.patterns[pattern] = total.patterns.get(pattern, 0) + count
            total.names += tally.names
            total.outside += tally.outside
            total.truncated += tally.truncated
        return total


def _distinct(findings: list[Finding]) -> list[Finding]:
    """Return the findings without duplicates: SCAN may return a name twice."""
    return list({finding.identity: finding for finding in findings}.values())
