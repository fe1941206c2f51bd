"""The settings of an explorer: address, token, writes and load on the server."""

from __future__ import annotations

from pathlib import Path

import msgspec

from keywright.errors import UsageError
from keywright.keyspace import Secret
from keywright.tools.http import LOOPBACK, is_loopback

__all__ = ["ExplorerSettings"]

SHORTEST_TOKEN = 16


class ExplorerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of an explorer. `write` allows repairs; without it no write command is ever sent."""

    host: str = LOOPBACK
    port: int = 8600
    token: Secret[str] | None = None
    write: bool = False
    names_per_second: int = 100_000
    rest_seconds: float = 15.0
    """The minimum pause between two surveys; after a long survey, twice its duration."""
    show_unknown: bool = False
    """Whether the bytes of keys that no template matches are shown: they may be secrets of other programs."""
    undo: Path | None = None
    """The undo file of repairs; the default is keywright-explorer.undo in the current folder."""

    def check(self) -> None:
        """Raise UsageError for settings that would give access to anybody."""
        if self.token is not None and len(self.token.reveal()) < SHORTEST_TOKEN:
            raise UsageError(f"the token has fewer than {SHORTEST_TOKEN} characters. Use a long random one.")
        if self.token is None and not is_loopback(self.host):
            raise UsageError(
                f"{self.host} can be reached from outside, and without a token anybody could read all data. "
                f"Set --token or KEYWRIGHT_EXPLORER_TOKEN, or listen on {LOOPBACK}."
            )
