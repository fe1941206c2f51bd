"""The survey: how many keys each template has, what they take and how many expire, counted in the background.

Requests never walk the keyspace; they show the last survey and its age. A survey reads names page by page,
asks about a few names of each page, and rests in between. Its memory does not grow with the keyspace.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import math
import random
import time
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from keywright.engine import AsyncDatabase
from keywright.engine.survey import Post, Survey, pack_command, survey
from keywright.errors import ConnectionLostError, KeywrightError, ServerRefusedError
from keywright.explorer.atlas import Atlas
from keywright.explorer.settings import ExplorerSettings
from keywright.keyspace import Key
from keywright.keyspace.slots import slot_of
from keywright.tools.audit.matcher import likely_pattern

__all__ = ["LONGEST_NAME", "Counted", "Node", "Snapshot", "Surveyor"]

PAGE = 1000
ASKED_A_PAGE = 8
KEPT = 500
LARGEST = 5
LONGEST_NAME = 4096
MOST_PATTERNS = 100
AFTER_TROUBLE_SECONDS = 2.0


class Counted(msgspec.Struct):
    """The keys of one template. Bytes and expiries were asked of a sample and are extrapolated."""

    keys: int = 0
    sized: int = 0
    sized_bytes: int = 0
    timed: int = 0
    expiring: int = 0
    largest: list[tuple[int, bytes]] = []
    names: list[bytes] = []
    """An even sample of the names, all of them while they are few."""
    chance: float = 1.0
    due: int = KEPT - 1
    """Which name to keep next, counted from the first; the first ones are all kept."""

    def __post_init__(self) -> None:
        self._skip()

    @property
    def memory(self) -> int | None:
        return round(self.sized_bytes * self.keys / self.sized) if self.sized else None

    @property
    def coverage(self) -> float | None:
        """The share of keys that expire."""
        return self.expiring / self.timed if self.timed else None

    def keep(self, names: Sequence[bytes]) -> None:
        """Count names, and keep each with the same chance: a reservoir that skips ahead (Li, 1994)."""
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
        """What the server said of one key; what it refused to say is no number."""
        if isinstance(ttl_ms, int) and ttl_ms != -2:
            self.timed += 1
            self.expiring += ttl_ms >= 0
        if isinstance(size, int):
            self.sized += 1
            self.sized_bytes += size
            if len(name) <= LONGEST_NAME:
                self.largest = heapq.nlargest(LARGEST, {*self.largest, (size, name)})


class Node(NamedTuple):
    """One server of the database, as the survey met it."""

    label: str
    keys: int | None
    used_bytes: int | None
    """None where this user may not ask."""


class Snapshot(msgspec.Struct):
    """What one survey found; `finished` is 0 while it goes on."""

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
    """Keys of ours by slot, on a cluster."""

    def of(self, kind: type[Key]) -> Counted:
        """What was counted of a template, nothing for one without keys."""
        return self.counted.get(kind) or Counted()

    @property
    def progress(self) -> float:
        return min(1.0, self.seen / self.total) if self.total else 1.0

    @property
    def seconds(self) -> float:
        return (self.finished or time.time()) - self.started

    @property
    def age(self) -> float:
        """Seconds since it was finished, or since it began."""
        return max(0.0, time.time() - (self.finished or self.started))


class Surveyor:
    """Surveys a database again and again; `latest` is what pages show."""

    def __init__(self, db: AsyncDatabase, atlas: Atlas, settings: ExplorerSettings) -> None:
        self.db = db
        self.atlas = atlas
        self.settings = settings
        self.current: Snapshot | None = None
        self.complete: Snapshot | None = None
        self.previous: Snapshot | None = None
        self.trouble: str | None = None
        self._wanted = asyncio.Event()

    @property
    def latest(self) -> Snapshot:
        """The last complete survey, else the one that is under way."""
        return self.complete or self.current or Snapshot(time.time())

    def change_per_minute(self, kind: type[Key]) -> float | None:
        """Keys more or less a minute, between the last two surveys."""
        before, after = self.previous, self.complete
        if before is None or after is None or after.finished <= before.finished:
            return None
        change = after.of(kind).keys - before.of(kind).keys
        return change * 60 / (after.finished - before.finished)

    def hurry(self) -> None:
        """Begin the next survey now, or as soon as the one that is under way is done."""
        self._wanted.set()

    async def run(self) -> None:
        """Until cancelled. A server that is gone is asked again until it is back."""
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
        """One survey from its beginning to its end."""
        found = self.current = Snapshot(time.time())
        async with survey(self.db) as walk:
            sizes = await asyncio.gather(*(_key_count(walk, post) for post in walk.posts))
            found.total = sum(size or 0 for size in sizes)
            memory = await asyncio.gather(*(_used_bytes(walk, post) for post in walk.posts))
            found.nodes = [
                Node(post.label, size, used)
                for post, size, used in zip(walk.posts, sizes, memory, strict=True)
            ]
            for post in walk.posts:
                await self._node(walk, post, found)
        found.finished = time.time()
        self.previous, self.complete, self.current = self.complete, found, None
        return found

    async def _node(self, walk: Survey, post: Post, found: Snapshot) -> None:
        lead = self.atlas.matcher.common_lead
        surveyed = post.label
        cursor = 0
        while True:
            began = time.monotonic()
            cursor, names = await walk.page(post, cursor, PAGE, lead)
            await self._page(walk, post, names, found)
            if post.label != surveyed:  # cursors of the primary are others
                raise ConnectionLostError(
                    surveyed, "it went away, and its primary is surveyed from the start"
                )
            found.seen += PAGE if lead else len(names)
            if cursor == 0:
                return
            # Never busier than half of the time, nor faster than told.
            spent = time.monotonic() - began
            await asyncio.sleep(max(spent, PAGE / self.settings.names_per_second - spent))

    async def _page(self, walk: Survey, post: Post, names: list[bytes], found: Snapshot) -> None:
        groups, unknown = self.atlas.matcher.grouped(names)
        asked: list[tuple[Counted, bytes]] = []
        for known, group in groups.items():
            if known.ours:
                counted = found.counted.setdefault(known.kind, found.of(known.kind))
                counted.keep(group)
                asked += [(counted, name) for name in _some(group)]
                if walk.sharded:
                    _by_slot(found, group)
        self._strangers(found, [name for name in unknown if self.atlas.matcher.belongs(name)])
        questions = [question for _, name in asked for question in _questions(name)]
        replies = await walk.ask(post, questions)
        for (counted, name), size, ttl in zip(asked, replies[::2], replies[1::2], strict=True):
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


def _some(names: list[bytes]) -> list[bytes]:
    return names if len(names) <= ASKED_A_PAGE else random.sample(names, ASKED_A_PAGE)


def _questions(name: bytes) -> tuple[bytes, bytes]:
    return pack_command((b"MEMORY", b"USAGE", name)), pack_command((b"PTTL", name))


def _by_slot(found: Snapshot, names: list[bytes]) -> None:
    for name in names:
        slot = slot_of(name)
        found.slots[slot] = found.slots.get(slot, 0) + 1


async def _key_count(walk: Survey, post: Post) -> int | None:
    try:
        return await walk.size(post)
    except ServerRefusedError:
        return None  # a user who may not ask; a server that is loading refuses the first page too


async def _used_bytes(walk: Survey, post: Post) -> int | None:
    reply = (await walk.ask(post, [pack_command((b"INFO", b"memory"))]))[0]
    if not isinstance(reply, bytes):
        return None  # a user who may not ask
    facts = dict(line.split(":", 1) for line in reply.decode("utf-8", "replace").split("\r\n") if ":" in line)
    told = facts.get("used_memory", "")
    return int(told) if told.isdigit() else None
