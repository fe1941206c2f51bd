"""The settings of an explorer: address, token, writes and load on the server."""

from __future__ import annotations

from pathlib import Path

import msgspec

from keywright.errors import UsageError
from keywright.keyspace import Secret
from keywright.tools.http import LOOPBACK, check_token, is_loopback, origin_of

__all__ = ["ExplorerSettings"]


class ExplorerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of an explorer. `write` allows repairs; without it no write command is ever sent."""

    host: str = LOOPBACK
    port: int = 8600
    token: Secret[str] | None = None
    public_url: str | None = None
    """The address under which browsers reach the explorer behind a proxy, as in https://keys.example.org."""
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
        if self.public_url is not None:
            origin_of(self.public_url)
        if self.token is not None:
            check_token(self.token)
        elif self.public_url is not None or not is_loopback(self.host):
            raise UsageError(
                f"{self.public_url or self.host} can be reached from outside, and without a token anybody "
                "could read all data. Set --token or KEYWRIGHT_EXPLORER_TOKEN, or listen on "
                f"{LOOPBACK} without --public-url."
            )
