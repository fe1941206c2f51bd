"""The bot's model: 10,000 events with 100,000 RSVPs and 50,000 links, synced, synced again, audited.

The peer is redis-py as the bot used it: WATCH, read, MULTI and EXEC for each event, and one read for each
key of each event if nothing changed. The audit is compared with a lower bound: the same keys read in
redis-py pipelines, without checks.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from random import Random
from time import perf_counter

import redis

from benchmarks.measuring import FULL, Contest, Effort, Result, Sampler, blocking
from keywright import Database, RoundTrip, aconnect, connect, gather_list
from keywright.testing import RedisServer
from keywright.tools import AuditOptions, Pace, audit_database
from keywright_meetup.account_links import link
from keywright_meetup.event_sync import Synced, sync
from keywright_meetup.events import Announced
from keywright_meetup.model import meetup
from keywright_meetup.schema import EventDetails

EVENTS = 10_000
GUESTS = 10
LINKS = 50_000
ROUNDS = 3
PIECE = 1_000
READS = {"get", "get_many", "members", "has_many"}
START = datetime(2019, 8, 8, 17, 30, tzinfo=UTC)


def announcements(count: int = EVENTS) -> list[Announced]:
    """Return the events: two thirds start a series, the others join one; each has a host and ten guests."""
    random = Random(1)
    return [
        Announced(
            f"e{number}",
            EventDetails(
                f"Session {number} [{number % 7}]",
                START + timedelta(hours=number),
                f"https://meetup.example/{number}",
                "rpg",
            ),
            f"[campaign e{number - 2}]" if number % 3 == 2 else "[new adventure]",
            frozenset({number % 500}),
            frozenset(random.sample(range(LINKS), GUESTS)),
        )
        for number in range(count)
    ]


def measure(server: RedisServer, effort: Effort = FULL) -> Iterator[Result]:
    events = announcements(effort.pick(EVENTS, EVENTS // 10))
    count = len(events)
    with connect(server.url) as db, redis.Redis.from_url(server.url) as client:
        yield Contest(
            "meetup",
            "first sync, events",
            _emptied(client, lambda: _expect(db.run(sync(events)), added=count)),
            "redis-py, WATCH and MULTI an event",
            _emptied(client, lambda: _as_the_bot_did(client, events)),
            rounds=ROUNDS,
        ).throughput(count)
        client.flushall()
        db.run(sync(events))
        yield Contest(
            "meetup",
            "sync that changes nothing, events",
            blocking(lambda: _expect(db.run(sync(events)), unchanged=count), 1),
            "redis-py, a read at a time",
            blocking(lambda: _read_one_by_one(client, events), 1),
            rounds=ROUNDS,
        ).throughput(count)
        yield from _counted(server.url, events)
        _link_everyone(db, effort.pick(LINKS, LINKS // 10))
        yield Contest(
            "meetup",
            "full audit, keys",
            blocking(lambda: asyncio.run(_sound(server.url)), 1),
            "redis-py, read in pipelines, nothing compared",
            blocking(lambda: _read_everything(client), 1),
            rounds=ROUNDS,
        ).throughput(client.dbsize())


def _expect(done: Synced, added: int = 0, unchanged: int = 0) -> None:
    assert (len(done.added), done.unchanged) == (added, unchanged), done
    assert not done.failures
    assert not done.warnings


async def _sound(url: str) -> None:
    async with aconnect(url) as db:
        assert not (await audit_database(db, meetup, AuditOptions(pace=Pace(full_speed=True)))).failed


def _emptied(client: redis.Redis, work: object) -> Sampler:
    """Return a sampler of work on an empty server; emptying it is not timed."""
    assert callable(work)

    def sample() -> list[float]:
        client.flushall()
        start = perf_counter()
        work()
        return [perf_counter() - start]

    return sample


def _counted(url: str, events: list[Announced]) -> Iterator[Result]:
    """Yield the commands per event of a sync without changes, which may only read, and of one with 1 %."""
    trips: list[RoundTrip] = []

    def observe(trip: RoundTrip) -> None:
        trips.append(trip)

    with connect(url, observers=(observe,)) as db:
        db.run(sync([]))
        db.run(sync(events[:1]))
        trips.clear()
        db.run(sync(events))
        quiet = _sent(trips)
        assert {operation for _, operation in quiet} <= READS, quiet
        trips.clear()
        changed = [_without_a_guest(each) if n % 100 == 0 else each for n, each in enumerate(events)]
        assert len(db.run(sync(changed)).changed) == len(events) // 100
        busy = _sent(trips)
        db.run(sync(events))
    yield _per_event("commands an event, nothing changed", quiet.total() / len(events))
    yield _per_event("commands an event, 1 % changed", busy.total() / len(events))


def _sent(trips: list[RoundTrip]) -> Counter[tuple[str, str]]:
    return sum((trip.operations for trip in trips), Counter[tuple[str, str]]())


def _without_a_guest(event: Announced) -> Announced:
    assert event.guests
    fewer = frozenset(sorted(event.guests)[1:])
    return Announced(event.event, event.details, event.description, event.hosts, fewer)


def _per_event(subject: str, sent: float) -> Result:
    return Result.of("meetup", subject, "commands", [sent], "four reads an event", [4.0])


def _link_everyone(db: Database, links: int) -> None:
    start = perf_counter()
    for first in range(0, links, PIECE):
        db.run(gather_list(link(user, user + LINKS) for user in range(first, first + PIECE)))
    print(f"{links:,} links in {perf_counter() - start:.2f} s", file=sys.stderr)


def _as_the_bot_did(client: redis.Redis, events: list[Announced]) -> None:
    for event in events:
        name = f"meetup_event:{event.event}"
        series = f"s{event.event}" if "new" in event.description else f"s{event.description[10:-1]}"
        with client.pipeline() as pipe:
            pipe.watch(f"{name}:event_series", name, "discord_channel:0:event_series")  # type: ignore[no-untyped-call]  # as redis-py has it
            pipe.get(f"{name}:event_series")
            pipe.multi()
            pipe.sadd("meetup_events", event.event)
            pipe.sadd("event_series", series)
            pipe.sadd(f"{name}:meetup_hosts", *event.hosts)
            pipe.sadd(f"{name}:meetup_users", *(event.guests or ()))
            pipe.set(f"{name}:event_series", series)
            pipe.set(f"event_series:{series}:type", "adventure")
            pipe.sadd(f"event_series:{series}:meetup_events", event.event)
            pipe.hset(
                name,
                mapping={
                    "name": event.details.name,
                    "time": event.details.time.isoformat(),
                    "link": event.details.link,
                    "urlname": event.details.urlname,
                },
            )
            pipe.execute()


def _read_one_by_one(client: redis.Redis, events: list[Announced]) -> None:
    for event in events:
        name = f"meetup_event:{event.event}"
        client.get(f"{name}:event_series")
        client.hgetall(name)
        client.smembers(f"{name}:meetup_hosts")
        client.smembers(f"{name}:meetup_users")


def _read_everything(client: redis.Redis) -> None:
    names = list(client.scan_iter(count=1000))
    for first in range(0, len(names), PIECE):
        pipe = client.pipeline(transaction=False)
        for name in names[first : first + PIECE]:
            pipe.type(name)
        kinds = pipe.execute()
        pipe = client.pipeline(transaction=False)
        for name, kind in zip(names[first : first + PIECE], kinds, strict=True):
            {b"string": pipe.get, b"set": pipe.smembers, b"hash": pipe.hgetall}[kind](name)
        pipe.execute()
