"""The keys of the Spectacles document after each gateway event, all of them and no others."""

from __future__ import annotations

from typing import Any

import pytest

from .payloads import (
    ANN,
    BOB,
    BOT,
    EMOJI,
    GENERAL,
    GUILD,
    MESSAGE,
    ROLE,
    STICKER,
    THREAD,
    VOICE,
    World,
    channel,
    full_guild,
    guild,
    member,
    message,
    presence,
    stored_guild,
    thread,
    user,
    voice_state,
)

ann, bob = user(ANN, "ann"), user(BOB, "bob")
HERE = ("GUILD_CREATE", guild())
ONLY_GUILD = {"GUILDS": {GUILD: stored_guild()}}


def test_ready_stores_the_bot_without_its_address(world: World) -> None:
    own = user(BOT, "bot", email="me@example.org")
    world.apply(("READY", {"user": own, "guilds": [{"id": GUILD, "unavailable": True}]}))
    assert world.public() == {"USERS": {BOT: user(BOT, "bot")}}


def test_user_update_stores_the_bot(world: World) -> None:
    world.apply(("USER_UPDATE", user(BOT, "bot", verified=True)))
    assert world.public() == {"USERS": {BOT: user(BOT, "bot", verified=True)}}


def test_guild_create_fills_every_key(world: World) -> None:
    world.apply(("GUILD_CREATE", full_guild()))
    assert world.public() == {
        "USERS": {ANN: ann, BOB: bob},
        "GUILDS": {GUILD: stored_guild(stickers=[{"id": STICKER, "name": "cat"}])},
        f"MEMBERS:{GUILD}": {ANN: member(ANN, "ann"), BOB: member(BOB, "bob")},
        f"VOICE_STATES:{GUILD}": {ANN: voice_state(ANN)},
        f"PRESENCES:{ANN}": {ANN: presence(ANN)},
        "CHANNELS": {GENERAL: channel(GENERAL), VOICE: channel(VOICE, type=2), THREAD: thread()},
        f"CHANNELS:{GUILD}": {GENERAL, VOICE, THREAD},
        f"ROLES:{GUILD}": {ROLE: {"id": ROLE, "name": "staff"}},
        "EMOJIS": {EMOJI: {"id": EMOJI, "name": "wave", "user": bob}},
        f"EMOJIS:{GUILD}": {EMOJI},
    }


def test_guild_create_of_an_unavailable_guild_stores_nothing(world: World) -> None:
    world.apply(("GUILD_CREATE", {"id": GUILD, "unavailable": True}))
    assert world.public() == {}


def test_guild_update_is_merged_into_the_guild(world: World) -> None:
    world.apply(HERE, ("GUILD_UPDATE", {"id": GUILD, "name": "there", "roles": [{"id": ROLE}], "emojis": []}))
    assert world.public() == {
        "GUILDS": {GUILD: stored_guild(name="there")},
        f"ROLES:{GUILD}": {ROLE: {"id": ROLE}},
    }


def test_guild_delete_of_an_unavailable_guild_marks_it(world: World) -> None:
    world.apply(HERE, ("GUILD_DELETE", {"id": GUILD, "unavailable": True}))
    assert world.public() == {"GUILDS": {GUILD: stored_guild(unavailable=True)}}


def test_guild_delete_leaves_the_users(world: World) -> None:
    world.apply(("GUILD_CREATE", full_guild()), ("GUILD_DELETE", {"id": GUILD}))
    assert world.all() == {"USERS": {ANN: ann, BOB: bob}}


@pytest.mark.parametrize("event", ["CHANNEL_CREATE", "CHANNEL_UPDATE"])
def test_a_channel_is_stored_and_listed(world: World, event: str) -> None:
    world.apply((event, channel(GENERAL)))
    assert world.public() == {"CHANNELS": {GENERAL: channel(GENERAL)}, f"CHANNELS:{GUILD}": {GENERAL}}


def test_channel_delete_removes_the_channel(world: World) -> None:
    world.apply(("CHANNEL_CREATE", channel(GENERAL)), ("CHANNEL_DELETE", channel(GENERAL)))
    assert world.all() == {}


