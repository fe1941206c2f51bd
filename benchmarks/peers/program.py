"""What each client has to do: sessions that expire, books and their authors, sessions by the thousand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

__all__ = ["EXPIRY_SECONDS", "Program", "Session"]

EXPIRY_SECONDS = 1800


@dataclass(frozen=True)
class Session:
    """One session of a user, stored as a hash. It expires half an hour after it was written."""

    user: str
    seen: datetime
    visits: int

    @classmethod
    def sample(cls, number: int = 0) -> Session:
        return cls(f"u{number}", datetime(2026, 11, 18, 9, number % 60, 30, 250_000, tzinfo=UTC), number)


class Program(Protocol):
    """A module. Functions may be coroutines, and `opened` an asynchronous context manager."""

    __file__: str | None
    PACKAGES: tuple[str, ...]

    def opened(
        self, url: str, *, retries: bool = False
    ) -> AbstractContextManager[Any] | AbstractAsyncContextManager[Any]:
        """Open a client: with the retries that it has by default, or without, as if its process had died."""

    def save(self, db: Any, token: str, session: Session) -> Any: ...

    def load(self, db: Any, token: str) -> Any:
        """Return the session, or None."""

    def assign(self, db: Any, book: str, author: str) -> Any:
        """Give a book its author, in the place of another, so that both can be looked up."""

    def author_of(self, db: Any, book: str) -> Any: ...

    def books_of(self, db: Any, author: str) -> Any: ...

    def save_many(self, db: Any, sessions: Mapping[str, Session]) -> Any: ...

    def load_many(self, db: Any, tokens: Iterable[str]) -> Any: ...

    def views_of(self, db: Any, token: str) -> Any:
        """Read a session with a declaration that calls the visits views, stored before or after that."""

    def count(self, db: Any) -> Any:
        """Add one to the counter `visits`."""

    def faulty(self, db: Any, url: str) -> Any:
        """Return the names of all keys that are not as declared."""

    def session_key(self, token: str) -> str: ...

    def books_key(self, author: str) -> str: ...
