"""What the servers report about themselves: load, commands, slow commands by template, consumer groups.

Everything is read when its page is opened, in one round trip to each node. A command that the ACL denies is
left out. Arguments of slow commands are values that may be secret: only the command and its key are kept.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from keywright.engine import AsyncDatabase
from keywright.engine.nodes import NodeReader, info
from keywright.errors import KeywrightError, ServerRefusedError
from keywright.explorer.atlas import Atlas, Sheet
from keywright.explorer.key_reader import answers, ask
from keywright.keyspace import Call, gather_list
from keywright.keyspace.call import Plain
from keywright.keyspace.kinds.stream import ConsumerGroup, consumer_group
from keywright.keyspace.wires import Effect, Operation

__all__ = [
    "Command",
    "NodeFacts",
    "SlowCommand",
    "SlowTemplate",
    "StreamState",
    "node_facts",
    "slow_by_template",
    "streams",
]

MOST_SLOW = 128
MOST_COMMANDS = 20
KEY_PLACES = 8
"""The key of a command is one of its first arguments; of a script, the fourth."""
SLOWLOG = Operation("explore", b"SLOWLOG", Effect.READ)


class Command(NamedTuple):
    """The calls of one command since the server started, with percentiles in µs where it keeps them."""

    name: str
    calls: int
    total_us: int
    percentiles: dict[str, float]

    @property
    def mean_us(self) -> float:
        return self.total_us / self.calls if self.calls else 0.0


class SlowCommand(NamedTuple):
    """One entry of a slow log; `sheet` and `name` are those of its first key that a template matches."""

    moment: float
    took_us: int
    verb: str
    sheet: Sheet | None
    name: bytes | None
    number: int
    """The number that the server gave it; it counts up."""


class SlowTemplate(NamedTuple):
    """The slow commands on one template; None stands for those on no known key."""

    sheet: Sheet | None
    commands: int
    total_us: int
    slowest_us: int
    verbs: list[str]


class NodeFacts(NamedTuple):
    """One node: fields of INFO, its commands by total time, and its slow log; None if the ACL denies it."""

    label: str
    fields: dict[str, str]
    commands: list[Command]
    slow: list[SlowCommand] | None
    executed: tuple[int, int]
    """How many commands ran since the server started, and their microseconds."""

    def number(self, field: str) -> int | None:
        text = self.fields.get(field, "")
        return int(text) if text.isascii() and text.isdigit() else None

    @property
    def hit_rate(self) -> float | None:
        hits, misses = self.number("keyspace_hits"), self.number("keyspace_misses")
        if hits is None or misses is None or not hits + misses:
            return None
        return hits / (hits + misses)


class StreamState(NamedTuple):
    """A stream of the sample with its consumer groups."""

    sheet: Sheet
    name: bytes
    length: int
    groups: list[ConsumerGroup]


async def node_facts(db: AsyncDatabase, atlas: Atlas) -> list[NodeFacts]:
    """Return the facts of every node, read at once."""
    nodes = await db.nodes()
    return list(await asyncio.gather(*(_facts(db, atlas, node) for node in nodes)))


async def _facts(db: AsyncDatabase, atlas: Atlas, node: NodeReader) -> NodeFacts:
    asked: list[Call[Any]] = [
        info(),
        info(b"commandstats"),
        info(b"latencystats"),
        Plain(SLOWLOG, (b"GET", MOST_SLOW)),
    ]
    found = await db.run(gather_list([call.attempt() for call in asked]), at=node)
    fields, stats, latencies, slow = (_permitted(each) for each in found)
    commands = _commands({**(stats or {}), **(latencies or {})})
    return NodeFacts(
        node.label,
        fields or {},
        commands[:MOST_COMMANDS],
        None if slow is None else [_slow(atlas, entry) for entry in slow],
        (sum(each.calls for each in commands), sum(each.total_us for each in commands)),
    )


def _permitted(reply: Any) -> Any:
    if isinstance(reply, ServerRefusedError):
        return None
    if isinstance(reply, KeywrightError):
        raise reply
    return reply


def _commands(fields: Mapping[str, str]) -> list[Command]:
    percentiles = {
        name.removeprefix("latency_percentiles_usec_"): _numbers(text)
        for name, text in fields.items()
        if name.startswith("latency_percentiles_usec_")
    }
    found = []
    for field, text in fields.items():
        if field.startswith("cmdstat_"):
            name, numbers = field.removeprefix("cmdstat_"), _numbers(text)
            found.append(
                Command(
                    name, int(numbers.get("calls", 0)), int(numbers.get("usec", 0)), percentiles.get(name, {})
                )
            )
    return sorted(found, key=lambda each: -each.total_us)


def _numbers(text: str) -> dict[str, float]:
    """Parse `calls=3,usec=40`; fields that are not numbers are left out."""
    numbers = {}
    for part in text.split(","):
        name, _, number = part.partition("=")
        try:
            numbers[name] = float(number)
        except ValueError:
            continue
    return numbers


def _slow(atlas: Atlas, entry: Sequence[Any]) -> SlowCommand:
    number, moment, took_us, arguments, *_ = entry
    verb = arguments[0].decode("ascii", "replace").upper()[:32] if arguments else "?"
    for name in arguments[1:KEY_PLACES]:
        known = atlas.matcher.match(name)
        if known is not None and known.ours:
            return SlowCommand(float(moment), took_us, verb, atlas.sheets[known.kind], name, number)
    return SlowCommand(float(moment), took_us, verb, None, None, number)


def slow_by_template(slow: Sequence[SlowCommand]) -> list[SlowTemplate]:
    """Return the slow commands by template, the most expensive first."""
    groups: dict[Sheet | None, list[SlowCommand]] = {}
    for each in slow:
        groups.setdefault(each.sheet, []).append(each)
    found = [
        SlowTemplate(
            sheet,
            len(group),
            sum(each.took_us for each in group),
            max(each.took_us for each in group),
            sorted({each.verb for each in group}),
        )
        for sheet, group in groups.items()
    ]
    return sorted(found, key=lambda each: -each.total_us)


async def streams(db: AsyncDatabase, sampled: Sequence[tuple[Sheet, bytes]]) -> list[StreamState]:
    """Return the length and the consumer groups of some streams, in one round trip."""
    calls = [
        call for _, name in sampled for call in (ask(b"XLEN", name), ask(b"XINFO", name, before=[b"GROUPS"]))
    ]
    found = await answers(db, calls)
    return [
        StreamState(sheet, name, length or 0, [consumer_group(row) for row in groups or ()])
        for (sheet, name), length, groups in zip(sampled, found[::2], found[1::2], strict=True)
        if length is not None
    ]
