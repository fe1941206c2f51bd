"""Every row of what twelve foreign keyspaces needed and a declaration could not say.

Each case writes raw data as the foreign program does. It is declared, proved, and audited with every key
matched and no finding; then one deviation is written, which the audit finds.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import pickle
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal, NamedTuple
from uuid import UUID

import attrs
import msgspec
import pydantic
import pytest
import redis
import redis.asyncio

from invoking import invoke_keywright
from keywright import (
    U64,
    BitFields,
    Bitmap,
    Bits,
    Bytes,
    Channel,
    Counter,
    Effect,
    EmptyAsNone,
    EpochFloat,
    EpochSeconds,
    Except,
    FirstOf,
    Geo,
    Gzip,
    Hex,
    HyperLogLog,
    Id,
    Int64,
    Json,
    Key,
    Keyspace,
    Map,
    OtherFields,
    Pattern,
    Pickled,
    Plain,
    Record,
    Segment,
    Set,
    SortedSet,
    Stream,
    Ulid,
    Value,
    Zlib,
    aconnect,
    check,
    connect,
    expires_at,
    expires_in,
    may_expire,
    raw,
)
from keywright.errors import KeywrightError, UsageError
from keywright.tools import Model, audit_database
from keywright.tools.audit import AuditReport

Command = tuple[Any, ...]
UUID_TEXT = "f81d4fae-7dec-41d0-a765-00a0c91e6bf6"
HOUR = 3600


class Case(NamedTuple):
    """Key classes, commands that write keys as declared, and one that does not; the code of its finding."""

    about: str
    classes: tuple[type[Key], ...]
    sound: tuple[Command, ...]
    deviation: Command
    code: str


def space(name: str) -> Keyspace:
    return Keyspace(name, "One row of the table.")


# Names

controls = space("controls")


class Urgent(Set[str], key=r"celery\x06\x163", space=controls):
    """A priority queue of kombu."""


braces = space("braces")


class Waiting(Set[str], key="bull:<queue>:wait", space=braces):
    """Jobs of a queue of BullMQ; {video} is its name, not a hash tag."""

    queue: Annotated[str, Segment()]


binary = space("binary")


class Blob(Value[bytes], key="blob:<id>", space=binary):
    """A value under bytes that are not UTF-8."""

    id: Annotated[bytes, Bytes(b":")]


spaces = space("spaces")


class QueueOf(Set[str], key="saq:<queue>:jobs", space=spaces):
    """Jobs of a queue whose name has spaces."""

    queue: Annotated[str, Segment()]


fallback = space("fallback")


class CacheVersion(Counter, key="version", space=fallback):
    """A key that says more."""


class Cached(
    Value[Annotated[int | bytes, FirstOf(Int64(), Pickled())]], key="<name>", space=fallback, fallback=True
):
    """Any other text, as in Django's cache."""

    name: Annotated[str, Segment("")]


precedence = space("precedence")


class Meta(Map[str, str], key="bull:<queue>:meta", space=precedence):
    """Facts of a queue."""

    queue: Id


class Job(Map[str, str], key="bull:<queue>:<job>", space=precedence, yields_to=Meta):
    """A job, whose id stands where `meta` stands."""

    queue: Id
    job: Id


exclusions = space("exclusions")


class NamedJob(Value[str], key="job:<job>", space=exclusions):
    """A job that begins with a letter and is none of these words."""

    job: Annotated[str, Except(Pattern("[a-z][a-z0-9]*"), "wait", "paused")]


optional = space("optional")


class Report(Value[str], key="report:<day>[:<part>]", space=optional):
    """A report; a large one has parts."""

    day: date
    part: int | None = None


typed = space("typed")


class ByUuid(Value[str], key="uuid:<id>", space=typed):
    """By UUID."""

    id: UUID


class ByUlid(Value[str], key="ulid:<id>", space=typed):
    """By ULID."""

    id: Annotated[str, Ulid()]


