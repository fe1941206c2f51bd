"""Live changes, from the server's keyspace notifications if they are enabled.

The explorer never enables them, because they slow down every writer. Each node of a cluster publishes only
its own keys, so there, and without notifications, the page shows the changes between two surveys.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import NamedTuple

from keywright.engine import AsyncDatabase
from keywright.errors import CapabilityError, KeywrightError, ServerRefusedError
from keywright.explorer.atlas import Atlas
from keywright.keyspace import Key
from keywright.keyspace.call import Plain
from keywright.keyspace.wires import Effect, Operation

__all__ = ["Change", "Watcher"]

KEPT = 1000
AGAIN_SECONDS = 5.0
PREFIX = "__keyevent@"
CONFIG = Operation("explore", b"CONFIG", Effect.READ)


class Change(NamedTuple):
    """One event on one key of the explored keyspaces."""

    number: int
    moment: float
    event: str
    name: bytes
    kind: type[Key] | None


class Watcher:
    """Keeps the last changes, newest first."""

    def __init__(self, db: AsyncDatabase, atlas: Atlas) -> None:
        self.db = db
        self.atlas = atlas
        self.changes: deque[Change] = deque(maxlen=KEPT)
        self.seen = 0
        self.why_not: str | None = "Checking whether keyspace notifications are enabled."

    async def run(self) -> None:
        """Listen until cancelled, and retry after errors."""
        while True:
            try:
                self.why_not = await self._obstacle()
                if self.why_not is None:
                    await self._listen()
            except KeywrightError as error:
                self.why_not = str(error)
            await asyncio.sleep(AGAIN_SECONDS)

    async def _obstacle(self) -> str | None:
        """Return why notifications cannot be used, or None."""
        if self.db.context.sharded:
            return "Each node of a cluster publishes only its own keys; changes come from the survey."
        asked = await self.db.run(Plain(CONFIG, (b"GET", b"notify-keyspace-events")).attempt())
        if isinstance(asked, ServerRefusedError) and asked.reply.startswith("NOPERM"):
            return "This user may not run CONFIG GET notify-keyspace-events; changes come from the survey."
        if isinstance(asked, CapabilityError):
            return "This server has no CONFIG GET; changes come from the survey."
        if isinstance(asked, KeywrightError):
            raise asked
        flags = asked[1] if isinstance(asked, list) and len(asked) == 2 else b""
        if b"E" in flags:
            return None
        return "Notifications are disabled (notify-keyspace-events); changes come from the survey."

    async def _listen(self) -> None:
        number = self.db.address.settings.get("db", 0) or 0
        pattern = f"{PREFIX}{number}__:*".encode()
        async with self.db.subscribe(patterns=[pattern]) as messages:
            async for message in messages:
                self._heard(message.channel, message.payload)

    def _heard(self, channel: bytes, name: bytes) -> None:
        known = self.atlas.matcher.match(name)
        if known is None and not self.atlas.matcher.belongs(name):
            return
        event = channel.rpartition(b":")[2].decode("utf-8", "replace")
        self.seen += 1
        kind = known.kind if known is not None and known.ours else None
        self.changes.appendleft(Change(self.seen, time.time(), event, name[:4096], kind))
