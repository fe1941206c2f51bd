"""The state after a process died while it applied an event."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest
import redis

from keywright import Call, Context, Database, Retry, Settings, connect
from keywright.errors import KeywrightError
from keywright.operations import Reply, Rounds, Wire
from keywright.testing import Proxy
from keywright_discord.drc.schema import bind
from keywright_discord.drc.store import DrcCache

BOT = {"id": "5", "username": "bot", "avatar": None}
ALICE = {"id": "71", "username": "alice", "avatar": None}
GUILD = {
    "id": "4194304",
    "name": "Cats",
    "member_count": 1,
    "roles": [{"id": "4194304", "name": "@everyone"}],
    "channels": [{"id": "31", "type": 0, "name": "general"}],
    "members": [{"user": BOT, "roles": [], "joined_at": "2024-01-01T00:00:00+00:00"}],
}
MESSAGE = {
    "id": "900",
    "channel_id": "31",
    "guild_id": "4194304",
    "author": ALICE,
    "member": {"nick": "Al", "roles": []},
    "mentions": [],
    "content": "hello",
}
BEFORE: list[tuple[str, dict[str, Any]]] = [
    ("READY", {"user": BOT, "guilds": [{"id": "4194304", "unavailable": True}], "shard": [0, 1]}),
    ("GUILD_CREATE", GUILD),
]
EVENTS: list[tuple[str, dict[str, Any]]] = [
    ("MESSAGE_CREATE", MESSAGE),
    ("GUILD_MEMBER_ADD", {"guild_id": "4194304", "user": ALICE, "roles": [], "joined_at": "2024-02-02"}),
    ("GUILD_CREATE", {**GUILD, "name": "Dogs", "roles": [], "channels": [{"id": "32", "type": 2}]}),
    ("GUILD_DELETE", {"id": "4194304"}),
]
# One attempt: a process that dies does not retry.
MOST_COMMANDS = 24
MORTAL = Settings(retry=Retry(attempts=1))


def packets(events: list[tuple[str, dict[str, Any]]]) -> list[tuple[str, bytes]]:
    return [(event, msgspec.json.encode(data)) for event, data in events]


def snapshot(raw: Any) -> dict[bytes, object]:
    """Return every key with its value, whatever its type."""
    read: dict[bytes, Callable[[bytes], object]] = {
        b"string": raw.get,
        b"hash": raw.hgetall,
        b"set": raw.smembers,
    }
    return {name: read[raw.type(name)](name) for name in raw.scan_iter(count=1000)}


def states(raw: Any, db: Database, event: tuple[str, dict[str, Any]]) -> tuple[object, object]:
    """Return what Redis holds before and after an event."""
    raw.flushall()
    db.run(DrcCache().apply(packets(BEFORE)))
    before = snapshot(raw)
    db.run(DrcCache().apply(packets([event])))
    return before, snapshot(raw)


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event[0] + event[1].get("name", ""))
def test_an_event_is_applied_whole_or_not_at_all(
    redis_url: str, make_proxy: Callable[..., Proxy], event: tuple[str, dict[str, Any]]
) -> None:
    raw = redis.Redis.from_url(redis_url)
    with connect(redis_url, *bind("bot")) as db:
        before, after = states(raw, db, event)
        proxy = make_proxy(redis_url)
        seen = []
        for commands in range(MOST_COMMANDS):
            raw.flushall()
            db.run(DrcCache().apply(packets(BEFORE)))
            if died(proxy, commands, event):
                seen.append(snapshot(raw))
                assert seen[-1] in (before, after)
        assert before in seen
    raw.close()
    # A cut between two round trips does not count: the connection is opened again.
    assert len(seen) > 4


def died(proxy: Proxy, commands: int, event: tuple[str, dict[str, Any]]) -> bool:
    """Apply an event on a connection that is cut after some commands. Return whether it failed."""
    with connect(proxy.url, *bind("bot"), settings=MORTAL) as mortal:
        proxy.cut_after_commands(commands)
        try:
            mortal.run(DrcCache().apply(packets([event])))
        except KeywrightError:
            return True
        finally:
            proxy.heal()
    return False


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event[0] + event[1].get("name", ""))
def test_on_a_cluster_applying_an_event_again_completes_it(
    cluster_url: str, event: tuple[str, dict[str, Any]]
) -> None:
    raw = redis.RedisCluster.from_url(cluster_url)
    with connect(cluster_url, *bind("bot")) as db:
        before, after = states(raw, db, event)
        halves = 0
        for wires_sent in itertools.count(0):
            raw.flushall(target_nodes=redis.RedisCluster.PRIMARIES)
            db.run(DrcCache().apply(packets(BEFORE)))
            if not abandoned(db, event, wires_sent):
                break
            halves += snapshot(raw) not in (before, after)
            db.run(DrcCache().apply(packets([event])))
            assert snapshot(raw) == after
    raw.close()
    assert halves


class Sent(Call[list[Reply]]):
    """Wires of another call, sent as one round."""

    def __init__(self, wires: Sequence[Wire]) -> None:
        self.wires = wires

    def rounds(self, context: Context) -> Rounds[list[Reply]]:
        return (yield self.wires)


def abandoned(db: Database, event: tuple[str, dict[str, Any]], wires_sent: int) -> bool:
    """Send only the first wires of an event's last round, as a dying process does; False if all were sent."""
    rounds = DrcCache().apply(packets([event])).rounds(db.context)
    wires = next(rounds)
    while all(wire.operation.effect.name == "READ" for wire in wires):
        wires = rounds.send(db.run(Sent(wires)))
    if wires_sent >= len(wires):
        return False
    if wires_sent:
        db.run(Sent(wires[:wires_sent]))
    return True