@pytest.mark.parametrize(
    ("event", "changed"),
    [
        ("CHANNEL_PINS_UPDATE", {"last_pin_timestamp": "2026-01-01T00:00:00+00:00"}),
        ("VOICE_CHANNEL_STATUS_UPDATE", {"status": "talking"}),
        ("VOICE_CHANNEL_START_TIME_UPDATE", {"voice_start_time": 7}),
    ],
)
def test_an_event_about_a_channel_changes_its_fields(
    world: World, event: str, changed: dict[str, Any]
) -> None:
    which = "channel_id" if event == "CHANNEL_PINS_UPDATE" else "id"
    before = ("CHANNEL_CREATE", channel(GENERAL))
    world.apply(before, (event, {"guild_id": GUILD, which: GENERAL, **changed}))
    assert world.content("CHANNELS") == {GENERAL: channel(GENERAL, **changed)}
    assert world.raw("EXISTS", f"spectacles-private:threads:{GUILD}") == 0


def test_pins_of_a_thread_are_in_the_thread(world: World) -> None:
    pinned = {"guild_id": GUILD, "channel_id": THREAD, "last_pin_timestamp": None}
    world.apply(("THREAD_CREATE", thread()), ("CHANNEL_PINS_UPDATE", pinned))
    assert world.content("CHANNELS") == {THREAD: thread(last_pin_timestamp=None)}


def test_pins_of_an_unknown_channel_store_nothing(world: World) -> None:
    world.apply(("CHANNEL_PINS_UPDATE", {"guild_id": GUILD, "channel_id": GENERAL}))
    assert world.all() == {}


@pytest.mark.parametrize("event", ["THREAD_CREATE", "THREAD_UPDATE"])
def test_a_thread_is_a_channel(world: World, event: str) -> None:
    joined = thread(member={"flags": 0})
    world.apply((event, joined))
    assert world.public() == {"CHANNELS": {THREAD: joined}, f"CHANNELS:{GUILD}": {THREAD}}


def test_thread_delete_removes_the_thread(world: World) -> None:
    gone = {"id": THREAD, "guild_id": GUILD, "parent_id": GENERAL, "type": 11}
    world.apply(("THREAD_CREATE", thread()), ("THREAD_DELETE", gone))
    assert world.all() == {}


def test_thread_list_sync_replaces_the_threads_of_its_channels(world: World) -> None:
    stays, comes = thread("1300000000000000024", VOICE), thread("1300000000000000025")
    sync = {"guild_id": GUILD, "channel_ids": [GENERAL], "threads": [comes], "members": []}
    world.apply(("THREAD_CREATE", thread()), ("THREAD_CREATE", stays), ("THREAD_LIST_SYNC", sync))
    assert world.public() == {
        "CHANNELS": {stays["id"]: stays, comes["id"]: comes},
        f"CHANNELS:{GUILD}": {stays["id"], comes["id"]},
    }


def test_thread_list_sync_without_channels_is_for_the_whole_guild(world: World) -> None:
    world.apply(
        ("CHANNEL_CREATE", channel(GENERAL)),
        ("THREAD_CREATE", thread()),
        ("THREAD_LIST_SYNC", {"guild_id": GUILD, "threads": []}),
    )
    assert world.content("CHANNELS") == {GENERAL: channel(GENERAL)}


def test_thread_members_update_changes_the_count_of_the_thread(world: World) -> None:
    counted = {"id": THREAD, "guild_id": GUILD, "member_count": 5}
    world.apply(("THREAD_CREATE", thread()), ("THREAD_MEMBERS_UPDATE", counted))
    assert world.public() == {
        "CHANNELS": {THREAD: thread(member_count=5)},
        f"CHANNELS:{GUILD}": {THREAD},
    }


def test_guild_member_add_stores_the_member_with_its_user(world: World) -> None:
    joined = member(ANN, "ann", guild_id=GUILD)
    world.apply(HERE, ("GUILD_MEMBER_ADD", joined))
    assert world.public() == {
        "GUILDS": {GUILD: stored_guild(member_count=3)},
        f"MEMBERS:{GUILD}": {ANN: joined},
        "USERS": {ANN: ann},
    }


