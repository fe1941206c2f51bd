"""The settings of an explorer: address, token, writes and load on the server."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import msgspec

from keywright.engine import Database
from keywright.errors import UsageError
from keywright.keyspace import Keyspace, Secret
from keywright.tools.http import LOOPBACK, check_token, is_loopback, origin_of
from keywright.tools.pace import GENTLE, Pace

__all__ = ["ExplorerSettings", "Tour"]


class Tour(NamedTuple):
    """A keyspace that visitors may damage and refill: a sample, never data that somebody needs."""

    space: Keyspace
    fill: Callable[[Database], None]
    """Writes the whole sample, as declared."""


class ExplorerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of an explorer. `write` allows edits and repairs; without it no write command is ever sent."""

    host: str = LOOPBACK
    port: int = 8600
    token: Secret[str] | None = None
    public_url: str | None = None
    """The address under which browsers reach the explorer behind a proxy, as in https://keys.example.org."""
    write: bool = False
    survey_pace: Pace = GENTLE
    rest_seconds: float = 15.0
    """The minimum pause between two surveys; after a long survey, twice its duration."""
    show_unknown: bool = False
    """Whether the bytes of keys that no template matches are shown: they may be secrets of other programs."""
    tour: Tour | None = None
    """The sample of the guided tour, which the page /tour damages. Needs `write`."""
    undo: Path | None = None
    """The undo file of repairs and edits; the default is keywright-explorer.undo in the current folder."""

    def of_database(self, number: str) -> ExplorerSettings:
        """Return the settings for one of several databases: it has an undo file of its own."""
        undo = self.undo or Path("keywright-explorer.undo")
        return msgspec.structs.replace(self, undo=undo.with_name(f"{undo.name}.db{number}"))

    def check(self) -> None:
        """Raise UsageError for settings that would give access to anybody, or contradict each other."""
        if self.tour is not None and not self.write:
            raise UsageError(
                "a tour damages its sample, so the explorer must be allowed to write. Set `write`."
            )
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
