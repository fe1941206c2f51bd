"""A repository as the registry's metadata database and its Redis cache know it."""

from __future__ import annotations

from datetime import datetime

import msgspec

__all__ = ["Counts", "Repository"]


class Repository(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One repository of the registry."""

    id: int
    """The primary key in the metadata database."""
    namespace_id: int
    """The id of the top-level namespace."""
    name: str
    """The last segment of the path."""
    path: str
    """The full path, which is unique among the repositories that are not deleted."""
    parent_id: int | None = None
    """The id of the repository one segment above; None for a top-level repository."""
    created_at: datetime
    """The time of creation."""
    updated_at: datetime | None = None
    """The time of the last change, if there was one."""
    deleted_at: datetime | None = None
    """The time of deletion, if it is deleted."""
    size: int | None = None
    """The size in bytes; None means unknown, 0 is a real size."""
    last_published_at: datetime | None = None
    """The time of the last push, if it is known."""


class Counts(msgspec.Struct, frozen=True):
    """The number of pulls from and pushes to a repository."""

    path: str
    pulls: int = 0
    pushes: int = 0
