"""Removing all keys of a keyspace as one database binds it, without blocking the server.

Names are found page by page (SCAN) and unlinked in batches with pauses, so other clients hardly
notice. Keys that are written meanwhile may stay: stop the writers, or purge again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import timedelta

from keywright.engine import AsyncDatabase, Database
from keywright.engine.nodes import key_count
from keywright.keyspace import Call, Context, Keyspace, gather_list
from keywright.keyspace.call import Pause, Plain
from keywright.keyspace.slots import slot_of
from keywright.keyspace.wires import Effect, Operation
from keywright.tools.pace import WalkProgress

UNLINK = Operation("purge", b"UNLINK", Effect.REPEATABLE)
BATCH = 500
PAUSE = timedelta(milliseconds=2)


def purge(
    db: Database,
    *spaces: Keyspace,
    pause: timedelta = PAUSE,
    on_progress: Callable[[WalkProgress], None] | None = None,
) -> int:
    """Remove every key of these keyspaces. Return how many there were.

    A keyspace that is bound with a version owns all names that begin with its prefix and version,
    declared or not. One without shares its prefix, if it has any, with others: of its names only those
    that one of its templates matches are removed.
    """
    removed = 0
    batch: list[bytes] = []
    for space, name in _walked(db, spaces, on_progress):
        if _is_of(space, name, db.context):
            batch.append(name)
        if len(batch) == BATCH:
            removed += db.run(_unlinked(batch, db.context))
            db.run(Pause(pause.total_seconds()))
            batch = []
    return removed + db.run(_unlinked(batch, db.context))


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


def count(db: Database, *spaces: Keyspace, on_progress: Callable[[WalkProgress], None] | None = None) -> int:
    """Return how many keys `purge` would remove. A key that SCAN returns twice is counted twice."""
    return sum(_is_of(space, name, db.context) for space, name in _walked(db, spaces, on_progress))


def _walked(
    db: Database, spaces: Sequence[Keyspace], on_progress: Callable[[WalkProgress], None] | None
) -> Iterator[tuple[Keyspace, bytes]]:
    """Yield the names of keyspaces, and report now and then how many there were."""
    total = 0 if on_progress is None else sum(db.run(key_count(), at=node) for node in db.nodes())
    started, seen = time.monotonic(), 0
    for space in spaces:
        for name in db.names(space):
            seen += 1
            if on_progress is not None and seen % BATCH == 0:
                on_progress(WalkProgress(seen, max(total, seen), time.monotonic() - started))
            yield space, name


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
