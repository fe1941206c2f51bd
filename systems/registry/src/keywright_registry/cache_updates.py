"""Writing committed changes to the cache, and owing it those that did not arrive."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from keywright import Call, gather_list
from keywright.errors import EngineError
from keywright_registry.batches import batched
from keywright_registry.cache import RepositoryCache
from keywright_registry.circuit_breaker import Access
from keywright_registry.tallies import Event, Tally

__all__ = ["Publisher"]


class Publisher:
    """Runs cache writes after a commit. They never fail the caller, whose change is committed already.

    A write that did not arrive is owed: this process no longer reads those paths from the cache, and forgets
    them there as soon as Redis answers. Other processes may read what is outdated until then.
    """

    def __init__(self, access: Access, cache: RepositoryCache, tally: Tally) -> None:
        self.owed: dict[str, object] = {}
        self._access = access
        self._cache = cache
        self._tally = tally
        self._settling: asyncio.Task[None] | None = None

    async def publish(self, writes: Mapping[str, Call[Any]]) -> bool:
        """Tell the cache what became of each path; whether it arrived. Whoever is cancelled here owes it."""
        try:
            for some in batched(writes.values()):
                await self._access.run(gather_list(some))
        except EngineError:
            self._tally(Event.WRITE_FAILED, len(writes))
            self.owe(writes)
            return False
        except asyncio.CancelledError:
            self.owe(writes)
            raise
        return True

    def owe(self, paths: Iterable[str]) -> None:
        """Do not read these from the cache, and forget them there in a moment."""
        self.owed.update((path, object()) for path in paths)
        if self._settling is None or self._settling.done():
            self._settling = asyncio.get_running_loop().create_task(self._settle())

    async def close(self) -> None:
        """Try for the last time; what is still owed then stays cached until it expires."""
        if self._settling is not None:
            self._settling.cancel()
            await asyncio.gather(self._settling, return_exceptions=True)
        with suppress(EngineError):
            await self._pay()

    async def _settle(self) -> None:
        while self.owed:
            await asyncio.sleep(self._access.rest_seconds)
            with suppress(EngineError):
                await self._pay()

    async def _pay(self) -> None:
        for some in batched(self.owed.items()):
            await self._access.run(self._cache.delete(*(path for path, _ in some)))
            for path, debt in some:
                if self.owed.get(path) is debt:  # not owed anew meanwhile
                    del self.owed[path]
