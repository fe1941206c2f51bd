"""Where names come from: a file, or a live server, which is only read, at replicas where there are some."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import BinaryIO, NamedTuple

from keywright.engine import AsyncDatabase
from keywright.engine.nodes import Batch, NodeReader, key_count, name_page
from keywright.keyspace.layouts import Ask, pairs
from keywright.keyspace.wires import Reply
from keywright.tools.audit.page_reader import checked_replies, on_name
from keywright.tools.infer.facts import Facts
from keywright.tools.infer.names import LONGEST_NAME, NameSample
from keywright.tools.pace import Pace, WalkProgress, side_by_side

__all__ = ["Survey", "names_in", "survey"]

PAGE = 500
ENTRIES = 50
FIELDS = 200
LARGEST_VALUE = 1 << 16
MOST_BYTES = 64 << 20
"""Of all values that are kept; once reached, types and expiries are still recorded."""

_READS = {
    "string": Ask(b"GETRANGE", (0, LARGEST_VALUE)),
    "hash": Ask(b"HSCAN", (0, b"COUNT", FIELDS)),
    "set": Ask(b"SSCAN", (0, b"COUNT", ENTRIES)),
    "zset": Ask(b"ZRANGE", (0, ENTRIES - 1, b"WITHSCORES")),
    "list": Ask(b"LRANGE", (0, ENTRIES - 1)),
    "stream": Ask(b"XRANGE", (b"-", b"+", b"COUNT", ENTRIES)),
}


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


async def survey(
    db: AsyncDatabase,
    *,
    max_rate: int | None = None,
    prefer_replica: bool = True,
    on_progress: Callable[[WalkProgress], None] | None = None,
) -> Survey:
    """Scan all names of a database and read a bounded part of the sampled keys."""
    while True:
        nodes = await db.nodes(prefer_replica=prefer_replica)
        labels = [node.label for node in nodes]
        walk = _Walk(db, max_rate, on_progress)
        await walk.run(nodes)
        if [node.label for node in nodes] == labels:
            return Survey(walk.sample, walk.facts)
        prefer_replica = False  # a replica went away, and cursors differ: begin again at the primaries


class _Walk:
    def __init__(
        self,
        db: AsyncDatabase,
        max_rate: int | None,
        on_progress: Callable[[WalkProgress], None] | None,
    ) -> None:
        self.db = db
        self.sample = NameSample()
        self.facts: dict[bytes, Facts] = {}
        self._pace = Pace(max_rate)
        self._count = PAGE if max_rate is None else max(10, min(PAGE, max_rate // 50))
        self._on_progress = on_progress
        self._total = 0
        self._bytes = 0
        self._pruned_at = 1 << 17

    async def run(self, nodes: Sequence[NodeReader]) -> None:
        self._total = sum(await side_by_side(self.db.run(key_count(), at=node) for node in nodes))
        self._pace.begin()
        await side_by_side(self._node(node) for node in nodes)
        self._progress(final=True)

    async def _node(self, node: NodeReader) -> None:
        label = node.label
        ahead = asyncio.ensure_future(self.db.run(name_page(0, self._count), at=node))
        try:
            while node.label == label:
                cursor, names = await ahead
                await self._pace.wait(self._count)
                if cursor:
                    ahead = asyncio.ensure_future(self.db.run(name_page(cursor, self._count), at=node))
                kept = [name for name in names if self.sample.add(name)]
                if kept:
                    await self._read(kept, node)
                self._progress()
                if not cursor:
                    return
        finally:
            ahead.cancel()
            await asyncio.gather(ahead, return_exceptions=True)

    async def _read(self, names: list[bytes], node: NodeReader) -> None:
        wires = [on_name(Ask(verb, ()), name, None) for name in names for verb in (b"TYPE", b"PTTL")]
        replies = checked_replies(await self.db.run(Batch(wires), at=node))
        types = [_text(reply) for reply in replies[::2]]
        ttls = [reply if isinstance(reply, int) and reply >= 0 else None for reply in replies[1::2]]
        known = [number for number, kind in enumerate(types) if kind in _READS]
        asked = [on_name(_READS[types[number]], names[number], None) for number in known]
        asked += [
            on_name(Ask(b"HLEN", ()), names[number], None) for number in known if types[number] == "hash"
        ]
        found = checked_replies(await self.db.run(Batch(asked), at=node)) if asked else []
        sizes = iter(found[len(known) :])
        values = dict(zip(known, found, strict=False))
        for number, (name, kind, ttl) in enumerate(zip(names, types, ttls, strict=True)):
            size = next(sizes) if kind == "hash" else 0
            if kind != "none":
                self._keep(name, facts_of(kind, ttl, values.get(number), size))

    def _keep(self, name: bytes, facts: Facts) -> None:
        size = sum(map(len, facts.values)) + sum(len(v) for each in facts.fields for v in each.values())
        if self._bytes + size > MOST_BYTES:
            facts = Facts(facts.redis_type, facts.ttl_ms)
        else:
            self._bytes += size
        self.facts[name] = facts
        if len(self.facts) > self._pruned_at:
            kept = {each.name for each in self.sample}
            self.facts = {name: facts for name, facts in self.facts.items() if name in kept}

    def _progress(self, *, final: bool = False) -> None:
        if self._on_progress is not None and (final or self._pace.due()):
            seen = self.sample.count
            self._on_progress(WalkProgress(seen, max(self._total, seen), self._pace.seconds))


def facts_of(kind: str, ttl: int | None, reply: Reply, size: int = 0) -> Facts:
    """Return the facts of a key from the reply to its reading command; an error or None is left out."""
    if isinstance(reply, bytes):
        return Facts(kind, ttl, (reply,) if len(reply) <= LARGEST_VALUE else ())
    if not isinstance(reply, list):
        return Facts(kind, ttl)
    if kind == "hash":
        fields = _bounded_fields(reply[1])
        return Facts(kind, ttl, fields=(fields,), size=size if isinstance(size, int) else 0)
    if kind == "zset":
        scored = list(pairs(reply))
        members = _bounded(member for member, _ in scored)
        return Facts(kind, ttl, members, tuple(score for _, score in scored))
    if kind == "stream":
        return Facts(kind, ttl, fields=tuple(_bounded_fields(entry[1]) for entry in reply if entry[1]))
    return Facts(kind, ttl, _bounded(reply[1] if kind == "set" else reply))


def _bounded(values: object) -> tuple[bytes, ...]:
    return tuple([value for value in values if len(value) <= LARGEST_VALUE][:FIELDS])  # type: ignore[attr-defined]


def _bounded_fields(flat: list[bytes]) -> dict[bytes, bytes]:
    found = {field: value for field, value in pairs(flat) if len(field) + len(value) <= LARGEST_VALUE}
    return dict(list(found.items())[:FIELDS])


def _text(reply: Reply) -> str:
    return reply.decode("ascii", "replace") if isinstance(reply, bytes) else "none"
