"""Other databases beside the explored one: another server, or another prefix, with the same declaration."""

from __future__ import annotations

from collections.abc import Sequence

from keywright.engine import AsyncDatabase
from keywright.explorer.atlas import Atlas
from keywright.explorer.settings import ExplorerSettings
from keywright.explorer.survey import Surveyor
from keywright.keyspace import Keyspace

__all__ = ["Side"]


class Side:
    """One database to compare with, surveyed like the explored one."""

    def __init__(self, db: AsyncDatabase, spaces: Sequence[Keyspace], settings: ExplorerSettings) -> None:
        self.db = db
        self.atlas = Atlas(spaces, db.context)
        self.surveyor = Surveyor(db, self.atlas, settings)

    @property
    def label(self) -> str:
        """Return the server, and the prefix of its names."""
        leads = {self.db.context.prefixes[space].decode("utf-8", "replace") for space in self.atlas.spaces}
        prefix = f" {leads.pop()}" if len(leads) == 1 else ""
        return f"{self.db.address.shown}{prefix}"
