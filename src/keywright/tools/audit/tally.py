"""The counts of an audit: keys, bytes and expiries by template, findings by code. Bounded, and mergeable."""

from __future__ import annotations

import heapq
import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from operator import mul

import msgspec

from keywright.keyspace.kinds.stream import ConsumerGroup
from keywright.tools.audit.findings import Finding
from keywright.tools.audit.sample import Sample

__all__ = ["Found", "GroupCount", "Measure", "Tally"]

LARGEST = 3
MOST_PATTERNS = 200
MOST_GROUPS = 200
DEVIATIONS = 1.96
"""Of a normal distribution, for 95 % confidence."""


class GroupCount(msgspec.Struct):
    """One consumer group over several streams; `lag` is None if a server does not know one of them."""

    streams: int = 0
    pending: int = 0
    lag: int | None = 0


class Measure(msgspec.Struct):
    """The counts of one template.

    Of `read` keys the values were read, of `sized` ones the size is known, `asked` ones were asked for their
    TTL, beside those of the sample. Where those are fewer than the keys, totals are estimates.
    """

    keys: int = 0
    read: int = 0
    sized: int = 0
    known_bytes: float = 0.0
    squares: float = 0.0
    asked: int = 0
    timed: int = 0
    expiring: int = 0
    sampled_expiries: Sample = msgspec.field(default_factory=Sample)
    """1 for a key that expires and 0 for another, where not all are asked."""
    sampled_overheads: Sample = msgspec.field(default_factory=Sample)
    """The bytes that a string takes beside its name and value."""
    sealed: int = 0
    in_clear: int = 0
    """Values that are declared sealed, by how they are stored."""
    largest: list[tuple[int, bytes]] = []
    """The sizes of the largest keys, without the overhead, and their names."""
    groups: dict[str, GroupCount] = {}
    """The consumer groups of the streams that were read, by name, where groups are declared."""

    def add_groups(self, found: Iterable[ConsumerGroup]) -> None:
        for group in found:
            if group.name not in self.groups and len(self.groups) >= MOST_GROUPS:
                continue
            count = self.groups.setdefault(group.name, GroupCount())
            count.streams += 1
            count.pending += group.pending
            count.lag = None if count.lag is None or group.lag is None else count.lag + group.lag

    @property
    def total_bytes(self) -> int | None:
        """Return the bytes of all keys; None if the size of none is known."""
        if not self.sized:
            return None if self.keys else 0
        return round((self.known_bytes / self.sized + self.sampled_overheads.whole().mean) * self.keys)

    @property
    def largest_key(self) -> tuple[int, bytes]:
        """Return the bytes and the name of the largest key; of several the last by name."""
        if not self.largest:
            return 0, b""
        size, name = max(self.largest)
        return size + round(self.sampled_overheads.whole().mean), name

    @property
    def bytes_error(self) -> float:
        """Return the margin of `total_bytes` at 95 % confidence, as a share of it; 0 if it is exact."""
        total = self.total_bytes
        if not total:
            return 0.0
        unsized = _margin(self.sized, self.keys, self.known_bytes, self.squares)
        sample = self.sampled_overheads.whole()
        unmeasured = _margin(sample.count, self.keys, sample.total, sample.squares) if sample.count else 0.0
        return min(1.0, math.hypot(unsized, unmeasured) / total)

    @property
    def coverage(self) -> float | None:
        """Return the share of keys that expire; None if no TTL was read."""
        sample = self.sampled_expiries.whole()
        timed = self.timed + sample.count
        return (self.expiring + sample.total) / timed if timed else None

    @property
    def coverage_error(self) -> float:
        """Return the margin of `coverage` at 95 % confidence; 0 if it is exact."""
        sampled = self.sampled_expiries.whole().count
        if self.coverage is None or self.asked + sampled >= self.keys:
            return 0.0
        # The interval of Wilson, which is right for shares of 0 and 1 too.
        count, share = self.timed + sampled, self.coverage
        half = DEVIATIONS * math.sqrt(share * (1 - share) / count + DEVIATIONS**2 / (4 * count**2))
        return (half + abs(share - 0.5) * DEVIATIONS**2 / count) / (1 + DEVIATIONS**2 / count)

    def add_sizes(self, sizes: Sequence[int], names: Sequence[bytes]) -> None:
        """Count keys with their sizes, and keep the largest. The overhead is added to the totals."""
        if not sizes:
            return
        self.sized += len(sizes)
        self.known_bytes += sum(sizes)
        self.squares += sum(map(mul, sizes, sizes))
        least = min(self.largest)[0] if len(self.largest) == LARGEST else -1
        if max(sizes) >= least:
            top = heapq.nlargest(LARGEST, zip(sizes, names, strict=True))
            self.largest = heapq.nlargest(LARGEST, {*self.largest, *top})

    def merge(self, other: Measure) -> None:
        self.sampled_expiries.merge(other.sampled_expiries)
        self.sampled_overheads.merge(other.sampled_overheads)
        for name in _SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.largest = heapq.nlargest(LARGEST, {*self.largest, *other.largest})
        for name, group in other.groups.items():
            count = self.groups.setdefault(name, GroupCount())
            count.streams += group.streams
            count.pending += group.pending
            count.lag = None if count.lag is None or group.lag is None else count.lag + group.lag


_SUMS = (
    "keys",
    "read",
    "sized",
    "known_bytes",
    "squares",
    "asked",
    "timed",
    "expiring",
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
    """The findings of one code: their number, and the first of them in the order of their names."""

    count: int = 0
    kept: list[Finding] = []

    def keep(self, finding: Finding, most: int) -> None:
        """Keep a finding if it is among the first, once: SCAN may return a name twice."""
        kept, order = self.kept, _order(finding)
        if len(kept) >= most and (not most or _order(kept[-1]) <= order):
            return
        place = bisect_left(kept, order, key=_order)
        if place == len(kept) or _order(kept[place]) != order:
            kept.insert(place, finding)
            del kept[most:]


class Tally(msgspec.Struct):
    """All counts of one node, or the sum of several."""

    templates: dict[str, Measure] = {}
    findings: dict[str, Found] = {}
    patterns: dict[str, int] = {}
    names: int = 0
    outside: int = 0
    truncated: int = 0

    @property
    def inside(self) -> int:
        """Return how many names have a bound prefix: those that were audited."""
        return self.names - self.outside

    def measure(self, template: str) -> Measure:
        found = self.templates.get(template)
        if found is None:
            found = self.templates[template] = Measure()
        return found

    def add(self, finding: Finding, most: int) -> None:
        found = self.findings.setdefault(finding.code, Found())
        found.count += 1
        found.keep(finding, most)

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
                for finding in found.kept:
                    into.keep(finding, most)
            for pattern, count in tally.patterns.items():
                total.patterns[pattern] = total.patterns.get(pattern, 0) + count
            total.names += tally.names
            total.outside += tally.outside
            total.truncated += tally.truncated
        return total


def _order(finding: Finding) -> tuple[bytes, bool, bytes, str, str]:
    """Return what findings of one code are ordered by. It does not depend on how the walk went."""
    member = finding.member
    return finding.name, member is not None, member or b"", finding.link, finding.template
