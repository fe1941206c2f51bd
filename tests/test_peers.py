"""The tasks of docs/compare: Keywright and redis-py do them, and a client that does not is found."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from benchmarks.peers import with_keywright, with_redis_py
from benchmarks.peers.program import EXPIRY_SECONDS, Session
from benchmarks.peers.tasks import FAULTS, facts

from keywright.testing import RedisServer

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with RedisServer(tcp=True) as server:
        yield server.tcp_url


@pytest.mark.parametrize(
    ("program", "lost_reply"),
    [(with_keywright, "1, OutcomeUnknownError"), (with_redis_py, "2, no error")],
    ids=["keywright", "redis-py"],
)
async def test_the_tasks_are_done_whenever_the_connection_is_lost(
    program: Any, lost_reply: str, url: str
) -> None:
    found = await facts(program, url)
    assert (found.same, found.related, found.renamed) == (True, True, True)
    assert EXPIRY_SECONDS - 60 < found.seconds_left <= EXPIRY_SECONDS
    assert found.cuts > 5
    assert (found.immortal, found.halves, found.races) == (0, 0, 0)
    assert found.lost_reply == lost_reply
    assert (found.found, found.false_alarms) == (FAULTS, ())


def save_in_two_steps(db: Any, token: str, session: Session) -> None:
    db.hset(f"session:{token}", mapping=with_redis_py.fields(session))
    db.expire(f"session:{token}", EXPIRY_SECONDS)


def assign_in_steps(db: Any, book: str, author: str) -> None:
    before = db.get(f"book:{book}:author")
    db.set(f"book:{book}:author", author)
    if before:
        db.srem(f"author:{before}:books", book)
    db.sadd(f"author:{author}:books", book)


def blame_one(db: Any, url: str) -> set[str]:
    return {"session:t4"}


async def test_a_client_that_writes_in_steps_is_found(url: str) -> None:
    steps = {"save": save_in_two_steps, "assign": assign_in_steps, "faulty": blame_one}
    found = await facts(SimpleNamespace(**{**vars(with_redis_py), **steps}), url)
    assert (found.immortal, found.halves) == (1, 2)
    assert (found.found, found.false_alarms) == ((), ("session:t4",))
