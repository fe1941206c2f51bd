"""Sessions of generated traffic with the disturbances of real ones, for the model tests of both layouts."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from itertools import cycle
from typing import Any, NamedTuple

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from keywright import Call, aconnect
from keywright.tools import Model, audit_database
from keywright_discord.changes import Change
from keywright_discord.drc import rest
from keywright_discord.event_cache import EventCache
from keywright_discord.traffic import EVERYDAY, Traffic
from keywright_discord.traffic.world import Home

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
    guild = traffic.guilds[size % len(traffic.guilds)] if traffic.guilds else None
    home = None if guild is None else traffic.world.homes.get(guild)
    match disturbance.what:
        case "downtime":
            yield from after_downtime(traffic, size)
        case "chunks" if home is not None and home.available:
            yield from chunks(home, size)
        case "webhook" if home is not None and home.available:
            yield "STORE_WEBHOOK", _copied(webhook(home, size))
        case "fetch" if home is not None and home.available:
            listed = [webhook(home, each) for each in range(size, size + size % 3)]
            yield "STORE_WEBHOOKS", _copied({"guild_id": home.id, "webhooks": listed})
        case "elsewhere":
            yield "INTERACTION_CREATE", _copied(interaction_elsewhere(traffic, size))
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


def after_downtime(traffic: Traffic, missed: int) -> Iterator[tuple[str, Any]]:
    """Let the world change unseen, then begin a new session; some guilds list only who speaks."""
    for _ in traffic.events(missed, members=5):
        pass
    yield "READY", _copied(traffic.ready())
    for home in traffic.world.homes.values():
        if not home.available:
            yield "GUILD_CREATE", {"id": home.id, "unavailable": True}
            continue
        created = home.created()
        if int(home.id) % 2:
            present = {traffic.bot, *home.voice_states.ids}
            created["members"] = [each for each in created["members"] if each["user"]["id"] in present]
            created["presences"] = [each for each in created["presences"] if each["user"]["id"] in present]
        yield "GUILD_CREATE", _copied(created)


def chunks(home: Home, size: int) -> Iterator[tuple[str, Any]]:
    """Yield the chunks of all members of a guild, or of some, with their presences or without."""
    people = home.members.ids[: None if size % 3 else 2]
    count = 1 + size % 4
    for index in range(count):
        part = people[index::count]
        chunk: dict[str, Any] = {
            "guild_id": home.id,
            "members": [home.whole_member(person) for person in part],
            "chunk_index": index,
            "chunk_count": count,
            "nonce": f"{{{size}}}",
        }
        if size % 2:
            shown = [home.presences.get(person) for person in part]
            chunk["presences"] = [each for each in shown if each is not None]
        yield "GUILD_MEMBERS_CHUNK", _copied(chunk)


def webhook(home: Home, size: int) -> dict[str, Any]:
    """Return a webhook as Discord's REST API does."""
    channel = home.channels.ids[size % len(home.channels)] if len(home.channels) else home.id
    creator = home.someone().user
    return {"id": str(size), "guild_id": home.id, "channel_id": channel, "token": "secret", "user": creator}


def interaction_elsewhere(traffic: Traffic, size: int) -> dict[str, Any]:
    """Return an interaction of an app that a user installed, in a guild that the bot is not in."""
    user = traffic.world.bot
    member = {"user": user, "roles": [], "permissions": "0"}
    data = {"name": "ask", "resolved": {"users": {"7": user | {"id": "7"}}, "members": {"7": {"roles": []}}}}
    place = {"guild_id": str(size << 22), "channel_id": "9"}
    return {"id": str(size), "type": 2, "token": "t", **place, "member": member, "data": data}


def _copied(data: Any) -> Any:
    return json.loads(json.dumps(data))


KINDS_OF_DISTURBANCE = (
    *("stale", "repeat", "replay", "late", "restart", "malformed"),
    *("downtime", "chunks", "webhook", "fetch", "elsewhere"),
)
DISTURBANCES = st.builds(
    Disturbance, st.integers(0, 100), st.sampled_from(KINDS_OF_DISTURBANCE), st.integers(1, 60)
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


STORED: dict[str, Callable[[bytes], list[Change]]] = {
    "STORE_WEBHOOK": rest.store_webhook,
    "STORE_WEBHOOKS": lambda data: rest.store_webhooks(
        json.loads(data)["guild_id"], json.loads(data)["webhooks"]
    ),
}
"""What a program stores, which no event carries."""


def encoded(events: list[tuple[str, Any]]) -> list[tuple[str, bytes]]:
    return [
        (event, data if isinstance(data, bytes) else json.dumps(data, separators=(",", ":")).encode())
        for event, data in events
    ]


def malformed(events: list[tuple[str, Any]]) -> int:
    """Return how many events must be refused."""
    return sum(isinstance(data, bytes) for _, data in events)


def findings(url: str, model: Model) -> list[str]:
    """Return what an audit of a database with the default prefix finds."""

    async def audited() -> list[str]:
        found: list[str] = []
        async with aconnect(url) as db:
            await audit_database(db, model, on_finding=lambda each: found.append(str(each)))
        return found

    return asyncio.run(audited())


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
    run: Callable[[Call[Any]], Any],
    cache: EventCache[Any],
    events: list[tuple[str, bytes]],
    windows: tuple[int, ...],
) -> int:
    """Apply events in batches. Return how many were refused."""
    sizes, start, refused = cycle(windows), 0, 0
    while start < len(events):
        size = next(sizes)
        batch: list[tuple[str, bytes]] = []
        for event, data in events[start : start + size]:
            if event in STORED:
                refused += len(run(cache.apply(batch)))
                run(cache.store(STORED[event](data)))
                batch = []
            else:
                batch.append((event, data))
        refused += len(run(cache.apply(batch)))
        start += size
    return refused
