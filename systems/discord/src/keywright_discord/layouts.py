"""The two layouts side by side, for programs that let their user choose."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

from keywright import Binding, Call, Keyspace
from keywright_discord.document_reads import Object
from keywright_discord.drc import schema as drc
from keywright_discord.drc.hydrated import DrcHydrated
from keywright_discord.drc.reads import DrcReads
from keywright_discord.drc.store import DrcCache
from keywright_discord.event_cache import EventCache
from keywright_discord.spectacles import schema as spectacles
from keywright_discord.spectacles.reads import SpectaclesHydrated, SpectaclesReads
from keywright_discord.spectacles.store import SpectaclesCache


class ByName(Protocol):
    """Reads of any entity by its name."""

    def get(self, entity: str, *ids: str) -> Call[Object | None]: ...


class Layout(NamedTuple):
    """The functions that open, write, read and remove a cache of one layout."""

    bind: Callable[[str | None], tuple[Binding, ...]]
    cache: Callable[..., EventCache[Any]]
    reads: Callable[[], ByName]
    hydrated: Callable[[], ByName]
    spaces: tuple[Keyspace, ...]
    mark: type[drc.CacheSession | spectacles.CacheSession]
    """The key of the session that fills the cache as one shard."""


LAYOUTS: Mapping[str, Layout] = {
    "drc": Layout(drc.bind, DrcCache, DrcReads, DrcHydrated, (drc.drc, drc.private), drc.CacheSession),
    "spectacles": Layout(
        spectacles.bind,
        SpectaclesCache,
        SpectaclesReads,
        SpectaclesHydrated,
        (spectacles.spectacles, spectacles.private),
        spectacles.CacheSession,
    ),
}
