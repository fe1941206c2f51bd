"""The tasks with Valkey GLIDE, its synchronous client."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from urllib.parse import urlsplit

from glide_sync import (
    Batch,
    GlideClient,
    GlideClientConfiguration,
    NodeAddress,
    ServerCredentials,
)

from benchmarks.peers.program import EXPIRY_SECONDS, Session

PACKAGES = ("valkey-glide-sync",)


def fields(session: Session) -> dict[str, str]:
    return {"user": session.user, "seen": session.seen.isoformat(), "visits": str(session.visits)}


def parsed(stored: Mapping[bytes, bytes]) -> Session:
    return Session(
        stored[b"user"].decode(),
        datetime.fromisoformat(stored[b"seen"].decode()),
        int(stored[b"visits"]),
    )


def save(db: GlideClient, token: str, session: Session) -> None:
    batch = Batch(is_atomic=True)
    batch.hset(f"session:{token}", fields(session))
    batch.expire(f"session:{token}", EXPIRY_SECONDS)
    db.exec(batch, raise_on_error=True)


def load(db: GlideClient, token: str) -> Session | None:
    stored = db.hgetall(f"session:{token}")
    return parsed(stored) if stored else None


def assign(db: GlideClient, book: str, author: str) -> None:
    while True:
        db.watch([f"book:{book}:author"])  # needs a client that no other thread uses meanwhile
        before = db.get(f"book:{book}:author")
        batch = Batch(is_atomic=True)
        if before:
            batch.srem(f"author:{before.decode()}:books", [book])
        batch.set(f"book:{book}:author", author)
        batch.sadd(f"author:{author}:books", [book])
        if db.exec(batch, raise_on_error=True) is not None:
            return


def author_of(db: GlideClient, book: str) -> str | None:
    found = db.get(f"book:{book}:author")
    return found and found.decode()


def books_of(db: GlideClient, author: str) -> set[str]:
    return {book.decode() for book in db.smembers(f"author:{author}:books")}


def save_many(db: GlideClient, sessions: Mapping[str, Session]) -> None:
    batch = Batch(is_atomic=True)
    for token, session in sessions.items():
        batch.hset(f"session:{token}", fields(session))
        batch.expire(f"session:{token}", EXPIRY_SECONDS)
    db.exec(batch, raise_on_error=True)


def load_many(db: GlideClient, tokens: Iterable[str]) -> list[Session]:
    batch = Batch(is_atomic=False)
    for token in tokens:
        batch.hgetall(f"session:{token}")
    found = db.exec(batch, raise_on_error=True)
    return [parsed(stored) for stored in found or () if stored]


def views_of(db: GlideClient, token: str) -> int | None:
    views, visits = db.hmget(f"session:{token}", ["views", "visits"])
    found = views if views is not None else visits
    return None if found is None else int(found)


faulty = None  # a loop over SCAN, as with redis-py


def count(db: GlideClient) -> None:
    db.incr("visits")


@contextmanager
def opened(url: str, *, retries: bool = False) -> Iterator[GlideClient]:
    address = urlsplit(url)
    credentials = ServerCredentials(address.password) if address.password else None
    node = NodeAddress(address.hostname or "localhost", address.port or 6379)
    client = GlideClient.create(
        GlideClientConfiguration([node], credentials=credentials, request_timeout=2000)
    )
    try:
        yield client
    finally:
        client.close()


def session_key(token: str) -> str:
    return f"session:{token}"


def books_key(author: str) -> str:
    return f"author:{author}:books"