class ByDay(Value[str], key="day:<day>", space=typed):
    """By day."""

    day: date


class ByPrice(Value[str], key="price:<price>", space=typed):
    """By decimal number."""

    price: Decimal


class ByDigest(Value[str], key="digest:<digest>", space=typed):
    """By upper-case hex digits."""

    digest: Annotated[str, Hex(8, upper=True)]


class ByRegion(Value[str], key="region:<region>", space=typed):
    """By a regular expression."""

    region: Annotated[str, Pattern("[a-z]{2}-[0-9]+")]


TYPED = (ByUuid, ByUlid, ByDay, ByPrice, ByDigest, ByRegion)
TYPED_SOUND = (
    ("SET", f"uuid:{UUID_TEXT}", "x"),
    ("SET", "ulid:01ARZ3NDEKTSV4RRFFQ69G5FAV", "x"),
    ("SET", "day:2026-11-16", "x"),
    ("SET", "price:-12.50", "x"),
    ("SET", "digest:DEADBEEF", "x"),
    ("SET", "region:eu-17", "x"),
)

NAMES = [
    Case(
        "control characters",
        (Urgent,),
        (("SADD", "celery\x06\x163", "a"),),
        ("SADD", "celery\x06\x164", "a"),
        "KW101",
    ),
    Case(
        "braces",
        (Waiting,),
        (("SADD", "bull:{video}:wait", "1"), ("SADD", "bull:mail:wait", "1")),
        ("SADD", "bull:{video}:x:wait", "1"),
        "KW101",
    ),
    Case(
        "bytes that are not UTF-8",
        (Blob,),
        (("SET", b"blob:\xff\xfe", "x"), ("SET", b"blob:\x00", "x")),
        ("SET", b"blob:\xff:\xfe", "x"),
        "KW101",
    ),
    Case(
        "spaces inside a name",
        (QueueOf,),
        (("SADD", "saq:my own queue:jobs", "a"),),
        ("SADD", "saq:my:own:jobs", "a"),
        "KW101",
    ),
    Case(
        "a fallback",
        (CacheVersion, Cached),
        (("SET", "version", "1"), ("SET", ":1:any text", "5"), ("SET", "a/b", pickle.dumps([1]))),
        ("SET", "version", "one"),
        "KW202",
    ),
    Case(
        "precedence",
        (Meta, Job),
        (("HSET", "bull:q:meta", "a", "1"), ("HSET", "bull:q:17", "name", "x")),
        ("SET", "bull:q:meta", "x"),
        "KW201",
    ),
    Case(
        "exclusions",
        (NamedJob,),
        (("SET", "job:a1", "x"), ("SET", "job:waiting", "x")),
        ("SET", "job:wait", "x"),
        "KW101",
    ),
    Case("begins with a letter", (NamedJob,), (("SET", "job:a1", "x"),), ("SET", "job:1a", "x"), "KW101"),
    Case(
        "optional segments",
        (Report,),
        (("SET", "report:2026-11-16", "x"), ("SET", "report:2026-11-16:2", "x")),
        ("SET", "report:2026-11-16:", "x"),
        "KW101",
    ),
    *(
        Case(about, TYPED, TYPED_SOUND, ("SET", name, "x"), "KW101")
        for about, name in {
            "UUID": "uuid:f81d4fae7dec41d0a76500a0c91e6bf6",
            "ULID": "ulid:01ARZ3NDEKTSV4RRFFQ69G5FAU8",
            "date": "day:2026-02-30",
            "decimal": "price:12,50",
            "upper-case hex": "digest:deadbeef",
            "regular expression": "region:EU-17",
        }.items()
    ),
]

# Values

scores = space("scores")


class Scheduled(SortedSet[Id, Annotated[datetime | None, EpochSeconds]], key="rq:scheduled", space=scores):
    """When jobs run, in seconds; `inf` is never."""


