"""A converted Spectacles cache equals a DRC cache that was fed the same traffic."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from keywright import AsyncDatabase, Call, Database, aconnect, connect
from keywright.testing import Raw
from keywright.tools import Bookmark, convert_all, purge
from keywright_discord.conversion import SpectaclesToDrc
from keywright_discord.drc import schema as drc
from keywright_discord.drc.store import DrcCache
from keywright_discord.spectacles import schema as spectacles
from keywright_discord.spectacles.store import SpectaclesCache
from keywright_discord.traffic import Traffic

from .survey import PREFIX, PRIVATE, survey

pytestmark = pytest.mark.anyio

EVENTS = 1000
Json = dict[str, Any]

# Spectacles does not store these, so they cannot be converted.
UNKNOWN = (
    "reactions:",
    "invites:",
    "integrations:",
    "automod-rules:",
    "thread-members:",
    "applications:",
    "interactions:",
    "private member-threads:",
    "private invites:",
    "private super-reactions:",
)


def _feed(db: Database, cache: Any, seed: int = 0, events: int = EVENTS) -> None:
    given = Traffic(seed).events(events, guilds=3, members=30)
    assert db.run(cache.apply([(name, msgspec.json.encode(data)) for name, data in given])) == []


async def _convert(url: str, conversion: SpectaclesToDrc | None = None, **more: Any) -> int:
    async with aconnect(url, *drc.bind(), *spectacles.bind()) as db:
        return await convert_all(db, conversion or SpectaclesToDrc(), **more)


class StoppedError(Exception):
    pass


class _StoppedAtTheThird(SpectaclesToDrc):
    """A conversion whose process ends after two guilds."""

    async def pages(self, db: AsyncDatabase) -> AsyncIterator[tuple[str, Call[int]]]:
        count = 0
        async for page in super().pages(db):
            count += 1
            if count == 3:
                raise StoppedError
            yield page


def _everything(raw: Raw) -> Json:
    return survey(raw) | {f"private {name}": value for name, value in survey(raw, PRIVATE).items()}


def _spectacles(raw: Raw) -> Json:
    reads = {b"string": "GET", b"hash": "HGETALL", b"set": "SMEMBERS"}
    names = [name for name in raw.names() if not name.startswith(b"keywright:")]
    return {str(name): raw(reads[kind], name) for name in names if (kind := raw("TYPE", name)) in reads}


def _comparable(found: Json) -> Json:
    """Return the keys that both layouts have, without those where the two differ by design."""
    members = Counter(name.split(":")[2] for name in found if name.count(":") == 2 and name[:8] == "members:")
    in_several = {user for user, guilds in members.items() if guilds > 1}
    channels = {each for name, value in found.items() if name.startswith("channels:") for each in value}
    channels |= {name.removeprefix("threads:") for name in found if name.startswith("threads:")}
    kept = {}
    for name, value in found.items():
        if name.startswith(UNKNOWN):
            continue
        if name.startswith("messages:") and value["channel_id"] not in channels:
            continue  # Spectacles removes messages with their channel, DRC lets them expire
        if name.startswith("presence:") and name.split(":")[2] in in_several:
            continue  # Spectacles has one presence per user
        kept[name] = value - in_several if name.startswith("private presences:") else value
    return kept


@pytest.mark.parametrize("seed", range(3))
async def test_a_converted_cache_equals_one_that_was_fed_the_same_traffic(
    redis_url: str, raw: Raw, seed: int
) -> None:
    with connect(redis_url, *spectacles.bind(message_ttl=None), *drc.bind()) as db:
        _feed(db, SpectaclesCache(), seed)
        await _convert(redis_url)
        converted = _comparable(_everything(raw))
        purge(db, drc.drc, drc.private)
        _feed(db, DrcCache(), seed)
        fed = _comparable(_everything(raw))
    kinds = Counter(name.split(":")[0] for name in converted)
    assert min(kinds[kind] for kind in ("guilds", "members", "messages", "users", "presence", "threads")) > 0
    assert converted == fed


async def test_the_spectacles_cache_stays_as_it_is(redis_url: str, raw: Raw) -> None:
    with connect(redis_url, *spectacles.bind(message_ttl=None)) as db:
        _feed(db, SpectaclesCache())
        before = _spectacles(raw)
        await _convert(redis_url)
        assert before
        assert _spectacles(raw) == before


async def test_a_second_conversion_removes_only_members_who_left(redis_url: str, raw: Raw) -> None:
    with connect(redis_url, *spectacles.bind(message_ttl=None), *drc.bind()) as db:
        _feed(db, SpectaclesCache())
        await _convert(redis_url)
        first = _everything(raw)
        await _convert(redis_url)
        assert _everything(raw) == first
        guild, user = next(
            name.split(":")[1:] for name in first if name.count(":") == 2 and "members" in name
        )
        left = msgspec.json.encode({"guild_id": guild, "user": {"id": user, "username": "gone"}})
        db.run(SpectaclesCache().apply([("GUILD_MEMBER_REMOVE", left)]))
        await _convert(redis_url)
        assert not raw("EXISTS", f"{PREFIX}members:{guild}:{user}")
        assert not raw("SISMEMBER", f"{PREFIX}members:{guild}", user)


async def test_messages_keep_the_time_they_have_left(redis_url: str, raw: Raw) -> None:
    with connect(redis_url, *spectacles.bind(), *drc.bind()) as db:
        _feed(db, SpectaclesCache(), events=300)
        name = next(name for name in raw.names() if name.startswith(b"MESSAGES:"))
        raw("PEXPIRE", name, 60_000)
        await _convert(redis_url)
        assert 0 < raw("PTTL", f"{PREFIX}messages:{name.decode().split(':')[-1]}") <= 60_000


async def test_a_stopped_conversion_goes_on_where_it_was(redis_url: str, raw: Raw, tmp_path: Path) -> None:
    path = tmp_path / "bookmark"
    with connect(redis_url, *spectacles.bind(message_ttl=None), *drc.bind()) as db:
        _feed(db, SpectaclesCache())
        await _convert(redis_url)
        whole = _everything(raw)
        purge(db, drc.drc, drc.private)
    with pytest.raises(StoppedError):
        await _convert(redis_url, _StoppedAtTheThird(), bookmark=Bookmark.at(path, "c"))
    partly = _everything(raw)
    assert 0 < len(partly) < len(whole)
    first = min(int(name.split(":")[1]) for name in partly if name.startswith("guilds:"))
    raw("DEL", f"{PREFIX}guilds:{first}")
    await _convert(redis_url, bookmark=Bookmark.at(path, "c"))
    # The first guild was skipped, since it was converted before.
    assert whole.keys() - _everything(raw).keys() == {f"guilds:{first}"}
    assert not path.exists()


@pytest.mark.cluster
async def test_a_cache_on_a_cluster_is_converted(cluster_url: str, raw_cluster: Raw) -> None:
    with connect(cluster_url, *spectacles.bind(message_ttl=None), *drc.bind()) as db:
        _feed(db, SpectaclesCache(), events=300)
        await _convert(cluster_url)
        converted = _comparable(_everything(raw_cluster))
        purge(db, drc.drc, drc.private)
        _feed(db, DrcCache(), events=300)
        assert converted == _comparable(_everything(raw_cluster))
