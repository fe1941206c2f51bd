"""The tasks with walrus."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote, urlsplit

from redis.backoff import NoBackoff
from redis.exceptions import ResponseError
from redis.retry import Retry
from walrus import Database, DateTimeField, IntegerField, Model, TextField

from benchmarks.peers.program import EXPIRY_SECONDS, Session

PACKAGES = ("walrus", "redis")


class Stored(Model):
    __namespace__ = "shop"

    token = TextField(primary_key=True)
    user = TextField()
    seen = DateTimeField()
    visits = IntegerField()


class Book(Model):
    __namespace__ = "shop"

    book = TextField(primary_key=True)
    author = TextField(index=True)


def save(db: Database, token: str, session: Session) -> None:
    stored = Stored.create(token=token, user=session.user, seen=session.seen, visits=session.visits)
    stored.to_hash().expire(EXPIRY_SECONDS)


def load(db: Database, token: str) -> Session | None:
    try:
        stored = Stored.load(token)
    except KeyError:
        return None
    return Session(stored.user, stored.seen, stored.visits)


def assign(db: Database, book: str, author: str) -> None:
    Book(book=book, author=author).save()


def author_of(db: Database, book: str) -> str | None:
    try:
        return Book.load(book).author
    except KeyError:
        return None


def books_of(db: Database, author: str) -> set[str]:
    return {each.book for each in Book.query(Book.author == author)}


def save_many(db: Database, sessions: Mapping[str, Session]) -> None:
    for token, session in sessions.items():
        save(db, token, session)  # models read while they write, so they take no pipeline


def load_many(db: Database, tokens: Iterable[str]) -> list[Session]:
    return [session for token in tokens if (session := load(db, token))]


def views_of(db: Database, token: str) -> int | None:
    stored = db.Hash(session_key(token))
    found = stored["views"] or stored["visits"]
    return None if found is None else int(found)


def faulty(db: Database, url: str) -> set[str]:
    found = set()
    for name in Stored._query.all_index():
        try:
            Stored.load(name, convert_key=False)
        except (KeyError, ValueError, ResponseError):
            found.add(name.decode())
    return found


def count(db: Database) -> None:
    db.incr("visits")


@contextmanager
def opened(url: str, *, retries: bool = False) -> Iterator[Any]:
    address = urlsplit(url)
    options = {} if retries else {"retry": Retry(NoBackoff(), 0)}
    password = unquote(address.password or "")
    database = Database(address.hostname, address.port, password=password, **options)
    for each in (Stored, Book):
        each.__database__ = database
    with database:
        yield database


def session_key(token: str) -> str:
    return f"shop|stored:id.{token}"


def books_key(author: str) -> str:
    return f"shop|book:author.absolute.{author}"
