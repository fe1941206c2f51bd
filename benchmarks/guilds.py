"""GUILD_CREATE of 10 to 100,000 members, beside `json` with a redis-py pipeline, and the prepacked limit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import hiredis
import msgspec
import redis

from benchmarks.discord_peers import PlainCache
from benchmarks.measuring import FULL, Effort, Figure, Point, Race, blocking
from benchmarks.prepacked import PREPACKED, Prepacked
from keywright import Database, connect
from keywright.testing import RedisServer
from keywright_discord.drc import bind
from keywright_discord.drc.store import DrcCache
from keywright_discord.traffic import Traffic

SIZES = (10, 100, 1_000, 10_000, 100_000)
QUICK_SIZES = 3
MANY = 10_000
EXECUTED = 4_000
FEW_ROUNDS = 3
OURS, PLAIN = "ours", "plain"
PEER = "json + redis-py pipeline"


def measure(server: RedisServer, effort: Effort = FULL) -> Iterator[Point]:
    url = server.url
    with connect(url, *bind(OURS)) as db, redis.Redis.from_url(url) as client:
        for size in SIZES[: effort.pick(len(SIZES), QUICK_SIZES)]:
            client.flushall()
            yield from _guild(db, client, url, size, effort)
        client.flushall()


def prepacked_guild(client: Any, data: bytes) -> tuple[bytes, int]:
    """Return the packed writes of the peer for a guild, and their number."""
    recording = _Recording(client)
    PlainCache(recording, PLAIN).apply("GUILD_CREATE", data)  # type: ignore[arg-type]  # all that it calls is there
    return b"".join(recording.commands), len(recording.commands)


def _guild(db: Database, client: Any, url: str, size: int, effort: Effort) -> Iterator[Point]:
    data = msgspec.json.encode(Traffic(2).guild(size))
    cache, plain, line = DrcCache(), PlainCache(client, PLAIN), Prepacked(url)
    asked, replies = prepacked_guild(client, data)

    def ours() -> None:
        assert not db.run(cache.apply([("GUILD_CREATE", data)]))

    executions = min(50, max(1, EXECUTED // size))
    works = {
        "keywright": ours,
        PEER: lambda: plain.apply("GUILD_CREATE", data),
        PREPACKED: lambda: line.send(asked, replies),
    }
    sides = {name: blocking(work, executions) for name, work in works.items()}
    rounds = FEW_ROUNDS if size >= MANY else effort.rounds()
    for series, taken in Race("guilds", f"{size:,} members", sides, rounds).times().items():
        micros = Figure.of([seconds / size * 1e6 for seconds in taken])
        yield Point(growth="GUILD_CREATE", series=series, size=size, unit="microseconds", figure=micros)
    line.close()


class _Recording:
    """A client of redis-py whose pipelines are packed instead of sent."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.commands: list[bytes] = []

    def pipeline(self, **options: Any) -> Any:
        pipe = self._client.pipeline(**options)
        pipe.execute = lambda: self.commands.extend(
            hiredis.pack_command(tuple(arguments)) for arguments, _ in pipe.command_stack
        )
        return pipe

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)