members = space("members")


class RqJob(msgspec.Struct):
    """Fields of a job of RQ."""

    created: datetime
    ended: Annotated[datetime | None, EmptyAsNone]


class RqJobOf(Record[RqJob], key="rq:job:<job>", space=members):
    """A job, whose missing times are empty strings."""

    job: Id


floats = space("floats")


class Person(msgspec.Struct):
    """Fields of a hash of redis-om."""

    born: Annotated[datetime, EpochFloat]


class PersonOf(Record[Person], key="person:<person>", space=floats):
    """A person, with a date in float seconds."""

    person: Id


classes = space("classes")


class Animal(pydantic.BaseModel):
    """A model of Pydantic."""

    legs: int = pydantic.Field(ge=0)


@attrs.define
class Plant:
    """A class of attrs."""

    height: int


@dataclass
class Stone:
    """A dataclass."""

    weight: float


class AnimalOf(Value[Animal], key="animal:<id>", space=classes):
    """As JSON."""

    id: Id


class PlantOf(Record[Plant], key="plant:<id>", space=classes):
    """As a hash."""

    id: Id


class StoneOf(Value[Stone], key="stone:<id>", space=classes):
    """As JSON."""

    id: Id


CLASSES = (AnimalOf, PlantOf, StoneOf)
CLASSES_SOUND = (
    ("SET", "animal:a", '{"legs": 4}'),
    ("HSET", "plant:a", "height", "5"),
    ("SET", "stone:a", '{"weight": 1.5}'),
)

plain = space("plain")


class Rental(msgspec.Struct):
    """Fields without a codec of their own."""

    bike: UUID
    day: date
    price: Decimal
    limit: timedelta


class RentalOf(Record[Rental], key="rental:<id>", space=plain):
    """A rental."""

    id: Id


RENTAL = {"bike": UUID_TEXT, "day": "2026-11-16", "price": "12.50", "limit": "90"}


def rental(**changed: str) -> Command:
    fields = {**RENTAL, **changed}
    return ("HSET", "rental:a", *(word for pair in fields.items() for word in pair))


streams = space("streams")


class Event(msgspec.Struct):
    """Fields of an event of BullMQ, and others that depend on it."""

    event: str
    others: Annotated[dict[str, str], OtherFields] = {}


class Events(Stream[Event], key="bull:<queue>:events", space=streams):
    """Events of a queue."""

    queue: Id


mixed = space("mixed")


class State(msgspec.Struct):
    """A fixed field, and one for each step."""

    status: str
    steps: Annotated[dict[Id, int], OtherFields] = {}


class StateOf(Record[State], key="state:<job>", space=mixed):
    """The state of a job."""

    job: Id


unions = space("unions")


class Entry(Value[Annotated[int | bytes, FirstOf(Int64(), Pickled())]], key=":1:<name>", space=unions):
    """An integer, or a pickle, as django-redis stores them."""

    name: Id


compressed = space("compressed")


class Page(Value[Annotated[list[int], Json, Zlib]], key="page:<id>", space=compressed):
    """JSON, compressed if it is long."""

    id: Id


class Archive(
    Value[Annotated[list[int], Gzip(Json(list[int]), min_size=0)]], key="archive:<id>", space=compressed
):
    """JSON, always compressed."""

    id: Id


grouped = space("grouped")


class Tasks(Stream[Event], key="taskiq:<queue>", space=grouped, groups=("taskiq",)):
    """Tasks, which a consumer group reads."""

    queue: Id


