"""Rules of the cache: replacement, merging, order, exact bytes, options."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from keywright.errors import DeclarationError
from keywright.testing import Raw
from keywright_discord.changes import DropGuild, Kind, Put
from keywright_discord.interpreter import BotSession
from keywright_discord.spectacles import bind
from keywright_discord.spectacles.store import SpectaclesCache

from .payloads import (
    ANN,
    BOB,
    BOT,
    EMOJI,
    GENERAL,
    GUILD,
    MESSAGE,
    OTHER_GUILD,
    PRIVATE,
    ROLE,
    STICKER,
    THREAD,
    VOICE,
    Event,
    Opener,
    World,
    channel,
    full_guild,
    guild,
    member,
    message,
    presence,
    thread,
    user,
    voice_state,
)

SESSION: list[Event] = [
    ("READY", {"user": user(BOT, "bot"), "guilds": [{"id": GUILD}], "shard": [0, 1]}),
    ("GUILD_CREATE", full_guild()),
    ("GUILD_CREATE", guild(OTHER_GUILD, presences=[presence(ANN, OTHER_GUILD)])),
    ("GUILD_UPDATE", {"id": GUILD, "name": "there", "roles": [{"id": ROLE}], "emojis": [{"id": EMOJI}]}),
    ("CHANNEL_CREATE", channel("1300000000000000026")),
    ("CHANNEL_UPDATE", channel(VOICE, name="talk")),
    ("THREAD_CREATE", thread("1300000000000000027", VOICE)),
    ("THREAD_UPDATE", thread(name="topic")),
    ("GUILD_MEMBERS_CHUNK", {"guild_id": GUILD, "members": [member("14", "eve")], "presences": []}),
    ("GUILD_MEMBER_ADD", member("13", "kim", guild_id=GUILD)),
    ("GUILD_MEMBER_UPDATE", {"guild_id": GUILD, "user": user(BOB, "bob"), "nick": "b"}),
    ("GUILD_MEMBER_REMOVE", {"guild_id": GUILD, "user": user("13", "kim")}),
    ("GUILD_STICKERS_UPDATE", {"guild_id": GUILD, "stickers": [{"id": STICKER}]}),
    ("STAGE_INSTANCE_CREATE", {"guild_id": GUILD, "id": "81", "channel_id": VOICE}),
    ("MESSAGE_CREATE", message(member={"roles": [ROLE]})),
    ("MESSAGE_CREATE", message("1300000000000000062", THREAD)),
    ("MESSAGE_UPDATE", message(content="edited")),
    ("MESSAGE_CREATE", message("1300000000000000063")),
    ("MESSAGE_DELETE", {"id": "1300000000000000063", "channel_id": GENERAL}),
    ("PRESENCE_UPDATE", presence(BOB, status="idle")),
    ("VOICE_STATE_UPDATE", voice_state(BOB)),
    ("CHANNEL_PINS_UPDATE", {"guild_id": GUILD, "channel_id": GENERAL, "last_pin_timestamp": None}),
    ("CHANNEL_DELETE", channel("1300000000000000026")),
    ("USER_UPDATE", user(BOT, "bot")),
]


def test_a_session_applied_again_changes_nothing(world: World) -> None:
    world.apply(*SESSION)
    before = world.all()
    world.apply(*SESSION)
    assert world.all() == before


@pytest.mark.parametrize("place", range(len(SESSION)), ids=[event for event, _ in SESSION])
def test_an_event_applied_twice_is_applied_once(world: World, place: int) -> None:
    world.apply(*SESSION[: place + 1])
    before = world.all()
    world.apply(SESSION[place])
    assert world.all() == before


def test_one_by_one_and_all_at_once_are_the_same(world: World) -> None:
    world.apply(*SESSION)
    at_once = world.all()
    world.raw("FLUSHALL")
    for event in SESSION:
        world.apply(event)
    assert world.all() == at_once


def test_guild_create_replaces_what_it_lists_in_full(world: World) -> None:
    world.apply(("GUILD_CREATE", full_guild()), ("MESSAGE_CREATE", message(place=VOICE)))
    other = channel("1300000000000000026")
    world.apply(("GUILD_CREATE", guild(channels=[other], roles=[{"id": "32"}], emojis=[{"id": "42"}])))
    assert world.content("CHANNELS") == {other["id"]: other}
    assert world.content(f"CHANNELS:{GUILD}") == {other["id"]}
    assert world.content(f"ROLES:{GUILD}") == {"32": {"id": "32"}}
    assert world.content("EMOJIS") == {"42": {"id": "42"}}
    assert world.content(f"EMOJIS:{GUILD}") == {"42"}
    assert not world.raw.names() & {f"VOICE_STATES:{GUILD}".encode(), f"MESSAGES:{VOICE}:{MESSAGE}".encode()}
    assert f"{PRIVATE}threads:{GUILD}" not in world.all()


def test_guild_create_adds_to_members_since_its_list_is_partial(world: World) -> None:
    world.apply(("GUILD_CREATE", full_guild()), ("GUILD_CREATE", full_guild(members=[])))
    assert set(world.content(f"MEMBERS:{GUILD}")) == {ANN, BOB}


def test_guild_create_with_every_member_replaces_them(world: World) -> None:
    world.apply(("GUILD_CREATE", full_guild()), ("VOICE_STATE_UPDATE", voice_state(BOB)))
    alone = full_guild(members=[member(BOB, "bob")], member_count=1, voice_states=[], presences=[])
    world.apply(("GUILD_CREATE", alone))
    assert set(world.content(f"MEMBERS:{GUILD}")) == {BOB}
    assert f"PRESENCES:{ANN}" not in world.public()


def test_guild_create_keeps_the_messages_of_channels_and_threads_that_it_lists(world: World) -> None:
    sent = [("MESSAGE_CREATE", message(place=place)) for place in (GENERAL, THREAD)]
    world.apply(("GUILD_CREATE", full_guild()), *sent, ("GUILD_CREATE", full_guild()))
    assert {f"MESSAGES:{GENERAL}:{MESSAGE}", f"MESSAGES:{THREAD}:{MESSAGE}"} <= world.public().keys()


def test_an_outage_keeps_the_data_of_a_guild(world: World) -> None:
    world.apply(("GUILD_CREATE", full_guild()))
    before = world.public()
    world.apply(("GUILD_DELETE", {"id": GUILD, "unavailable": True}), ("GUILD_CREATE", _outage()))
    after = world.public()
    assert after.pop("GUILDS")[GUILD] == {**before.pop("GUILDS")[GUILD], "unavailable": True}
    assert after == before


def test_a_guild_that_is_back_is_available(world: World) -> None:
    world.apply(("GUILD_CREATE", full_guild()), ("GUILD_DELETE", _outage()), ("GUILD_CREATE", full_guild()))
    assert "unavailable" not in world.content("GUILDS")[GUILD]


def _outage() -> dict[str, Any]:
    return {"id": GUILD, "unavailable": True}


def test_an_outage_of_an_unknown_guild_stores_nothing(world: World) -> None:
    world.apply(("GUILD_DELETE", _outage()))
    assert world.all() == {}


def test_a_partial_user_never_overwrites_a_full_one(world: World) -> None:
    update = {"guild_id": GUILD, "user": {"id": ANN}, "nick": "a"}
    world.apply(
        ("GUILD_MEMBER_ADD", member(ANN, "ann", guild_id=GUILD)),
        ("PRESENCE_UPDATE", presence(ANN)),
        ("GUILD_MEMBER_UPDATE", update),
    )
    assert world.content("USERS") == {ANN: user(ANN, "ann")}
    assert world.content(f"MEMBERS:{GUILD}") == {ANN: member(ANN, "ann", guild_id=GUILD, nick="a")}


def test_a_partial_user_adds_to_a_full_one(world: World) -> None:
    changed = {**presence(ANN), "user": {"id": ANN, "avatar": "new"}}
    world.apply(("GUILD_MEMBER_ADD", member(ANN, "ann", guild_id=GUILD)), ("PRESENCE_UPDATE", changed))
    assert world.content("USERS") == {ANN: {**user(ANN, "ann"), "avatar": "new"}}


def test_a_partial_user_is_not_stored(world: World) -> None:
    world.apply(("GUILD_BAN_ADD", {"guild_id": GUILD, "user": {"id": ANN}}))
    assert world.all() == {}


def test_a_partial_member_keeps_the_fields_that_it_lacks(world: World) -> None:
    world.apply(
        ("GUILD_MEMBER_ADD", member(ANN, "ann", guild_id=GUILD, joined_at="then")),
        ("MESSAGE_CREATE", message(member={"roles": [ROLE]})),
    )
    kept = member(ANN, "ann", guild_id=GUILD, joined_at="then", roles=[ROLE])
    assert world.content(f"MEMBERS:{GUILD}") == {ANN: kept}


def test_bytes_survive_as_they_came(world: World) -> None:
    """Ids beyond 2^53 as numbers, empty lists and objects, nulls, and unknown fields."""
    sent = b'{"id":"18446744073709551615","guild_id":"7","x":9007199254740993,"a":[],"b":{},"c":null,"d":1e2}'
    assert world.run(world.cache.apply([("CHANNEL_CREATE", sent)])) == []
    stored = world.raw("HGET", "CHANNELS", "18446744073709551615")
    for part in (b'"x":9007199254740993', b'"a":[]', b'"b":{}', b'"c":null', b'"d":1e2'):
        assert part in stored


def test_merging_leaves_the_other_fields_as_they_came(world: World) -> None:
    world.apply(("GUILD_CREATE", guild(features=[], system=9007199254740993, banner=None)))
    world.apply(("GUILD_UPDATE", {"id": GUILD, "name": "there"}))
    stored = world.raw("HGET", "GUILDS", GUILD)
    for part in (b'"features":[]', b'"system":9007199254740993', b'"banner":null'):
        assert part in stored.replace(b" ", b"")


def test_ids_that_came_as_numbers_are_the_same_ids(world: World) -> None:
    world.apply(("CHANNEL_CREATE", {"id": int(GENERAL), "guild_id": int(GUILD)}))
    assert world.public() == {
        "CHANNELS": {GENERAL: {"id": int(GENERAL), "guild_id": int(GUILD)}},
        f"CHANNELS:{GUILD}": {GENERAL},
    }


def test_a_malformed_event_is_reported_and_the_others_are_applied(world: World) -> None:
    refused = world.offer(
        ("CHANNEL_CREATE", channel(GENERAL)),
        ("CHANNEL_CREATE", {"id": "general", "guild_id": GUILD}),
        ("THREAD_CREATE", thread(parent_id=["?"])),
        ("CHANNEL_CREATE", channel(VOICE)),
    )
    assert [(each.place, each.event) for each in refused] == [(1, "CHANNEL_CREATE"), (2, "THREAD_CREATE")]
    assert set(world.content("CHANNELS")) == {GENERAL, VOICE}


def test_a_member_that_is_known_is_not_counted_again(world: World) -> None:
    joined = ("GUILD_MEMBER_ADD", member(ANN, "ann", guild_id=GUILD))
    left = ("GUILD_MEMBER_REMOVE", {"guild_id": GUILD, "user": user(ANN, "ann")})
    world.apply(("GUILD_CREATE", guild()), joined, joined)
    assert world.content("GUILDS")[GUILD]["member_count"] == 3
    world.apply(left, left)
    assert world.content("GUILDS")[GUILD]["member_count"] == 2


def test_a_count_that_is_not_a_number_is_left_alone(world: World) -> None:
    joined = ("GUILD_MEMBER_ADD", member(ANN, "ann", guild_id=GUILD))
    world.apply(("GUILD_CREATE", guild(member_count="many")), joined)
    assert world.content("GUILDS")[GUILD]["member_count"] == "many"


def test_only_the_kinds_asked_for_are_kept(world: World) -> None:
    world.cache = SpectaclesCache(kinds={Kind.ROLE, Kind.EMOJI})
    world.apply(*SESSION)
    assert world.public().keys() == {f"ROLES:{GUILD}", "EMOJIS", f"EMOJIS:{GUILD}"}
    world.apply(("GUILD_DELETE", {"id": GUILD}))
    assert world.public() == {}


def test_members_can_be_kept_without_their_user(world: World) -> None:
    world.cache = SpectaclesCache(strip_user=True)
    bare: dict[str, Any] = {"roles": [], "nick": None}
    world.apply(("GUILD_CREATE", full_guild()), ("GUILD_MEMBER_ADD", member("13", "kim", guild_id=GUILD)))
    assert world.content(f"MEMBERS:{GUILD}") == {ANN: bare, BOB: bare, "13": {**bare, "guild_id": GUILD}}
    assert set(world.content("USERS")) == {ANN, BOB, "13"}


def test_changes_of_no_event_can_be_stored(world: World) -> None:
    role = json.dumps({"id": ROLE}).encode()
    world.run(world.cache.store([Put(Kind.ROLE, (GUILD, ROLE), role, role)]))
    world.run(world.cache.store([Put(Kind.WIDGET, (GUILD,), role, role)]))
    assert world.all() == {f"ROLES:{GUILD}": {ROLE: {"id": ROLE}}}


def test_a_prefix_is_before_every_name(opener: Opener, redis_url: str, raw: Raw) -> None:
    world = World(opener(redis_url, *bind(prefix="bot")), raw, SpectaclesCache())
    world.apply(*SESSION)
    assert all(name.startswith("bot:") for name in world.all())
    assert f"bot:CHANNELS:{GUILD}" in world.all()


def test_the_expiry_of_messages_can_be_set(opener: Opener, redis_url: str, raw: Raw) -> None:
    world = World(opener(redis_url, *bind(message_ttl=timedelta(hours=1))), raw, SpectaclesCache())
    world.apply(("MESSAGE_CREATE", message()))
    index = (f"{PRIVATE}messages:{GENERAL}", f"{PRIVATE}message-channels:{GUILD}")
    for name in (f"MESSAGES:{GENERAL}:{MESSAGE}", *index):
        assert 3_599_000 < raw("PTTL", name) <= 3_600_000


def test_messages_can_be_kept_forever(opener: Opener, redis_url: str, raw: Raw) -> None:
    world = World(opener(redis_url, *bind(message_ttl=None)), raw, SpectaclesCache())
    world.apply(("MESSAGE_CREATE", message()))
    assert {raw("PTTL", name) for name in world.all()} == {-1}


def test_messages_cannot_live_for_no_time() -> None:
    with pytest.raises(DeclarationError):
        bind(message_ttl=timedelta(0))


def test_an_edit_renews_the_expiry_of_a_message(world: World) -> None:
    name = f"MESSAGES:{GENERAL}:{MESSAGE}"
    world.apply(("MESSAGE_CREATE", message()))
    world.raw("PEXPIRE", name, 1000)
    world.apply(("MESSAGE_UPDATE", {"id": MESSAGE, "channel_id": GENERAL, "content": "bye"}))
    assert world.raw("PTTL", name) > 599_000


def test_the_index_of_messages_forgets_what_has_expired(world: World) -> None:
    index = f"{PRIVATE}messages:{GENERAL}"
    world.raw("ZADD", index, 1, "61")
    world.apply(("MESSAGE_CREATE", message()))
    assert world.content(index) == {MESSAGE}


def test_a_session_knows_its_bot(world: World) -> None:
    session = BotSession()
    world.cache = SpectaclesCache(session)
    world.apply(SESSION[0])
    assert session.bot == BOT


@pytest.mark.parametrize("place", [1, 3, 11, 14, 22], ids=lambda place: SESSION[place][0])
def test_an_event_is_one_transaction(world: World, place: int) -> None:
    world.apply(*SESSION[:place])
    world.raw("CONFIG", "RESETSTAT")
    world.apply(SESSION[place])
    assert world.raw.calls_of("exec") == 1


def test_events_that_only_write_share_a_transaction(world: World) -> None:
    world.apply(*SESSION[:3])
    world.raw("CONFIG", "RESETSTAT")
    world.apply(*(("MESSAGE_CREATE", message(str(place))) for place in range(100)))
    assert world.raw.calls_of("exec") == 1


def test_stored_changes_are_applied_in_order_whether_they_list_keys_or_not(world: World) -> None:
    body = json.dumps(message()).encode()
    sent = Put(Kind.MESSAGE, (GENERAL, MESSAGE), body, body)
    world.run(world.cache.store([sent, DropGuild(GUILD)]))
    assert world.all() == {}
    world.run(world.cache.store([DropGuild(GUILD), sent]))
    assert world.public() == {f"MESSAGES:{GENERAL}:{MESSAGE}": message()}
