"""The tasks with Keywright."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

import msgspec

from benchmarks.peers.program import Session
from keywright import (
    Counter,
    Database,
    Id,
    Keyspace,
    Record,
    Retry,
    Set,
    Settings,
    Upgrade,
    Value,
    aconnect,
    connect,
    expires_in,
    gather_list,
    many_to_one,
)
from keywright.tools import Model, audit_database

PACKAGES = ("keywright",)

shop = Keyspace("shop", "Sessions, books and their authors.")


class SessionDetails(msgspec.Struct):
    user: str
    seen: datetime
    visits: int


class SessionOf(
    Record[SessionDetails], key="session:<token>", space=shop, expiry=expires_in(timedelta(minutes=30))
):
    """The session of a token. It ends half an hour after it was written."""

    token: Id


class AuthorOf(Value[Id], key="book:<book>:author", space=shop):
    """The author of a book."""

    book: Id


class BooksOf(Set[Id], key="author:<author>:books", space=shop):
    """The books of an author."""

    author: Id


authorship = many_to_one(AuthorOf, inverse=BooksOf)


def save(db: Database, token: str, session: Session) -> None:
    details = SessionDetails(session.user, session.seen, session.visits)
    db.run(SessionOf(token).put(details))


def load(db: Database, token: str) -> Session | None:
    details = db.run(SessionOf(token).get())
    return Session(details.user, details.seen, details.visits) if details else None


def assign(db: Database, book: str, author: str) -> None:
    db.run(authorship.replace(book, author))


def author_of(db: Database, book: str) -> str | None:
    return db.run(authorship.of(book))


def books_of(db: Database, author: str) -> set[str]:
    return db.run(BooksOf(author).members())


def save_many(db: Database, sessions: Mapping[str, Session]) -> None:
    db.run(
        gather_list(
            SessionOf(token).put(SessionDetails(each.user, each.seen, each.visits))
            for token, each in sessions.items()
        )
    )


def load_many(db: Database, tokens: Iterable[str]) -> list[Session]:
    found = db.run(SessionOf.get_many(tokens))
    return [Session(each.user, each.seen, each.visits) for each in found if each]


later = Keyspace("later", "The same, after visits were renamed.")


class Viewed(msgspec.Struct):
    user: str
    seen: datetime
    views: int


def renamed(stored: Mapping[bytes, bytes], key: object) -> Viewed:
    seen = datetime.fromisoformat(stored[b"seen"].decode())
    return Viewed(stored[b"user"].decode(), seen, int(stored[b"visits"]))


class ViewedSession(
    Record[Viewed],
    key="session:<token>",
    space=later,
    expiry=expires_in(timedelta(minutes=30)),
    upgrades=[Upgrade("visits", lambda stored: b"visits" in stored, renamed)],
):
    """The session of a token."""

    token: Id


def views_of(db: Database, token: str) -> int | None:
    details = db.run(ViewedSession(token).get())
    return details.views if details else None


async def faulty(db: Database, url: str) -> set[str]:
    found: set[str] = set()
    async with aconnect(url) as auditing:
        await audit_database(
            auditing, Model("shop", (shop,)), on_finding=lambda each: found.add(each.name.decode())
        )
    return found


class Visits(Counter, key="visits", space=shop):
    """How often the shop was visited."""


def count(db: Database) -> None:
    db.run(Visits().add())


def opened(url: str, *, retries: bool = False) -> Database:
    return connect(url, settings=Settings(retry=Retry() if retries else Retry(attempts=1)))


def session_key(token: str) -> str:
    return f"session:{token}"


def books_key(author: str) -> str:
    return f"author:{author}:books"
