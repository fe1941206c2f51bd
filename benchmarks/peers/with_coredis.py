"""The tasks with coredis, for asyncio and trio."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from datetime import datetime

import coredis
from coredis.patterns.pipeline import Pipeline
from coredis.retry import NoRetryPolicy

from benchmarks.peers.program import EXPIRY_SECONDS, Session

PACKAGES = ("coredis",)

Client = coredis.Redis[str]


def fields(session: Session) -> dict[str, str | int]:
    return {"user": session.user, "seen": session.seen.isoformat(), "visits": session.visits}


def parsed(stored: Mapping[str, str]) -> Session:
    return Session(stored["user"], datetime.fromisoformat(stored["seen"]), int(stored["visits"]))


async def save(db: Client, token: str, session: Session) -> None:
    async with db.pipeline(transaction=True) as pipe:
        pipe.hset(f"session:{token}", fields(session))
        pipe.expire(f"session:{token}", EXPIRY_SECONDS)


async def load(db: Client, token: str) -> Session | None:
    stored = await db.hgetall(f"session:{token}")
    return parsed(stored) if stored else None


async def assign(db: Client, book: str, author: str) -> None:
    async def change(pipe: Pipeline[str]) -> None:
        before = await db.get(f"book:{book}:author")
        if before:
            pipe.srem(f"author:{before}:books", [book])
        pipe.set(f"book:{book}:author", author)
        pipe.sadd(f"author:{author}:books", [book])

    await db.transaction(change, f"book:{book}:author")


async def author_of(db: Client, book: str) -> str | None:
    return await db.get(f"book:{book}:author")


async def books_of(db: Client, author: str) -> set[str]:
    return await db.smembers(f"author:{author}:books")


async def save_many(db: Client, sessions: Mapping[str, Session]) -> None:
    async with db.pipeline(transaction=True) as pipe:
        for token, session in sessions.items():
            pipe.hset(f"session:{token}", fields(session))
            pipe.expire(f"session:{token}", EXPIRY_SECONDS)


async def load_many(db: Client, tokens: Iterable[str]) -> list[Session]:
    async with db.pipeline(transaction=False) as pipe:
        found = [pipe.hgetall(f"session:{token}") for token in tokens]
    return [parsed(stored) for each in found if (stored := await each)]


async def views_of(db: Client, token: str) -> int | None:
    views, visits = await db.hmget(f"session:{token}", ["views", "visits"])
    found = views if views is not None else visits
    return None if found is None else int(found)


faulty = None  # a loop over SCAN, as with redis-py


async def count(db: Client) -> None:
    await db.incr("visits")


@asynccontextmanager
async def opened(url: str, *, retries: bool = False) -> AsyncIterator[Client]:
    options = {} if retries else {"retry_policy": NoRetryPolicy()}
    client = coredis.Redis.from_url(url, decode_responses=True, **options)
    async with client:
        yield client


def session_key(token: str) -> str:
    return f"session:{token}"


def books_key(author: str) -> str:
    return f"author:{author}:books"