def test_guild_member_update_is_merged_into_the_member(world: World) -> None:
    before = ("GUILD_MEMBER_ADD", member(ANN, "ann", guild_id=GUILD, joined_at="then"))
    after = {"guild_id": GUILD, "user": user(ANN, "ann2"), "nick": "a", "roles": [ROLE]}
    world.apply(before, ("GUILD_MEMBER_UPDATE", after))
    assert world.public() == {
        f"MEMBERS:{GUILD}": {ANN: {**after, "joined_at": "then"}},
        "USERS": {ANN: user(ANN, "ann2")},
    }


def test_guild_member_remove_takes_voice_state_and_presence_along(world: World) -> None:
    world.apply(
        ("GUILD_CREATE", guild(members=[member(ANN, "ann")])),
        ("VOICE_STATE_UPDATE", voice_state(ANN)),
        ("PRESENCE_UPDATE", presence(ANN)),
        ("GUILD_MEMBER_REMOVE", {"guild_id": GUILD, "user": user(ANN, "ann2")}),
    )
    assert world.public() == {
        "GUILDS": {GUILD: stored_guild(member_count=1)},
        "USERS": {ANN: user(ANN, "ann2")},
    }


def test_guild_members_chunk_stores_members_and_presences(world: World) -> None:
    chunk = {"guild_id": GUILD, "members": [member(ANN, "ann")], "presences": [presence(ANN)]}
    world.apply(("GUILD_MEMBERS_CHUNK", chunk))
    assert world.public() == {
        f"MEMBERS:{GUILD}": {ANN: member(ANN, "ann")},
        "USERS": {ANN: ann},
        f"PRESENCES:{ANN}": {ANN: presence(ANN)},
    }


@pytest.mark.parametrize(
    ("event", "payload"),
    [
        ("GUILD_BAN_ADD", {"guild_id": GUILD, "user": ann}),
        ("GUILD_BAN_REMOVE", {"guild_id": GUILD, "user": ann}),
        ("INVITE_CREATE", {"code": "abc", "guild_id": GUILD, "inviter": ann}),
        ("GUILD_SCHEDULED_EVENT_CREATE", {"id": "9", "guild_id": GUILD, "creator": ann}),
        ("GUILD_SCHEDULED_EVENT_UPDATE", {"id": "9", "guild_id": GUILD, "creator": ann}),
    ],
)
def test_of_some_events_only_the_user_is_kept(world: World, event: str, payload: dict[str, Any]) -> None:
    world.apply((event, payload))
    assert world.all() == {"USERS": {ANN: ann}}


@pytest.mark.parametrize("event", ["GUILD_ROLE_CREATE", "GUILD_ROLE_UPDATE"])
def test_a_role_is_stored_in_its_guild(world: World, event: str) -> None:
    world.apply((event, {"guild_id": GUILD, "role": {"id": ROLE, "tags": None}}))
    assert world.all() == {f"ROLES:{GUILD}": {ROLE: {"id": ROLE, "tags": None}}}


def test_guild_role_delete_removes_the_role(world: World) -> None:
    created = {"guild_id": GUILD, "role": {"id": ROLE}}
    world.apply(("GUILD_ROLE_CREATE", created), ("GUILD_ROLE_DELETE", {"guild_id": GUILD, "role_id": ROLE}))
    assert world.all() == {}


def test_guild_emojis_update_replaces_the_emojis_of_the_guild(world: World) -> None:
    of_other = {"guild_id": "7", "emojis": [{"id": "71"}]}
    first = {"guild_id": GUILD, "emojis": [{"id": EMOJI}, {"id": "42"}]}
    second = {"guild_id": GUILD, "emojis": [{"id": "43"}, {"id": "42", "name": "new"}]}
    world.apply(*(("GUILD_EMOJIS_UPDATE", each) for each in (of_other, first, second)))
    assert world.public() == {
        "EMOJIS": {"71": {"id": "71"}, "42": {"id": "42", "name": "new"}, "43": {"id": "43"}},
        f"EMOJIS:{GUILD}": {"42", "43"},
        "EMOJIS:7": {"71"},
    }


