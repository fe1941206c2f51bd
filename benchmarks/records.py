"""1,000 typed hashes: Record.get_many against the models of redis-om and walrus, which read one at a time.

redis-om 1.2 reads by primary key with `get` only: its queries need the search module. walrus has `load`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

import redis
import walrus
from redis_om import HashModel

from benchmarks.measuring import FULL, Effort, Race, Result, Target, at_least, blocking
from benchmarks.workload import MeetingRecord, identities, meetings
from keywright import connect, gather_list
from keywright.testing import RedisServer

RECORDS = 1_000
EXECUTIONS = 3
REDIS_OM, WALRUS = "redis-om HashModel.get each", "walrus Model.load each"
TARGETS: dict[str, Target] = {REDIS_OM: at_least(5), WALRUS: at_least(5)}

IDS = identities(RECORDS)
MEETINGS = list(zip(IDS, meetings(RECORDS), strict=True))


def measure(server: RedisServer, effort: Effort = FULL) -> Iterator[Result]:
    url = server.tcp_url
    port = urlsplit(url).port
    with (
        connect(url) as db,
        redis.Redis.from_url(url, decode_responses=True) as client,
        walrus.Database("127.0.0.1", port) as database,  # type: ignore[no-untyped-call,unused-ignore]
    ):
        om, of_walrus = _redis_om(client), _walrus(database)
        db.run(gather_list([MeetingRecord(each).put(meeting) for each, meeting in MEETINGS]))
        for each, meeting in MEETINGS:
            om(pk=each, **_members(meeting)).save()
            of_walrus.create(identity=each, **_members(meeting))

        works: dict[str, Callable[[], Any]] = {
            "keywright": lambda: db.run(MeetingRecord.get_many(IDS)),
            REDIS_OM: lambda: [om.get(each) for each in IDS],
            WALRUS: lambda: [of_walrus.load(each) for each in IDS],
        }
        links = [[meeting.link for meeting in work()] for work in works.values()]
        assert links[0] == links[1] == links[2]
        sides = {name: blocking(work, EXECUTIONS) for name, work in works.items()}
        yield from Race("records", "sync get_many", sides, effort.rounds(), TARGETS).throughput(RECORDS)


def _redis_om(client: redis.Redis) -> Any:
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


def _walrus(database: Any) -> Any:
    class MeetingOfWalrus(walrus.Model):  # type: ignore[misc]  # walrus has no types
        __database__ = database
        __namespace__ = "walrus"

        identity = walrus.TextField(primary_key=True)
        name = walrus.TextField()
        time = walrus.DateTimeField()
        link = walrus.TextField()
        urlname = walrus.TextField()
        attending = walrus.IntegerField()

    return MeetingOfWalrus


def _members(meeting: Any) -> dict[str, Any]:
    return {
        "name": meeting.name,
        "time": meeting.time,
        "link": meeting.link,
        "urlname": meeting.urlname,
        "attending": meeting.attending,
    }
