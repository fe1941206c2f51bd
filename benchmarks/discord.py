"""The Discord cache: a large guild, everyday events, hydration, and memory per entity.

The peers are `json` with a redis-py pipeline, and a Lua script that splits the guild on the server.
Before anything is timed, the stored data of Keywright and of the first peer is compared; cjson's differs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from time import perf_counter
from typing import Any

import hiredis
import msgspec
import redis

from benchmarks.discord_peers import PlainCache, hydrated
from benchmarks.guilds import PEER, prepacked_guild
from benchmarks.measuring import FULL, Effort, Race, Result, at_least, at_most, blocking
from benchmarks.prepacked import PREPACKED, Prepacked
from keywright import Database, connect
from keywright.testing import RedisServer
from keywright_discord.drc import bind
from keywright_discord.drc.reader import DrcReader
from keywright_discord.drc.store import DrcCache
from keywright_discord.spectacles.schema import bind as bind_spectacles
from keywright_discord.spectacles.store import SpectaclesCache
from keywright_discord.traffic import EVERYDAY, Traffic

OURS, PLAIN, LUA = "ours", "plain", "lua"
SCRIPT = Path(__file__).with_name("discord_guild.lua").read_text()
MEMBERS = 1000
EXECUTIONS = 10
ROUNDS = 21
SERVED, QUICK_SERVED = 50, 10

EVENTS = 100_000
SEGMENTS = 10
WINDOW = 200
STREAM = (
    "MESSAGE_CREATE",
    "MESSAGE_UPDATE",
    "MESSAGE_DELETE",
    "MESSAGE_REACTION_ADD",
    "MESSAGE_REACTION_REMOVE",
    "PRESENCE_UPDATE",
    "TYPING_START",
    "GUILD_MEMBER_ADD",
    "GUILD_MEMBER_UPDATE",
    "GUILD_MEMBER_REMOVE",
)
MESSAGES = 100
OURS_ALONE = (":departed:", ":super-reactions:")
BY_LUA = "Lua on the server"
TARGETS = {PEER: at_least(5), BY_LUA: at_least(1.7), PREPACKED: at_most(3)}

Event = tuple[str, bytes]
DOCUMENTS = "prepacked bytes, documents decoded"
encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder().decode


def measure(server: RedisServer, effort: Effort = FULL) -> Iterator[Result]:
    with connect(server.url, *bind(OURS)) as db, redis.Redis.from_url(server.url) as client:
        yield from _guild(db, client, server, effort)
        client.flushall()
        yield from _stream(db, client, effort)
        yield from _hydration(server.url, db, client, effort)
        client.flushall()
        yield from _memory(db, client, server)
        client.flushall()


def _guild(db: Database, client: Any, server: RedisServer, effort: Effort) -> Iterator[Result]:
    data = encode(Traffic(2).guild(MEMBERS))
    cache, plain = DrcCache(), PlainCache(client, PLAIN)
    script = client.script_load(SCRIPT)
    subject = f"GUILD_CREATE, {MEMBERS:,} members, {len(data) // 1000} KB"

    def ours() -> None:
        refused = db.run(cache.apply([("GUILD_CREATE", data)]))
        assert not refused

    def pipelined() -> None:
        plain.apply("GUILD_CREATE", data)

    def on_the_server() -> None:
        assert client.evalsha(script, 0, data, f"{LUA}:v1json:", f"{LUA}:v1json-private:") == MEMBERS

    for work in (ours, pipelined, on_the_server):
        work()
    stored = _stored(client, OURS)
    assert stored == _stored(client, PLAIN)
    assert stored.keys() == _stored(client, LUA).keys()
    line = Prepacked(server.url)
    asked, replies = prepacked_guild(client, data)
    works = {
        "keywright": ours,
        PEER: pipelined,
        BY_LUA: on_the_server,
        PREPACKED: lambda: line.send(asked, replies),
    }
    sides = {name: blocking(work, EXECUTIONS) for name, work in works.items()}
    rounds = effort.rounds(ROUNDS)
    yield from Race("discord", subject, sides, rounds, TARGETS, frozenset({PREPACKED})).throughput(1)
    line.close()
    served = effort.pick(SERVED, QUICK_SERVED)
    held = [[_held_micros(client, work, served) for _ in range(5)] for work in (ours, on_the_server)]
    busy = [[_server_seconds(server, work, served) * 1e6 for _ in range(5)] for work in (ours, on_the_server)]
    for what, (mine, theirs), target in (
        ("server held by commands", held, at_most(0.15)),
        ("CPU of the server", busy, None),
    ):
        yield Result.of("discord", f"{what}, {subject}", "microseconds", mine, BY_LUA, theirs, target)


def _held_micros(client: Any, work: Callable[[], None], served: int) -> float:
    """Return the time that the commands of one execution block the server, by INFO commandstats.

    EXEC and EVALSHA include the commands inside them, so only commands sent by the client are summed.
    """
    client.config_resetstat()
    for _ in range(served):
        work()
    counted = client.info("commandstats")
    reads = ("smembers", "smismember", "scard")
    outer = ("evalsha",) if "cmdstat_evalsha" in counted else ("multi", "exec", *reads)
    return sum(float(counted[f"cmdstat_{name}"]["usec"]) for name in outer) / served


def _server_seconds(server: RedisServer, work: Callable[[], None], served: int) -> float:
    """Return the CPU time of all threads of the server for one execution, by the kernel's scheduler."""
    before = _cpu_ns(server)
    for _ in range(served):
        work()
    return (_cpu_ns(server) - before) / served / 1e9


