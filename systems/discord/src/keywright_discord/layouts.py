"""The two layouts side by side, for programs that let their user choose."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from keywright import Binding, Keyspace
from keywright_discord.drc import schema as drc
from keywright_discord.drc.reader import DrcReader
from keywright_discord.drc.store import DrcCache
from keywright_discord.event_cache import EventCache
from keywright_discord.reader import Reader
from keywright_discord.spectacles import schema as spectacles
from keywright_discord.spectacles.reader import SpectaclesReader
from keywright_discord.spectacles.store import SpectaclesCache


class Layout(NamedTuple):
    """The functions that open, write, read and remove a cache of one layout."""

    bind: Callable[[str | None], tuple[Binding, ...]]
    cache: Callable[..., EventCache[Any]]
    reader: Callable[..., Reader]
    spaces: tuple[Keyspace, ...]
    mark: type[drc.CacheSession | spectacles.CacheSession]
    """The key of the session that fills the cache as one shard."""


LAYOUTS: Mapping[str, Layout] = {
    "drc": Layout(drc.bind, DrcCache, DrcReader, (drc.drc, drc.private), drc.CacheSession),
    "spectacles": Layout(
        spectacles.bind,
        SpectaclesCache,
        SpectaclesReader,
        (spectacles.spectacles, spectacles.private),
        spectacles.CacheSession,
    ),
}
