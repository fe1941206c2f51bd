"""The contract between the registry and its metadata database."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from keywright_registry.repository import Counts, Repository

__all__ = ["Metadata", "MetadataTransaction"]


class MetadataTransaction(Protocol):
    """Reads and writes that are committed together, or not at all."""

    async def find(self, path: str) -> Repository | None:
        """Return the repository of a path as this transaction sees it."""
        ...

    async def create_or_find(self, path: str) -> Repository:
        """Return the repository of a path; create it and its missing parents."""
        ...

    async def update(self, repository: Repository) -> Repository:
        """Write size and last push of a repository that is not deleted, by its id; set `updated_at`."""
        ...

    async def rename(self, old: str, new: str) -> list[tuple[str, Repository]]:
        """Rename a path and everything below it; return each old path with the renamed repository."""
        ...

    async def delete(self, path: str) -> bool:
        """Delete one repository; return whether it existed. Refuse one with repositories below it."""
        ...


class Metadata(Protocol):
    """Repositories and their counts, in a database of their own."""

    async def migrate(self) -> list[str]:
        """Create the tables or upgrade them; return the names of the applied migrations."""
        ...

    async def find(self, path: str) -> Repository | None: ...

    async def find_many(self, paths: Sequence[str]) -> dict[str, Repository]:
        """Return the repositories that exist, by path."""
        ...

    async def page(self, after: str, limit: int) -> list[Repository]:
        """Return repositories in the order of their paths, from the first after a path on."""
        ...

    def transaction(self) -> AbstractAsyncContextManager[MetadataTransaction]:
        """Commit when the block ends without an error. Raise MetadataError there if an operation failed."""
        ...

    async def add_counts(self, batch: str, counts: Sequence[Counts]) -> bool:
        """Add pulls and pushes; return whether the batch is new. A known batch changes nothing."""
        ...

    async def counts(self, path: str) -> Counts: ...

    async def counts_with(self, path: str, batch: str) -> tuple[Counts, bool]:
        """Return the counts of a path and whether they include a batch, as of one moment."""
        ...

    async def close(self) -> None: ...
