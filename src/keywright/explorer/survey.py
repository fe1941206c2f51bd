"""The survey: count keys, memory and expiries of each template, in the background.

Requests never scan the keyspace; they show the last survey and its age. A survey scans names page by page,
measures a few names of each page, and pauses in between. Its memory does not grow with the keyspace.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import math
import random
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple, TypeVar

import msgspec

from keywright.engine import AsyncDatabase
from keywright.engine.nodes import Batch, NodeReader, info, key_count, name_page
from keywright.errors import ConnectionLostError, KeywrightError, ServerRefusedError
from keywright.explorer.atlas import Atlas
from keywright.explorer.settings import ExplorerSettings
from keywright.keyspace import Call, Key
from keywright.keyspace.slots import slot_of
from keywright.keyspace.wires import Wire
from keywright.tools.audit.page_reader import MEMORY, TTL
from keywright.tools.audit.sample import LEAST
from keywright.tools.pace import Pacemaker
from keywright.tools.segments import likely_pattern

__all__ = ["LONGEST_NAME", "MOMENTS", "Counted", "Moment", "Node", "Snapshot", "Surveyor"]

T = TypeVar("T")

PAGE = 1000
ASKED_ONE_IN = 32
KEPT = 500
LARGEST = 5
LONGEST_NAME = 4096
MOST_PATTERNS = 100
MOMENTS = 240
AFTER_TROUBLE_SECONDS = 2.0


class Counted(msgspec.Struct):
    """The counts of one template. Memory and expiries are measured on a sample and extrapolated."""

    keys: int = 0
    sized: int = 0
    sized_bytes: int = 0
    timed: int = 0
    expiring: int = 0
    largest: list[tuple[int, bytes]] = []
    names: list[bytes] = []
    """A uniform sample of the names, or all of them if they are few."""
    chance: float = 1.0
    due: int = KEPT - 1
    """The number of the next name to sample; the first ones are all kept."""

    def __post_init__(self) -> None:
        self._skip()

    @property
    def memory(self) -> int | None:
        return round(self.sized_bytes * self.keys / self.sized) if self.sized else None

    @property
    def estimated(self) -> bool:
        """Return whether memory and expiries are estimates, from a sample of the keys."""
        return min(self.sized or self.keys, self.timed or self.keys) < self.keys

    @property
    def coverage(self) -> float | None:
        """Return the share of keys that expire."""
        return self.expiring / self.timed if self.timed else None

    def keep(self, names: Sequence[bytes]) -> None:
        """Count names and sample them uniformly: reservoir sampling, algorithm L (Li, 1994)."""
        first = self.keys
        self.keys += len(names)
        if first < KEPT:
            self.names += [name for name in names[: KEPT - first] if len(name) <= LONGEST_NAME]
        while self.due < self.keys:
            name = names[self.due - first]
            place = random.randrange(KEPT)
            if place < len(self.names) and len(name) <= LONGEST_NAME:
                self.names[place] = name
            self._skip()

    def _skip(self) -> None:
        self.chance *= random.random() ** (1 / KEPT)
        self.due += 1 + int(math.log(1 - random.random()) / math.log1p(-self.chance))

    def measured(self, name: bytes, size: object, ttl_ms: object) -> None:
        """Record the replies of MEMORY USAGE and PTTL for one key; an error is ignored."""
        if isinstance(ttl_ms, int) and ttl_ms != -2:
            self.timed += 1
            self.expiring += ttl_ms >= 0
        if isinstance(size, int):
            self.sized += 1
            self.sized_bytes += size
            if len(name) <= LONGEST_NAME:
                self.largest = heapq.nlargest(LARGEST, {*self.largest, (size, name)})


class Node(NamedTuple):
    """One server of the database at the time of the survey."""

    label: str
    keys: int | None
    used_bytes: int | None
    """None if the ACL denies INFO."""


class Snapshot(msgspec.Struct):
    """The results of one survey; `finished` is 0 while it runs."""

    started: float
    total: int = 0
    seen: int = 0
    finished: float = 0.0
    counted: dict[type[Key], Counted] = {}
    patterns: dict[str, int] = {}
    unknown: list[bytes] = []
    unknown_keys: int = 0
    nodes: list[Node] = []
    slots: dict[int, int] = {}
    """Declared keys by slot, on a cluster."""

    def of(self, kind: type[Key]) -> Counted:
        """Return the counts of a template, zeros for one without keys."""
        return self.counted.get(kind) or Counted()

    @property
    def outside(self) -> int:
        """Return how many keys of the database were not counted: their names begin with another prefix."""
        return max(0, self.total - self.unknown_keys - sum(each.keys for each in self.counted.values()))

    @property
    def progress(self) -> float:
        return min(1.0, self.seen / self.total) if self.total else 1.0

    @property
    def seconds(self) -> float:
        return (self.finished or time.time()) - self.started

    @property
    def age(self) -> float:
        """Return the seconds since it finished, or since it started."""
        return max(0.0, time.time() - (self.finished or self.started))


class Moment(NamedTuple):
    """The keys and the memory of each template at the end of one survey."""

    finished: float
    counted: dict[type[Key], tuple[int, int | None]]


class Surveyor:
    """Surveys a database repeatedly; pages show `latest`."""

    def __init__(self, db: AsyncDatabase, atlas: Atlas, settings: ExplorerSettings) -> None:
        self.db = db
        self.atlas = atlas
        self.settings = settings
        self.current: Snapshot | None = None
        self.complete: Snapshot | None = None
        self.previous: Snapshot | None = None
        self.trouble: str | None = None
        self.history: deque[Moment] = deque(maxlen=MOMENTS)
        self.on_complete: Callable[[], Awaitable[None]] | None = None
        """What else is recorded after each survey."""
        self._wanted = asyncio.Event()

    @property
    def latest(self) -> Snapshot:
        """Return the last complete survey, else the running one."""
        return self.complete or self.current or Snapshot(time.time())

    def change_per_minute(self, kind: type[Key]) -> float | None:
        """Return the net change of keys per minute between the last two surveys."""
        before, after = self.previous, self.complete
        if before is None or after is None or after.finished <= before.finished:
            return None
        change = after.of(kind).keys - before.of(kind).keys
        return change * 60 / (after.finished - before.finished)

    def hurry(self) -> None:
        """Start the next survey now, or as soon as the running one ends."""
        self._wanted.set()

    async def run(self) -> None:
        """Survey until cancelled, and retry until an unreachable server is back."""
        while True:
            self._wanted.clear()
            try:
                await self.once()
                self.trouble = None
                rest = max(self.settings.rest_seconds, 2 * self.latest.seconds)
            except KeywrightError as error:
                self.trouble, self.current = str(error), None
                rest = AFTER_TROUBLE_SECONDS
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wanted.wait(), rest)

    async def once(self) -> Snapshot:
        """Run one complete survey."""
        found = self.current = Snapshot(time.time())
        nodes = await self.db.nodes(prefer_replica=True)
        sizes = await asyncio.gather(*(_allowed(self.db, key_count(), node) for node in nodes))
        found.total = sum(size or 0 for size in sizes)
        facts = await asyncio.gather(*(_allowed(self.db, info(b"memory"), node) for node in nodes))
        found.nodes = [
            Node(node.label, size, _used_bytes(fields or {}))
            for node, size, fields in zip(nodes, sizes, facts, strict=True)
        ]
        pacemaker = Pacemaker(self.settings.survey_pace)
        for node in nodes:
            await self._node(node, found, pacemaker)
        found.finished = time.time()
        self.previous, self.complete, self.current = self.complete, found, None
        self.history.append(
            Moment(found.finished, {kind: (each.keys, each.memory) for kind, each in found.counted.items()})
        )
        if self.on_complete is not None:
            await self.on_complete()
        return found

    async def _node(self, node: NodeReader, found: Snapshot, pacemaker: Pacemaker) -> None:
        lead = self.atlas.matcher.common_lead
        surveyed, page = node.label, pacemaker.pace.page(PAGE)
        cursor = 0
        while True:
            cursor, names = await self.db.run(name_page(cursor, page, lead=lead), at=node)
            await self._page(node, names, found)
            if node.label != surveyed:  # the cursor is not valid on the primary
                raise ConnectionLostError(
                    surveyed, "it became unreachable, and the survey restarts at its primary"
                )
            found.seen += page if lead else len(names)
            if cursor == 0:
                return
            await pacemaker.wait(page)

    async def _page(self, node: NodeReader, names: list[bytes], found: Snapshot) -> None:
        groups, unknown = self.atlas.matcher.grouped(names)
        asked: list[tuple[Counted, bytes, type[Key]]] = []
        for known, group in groups.items():
            if known.ours:
                counted = found.counted.setdefault(known.kind, found.of(known.kind))
                counted.keep(group)
                asked += [(counted, name, known.kind) for name in _some(group, counted.timed)]
                if self.db.context.sharded:
                    _by_slot(found, group)
        self._strangers(found, [name for name in unknown if self.atlas.matcher.belongs(name)])
        wires = [wire for _, name, kind in asked for wire in _questions(name, kind)]
        replies = await self.db.run(Batch(wires), at=node)
        for (counted, name, _), size, ttl in zip(asked, replies[::2], replies[1::2], strict=True):
            counted.measured(name, size, ttl)

    def _strangers(self, found: Snapshot, names: list[bytes]) -> None:
        found.unknown_keys += len(names)
        for name in names:
            pattern = likely_pattern(name[:LONGEST_NAME])
            if pattern not in found.patterns and len(found.patterns) >= MOST_PATTERNS:
                pattern = "(others)"
            found.patterns[pattern] = found.patterns.get(pattern, 0) + 1
            if len(found.unknown) < KEPT and len(name) <= LONGEST_NAME:
                found.unknown.append(name)


def _some(names: list[bytes], measured: int) -> list[bytes]:
    """Return the names to measure: enough of each template, and then a few of each page."""
    count = max(-(-len(names) // ASKED_ONE_IN), LEAST - measured)
    return names if len(names) <= count else random.sample(names, count)


def _questions(name: bytes, kind: type[Key]) -> tuple[Wire, Wire]:
    return Wire((b"MEMORY", b"USAGE", name), name, MEMORY, kind), Wire((b"PTTL", name), name, TTL, kind)


def _by_slot(found: Snapshot, names: list[bytes]) -> None:
    for name in names:
        slot = slot_of(name)
        found.slots[slot] = found.slots.get(slot, 0) + 1


async def _allowed(db: AsyncDatabase, call: Call[T], node: NodeReader) -> T | None:
    """Run a call on a node; None if the ACL denies it."""
    try:
        return await db.run(call, at=node)
    except ServerRefusedError:
        return None  # a server that is loading its data fails at the first page


def _used_bytes(facts: dict[str, str]) -> int | None:
    used = facts.get("used_memory", "")
    return int(used) if used.isdigit() else None
