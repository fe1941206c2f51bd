"""The kinds of entities to cache can be chosen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
import redis
from typer.testing import CliRunner

from keywright import Database, Key, connect
from keywright.cli import app
from keywright_discord.changes import Kind
from keywright_discord.drc import schema
from keywright_discord.drc.store import DrcCache
from keywright_discord.event_cache import ALL_KINDS
from keywright_discord.traffic import EVERYDAY, Traffic

KEYS: dict[Kind, tuple[type[Key], ...]] = {
    Kind.AUTOMOD_RULE: (schema.AutomodRules,),
    Kind.CHANNEL: (schema.Channels,),
    Kind.EMOJI: (schema.Emojis,),
    Kind.INTEGRATION: (schema.Integrations,),
    Kind.INTERACTION: (schema.Interaction,),
    Kind.INVITE: (schema.Invite,),
    Kind.MEMBER: (schema.Member, schema.Members),
    Kind.MESSAGE: (schema.Message,),
    Kind.PRESENCE: (schema.Presence, schema.PresenceIndex),
    Kind.REACTION: (schema.Reactions, schema.ReactionUsers),
    Kind.ROLE: (schema.Roles,),
    Kind.SCHEDULED_EVENT: (schema.ScheduledEvents,),
    Kind.STAGE_INSTANCE: (schema.StageInstance, schema.StageIndex),
    Kind.STICKER: (schema.Stickers,),
    Kind.THREAD: (schema.Thread,),
    Kind.THREAD_MEMBER: (schema.ThreadMembers,),
    Kind.USER: (schema.User,),
    Kind.VOICE_STATE: (schema.VoiceStates,),
}
# The rare events as often as the others.
EVENLY = dict.fromkeys(EVERYDAY, 1.0)
# Not of a guild: a user, an invite and keys that expire.
GUILDLESS = ("applications", "interactions", "invites", "messages", "reactions", "users")


def was_cached(db: Database, events: list[tuple[str, bytes]], kind: Kind) -> bool:
    """Return whether a cache of all kinds has such keys at some time."""
    everything = DrcCache()
    for start in range(0, len(events), 100):
        db.run(everything.apply(events[start : start + 100]))
        if any(True for key in KEYS[kind] for _ in db.scan(key)):
            return True
    return False


@pytest.mark.parametrize("kind", KEYS, ids=lambda kind: kind.value)
def test_a_kind_that_is_left_out_has_no_keys_and_guilds_still_go_whole(redis_url: str, kind: Kind) -> None:
    traffic = Traffic(7)
    events = [(t, msgspec.json.encode(d)) for t, d in traffic.events(1500, guilds=2, members=12, mix=EVENLY)]
    raw: Any = redis.Redis.from_url(redis_url)
    with connect(redis_url, *schema.bind("bot")) as db:
        assert was_cached(db, events, kind), "the traffic has none of it"
        raw.flushall()
        chosen = DrcCache(kinds=ALL_KINDS - {kind})
        assert db.run(chosen.apply(events)) == []
        assert [found for key in KEYS[kind] for found in db.scan(key)] == []
        known = db.run(schema.Guilds().members())
        db.run(chosen.apply([("GUILD_DELETE", msgspec.json.encode({"id": guild})) for guild in known]))
    left = {name.split(b":")[2].decode() for name in raw.scan_iter()}
    raw.close()
    assert left <= set(GUILDLESS)


def test_the_command_leaves_out_the_kinds_of_its_option(redis_url: str, tmp_path: Path) -> None:
    packets = tmp_path / "packets.jsonl"
    packets.write_bytes(b"\n".join(Traffic(7).packets(300, guilds=1)))
    ran = CliRunner().invoke(
        app,
        ["discord", "ingest", str(packets), "--url", redis_url, "--without", "presence", "--without", "user"],
    )
    assert ran.exit_code == 0, ran.output
    raw: Any = redis.Redis.from_url(redis_url)
    kinds = {name.split(b":")[2] for name in raw.scan_iter()}
    raw.close()
    assert b"members" in kinds
    assert not kinds & {b"users", b"presence"}
