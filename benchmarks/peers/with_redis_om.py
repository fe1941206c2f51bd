"""The tasks with redis-om, on a server without the search module: by primary key."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import redis
from pydantic import AliasChoices, ValidationError
from redis.backoff import NoBackoff
from redis.client import Pipeline
from redis.retry import Retry
from redis_om import Field, HashModel, NotFoundError

from benchmarks.peers.program import EXPIRY_SECONDS, Session

PACKAGES = ("redis-om", "redis")


class Stored(HashModel, index=True):
    token: str = Field(primary_key=True)
    user: str
    seen: datetime
    visits: int

    class Meta:
        global_key_prefix = "shop"
        model_key_prefix = "session"


class Book(HashModel, index=True):
    book: str = Field(primary_key=True)
    author: str

    class Meta:
        global_key_prefix = "shop"
        model_key_prefix = "book"


def model(token: str, session: Session) -> Stored:
    return Stored(token=token, user=session.user, seen=session.seen, visits=session.visits)


def save(db: redis.Redis, token: str, session: Session) -> None:
    stored = model(token, session)
    with db.pipeline(transaction=True) as pipe:
        stored.save(pipeline=pipe)
        stored.expire(EXPIRY_SECONDS, pipeline=pipe)
        pipe.execute()


def load(db: redis.Redis, token: str) -> Session | None:
    try:
        stored = Stored.get(token)
    except NotFoundError:
        return None
    return Session(stored.user, stored.seen, stored.visits)


def assign(db: redis.Redis, book: str, author: str) -> None:
    # With the search module `Book.find(Book.author == author)` is enough. Without it, a set beside the model:
    changed = Book(book=book, author=author)

    def change(pipe: Pipeline) -> None:
        before = author_of(db, book)
        pipe.multi()
        if before:
            pipe.srem(books_key(before), book)
        changed.save(pipeline=pipe)
        pipe.sadd(books_key(author), book)

    db.transaction(change, changed.key())  # WATCH, and again if another writer was faster


def author_of(db: redis.Redis, book: str) -> str | None:
    try:
        return Book.get(book).author
    except NotFoundError:
        return None


def books_of(db: redis.Redis, author: str) -> set[str]:
    return db.smembers(books_key(author))


def save_many(db: redis.Redis, sessions: Mapping[str, Session]) -> None:
    models = [model(token, session) for token, session in sessions.items()]
    with db.pipeline(transaction=True) as pipe:
        Stored.add(models, pipeline=pipe)
        for stored in models:
            stored.expire(EXPIRY_SECONDS, pipeline=pipe)
        pipe.execute()


def load_many(db: redis.Redis, tokens: Iterable[str]) -> list[Session]:
    return [session for token in tokens if (session := load(db, token))]  # a round trip for each


class Viewed(HashModel, index=True):
    token: str = Field(primary_key=True)
    user: str
    seen: datetime
    views: int = Field(validation_alias=AliasChoices("views", "visits"))

    class Meta:
        global_key_prefix = "shop"
        model_key_prefix = "session"


def views_of(db: redis.Redis, token: str) -> int | None:
    try:
        return Viewed.get(token).views
    except NotFoundError:
        return None


def faulty(db: redis.Redis, url: str) -> set[str]:
    found = set()
    for token in Stored.all_pks():
        try:
            Stored.get(token)
        except (ValidationError, redis.ResponseError):
            found.add(session_key(token))
    return found


def count(db: redis.Redis) -> None:
    db.incr("visits")  # the client below the models


@contextmanager
def opened(url: str, *, retries: bool = False) -> Iterator[Any]:
    options = {} if retries else {"retry": Retry(NoBackoff(), 0)}
    with redis.Redis.from_url(url, decode_responses=True, **options) as client:
        for each in (Stored, Book, Viewed):
            each._meta.database = client
        yield client


def session_key(token: str) -> str:
    return f"shop:session:{token}"


def books_key(author: str) -> str:
    return f"shop:author:{author}:books"
