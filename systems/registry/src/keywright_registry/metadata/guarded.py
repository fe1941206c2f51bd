"""Operations inside one transaction: none after its end, and no commit after one that failed."""

from __future__ import annotations

from typing import TypeVar

from keywright.errors import UsageError
from keywright_registry.errors import MetadataError, RepositoryPathError
from keywright_registry.metadata.dialect import Operation, Run

__all__ = ["Running"]

T = TypeVar("T")


class Running:
    """Runs operations while their transaction lasts."""

    def __init__(self, run: Run, shown: str) -> None:
        self._run: Run | None = run
        self._shown = shown
        self._failed = False

    async def __call__(self, operation: Operation[T]) -> T:
        if self._run is None:
            raise UsageError("this transaction is over. Use it inside the block that opened it.")
        try:
            return await self._run(operation)
        except RepositoryPathError:  # refused before anything was changed
            raise
        except BaseException:
            self._failed = True
            raise

    def require_success(self) -> None:
        """Ask before a commit: half an operation may be done, and PostgreSQL would only pretend to."""
        if self._failed:
            raise MetadataError(
                self._shown,
                "an operation of this transaction failed, so all of it was rolled back",
                "Let its error leave the block, then begin again.",
            )

    def end(self) -> None:
        self._run = None
