"""Sessions of generated traffic with the disturbances of real ones, for the model tests of both layouts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import cycle
from typing import Any, NamedTuple

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from keywright import Call
from keywright_discord.event_cache import EventCache, Refused
from keywright_discord.traffic import EVERYDAY, Traffic

MALFORMED = (
    ("MESSAGE_CREATE", b'{"id": "1"}'),
    ("GUILD_CREATE", b"[]"),
    ("GUILD_MEMBER_ADD", b'{"guild_id": "1", "user": {"id": "x"}}'),
    ("READY", b'{"user": {"id": "1", "username": "b"}, "guilds": [], "shard": [3, 2]}'),
    ("TYPING_START", b'{"guild_id": '),
)


class Disturbance(NamedTuple):
    """A disturbance after an event: repeated events, or another one."""

    at: int
    what: str
    size: int


class Session(NamedTuple):
    """The traffic of a session: chosen by a seed, disturbed, and applied in batches."""

    seed: int
    length: int
    often: frozenset[str]
    disturbances: tuple[Disturbance, ...]
    windows: tuple[int, ...]

    def events(self) -> Iterator[tuple[str, Any]]:
        """Yield dispatches, decoded; malformed ones are bytes."""
        mix = {name: 40.0 if name in self.often else 1.0 for name in EVERYDAY}
        traffic = Traffic(self.seed)
        past: list[tuple[str, Any]] = []
        for place, (event, data) in enumerate(traffic.events(self.length, members=5, mix=mix)):
            past.append((event, json.loads(json.dumps(data))))
            yield past[-1]
            for disturbance in self.disturbances:
                if disturbance.at == place:
                    yield from _disturbed(disturbance, past, traffic)


def _disturbed(
    disturbance: Disturbance, past: list[tuple[str, Any]], traffic: Traffic
) -> Iterator[tuple[str, Any]]:
    size = disturbance.size
    match disturbance.what:
        case "repeat":
            yield past[-1]
        case "replay":
            yield from past[-size:]
        case "late":
            yield past[-size % len(past)]
        case "stale":
            yield from [each for each in past if each[0] == "GUILD_CREATE"][:size]
        case "restart":
            kept = [{"id": guild} for guild in traffic.guilds if int(guild) % 3]
            yield "READY", {**traffic.ready((size % 3, 3)), "guilds": kept}
        case _:
            yield MALFORMED[size % len(MALFORMED)]


DISTURBANCES = st.builds(
    Disturbance,
    st.integers(0, 100),
    st.sampled_from(["stale", "repeat", "replay", "late", "restart", "malformed"]),
    st.integers(1, 60),
)
SESSIONS = st.builds(
    Session,
    st.integers(0, 2**32),
    st.integers(1, 120),
    st.frozensets(st.sampled_from(sorted(EVERYDAY)), max_size=12),
    st.tuples(DISTURBANCES, DISTURBANCES, DISTURBANCES),
    st.tuples(st.integers(1, 8), st.integers(1, 60)),
)
BOUNDED = settings(deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))


def encoded(events: list[tuple[str, Any]]) -> list[tuple[str, bytes]]:
    return [
        (event, data if isinstance(data, bytes) else json.dumps(data, separators=(",", ":")).encode())
        for event, data in events
    ]


def malformed(events: list[tuple[str, Any]]) -> int:
    """Return how many events must be refused."""
    return sum(isinstance(data, bytes) for _, data in events)


def leaving(events: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """Return the events of leaving every guild that some events have named."""
    named: set[str] = set()
    for event, data in events:
        if event == "GUILD_CREATE" and isinstance(data, dict):
            named.add(data["id"])
        elif event == "READY" and isinstance(data, dict):
            named.update(each["id"] for each in data["guilds"])
    return [("GUILD_DELETE", {"id": guild}) for guild in sorted(named)]


def apply(
    run: Callable[[Call[list[Refused]]], list[Refused]],
    cache: EventCache[Any],
    events: list[tuple[str, bytes]],
    windows: tuple[int, ...],
) -> int:
    """Apply events in batches. Return how many were refused."""
    sizes, start, refused = cycle(windows), 0, 0
    while start < len(events):
        size = next(sizes)
        refused += len(run(cache.apply(events[start : start + size])))
        start += size
    return refused
