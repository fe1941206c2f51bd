"""Any payload is applied completely or refused with a reason; nothing else happens.

A million payloads, in about two minutes; KEYWRIGHT_FUZZ=60000 tries fewer. The seeds are fixed: a failure
comes back.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import redis

from keywright import Database, connect
from keywright_discord.drc import bind
from keywright_discord.drc.store import DrcCache
from keywright_discord.event_cache import EventCache, Refused
from keywright_discord.interpreter import BotSession, interpret
from keywright_discord.raw_json import PayloadError
from keywright_discord.spectacles.schema import bind as bind_spectacles
from keywright_discord.spectacles.store import SpectaclesCache

from .hostile import Event, genuine, hostile

COUNT = int(os.environ.get("KEYWRIGHT_FUZZ", "1000000"))
STORED = COUNT // 3
WINDOW = 100
COMPARED = 40  # windows
GENUINE = genuine(seed=11, count=4000)


def test_every_payload_is_interpreted_or_refused_with_a_reason() -> None:
    refused = unchanged = 0
    for event, data in hostile(GENUINE, seed=12, count=COUNT - STORED):
        session = BotSession("5", 1, 2)
        try:
            interpret(event, data, session)
        except PayloadError as error:
            refused += bool(str(error))
            unchanged += session == BotSession("5", 1, 2)
    assert unchanged == refused > COUNT // 5


@pytest.mark.parametrize(
    ("make", "share"), [(DrcCache, 0.7), (SpectaclesCache, 0.3)], ids=["drc", "spectacles"]
)
def test_what_is_stored_is_what_the_accepted_events_alone_store(
    make: type[EventCache[Any]], share: float, redis_url: str
) -> None:
    mixed, sober = _open(redis_url, "mixed", make), _open(redis_url, "sober", make)
    with mixed, sober, redis.Redis.from_url(redis_url) as client:
        one, other = make(BotSession("5")), make(BotSession("5"))
        counted = kept = 0
        for number, window in enumerate(_windows(GENUINE[:500], round(STORED * share))):
            refused = mixed.run(one.apply(window))
            counted += len(refused)
            sober.run(other.apply(_accepted(window, refused)))
            if number % COMPARED == 0:
                assert one.session == other.session
                kept += _compared(client)
        assert counted > STORED * share / 5
        assert kept


def _open(url: str, prefix: str, make: type[EventCache[Any]]) -> Database:
    bindings = bind(prefix) if make is DrcCache else bind_spectacles(prefix)
    return connect(url, *bindings)


def _windows(first: list[Event], count: int) -> Iterator[list[Event]]:
    """Yield genuine events, so that something is stored, then hostile and genuine ones in turn."""
    yield first
    others = iter(GENUINE)
    window: list[Event] = []
    for number, event in enumerate(hostile(GENUINE, seed=13, count=count)):
        window.append(event)
        if number % 10 == 0:
            window.append(next(others, event))
        if len(window) >= WINDOW:
            yield window
            window = []
    yield window


def _accepted(window: list[Event], refused: list[Refused]) -> list[Event]:
    places = {each.place for each in refused}
    for each in refused:
        assert each.event == window[each.place][0]
        assert each.reason
    return [event for place, event in enumerate(window) if place not in places]


def _compared(client: Any) -> int:
    """Assert that both have the same keys. Return how many; read again if an invite expired meanwhile."""
    mixed, sober = _stored(client, b"mixed"), _stored(client, b"sober")
    for _ in range(2):
        if mixed != sober:
            mixed, sober = _stored(client, b"mixed"), _stored(client, b"sober")
    assert mixed == sober
    return len(mixed)


def _stored(client: Any, prefix: bytes) -> dict[bytes, object]:
    """Return all that is stored below a prefix; every document must be readable."""
    found = client.scan_iter(match=prefix + b":*", count=1000)
    names = [name for name in found if b":departed:" not in name]  # they have the hour in their name
    with client.pipeline(transaction=False) as batch:
        for name in names:
            batch.type(name)
        kinds = batch.execute()
        for name, kind in zip(names, kinds, strict=True):
            _READS[kind](batch, name)
        stored = batch.execute()
    return {
        name[len(prefix) :]: _readable(kind, value)
        for name, kind, value in zip(names, kinds, stored, strict=True)
    }


_READS: dict[bytes, Callable[[Any, bytes], object]] = {
    b"none": lambda batch, name: batch.get(name),  # it expired meanwhile
    b"string": lambda batch, name: batch.get(name),
    b"hash": lambda batch, name: batch.hgetall(name),
    b"set": lambda batch, name: batch.smembers(name),
    b"zset": lambda batch, name: batch.zrange(name, 0, -1),
}


def _readable(kind: bytes, value: Any) -> object:
    if kind == b"hash":
        return {field: body if body.isdigit() else _document(body) for field, body in value.items()}
    if kind == b"string":
        return _document(value or b"null")
    return set(value or ())


def _document(body: bytes) -> object:
    """Decode JSON by its grammar; Python has no number as large as 1e999, so numbers stay text."""
    return json.loads(body, parse_constant=pytest.fail, parse_float=str)
