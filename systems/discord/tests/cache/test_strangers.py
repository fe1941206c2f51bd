"""Values of another writer under names of the cache do not stop it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
import redis

from keywright import connect
from keywright_discord.drc.schema import bind
from keywright_discord.drc.store import DrcCache

ALICE = {"id": "71", "username": "alice"}
MEMBER = {"guild_id": "1", "user": ALICE, "roles": [], "nick": "Al"}


@pytest.mark.parametrize("garbage", [b"", b"[]", b"null", b"{", b"\xff", b'"text"'])
def test_a_merge_replaces_a_value_that_is_not_an_object(redis_url: str, garbage: bytes) -> None:
    raw: Any = redis.Redis.from_url(redis_url)
    raw.set("bot:v1json:members:1:71", garbage)
    raw.set("bot:v1json:guilds:1", garbage)
    with connect(redis_url, *bind("bot")) as db:
        events = [("GUILD_MEMBER_UPDATE", MEMBER), ("GUILD_MEMBER_ADD", MEMBER)]
        assert db.run(DrcCache().apply([(t, msgspec.json.encode(d)) for t, d in events])) == []
    assert msgspec.json.decode(raw.get("bot:v1json:members:1:71"))["nick"] == "Al"
    assert raw.get("bot:v1json:guilds:1") == garbage
    raw.close()