VALUES = [
    Case(
        "epoch seconds as a score",
        (Scheduled,),
        (("ZADD", "rq:scheduled", "1794830400", "a", "inf", "b"),),
        ("ZADD", "rq:scheduled", "1e300", "c"),
        "KW202",
    ),
    Case(
        "'' as None",
        (RqJobOf,),
        (("HSET", "rq:job:a", "created", "2026-11-16T12:00:00.123456Z", "ended", ""),),
        ("HSET", "rq:job:a", "created", ""),
        "KW202",
    ),
    Case(
        "float seconds",
        (PersonOf,),
        (("HSET", "person:a", "born", "631152000.25"),),
        ("HSET", "person:a", "born", "1990-01-01"),
        "KW202",
    ),
    Case("Pydantic", CLASSES, CLASSES_SOUND, ("SET", "animal:b", '{"legs": -1}'), "KW202"),
    Case("attrs", CLASSES, CLASSES_SOUND, ("HSET", "plant:b", "height", "tall"), "KW202"),
    Case("dataclass", CLASSES, CLASSES_SOUND, ("SET", "stone:b", "{}"), "KW202"),
    Case("UUID as a member", (RentalOf,), (rental(),), rental(bike="none"), "KW202"),
    Case("date as a member", (RentalOf,), (rental(),), rental(day="16.11.2026"), "KW202"),
    Case("Decimal as a member", (RentalOf,), (rental(),), rental(price="1e5"), "KW202"),
    Case("timedelta as a member", (RentalOf,), (rental(),), rental(limit="soon"), "KW202"),
    Case(
        "a stream with changing fields",
        (Events,),
        (
            ("XADD", "bull:q:events", "*", "event", "added", "jobId", "1"),
            ("XADD", "bull:q:events", "*", "event", "drained"),
        ),
        ("XADD", "bull:q:events", "*", "jobId", "1"),
        "KW203",
    ),
    Case(
        "fixed and dynamic fields",
        (StateOf,),
        (("HSET", "state:a", "status", "ok", "fetch", "3", "parse", "4"),),
        ("HSET", "state:a", "parse", "slow"),
        "KW202",
    ),
    Case(
        "integer or pickle",
        (Entry,),
        (("SET", ":1:a", "5"), ("SET", ":1:b", pickle.dumps({"a": 1}))),
        ("SET", ":1:c", "text"),
        "KW202",
    ),
    Case(
        "zlib or JSON",
        (Page, Archive),
        (
            ("SET", "page:a", "[1]"),
            ("SET", "page:b", zlib.compress(json.dumps([7] * 200).encode())),
            ("SET", "archive:a", gzip.compress(b"[1]")),
        ),
        ("SET", "archive:b", "[1]"),
        "KW202",
    ),
    Case(
        "the groups of a stream",
        (Tasks,),
        (
            ("XGROUP", "CREATE", "taskiq:q", "taskiq", "0", "MKSTREAM"),
            ("XADD", "taskiq:q", "*", "event", "x"),
        ),
        ("XADD", "taskiq:q", "*", "other", "x"),
        "KW203",
    ),
]

# Expiry

some = space("some")


class Result(Value[str], key="result:<id>", space=some, expiry=may_expire(within=timedelta(hours=1))):
    """Some results expire."""

    id: Id


first = space("first")


class Attempts(
    Counter, key="attempts:<user>", space=first, expiry=expires_in(timedelta(hours=1), since="first write")
):
    """Attempts since the first one."""

    user: Id


computed = space("computed")
SECONDS = {"minute": 60, "hour": HOUR}


class Hits(
    Counter,
    key="LIMITS:LIMITER/<user>/<most>/<count>/<unit>",
    space=computed,
    expiry=expires_in(lambda key: timedelta(seconds=key.count * SECONDS[key.unit]), since="first write"),
):
    """Calls in a window, whose length is in the name."""

    user: Id
    most: U64
    count: U64
    unit: Literal["minute", "hour"]


from_value = space("from_value")


class Offer(msgspec.Struct):
    """A text and its end."""

    text: str
    until: datetime


class OfferOf(Value[Offer], key="offer:<id>", space=from_value, expiry=expires_at(lambda offer: offer.until)):
    """An offer, which ends when it says."""

    id: Id


