"""Removing all keys of a keyspace as one database binds it, without blocking the server.

Names are found page by page (SCAN) and unlinked in batches with pauses, so other clients hardly
notice. Keys that are written meanwhile may stay: stop the writers, or purge again.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from keywright.engine import AsyncDatabase, Database
from keywright.keyspace import Call, Context, Keyspace, gather_list
from keywright.keyspace.call import Pause, Plain
from keywright.keyspace.slots import slot_of
from keywright.keyspace.wires import Effect, Operation

UNLINK = Operation("purge", b"UNLINK", Effect.REPEATABLE)
BATCH = 500
PAUSE = timedelta(milliseconds=2)


def purge(db: Database, *spaces: Keyspace, pause: timedelta = PAUSE) -> int:
    """Remove every key of these keyspaces. Return how many there were.

    A keyspace that is bound with a version owns all names that begin with its prefix and version,
    declared or not. One without shares its prefix, if it has any, with others: of its names only those
    that one of its templates matches are removed.
    """
    removed = 0
    for space in spaces:
        batch: list[bytes] = []
        for name in db.names(space):
            if _is_of(space, name, db.context):
                batch.append(name)
            if len(batch) == BATCH:
                removed += db.run(_unlinked(batch, db.context))
                db.run(Pause(pause.total_seconds()))
                batch = []
        removed += db.run(_unlinked(batch, db.context))
    return removed


async def apurge(db: AsyncDatabase, *spaces: Keyspace, pause: timedelta = PAUSE) -> int:
    """`purge` for asyncio."""
    removed = 0
    for space in spaces:
        batch: list[bytes] = []
        async for name in db.names(space):
            if _is_of(space, name, db.context):
                batch.append(name)
            if len(batch) == BATCH:
                removed += await db.run(_unlinked(batch, db.context))
                await db.run(Pause(pause.total_seconds()))
                batch = []
        removed += await db.run(_unlinked(batch, db.context))
    return removed


def count(db: Database, *spaces: Keyspace) -> int:
    """Return how many keys `purge` would remove. A key that SCAN returns twice is counted twice."""
    return sum(_is_of(space, name, db.context) for space in spaces for name in db.names(space))


def _is_of(space: Keyspace, name: bytes, context: Context) -> bool:
    binding = context.bindings.get(space)
    version = space.version if binding is None else binding.version
    return bool(version) or space.find(name, context) is not None


def _unlinked(names: Iterable[bytes], context: Context) -> Call[int]:
    """Return a call that unlinks the names: one UNLINK on a single server, one for each slot on a cluster."""
    groups: dict[int, list[bytes]] = {}
    for name in names:
        groups.setdefault(slot_of(name) if context.sharded else 0, []).append(name)
    calls = [Plain(UNLINK, tuple(group), group[0]) for group in groups.values()]
    return gather_list(calls).map(sum)