def _cpu_ns(server: RedisServer) -> int:
    tasks = Path(f"/proc/{server.pid}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks)


def _stream(db: Database, client: Any, effort: Effort) -> Iterator[Result]:
    cache, plain = DrcCache(), PlainCache(client, PLAIN)
    events_each = effort.pick(EVENTS, EVENTS // 10) // SEGMENTS
    opening, *segments = _segments(events_each)
    for event, data in opening:
        plain.apply(event, data)
    assert db.run(cache.apply(opening)) == []

    def ours(events: list[Event]) -> None:
        for start in range(0, len(events), WINDOW):
            assert db.run(cache.apply(events[start : start + WINDOW])) == []

    def pipelined(events: list[Event]) -> None:
        for event, data in events:
            plain.apply(event, data)

    sides: list[tuple[Callable[[list[Event]], None], list[float]]] = [(ours, []), (pipelined, [])]
    for number, events in enumerate(segments):
        for work, rates in sides if number % 2 == 0 else reversed(sides):
            start = perf_counter()
            work(events)
            rates.append(len(events) / (perf_counter() - start))
    assert _in_both(_stored(client, OURS)) == _stored(client, PLAIN)
    mine, theirs = (rates for _, rates in sides)
    subject = f"{events_each * SEGMENTS:,} events in windows of {WINDOW}"
    peer = f"{PEER}, one by one"
    yield Result.of("discord", subject, "ops_per_second", mine, peer, theirs, at_least(6))
    one_core = "20,000 events a second"
    yield Result.of("discord", subject, "ops_per_second", mine, one_core, [20_000.0], at_least(1))


def _segments(size: int) -> list[list[Event]]:
    """Return the guilds, then the stream in equal segments."""
    traffic = Traffic(3)
    mix = dict.fromkeys(EVERYDAY, 0.0) | {name: EVERYDAY[name] for name in STREAM}
    guilds = [("GUILD_CREATE", encode(traffic.guild(200))) for _ in range(10)]
    events = [(event, encode(data)) for event, data in traffic.events(size * SEGMENTS, guilds=10, mix=mix)]
    return [guilds, *(events[start : start + size] for start in range(0, len(events), size))]


def _hydration(url: str, db: Database, client: Any, effort: Effort) -> Iterator[Result]:
    """Return messages that the stream stored: in a guild, written by users, without a reply."""
    names = sorted(client.scan_iter(match=f"{PLAIN}:v1json:messages:*", count=10_000))
    found = zip(names, map(json.loads, client.mget(names)), strict=True)
    special = ("webhook_id", "interaction", "thread", "referenced_message")
    chosen = [
        name.rpartition(b":")[2].decode()
        for name, message in found
        if "guild_id" in message and not any(field in message for field in special)
    ][:MESSAGES]
    assert len(chosen) == MESSAGES
    reader = DrcReader()
    asked = [(0, message) for message in chosen]  # the key of a message has no channel

    def ours() -> list[Any]:
        return db.run(reader.messages(asked))

    def pipelined() -> list[Any]:
        return hydrated(client, PLAIN, chosen)

    assert ours() == pipelined()
    with closing(Prepacked(url)) as line:
        sides = {
            "keywright": blocking(ours, EXECUTIONS),
            f"{PEER}s": blocking(pipelined, EXECUTIONS),
            DOCUMENTS: blocking(_documents(line, chosen), EXECUTIONS),
        }
        race = Race(
            "discord",
            f"hydrate {MESSAGES} messages",
            sides,
            effort.rounds(),
            {f"{PEER}s": at_least(4)},
            frozenset({DOCUMENTS}),
        )
        yield from race.throughput(MESSAGES)


def _documents(line: Prepacked, messages: list[str]) -> Callable[[], None]:
    """Return what reads these messages, and the users and members they name, each once, and decodes them."""

    def read(names: list[str]) -> bytes:
        command: Any = ("MGET", *names)
        data: bytes = hiredis.pack_command(command)
        return data

    first = read([f"{OURS}:v1json:messages:{message}" for message in messages])
    second: dict[str, None] = {}
    for message in map(json.loads, line.reply(first)):
        for person in (message["author"], *message["mentions"]):
            second[f"{OURS}:v1json:users:{person}"] = None
            second[f"{OURS}:v1json:members:{message['guild_id']}:{person}"] = None
    then = read(list(second))

    def documents() -> None:
        for command in (first, then):
            for document in line.reply(command):
                if document is not None:
                    decode(document)

    return documents


def _memory(db: Database, client: Any, server: RedisServer) -> Iterator[Result]:
    """Yield the MEMORY USAGE per entity of each kind, indexes included."""
    traffic = Traffic(4)
    mix = dict.fromkeys(EVERYDAY, 0.0) | {"MESSAGE_CREATE": 1.0}
    events = [("GUILD_CREATE", encode(traffic.guild(MEMBERS)))]
    events += [(event, encode(data)) for event, data in traffic.events(2000, guilds=1, mix=mix)]
    with connect(server.url, *bind_spectacles(None)) as other:
        db.run(DrcCache().apply(events))
        other.run(SpectaclesCache().apply(events))
    drc = f"{OURS}:v1json:"
    guild = traffic.guilds[0]
    for what, ours, theirs in (
        ("member", (f"{drc}members:{guild}", f"{drc}members:{guild}:*"), (f"MEMBERS:{guild}",)),
        ("user", (f"{drc}users:*",), ("USERS",)),
        ("message", (f"{drc}messages:*",), ("MESSAGES:*",)),
    ):
        sides = [
            sum(_usage(client, pattern) for pattern in patterns) / _count(client, patterns[-1])
            for patterns in (ours, theirs)
        ]
        yield Result.of(
            "discord", f"memory of a {what}, DRC", "bytes", [sides[0]], "Spectacles layout", [sides[1]]
        )


def _count(client: Any, pattern: str) -> int:
    """Count the entities under a pattern: keys, or fields if it is one hash."""
    return len(client.keys(pattern)) if "*" in pattern else client.hlen(pattern)


def _usage(client: Any, pattern: str) -> int:
    return sum(client.memory_usage(name, samples=0) for name in client.scan_iter(match=pattern, count=1000))


def _stored(client: Any, prefix: str) -> dict[str, Any]:
    """Return every key with a prefix, documents decoded."""
    names = [name.decode() for name in client.scan_iter(match=f"{prefix}:*", count=10_000)]
    pipe = client.pipeline(transaction=False)
    for name in names:
        pipe.type(name)
    kinds = pipe.execute()
    read = {b"string": pipe.get, b"hash": pipe.hgetall, b"set": pipe.smembers}
    for name, kind in zip(names, kinds, strict=True):
        read[kind](name)
    return {name[len(prefix) :]: _decoded(found) for name, found in zip(names, pipe.execute(), strict=True)}


def _in_both(stored: dict[str, Any]) -> dict[str, Any]:
    """Leave out what the peer does without: guards against late events, and which reactions are super."""
    return {name: each for name, each in stored.items() if not any(part in name for part in OURS_ALONE)}


def _decoded(found: Any) -> Any:
    if isinstance(found, bytes):
        return json.loads(found)
    if isinstance(found, dict):
        return {field: json.loads(value) for field, value in found.items()}
    return found
