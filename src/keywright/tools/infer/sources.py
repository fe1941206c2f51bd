"""Where names come from: a file, or a live server, which is only read, at replicas where there are some."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, BinaryIO, NamedTuple

import msgspec

from keywright.engine.nodes import Batch, NodeReader, key_count, name_page
from keywright.errors import ServerRefusedError
from keywright.keyspace.layouts import Ask, pairs
from keywright.keyspace.wires import Effect, Operation, Reply, Wire
from keywright.tools.audit.page_reader import checked_replies, on_name
from keywright.tools.infer.facts import Facts
from keywright.tools.infer.names import LONGEST_NAME, NameSample, SampleState
from keywright.tools.jobs import JobPlan, Page, SharedPages, Workers, collected
from keywright.tools.pace import GENTLE, Pace, Pacemaker, WalkProgress, side_by_side
from keywright.tools.page_tasks import PageTasks
from keywright.tools.readable import ReadableDatabase

__all__ = ["Survey", "SurveyOptions", "SurveyedKeys", "names_in", "survey"]

PAGE = 500
IN_FLIGHT = 3
"""The pages that each worker has at a time."""
ENTRIES = 50
FIELDS = 200
LARGEST_VALUE = 1 << 16
GONE = -2
"""The reply to PTTL for a key that expired since its type was read."""
MOST_BYTES = 64 << 20
"""Of all values that are kept; once reached, types and expiries are still recorded."""

LARGE = 4 << 20
"""Of a key that is larger in memory, only so many entries are read as are not larger together."""
_READS: dict[str, Callable[[int], Ask]] = {
    "string": lambda _: Ask(b"GETRANGE", (0, LARGEST_VALUE)),
    "hash": lambda most: Ask(b"HSCAN", (0, b"COUNT", most)),
    "set": lambda most: Ask(b"SSCAN", (0, b"COUNT", most)),
    "zset": lambda most: Ask(b"ZRANGE", (0, most - 1, b"WITHSCORES")),
    "list": lambda most: Ask(b"LRANGE", (0, most - 1)),
    "stream": lambda most: Ask(b"XRANGE", (b"-", b"+", b"COUNT", most)),
}
_LENGTHS = {"hash": b"HLEN", "set": b"SCARD", "zset": b"ZCARD", "list": b"LLEN", "stream": b"XLEN"}
JSON = "ReJSON-RL"
_INFO = Operation("groups", b"XINFO", Effect.READ)
_MEMORY = Operation("memory", b"MEMORY", Effect.READ)
_MORE: dict[str, Callable[[bytes], Wire]] = {
    "hash": lambda name: on_name(Ask(b"HLEN", ()), name, None),
    "stream": lambda name: Wire((b"XINFO", b"GROUPS", name), name, _INFO, None),
}
"""Commands whose replies complete the facts: the number of fields, and the consumer groups."""


def _memory(name: bytes) -> Wire:
    return Wire((b"MEMORY", b"USAGE", name), name, _MEMORY, None)


class Survey(NamedTuple):
    """The sampled names, and what is known of them."""

    sample: NameSample
    facts: dict[bytes, Facts]


def names_in(lines: BinaryIO) -> NameSample:
    """Return a sample of names, one on each line, as `redis-cli --scan` prints them."""
    sample = NameSample()
    longest = LONGEST_NAME + 2
    while line := lines.readline(longest):
        name = line.rstrip(b"\r\n")
        if len(line) == longest and not line.endswith(b"\n"):
            while line and not line.endswith(b"\n"):
                line = lines.readline(1 << 16)
        if name:
            sample.add(name)
    return sample


class SurveyOptions(NamedTuple):
    """How the workers of a survey read."""

    pace: Pace
    prefer_replica: bool


async def survey(
    db: ReadableDatabase,
    *,
    pace: Pace = GENTLE,
    prefer_replica: bool = True,
    on_progress: Callable[[WalkProgress], None] | None = None,
    plan: JobPlan | None = None,
) -> Survey:
    """Scan all names of a database and read a bounded part of the sampled keys.

    With a `plan` of several jobs worker processes share the pages. It needs no model.
    """
    if plan is None:
        return await _surveyed(db, pace, prefer_replica, on_progress, None)
    options = SurveyOptions(pace, prefer_replica)
    async with Workers(plan, "infer", (), _encode(options)) as workers:
        return await _surveyed(db, pace, prefer_replica, on_progress, workers)


async def _surveyed(
    db: ReadableDatabase,
    pace: Pace,
    prefer_replica: bool,
    on_progress: Callable[[WalkProgress], None] | None,
    workers: Workers | None,
) -> Survey:
    number = 0
    while True:
        nodes = await db.nodes(prefer_replica=prefer_replica)
        labels = [node.label for node in nodes]
        walk = _Walk(db, pace.on(db), on_progress, workers, number)
        keys = await walk.run(nodes)
        if [node.label for node in nodes] == labels:
            return Survey(keys.sample, keys.facts)
        # A replica went away, and cursors differ: begin again at the primaries.
        prefer_replica, number = False, number + 1


class _Walk:
    """One pass over all names. `number` is that of the pass."""

    def __init__(
        self,
        db: ReadableDatabase,
        pace: Pace,
        on_progress: Callable[[WalkProgress], None] | None,
        workers: Workers | None,
        number: int,
    ) -> None:
        self.db = db
        self._keys = SurveyedKeys(db)
        self._workers = workers
        self._number = number
        self._pace = pace
        # Workers rest by themselves.
        self._pacemaker = Pacemaker(pace if workers is None else pace._replace(full_speed=True))
        self._count = pace.page(PAGE)
        self._on_progress = on_progress
        self._seen = 0
        self._total = 0

    async def run(self, nodes: Sequence[NodeReader]) -> SurveyedKeys:
        self._total = sum(await side_by_side(self.db.run(key_count(), at=node) for node in nodes))
        self._pacemaker.begin()
        await side_by_side(self._node(node, nodes) for node in nodes)
        if self._workers is not None:
            for state in await collected(self._workers, self._number):
                self._keys.join(state)
        self._progress(final=True)
        return self._keys

    async def _node(self, node: NodeReader, nodes: Sequence[NodeReader]) -> None:
        jobs = 1 if self._workers is None else IN_FLIGHT * -(-self._workers.jobs // len(nodes))
        work = self._work_of(node, nodes)
        label, cursor = node.label, 0
        ahead = asyncio.ensure_future(self.db.run(name_page(0, self._count), at=node))
        try:
            async with PageTasks(self._pace.together(jobs)) as in_flight:
                while node.label == label:
                    at, (cursor, names) = cursor, await ahead
                    await self._pacemaker.wait(self._count)
                    if cursor:
                        ahead = asyncio.ensure_future(self.db.run(name_page(cursor, self._count), at=node))
                    await in_flight.add(work(Page(at, self._count, names)))
                    self._seen += len(names)
                    self._progress()
                    if not cursor:
                        await in_flight.all_done()
                        return
        finally:
            ahead.cancel()
            await asyncio.gather(ahead, return_exceptions=True)

    def _work_of(
        self, node: NodeReader, nodes: Sequence[NodeReader]
    ) -> Callable[[Page], Coroutine[Any, Any, object]]:
        """Return what is done with a page of a node: here, or by a worker."""
        if self._workers is not None:
            return SharedPages(self._workers, self._number, self.db, node).work
        return lambda page: self._keys.work(page.names, node, nodes)

    def _progress(self, *, final: bool = False) -> None:
        if self._on_progress is not None and (final or self._pacemaker.due()):
            total = max(self._total, self._seen)
            self._on_progress(WalkProgress(self._seen, total, self._pacemaker.seconds))


class _State(msgspec.Struct):
    sample: SampleState
    facts: dict[bytes, Facts]


_encode = msgspec.msgpack.Encoder().encode
_state = msgspec.msgpack.Decoder(_State)


class SurveyedKeys:
    """The sampled names of a database, and the facts of them. Workers have one each, which are joined."""

    def __init__(self, db: ReadableDatabase) -> None:
        self.db = db
        self.sample = NameSample()
        self.facts: dict[bytes, Facts] = {}
        self._bytes = 0
        self._pruned_at = 1 << 17

    async def work(self, names: list[bytes], node: NodeReader, nodes: Sequence[NodeReader]) -> bytes:
        """Count a page of names, and read those that are kept of it."""
        kept = [name for name in names if self.sample.add(name)]
        if kept:
            await self._read(kept, node)
        return b""

    async def collected(self) -> bytes:
        return _encode(_State(self.sample.state, self._kept()))

    def join(self, content: bytes) -> None:
        """Take in what a worker collected."""
        state = _state.decode(content)
        self.sample.join(state.sample)
        for name, facts in state.facts.items():
            self._keep(name, facts)

    def _kept(self) -> dict[bytes, Facts]:
        kept = {each.name for each in self.sample}
        return {name: facts for name, facts in self.facts.items() if name in kept}

    async def _read(self, names: list[bytes], node: NodeReader) -> None:
        wires = [on_name(Ask(verb, ()), name, None) for name in names for verb in (b"TYPE", b"PTTL")]
        answers = await self._answers([*wires, *map(_memory, names)], node)
        replies = checked_replies(answers[: len(wires)])
        times = replies[1::2]
        types = [
            "none" if left == GONE else _text(kind) for kind, left in zip(replies[::2], times, strict=True)
        ]
        ttls = [left if isinstance(left, int) and left >= 0 else None for left in times]
        sizes = [size if isinstance(size, int) else 0 for size in answers[len(wires) :]]  # it may be denied
        most = await self._entries(names, types, sizes, node)
        known = [number for number, kind in enumerate(types) if kind in _READS and most[number]]
        asked = [on_name(_READS[types[number]](most[number]), names[number], None) for number in known]
        described = [number for number, kind in enumerate(types) if kind in _MORE]
        asked += [_MORE[types[number]](names[number]) for number in described]
        found = checked_replies(
            [None if is_gone(answer) else answer for answer in await self._answers(asked, node)]
        )
        values = dict(zip(known, found, strict=False))
        values |= await self._documents(names, types, sizes, node)
        more = dict(zip(described, found[len(known) :], strict=True))
        for number, (name, kind, ttl) in enumerate(zip(names, types, ttls, strict=True)):
            if kind != "none":
                self._keep(name, facts_of(kind, ttl, values.get(number), more.get(number)))

    async def _entries(
        self, names: list[bytes], types: list[str], sizes: list[int], node: NodeReader
    ) -> list[int]:
        """Return how many entries of each key to read: fewer of large ones, by their size on average."""
        large = [
            number
            for number, (kind, size) in enumerate(zip(types, sizes, strict=True))
            if size > LARGE and kind in _LENGTHS
        ]
        asked = [on_name(Ask(_LENGTHS[types[number]], ()), names[number], None) for number in large]
        lengths = await self._answers(asked, node)
        most = [FIELDS if kind == "hash" else ENTRIES for kind in types]
        for number, length in zip(large, lengths, strict=True):
            count = length if isinstance(length, int) else 1
            most[number] = min(most[number], LARGE * count // sizes[number])
        return most

    async def _documents(
        self, names: list[bytes], types: list[str], sizes: list[int], node: NodeReader
    ) -> dict[int, Reply]:
        """Return JSON documents that are not large, by the numbers of their names; none if that is denied."""
        small = [
            number
            for number, (kind, size) in enumerate(zip(types, sizes, strict=True))
            if kind == JSON and 0 < size <= LARGEST_VALUE
        ]
        found = await self._answers(
            [on_name(Ask(b"JSON.GET"), names[number], None) for number in small], node
        )
        return {number: reply for number, reply in zip(small, found, strict=True) if isinstance(reply, bytes)}

    async def _answers(self, wires: list[Wire], node: NodeReader) -> list[Reply]:
        return list(await self.db.run(Batch(wires), at=node)) if wires else []

    def _keep(self, name: bytes, facts: Facts) -> None:
        size = sum(map(len, facts.values)) + sum(len(v) for each in facts.fields for v in each.values())
        if self._bytes + size > MOST_BYTES:
            facts = Facts(facts.redis_type, facts.ttl_ms)
        else:
            self._bytes += size
        self.facts[name] = facts
        if len(self.facts) > self._pruned_at:
            self.facts = self._kept()


def is_gone(reply: Reply) -> bool:
    """Return whether XINFO was refused because the stream expired or was removed since its type was read."""
    return isinstance(reply, ServerRefusedError) and "no such key" in reply.reply


def facts_of(kind: str, ttl: int | None, reply: Reply, more: Reply = None) -> Facts:
    """Return the facts of a key from the reply to its reading command; an error or None is left out.

    `more` is the number of fields of a hash, or the rows of XINFO GROUPS.
    """
    if isinstance(reply, bytes):
        is_gone = not reply and ttl is not None  # it expired between two commands
        return Facts(kind, ttl, (reply,) if len(reply) <= LARGEST_VALUE and not is_gone else ())
    if not isinstance(reply, list):
        return Facts(kind, ttl)
    if kind == "hash":
        fields = _bounded_fields(reply[1])
        return Facts(kind, ttl, fields=(fields,), size=more if isinstance(more, int) else 0)
    if kind == "zset":
        scored = list(pairs(reply))
        members = _bounded(member for member, _ in scored)
        return Facts(kind, ttl, members, tuple(score for _, score in scored))
    if kind == "stream":
        entries = tuple(_bounded_fields(entry[1]) for entry in reply if entry[1])
        return Facts(kind, ttl, fields=entries, groups=_group_names(more))
    return Facts(kind, ttl, _bounded(reply[1] if kind == "set" else reply))


def _bounded(values: object) -> tuple[bytes, ...]:
    return tuple([value for value in values if len(value) <= LARGEST_VALUE][:FIELDS])  # type: ignore[attr-defined]


def _bounded_fields(flat: list[bytes]) -> dict[bytes, bytes]:
    found = {field: value for field, value in pairs(flat) if len(field) + len(value) <= LARGEST_VALUE}
    return dict(list(found.items())[:FIELDS])


def _group_names(rows: Reply) -> tuple[bytes, ...]:
    """Return the names in a reply to XINFO GROUPS, of which each row is a flat list of names and values."""
    if not isinstance(rows, list):
        return ()
    found = (dict(pairs(row)).get(b"name") for row in rows[:FIELDS] if isinstance(row, list))
    return tuple(name for name in found if isinstance(name, bytes) and len(name) <= LONGEST_NAME)


def _text(reply: Reply) -> str:
    return reply.decode("ascii", "replace") if isinstance(reply, bytes) else "none"
