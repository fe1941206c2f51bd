"""10,000 values by name: get_many against a pipeline of GETs, and against MGET by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import redis

from benchmarks.measuring import FULL, Contest, Effort, Result, blocking
from benchmarks.workload import (
    Meeting,
    MeetingJson,
    MeetingText,
    decode_meeting,
    identities,
    json_name,
    meetings,
    text_name,
    texts,
)
from keywright import connect
from keywright.testing import RedisServer

VALUES = 10_000
EXECUTIONS = 3
TARGET = 5.0

IDS = identities(VALUES)

Read = Callable[[], list[Any]]


def measure(server: RedisServer, effort: Effort = FULL) -> Iterator[Result]:
    url = server.url
    with (
        connect(url) as db,
        redis.Redis.from_url(url) as raw,
        redis.Redis.from_url(url, decode_responses=True) as text,
    ):
        db.run(MeetingJson.set_many(zip(IDS, meetings(VALUES), strict=True)))
        db.run(MeetingText.set_many(zip(IDS, texts(VALUES), strict=True)))

        def our_json() -> list[Meeting | None]:
            return db.run(MeetingJson.get_many(IDS))

        def our_text() -> list[str | None]:
            return db.run(MeetingText.get_many(IDS))

        def pipelined_json() -> list[Meeting | None]:
            with raw.pipeline(transaction=False) as pipe:
                for each in IDS:
                    pipe.get(json_name(each))
                return _decoded(pipe.execute())

        def pipelined_text() -> list[str | None]:
            with text.pipeline(transaction=False) as pipe:
                for each in IDS:
                    pipe.get(text_name(each))
                replies: list[str | None] = pipe.execute()
                return replies

        def mget_json() -> list[Meeting | None]:
            return _decoded(raw.mget([json_name(each) for each in IDS]))

        yield _contest("json", our_json, "redis-py sync pipeline", pipelined_json, TARGET, effort)
        yield _contest("text", our_text, "redis-py sync pipeline", pipelined_text, TARGET, effort)
        yield _contest("json", our_json, "redis-py MGET by hand", mget_json, None, effort)


def _contest(form: str, ours: Read, peer: str, theirs: Read, target: float | None, effort: Effort) -> Result:
    assert ours() == theirs()
    return Contest(
        "bulk",
        f"sync get_many {form}",
        blocking(ours, EXECUTIONS),
        peer,
        blocking(theirs, EXECUTIONS),
        effort.rounds(),
    ).throughput(VALUES, at_least=target)


def _decoded(replies: list[Any]) -> list[Meeting | None]:
    return [None if data is None else decode_meeting(data) for data in replies]
