"""The counts of an audit: keys, bytes and expiries by template, findings by code. Bounded, and mergeable."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence

import msgspec

from keywright.tools.audit.findings import Finding

__all__ = ["Found", "Measure", "Tally"]

LARGEST = 3
MOST_PATTERNS = 200


class Measure(msgspec.Struct):
    """The counts of one template.

    `known_bytes` is the measured or computed size of `sized` keys; `timed` keys were asked for their TTL.
    Where those are fewer than the keys, totals are extrapolated.
    """

    keys: int = 0
    sized: int = 0
    known_bytes: float = 0.0
    timed: int = 0
    expiring: int = 0
    samples: int = 0
    overhead: float = 0.0
    largest: list[tuple[int, bytes]] = []

    @property
    def total_bytes(self) -> int:
        return round(self.known_bytes * self.keys / self.sized) if self.sized else 0

    @property
    def coverage(self) -> float | None:
        """Return the share of keys that expire; None if no TTL was read."""
        return self.expiring / self.timed if self.timed else None

    def add_sizes(self, sizes: Sequence[int], names: Sequence[bytes], extra: float = 0.0) -> None:
        """Count keys with their sizes, each plus `extra`, and keep the largest."""
        if not sizes:
            return
        self.sized += len(sizes)
        self.known_bytes += sum(sizes) + extra * len(sizes)
        least = min(self.largest)[0] if len(self.largest) == LARGEST else -1
        if max(sizes) + round(extra) <= least:
            return
        top = heapq.nlargest(LARGEST, zip(sizes, names, strict=True))
        known = {*self.largest, *((size + round(extra), name) for size, name in top)}
        self.largest = heapq.nlargest(LARGEST, dict.fromkeys(sorted(known)))

    def add_overhead(self, extra: float) -> None:
        """Record the bytes that a measured string takes beside its name and value."""
        self.samples += 1
        self.overhead += (extra - self.overhead) / self.samples

    def merge(self, other: Measure) -> None:
        for name in ("keys", "sized", "known_bytes", "timed", "expiring", "samples"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.largest = heapq.nlargest(LARGEST, {*self.largest, *other.largest})


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
