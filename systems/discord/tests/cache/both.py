"""A cache of either layout that is fed events, and what Redis holds of it, read with redis-py alone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from keywright import Database
from keywright.testing import Raw
from keywright_discord.changes import Change
from keywright_discord.event_cache import EventCache

Event = tuple[str, Mapping[str, Any]]


class Fed:
    """The cache of one layout."""

    def __init__(self, layout: str, database: Database, raw: Raw, cache: EventCache[Any]) -> None:
        self.layout = layout
        self.database = database
        self.raw = raw
        self.cache = cache

    def __call__(self, *events: Event) -> None:
        """Apply events, which must be accepted."""
        encoded = [(name, json.dumps(data, separators=(",", ":")).encode()) for name, data in events]
        assert self.database.run(self.cache.apply(encoded)) == []

    def store(self, changes: list[Change]) -> None:
        self.database.run(self.cache.store(changes))

    def names(self) -> set[str]:
        """Return the names of all keys, without prefix and version."""
        prefixes = ("keywright:v1json:", "keywright:v1json-private:")
        names = [name.decode() for name in self.raw.names()]
        for prefix in prefixes:
            names = [name.removeprefix(prefix) for name in names]
        return set(names)

    def guild(self, guild: str) -> Any:
        if self.layout == "drc":
            return _document(self.raw("GET", f"keywright:v1json:guilds:{guild}"))
        return _document(self.raw("HGET", "GUILDS", guild))

    def channel(self, guild: str, channel: str) -> Any:
        """Return a channel or a thread."""
        if self.layout == "spectacles":
            return _document(self.raw("HGET", "CHANNELS", channel))
        thread = self.raw("GET", f"keywright:v1json:threads:{channel}")
        return _document(thread or self.raw("HGET", f"keywright:v1json:channels:{guild}", channel))

    def members(self, guild: str) -> set[str]:
        if self.layout == "drc":
            return {each.decode() for each in self.raw("SMEMBERS", f"keywright:v1json:members:{guild}")}
        return {each.decode() for each in self.raw("HKEYS", f"MEMBERS:{guild}")}

    def is_online(self, guild: str, user: str) -> bool:
        name = f"keywright:v1json:presence:{guild}:{user}" if self.layout == "drc" else f"PRESENCES:{user}"
        return bool(self.raw("EXISTS", name))


def _document(found: bytes | None) -> Any:
    return None if found is None else json.loads(found)
