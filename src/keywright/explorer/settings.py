"""How an explorer is started: where it listens, who may see it, how much it asks of the server."""

from __future__ import annotations

from pathlib import Path

import msgspec

from keywright.errors import UsageError
from keywright.keyspace import Secret
from keywright.tools.http import LOOPBACK, is_loopback

__all__ = ["ExplorerSettings"]

SHORTEST_TOKEN = 16


class ExplorerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """`write` allows repairs, nothing else; without it no command that writes is ever sent."""

    host: str = LOOPBACK
    port: int = 8600
    token: Secret[str] | None = None
    write: bool = False
    names_per_second: int = 100_000
    rest_seconds: float = 15.0
    """The least time between two surveys; a survey that took longer rests twice as long as it took."""
    undo: Path | None = None
    """Where repairs write what they take away, else keywright-explorer.undo in the current folder."""

    def check(self) -> None:
        """UsageError for what would let anybody in."""
        if self.token is not None and len(self.token.reveal()) < SHORTEST_TOKEN:
            raise UsageError(f"the token has fewer than {SHORTEST_TOKEN} characters. Use a long random text.")
        if self.token is None and not is_loopback(self.host):
            raise UsageError(
                f"{self.host} can be reached from outside, and anybody could read all data there. "
                f"Give --token or KEYWRIGHT_EXPLORER_TOKEN, or listen on {LOOPBACK}."
            )
