"""1,000 typed hashes: Record.get_many against redis-om's HashModel, which reads one at a time.

redis-om 1.2 reads by primary key with `get` only; its queries need the search module.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import redis
from redis_om import HashModel

from benchmarks.measuring import Contest, Result, blocking
from benchmarks.workload import MeetingRecord, identities, meetings
from keywright import connect, gather_list
from keywright.testing import RedisServer

RECORDS = 1_000
EXECUTIONS = 3
TARGET = 5.0

IDS = identities(RECORDS)
MEETINGS = list(zip(IDS, meetings(RECORDS), strict=True))


def measure(server: RedisServer) -> Iterator[Result]:
    url = server.url
    with connect(url) as db, redis.Redis.from_url(url, decode_responses=True) as client:
        model = _model(client)
        db.run(gather_list([MeetingRecord(each).put(meeting) for each, meeting in MEETINGS]))
        model.add([_instance(model, each, meeting) for each, meeting in MEETINGS])

        def ours() -> list[Any]:
            return db.run(MeetingRecord.get_many(IDS))

        def theirs() -> list[Any]:
            return [model.get(each) for each in IDS]

        assert [meeting.link for meeting in ours()] == [meeting.link for meeting in theirs()]
        yield Contest(
            "records",
            "sync get_many",
            blocking(ours, EXECUTIONS),
            "redis-om HashModel.get each",
            blocking(theirs, EXECUTIONS),
        ).throughput(RECORDS, at_least=TARGET)


def _model(client: redis.Redis) -> Any:
    class MeetingModel(HashModel, index=True):  # type: ignore[call-arg,misc]  # redis_om has no types here
        name: str
        time: datetime
        link: str
        urlname: str
        attending: int

        class Meta:
            database = client
            global_key_prefix = "redis-om"

    return MeetingModel


def _instance(model: Any, identity: str, meeting: Any) -> Any:
    return model(
        pk=identity,
        name=meeting.name,
        time=meeting.time,
        link=meeting.link,
        urlname=meeting.urlname,
        attending=meeting.attending,
    )
