"""What the registry needs of its metadata database, whichever it is."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from keywright_registry.repository import Counts, Repository

__all__ = ["Metadata", "Transaction"]


class Transaction(Protocol):
    """Reads and writes that are committed together, or not at all."""

    async def find(self, path: str) -> Repository | None:
        """The repository of a path, as this transaction sees it."""
        ...

    async def create_or_find(self, path: str) -> Repository:
        """The repository of a path; it and its missing parents are created."""
        ...

    async def update(self, repository: Repository) -> Repository:
        """Write size and last push of a repository that lives, by its id; `updated_at` is now."""
        ...

    async def rename(self, old: str, new: str) -> list[tuple[str, Repository]]:
        """Give a path and everything below it another name; each old path with what it became."""
        ...

    async def delete(self, path: str) -> bool:
        """Remove one repository; whether it was there. One with repositories below it is refused."""
        ...


class Metadata(Protocol):
    """The `repositories` table."""

    async def migrate(self) -> list[str]:
        """Bring the tables to the newest form; the names of the steps that were taken."""
        ...

    async def find(self, path: str) -> Repository | None: ...

    async def find_many(self, paths: Sequence[str]) -> dict[str, Repository]: ...

    def transaction(self) -> AbstractAsyncContextManager[Transaction]:
        """Committed when left without an error; after an operation that failed that raises MetadataError."""
        ...

    async def add_counts(self, batch: str, counts: Sequence[Counts]) -> bool:
        """Add pulls and pushes; a batch that was added before changes nothing. Whether it was new."""
        ...

    async def counts(self, path: str) -> Counts: ...

    async def counts_with(self, path: str, batch: str) -> tuple[Counts, bool]:
        """The counts of a path and whether this batch was added, as of one moment."""
        ...

    async def close(self) -> None: ...