OFFER = json.dumps({"text": "half price", "until": "2100-01-01T00:00:00Z"})
END = int(datetime(2100, 1, 1, tzinfo=UTC).timestamp())

EXPIRY = [
    Case(
        "some keys expire",
        (Result,),
        (("SET", "result:a", "x"), ("SET", "result:b", "x", "EX", HOUR)),
        ("SET", "result:c", "x", "EX", 2 * HOUR),
        "KW302",
    ),
    Case(
        "from the first write",
        (Attempts,),
        (("SET", "attempts:a", "1", "EX", HOUR - 5), ("INCR", "attempts:a")),
        ("SET", "attempts:b", "1"),
        "KW301",
    ),
    Case(
        "from the variables of the key",
        (Hits,),
        (
            ("SET", "LIMITS:LIMITER/ann/9/2/hour", "1", "EX", 2 * HOUR),
            ("SET", "LIMITS:LIMITER/ann/9/1/minute", "1", "EX", 60),
        ),
        ("SET", "LIMITS:LIMITER/ann/9/2/minute", "1", "EX", HOUR),
        "KW302",
    ),
    Case(
        "from the value",
        (OfferOf,),
        (("SET", "offer:a", OFFER, "EXAT", END),),
        ("SET", "offer:b", OFFER),
        "KW301",
    ),
]

# Types

types = space("types")


class Visitors(HyperLogLog[str], key="visitors:<day>", space=types):
    """Distinct visitors."""

    day: Id


class Seats(Bitmap, key="seats:<hall>", space=types, bits=500):
    """Taken seats."""

    hall: Id


class Levels(msgspec.Struct):
    """Numbers in bits."""

    humidity: Annotated[int, Bits(7)]
    celsius: Annotated[int, Bits(8, signed=True)]


class Climate(BitFields[Levels], key="climate:<room>", space=types):
    """The climate of a room."""

    room: Id


class Shops(Geo[str], key="shops", space=types):
    """Where shops are."""


TYPES_OF_KEYS = (Visitors, Seats, Climate, Shops)
TYPES_SOUND = (
    ("PFADD", "visitors:mon", "ann", "ben"),
    ("SETBIT", "seats:blue", "7", "1"),
    ("BITFIELD", "climate:a", "SET", "u7", "0", "95", "SET", "i8", "7", "-4"),
    ("GEOADD", "shops", "13.361389", "38.115556", "palermo"),
)
TYPES = [
    Case("HyperLogLog", TYPES_OF_KEYS, TYPES_SOUND, ("SET", "visitors:tue", "HYLL or not"), "KW202"),
    Case("bitmap", TYPES_OF_KEYS, TYPES_SOUND, ("SETBIT", "seats:red", "600", "1"), "KW202"),
    Case("bit fields", TYPES_OF_KEYS, TYPES_SOUND, ("SET", "climate:b", "much too long"), "KW202"),
    Case("geo", TYPES_OF_KEYS, TYPES_SOUND, ("ZADD", "shops", "-5.5", "nowhere"), "KW202"),
]

CASES = [*NAMES, *VALUES, *EXPIRY, *TYPES]


@pytest.fixture
def foreign(redis_url: str) -> Iterator[redis.Redis]:
    """Return a client as the foreign program has it, on an empty server."""
    with redis.Redis.from_url(redis_url) as client:
        yield client


def audited(url: str, *spaces: Keyspace, **options: Any) -> AuditReport:
    async def run() -> AuditReport:
        async with aconnect(url, **options) as db:
            return await audit_database(db, Model("expressions", spaces))

    return asyncio.run(run())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.about)
