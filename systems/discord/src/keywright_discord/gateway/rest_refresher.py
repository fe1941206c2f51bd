"""Fetches the configured REST resources at an interval, each process for the shards that it runs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from keywright.errors import EngineError
from keywright_discord.drc.fetcher import OF_THE_APPLICATION, RestFetcher, RestResource
from keywright_discord.gateway.packets import shard_of
from keywright_service.errors import PlatformError

__all__ = ["RestRefresher"]

log = logging.getLogger("keywright.gateway")

# Until the shards are ready and the cache has their guilds, and after a failure.
PAUSE_SECONDS = 5.0


class RestRefresher:
    """Runs until it is cancelled. `ready_shards` returns those that this process runs now."""

    def __init__(
        self,
        fetcher: RestFetcher,
        resources: Sequence[RestResource],
        every_seconds: float,
        ready_shards: Callable[[], set[int]],
        shards: int,
    ) -> None:
        self._fetcher = fetcher
        self._resources = resources
        self._every_seconds = every_seconds
        self._ready_shards = ready_shards
        self._shards = shards

    async def run(self) -> None:
        while True:
            try:
                done = await self._fetch()
            except (PlatformError, EngineError) as error:
                log.warning("REST resources are not fetched, trying on: %s", error)
                done = False
            await asyncio.sleep(self._every_seconds if done else min(PAUSE_SECONDS, self._every_seconds))

    async def _fetch(self) -> bool:
        """Fetch everything once. Return False if there are no guilds to fetch it for yet."""
        own = self._ready_shards()
        known = await self._fetcher.guilds() if own else []
        guilds = [guild for guild in known if shard_of(int(guild), self._shards) in own]
        if not guilds:
            return False
        for resource in self._resources:
            of_all = resource in OF_THE_APPLICATION
            if of_all and 0 not in own:
                continue  # the process of the first shard fetches it
            found = await self._fetcher.fetch(resource, known if of_all else guilds)
            log.info("%s: %d stored, %d guilds skipped", resource, found.stored, found.skipped)
        return True
