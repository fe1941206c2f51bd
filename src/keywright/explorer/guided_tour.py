"""The guided tour: damage a sample keyspace, and fill it again. Other keyspaces are never written to."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

from keywright.engine import AsyncDatabase, Database
from keywright.errors import KeywrightError, UsageError
from keywright.explorer.atlas import Atlas
from keywright.explorer.settings import Tour
from keywright.keyspace import Key, Keyspace, gather_list
from keywright.keyspace.call import Plain
from keywright.keyspace.wires import Effect, Operation
from keywright.testing.damage import PlantedFault, plant

__all__ = ["GuidedTour"]

STRANGERS = 2
AT_ONCE = 200
_PARTNERS = ("of", "by", "forward", "inverse", "index", "inverse_index")
log = logging.getLogger("keywright.explorer")


class GuidedTour:
    """The tour of one explorer. Each action runs in a thread, with a connection of its own."""

    def __init__(self, db: AsyncDatabase, tour: Tour, atlas: Atlas) -> None:
        self.db = db
        self.space = tour.space
        self.fill = tour.fill
        self.atlas = atlas
        self.prefix = _own_prefix(tour.space, db)
        _require_closed(tour.space)
        self.faults: list[PlantedFault] = []
        self.changed = 0.0
        """When the sample was damaged or filled last; 0 if not since the start."""
        self.action: str | None = None
        """What runs now: break or refill."""
        self.trouble: str | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def busy(self) -> bool:
        return self.action is not None

    def has(self, name: bytes) -> bool:
        """Return whether a key is part of the sample, declared or not."""
        if not name.startswith(self.prefix):
            return False
        kind = self.atlas.matcher.kind_of(name)
        return kind is None or kind.declaration.space is self.space

    def break_it(self) -> None:
        """Start to damage the sample: one fault of each sort on each template that allows for it."""
        if self.faults:
            raise UsageError("the sample is damaged already. Begin again to have a whole one.")
        self._start("break", self._damage)

    def begin_again(self) -> None:
        """Start to delete the keys of the sample, and write it again."""
        self._start("refill", self._refill)

    async def stop(self) -> None:
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)

    def _start(self, action: str, work: Callable[[Database], list[PlantedFault]]) -> None:
        if self.busy:
            raise UsageError("the sample is being changed. Wait until that is done.")
        self.action, self.trouble = action, None
        self._task = asyncio.create_task(self._run(work))

    async def _run(self, work: Callable[[Database], list[PlantedFault]]) -> None:
        try:
            self.faults = await asyncio.to_thread(self._connected, work)
        except KeywrightError as error:
            self.trouble = str(error)
        except Exception as error:
            self.trouble = f"It failed with {type(error).__name__}. The log of the explorer has the details."
            log.exception("the guided tour failed")
        finally:
            self.action, self.changed = None, time.time()

    def _connected(self, work: Callable[[Database], list[PlantedFault]]) -> list[PlantedFault]:
        with Database(self.db.address, self.db.context, self.db.settings) as db:
            return work(db)

    def _damage(self, db: Database) -> list[PlantedFault]:
        return plant(db, [self.space], each=1, unknown=STRANGERS, seed=secrets.randbits(32))

    def _refill(self, db: Database) -> list[PlantedFault]:
        names = filter(self.has, db.names(self.space))
        while some := list(islice(names, AT_ONCE)):
            _unlink(db, some)
        self.fill(db)
        return []


def _unlink(db: Database, names: Iterable[bytes]) -> None:
    removal = Operation("tour", b"UNLINK", Effect.REPEATABLE)
    db.run(gather_list([Plain(removal, (name,), name) for name in names]))


def _own_prefix(space: Keyspace, db: AsyncDatabase) -> bytes:
    """Return the beginning of all names of a keyspace. Raise UsageError if it has none."""
    binding = db.context.bindings.get(space)
    prefix = space.prefix if binding is None else binding.prefix
    if not prefix:
        raise UsageError(f"the tour damages {space.name}, which needs a prefix of its own. Bind it with one.")
    return f"{prefix}:".encode()


def _require_closed(space: Keyspace) -> None:
    """Raise UsageError if a relation or a reference leads out of a keyspace: damage would follow it."""
    partners: list[Any] = [reference.target for reference in space.references]
    partners += [getattr(link, name, None) for link in space.links for name in _PARTNERS]
    for kind in partners:
        if isinstance(kind, type) and issubclass(kind, Key) and kind.declaration.space is not space:
            raise UsageError(
                f"the tour damages {space.name}, but it refers to {kind.__name__} of another keyspace. "
                "Use a keyspace whose relations and references stay in it."
            )
