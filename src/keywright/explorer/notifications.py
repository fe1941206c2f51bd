"""Changes as they happen: from the server's keyspace notifications, where somebody has enabled them.

They are never enabled here, for that costs every writer. A cluster's nodes tell only of their own keys, so
there, and without notifications, the changes between two surveys are what is shown.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import NamedTuple

from keywright.engine import AsyncDatabase
from keywright.errors import KeywrightError
from keywright.explorer.atlas import Atlas
from keywright.keyspace import Key
from keywright.keyspace.call import Plain
from keywright.keyspace.wires import Effect, Operation

__all__ = ["Change", "Watcher"]

KEPT = 200
AGAIN_SECONDS = 5.0
PREFIX = "__keyevent@"
CONFIG = Operation("explore", b"CONFIG", Effect.READ)


class Change(NamedTuple):
    """One event on one key of ours."""

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
        self.why_not: str | None = "Asking the server whether it tells of changes."

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            try:
                self.why_not = await self._obstacle()
                if self.why_not is None:
                    await self._listen()
            except KeywrightError as error:
                self.why_not = str(error)
            await asyncio.sleep(AGAIN_SECONDS)

    async def _obstacle(self) -> str | None:
        """Why there is nothing to listen to, or None."""
        if self.db.context.sharded:
            return "A cluster's nodes each tell of their own keys only; changes come from the survey."
        asked = await self.db.run(Plain(CONFIG, (b"GET", b"notify-keyspace-events")).attempt())
        if isinstance(asked, KeywrightError):
            return "This user may not ask whether notifications are enabled; changes come from the survey."
        flags = asked[1] if isinstance(asked, list) and len(asked) == 2 else b""
        if b"E" in flags:
            return None
        return "The server does not notify (notify-keyspace-events); changes come from the survey."

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