def test_guild_emojis_update_with_none_removes_all(world: World) -> None:
    for emojis in ([{"id": EMOJI}], []):
        world.apply(("GUILD_EMOJIS_UPDATE", {"guild_id": GUILD, "emojis": emojis}))
    assert world.all() == {}


def test_stickers_are_kept_true_inside_the_guild(world: World) -> None:
    stickers = [{"id": STICKER, "name": "dog"}]
    world.apply(HERE, ("GUILD_STICKERS_UPDATE", {"guild_id": GUILD, "stickers": stickers}))
    assert world.public() == {"GUILDS": {GUILD: stored_guild(stickers=stickers)}}


@pytest.mark.parametrize(
    ("event", "field", "entity"),
    [
        ("STAGE_INSTANCE", "stage_instances", {"guild_id": GUILD, "id": "81", "channel_id": VOICE}),
        ("GUILD_SCHEDULED_EVENT", "guild_scheduled_events", {"guild_id": GUILD, "id": "82"}),
    ],
)
def test_a_list_inside_a_guild_follows_its_events(
    world: World, event: str, field: str, entity: dict[str, Any]
) -> None:
    changed = {**entity, "topic": "news"}
    world.apply(HERE, (f"{event}_CREATE", entity))
    assert world.public() == {"GUILDS": {GUILD: stored_guild(**{field: [entity]})}}
    world.apply((f"{event}_UPDATE", changed))
    assert world.public() == {"GUILDS": {GUILD: stored_guild(**{field: [changed]})}}
    world.apply((f"{event}_DELETE", changed))
    assert world.public() == ONLY_GUILD


def test_message_create_stores_message_author_and_member(world: World) -> None:
    sent = message(member={"roles": [ROLE]})
    world.apply(("CHANNEL_CREATE", channel(GENERAL)), ("MESSAGE_CREATE", sent))
    assert world.public() == {
        f"MESSAGES:{GENERAL}:{MESSAGE}": sent,
        "USERS": {ANN: ann},
        f"MEMBERS:{GUILD}": {ANN: {"roles": [ROLE]}},
        "CHANNELS": {GENERAL: channel(GENERAL, last_message_id=MESSAGE)},
        f"CHANNELS:{GUILD}": {GENERAL},
    }


def test_a_direct_message_has_no_guild(world: World) -> None:
    sent = {"id": MESSAGE, "channel_id": "5", "content": "psst", "author": ann}
    world.apply(("MESSAGE_CREATE", sent))
    assert world.public() == {f"MESSAGES:5:{MESSAGE}": sent, "USERS": {ANN: ann}}


def test_message_update_is_merged_into_the_message(world: World) -> None:
    edit = {"id": MESSAGE, "channel_id": GENERAL, "content": "bye", "edited_timestamp": None}
    world.apply(("MESSAGE_CREATE", message()), ("MESSAGE_UPDATE", edit))
    assert world.content(f"MESSAGES:{GENERAL}:{MESSAGE}") == message(content="bye", edited_timestamp=None)


def test_a_partial_update_of_an_unknown_message_stores_nothing(world: World) -> None:
    world.apply(("MESSAGE_UPDATE", {"id": MESSAGE, "channel_id": GENERAL, "content": "bye"}))
    assert world.all() == {}


@pytest.mark.parametrize(
    ("event", "gone"),
    [("MESSAGE_DELETE", {"id": MESSAGE}), ("MESSAGE_DELETE_BULK", {"ids": [MESSAGE, "62"]})],
)
def test_a_deleted_message_is_gone(world: World, event: str, gone: dict[str, Any]) -> None:
    sent = message()
    del sent["guild_id"]
    world.apply(("MESSAGE_CREATE", sent), (event, {"channel_id": GENERAL, **gone}))
    assert world.all() == {"USERS": {ANN: ann}}


def test_presence_update_stores_the_presence_of_the_user(world: World) -> None:
    world.apply(("PRESENCE_UPDATE", presence(ANN)))
    assert world.public() == {f"PRESENCES:{ANN}": {ANN: presence(ANN)}}


def test_an_offline_user_has_no_presence(world: World) -> None:
    world.apply(("PRESENCE_UPDATE", presence(ANN)), ("PRESENCE_UPDATE", presence(ANN, status="offline")))
    assert world.all() == {}


