"""A repository as the registry's metadata database knows it, and as its Redis caches it."""

from __future__ import annotations

from datetime import datetime

import msgspec

__all__ = ["Counts", "Repository"]


class Repository(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One repository of the registry."""

    id: int
    namespace_id: int
    name: str
    """The last segment of the path."""
    path: str
    parent_id: int | None = None
    created_at: datetime
    updated_at: datetime | None = None
    deleted_at: datetime | None = None
    size: int | None = None
    """Bytes; None means not known, 0 is a real size."""
    last_published_at: datetime | None = None


class Counts(msgspec.Struct, frozen=True):
    """How often a repository was pulled from and pushed to."""

    path: str
    pulls: int = 0
    pushes: int = 0
