"""The mark of the session that fills a cache. Both layouts keep one for each shard, beside their data."""

from __future__ import annotations

import msgspec

__all__ = ["FilledBy"]


class FilledBy(msgspec.Struct, frozen=True):
    """The session that fills a cache."""

    bot: str
    """The bot of the session, as the names of its gateway keys have it."""
    session: str
    """The session id of READY."""