def test_voice_state_update_stores_state_member_and_user(world: World) -> None:
    state = {**voice_state(ANN), "member": member(ANN, "ann")}
    world.apply(("VOICE_STATE_UPDATE", state))
    assert world.public() == {
        f"VOICE_STATES:{GUILD}": {ANN: state},
        f"MEMBERS:{GUILD}": {ANN: member(ANN, "ann")},
        "USERS": {ANN: ann},
    }


def test_a_voice_state_without_channel_is_removed(world: World) -> None:
    world.apply(("VOICE_STATE_UPDATE", voice_state(ANN)), ("VOICE_STATE_UPDATE", voice_state(ANN, None)))
    assert world.all() == {}


def test_interaction_create_keeps_user_and_member(world: World) -> None:
    called = {"id": "91", "guild_id": GUILD, "token": "t", "member": member(ANN, "ann", permissions="8")}
    bot = user(BOT, "bot")
    world.apply(("READY", {"user": bot, "guilds": [{"id": GUILD}]}), ("INTERACTION_CREATE", called))
    assert world.public() == {f"MEMBERS:{GUILD}": {ANN: member(ANN, "ann")}, "USERS": {ANN: ann, BOT: bot}}


def test_typing_start_keeps_user_and_member(world: World) -> None:
    typing = {"guild_id": GUILD, "channel_id": GENERAL, "user_id": ANN, "member": member(ANN, "ann")}
    world.apply(("TYPING_START", typing))
    assert world.public() == {f"MEMBERS:{GUILD}": {ANN: member(ANN, "ann")}, "USERS": {ANN: ann}}


@pytest.mark.parametrize(
    ("event", "payload"),
    [
        ("RESUMED", {}),
        ("THREAD_MEMBER_UPDATE", {"id": THREAD, "guild_id": GUILD, "user_id": BOT}),
        ("GUILD_INTEGRATIONS_UPDATE", {"guild_id": GUILD}),
        ("WEBHOOKS_UPDATE", {"guild_id": GUILD, "channel_id": GENERAL}),
        ("INTEGRATION_CREATE", {"id": "5", "guild_id": GUILD}),
        ("INTEGRATION_UPDATE", {"id": "5", "guild_id": GUILD}),
        ("INTEGRATION_DELETE", {"id": "5", "guild_id": GUILD}),
        ("INVITE_DELETE", {"code": "abc", "guild_id": GUILD, "channel_id": GENERAL}),
        (
            "MESSAGE_REACTION_ADD",
            {"user_id": ANN, "message_id": MESSAGE, "channel_id": GENERAL, "emoji": {"name": "x"}},
        ),
        (
            "MESSAGE_REACTION_REMOVE",
            {"user_id": ANN, "message_id": MESSAGE, "channel_id": GENERAL, "emoji": {"name": "x"}},
        ),
        ("MESSAGE_REACTION_REMOVE_ALL", {"message_id": MESSAGE, "channel_id": GENERAL}),
        (
            "MESSAGE_REACTION_REMOVE_EMOJI",
            {"message_id": MESSAGE, "channel_id": GENERAL, "emoji": {"name": "x"}},
        ),
        ("MESSAGE_POLL_VOTE_ADD", {"user_id": ANN, "message_id": MESSAGE}),
        ("STAGE_INSTANCE_CREATE", {"id": "5", "guild_id": GUILD, "channel_id": VOICE}),
        ("GUILD_SCHEDULED_EVENT_USER_ADD", {"guild_id": GUILD, "user_id": ANN}),
        ("AUTO_MODERATION_RULE_CREATE", {"id": "5", "guild_id": GUILD}),
        ("GUILD_SOUNDBOARD_SOUND_CREATE", {"sound_id": "5", "guild_id": GUILD}),
        ("VOICE_SERVER_UPDATE", {"guild_id": GUILD, "token": "t"}),
        ("AN_EVENT_OF_TOMORROW", {"id": "5"}),
    ],
)
def test_events_without_a_key_store_nothing(world: World, event: str, payload: dict[str, Any]) -> None:
    world.apply((event, payload))
    assert world.all() == {}