def test_a_row_is_declared_proved_and_audited(case: Case, redis_url: str, foreign: Any) -> None:
    declared = case.classes[0].declaration.space
    assert set(case.classes) == set(declared)
    assert [finding for finding in check(declared) if finding.severity == "error"] == []
    for command in case.sound:
        foreign.execute_command(*command)
    report = audited(redis_url, declared)
    assert (report.counts, report.tally.outside) == ({}, 0)
    assert sum(row.keys for row in report.rows) == report.keys == foreign.dbsize() > 0
    assert {row.template for row in report.rows if row.keys} == {
        kind.declaration.template.source for kind in case.classes
    }
    foreign.execute_command(*case.deviation)
    assert audited(redis_url, declared).counts == {case.code: 1}


def test_the_groups_of_a_stream_are_declared_and_read(redis_url: str, foreign: redis.Redis) -> None:
    foreign.xgroup_create("taskiq:q", "taskiq", "0", mkstream=True)
    foreign.xadd("taskiq:q", {"event": "x"})
    foreign.xreadgroup("taskiq", "worker", {"taskiq:q": ">"})
    with connect(redis_url) as db:
        state = db.run(Tasks("q").group_state("taskiq"))
        assert state is not None
        assert state.pending == 1
        with pytest.raises(KeywrightError, match="stranger"):
            db.run(Tasks("q").consume("stranger", "worker"))


class TaskEvents(Channel[bytes], channel="task:<task>:events", space=types):
    """Events of a task."""

    task: Annotated[str, Plain()]


@pytest.mark.anyio
async def test_messages_of_another_program_are_received(redis_url: str, foreign: redis.Redis) -> None:
    async with aconnect(redis_url) as db, db.subscribe(TaskEvents.matching()) as messages:
        foreign.publish("task:7:progress", b"of another template")
        foreign.publish("task:7:events", b"done")
        assert await anext(messages) == (TaskEvents("7"), b"done")


def test_a_raw_command_is_typed_and_uses_the_names_of_keys(redis_url: str, foreign: redis.Redis) -> None:
    foreign.set("seats:blue", b"\xff")
    with connect(redis_url) as db:
        counted = raw(b"BITCOUNT", Seats("blue"), as_type=int, effect=Effect.READ)
        assert db.run(counted) == 8
        with pytest.raises(UsageError, match="does not have the form of as_type"):
            db.run(raw(b"BITCOUNT", Seats("blue"), as_type=list[int], effect=Effect.READ))


def test_keyspaces_that_name_their_databases_are_audited_in_one_run(
    redis_url: str,
) -> None:
    for number, value in ((0, b"ann"), (2, b"5")):
        with redis.Redis.from_url(f"{redis_url}?db={number}") as client:
            client.set("user:a", value, ex=600 if number else None)
    arguments = ("audit", "numbered_spaces:people,numbered_spaces:pages", "--url", redis_url)
    done = invoke_keywright(*arguments, "--format", "json")
    assert (done.exit_code, json.loads(done.stdout)["counts"]) == (0, {})
    with redis.Redis.from_url(f"{redis_url}?db=0") as client:
        client.rename("user:a", "person:a")
    found = json.loads(invoke_keywright(*arguments, "--format", "json").stdout)
    assert [part["counts"] for part in found["databases"]] == [{"KW101": 1}, {}]


@pytest.mark.parametrize("existing", [redis.Redis, redis.asyncio.Redis, redis.ConnectionPool])
@pytest.mark.parametrize("protocol", [2, 3])
def test_an_existing_client_or_pool_is_used_with_any_option(
    existing: Any, protocol: int, redis_url: str, foreign: redis.Redis
) -> None:
    foreign.zadd("rq:scheduled", {"a": 1794830400})
    client = existing.from_url(redis_url, protocol=protocol, client_name="foreign")
    with connect(client, socket_connect_timeout=3) as db:
        assert db.run(Scheduled().range()) == [("a", datetime(2026, 11, 16, 12, tzinfo=UTC))]
        assert "name=foreign" in db.run(raw(b"CLIENT", b"LIST", as_type=str, effect=Effect.READ))
    with pytest.raises(UsageError, match="socket_timeout must be a number"):
        connect(client, socket_timeout=-1)
