"""The tasks with redis-py."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from urllib.parse import unquote, urlsplit

import redis
from redis.backoff import NoBackoff
from redis.client import Pipeline
from redis.retry import Retry

from benchmarks.peers.program import EXPIRY_SECONDS, Session

PACKAGES = ("redis",)


def fields(session: Session) -> dict[str, str | int]:
    return {"user": session.user, "seen": session.seen.isoformat(), "visits": session.visits}


def parsed(stored: Mapping[str, str]) -> Session:
    return Session(stored["user"], datetime.fromisoformat(stored["seen"]), int(stored["visits"]))


def save(db: redis.Redis, token: str, session: Session) -> None:
    with db.pipeline(transaction=True) as pipe:
        pipe.hset(f"session:{token}", mapping=fields(session))
        pipe.expire(f"session:{token}", EXPIRY_SECONDS)
        pipe.execute()


def load(db: redis.Redis, token: str) -> Session | None:
    stored = db.hgetall(f"session:{token}")
    return parsed(stored) if stored else None


def assign(db: redis.Redis, book: str, author: str) -> None:
    def change(pipe: Pipeline) -> None:
        before = pipe.get(f"book:{book}:author")
        pipe.multi()
        if before:
            pipe.srem(f"author:{before}:books", book)
        pipe.set(f"book:{book}:author", author)
        pipe.sadd(f"author:{author}:books", book)

    db.transaction(change, f"book:{book}:author")  # WATCH, and again if another writer was faster


def author_of(db: redis.Redis, book: str) -> str | None:
    return db.get(f"book:{book}:author")


def books_of(db: redis.Redis, author: str) -> set[str]:
    return db.smembers(f"author:{author}:books")


def save_many(db: redis.Redis, sessions: Mapping[str, Session]) -> None:
    with db.pipeline(transaction=True) as pipe:
        for token, session in sessions.items():
            pipe.hset(f"session:{token}", mapping=fields(session))
            pipe.expire(f"session:{token}", EXPIRY_SECONDS)
        pipe.execute()


def load_many(db: redis.Redis, tokens: Iterable[str]) -> list[Session]:
    with db.pipeline(transaction=False) as pipe:
        for token in tokens:
            pipe.hgetall(f"session:{token}")
        return [parsed(stored) for stored in pipe.execute() if stored]


def views_of(db: redis.Redis, token: str) -> int | None:
    views, visits = db.hmget(f"session:{token}", "views", "visits")  # until all old sessions have expired
    found = views if views is not None else visits
    return None if found is None else int(found)


def faulty(db: redis.Redis, url: str) -> set[str]:
    found = set()
    for name in db.scan_iter(count=1000):
        family, _, rest = name.partition(":")
        if family == "session":
            if db.type(name) != "hash" or db.ttl(name) == -1:
                found.add(name)
                continue
            try:
                parsed(db.hgetall(name))
            except (KeyError, ValueError):
                found.add(name)
        elif family == "book" and rest.endswith(":author"):
            if not db.sismember(f"author:{db.get(name)}:books", rest.removesuffix(":author")):
                found.add(name)
        elif family == "author" and rest.endswith(":books"):
            author = rest.removesuffix(":books")
            if any(db.get(f"book:{book}:author") != author for book in db.smembers(name)):
                found.add(name)
        else:
            found.add(name)
    return found


def count(db: redis.Redis) -> None:
    db.incr("visits")


def opened(url: str, *, retries: bool = False) -> redis.Redis:
    if not retries:
        return redis.Redis.from_url(url, decode_responses=True, retry=Retry(NoBackoff(), 0))
    address = urlsplit(url)  # by URL it would have no retries: those are a default of the constructor
    return redis.Redis(
        address.hostname, address.port, password=unquote(address.password or ""), decode_responses=True
    )


def session_key(token: str) -> str:
    return f"session:{token}"


def books_key(author: str) -> str:
    return f"author:{author}:books"
