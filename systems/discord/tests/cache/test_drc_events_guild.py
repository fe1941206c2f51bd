"""Each event about a guild and its parts: the keys that it leaves in Redis."""

from __future__ import annotations

import pytest

from .feed import (
    ANN,
    BEN,
    BOT,
    CHANNEL,
    EMOJI,
    GUILD,
    MESSAGE,
    OTHER_GUILD,
    ROLE,
    THREAD,
    Feed,
    Json,
    channel,
    guild,
    member,
    message,
    ready,
    thread,
    user,
    whole_member,
)


def test_ready_stores_the_bot_its_guilds_and_its_application(feed: Feed) -> None:
    """The user without e-mail address; guilds that are not stored yet (docs/resolutions.md#a58, #a64)."""
    feed("READY", ready(GUILD, OTHER_GUILD))
    assert feed.at(f"users:{BOT}") == user(BOT, bot=True, verified=True)
    assert feed.at("guilds") == {GUILD, OTHER_GUILD}
    assert feed.at(f"applications:{BOT}") == {"id": BOT, "flags": 64}
    assert feed.names() == {f"users:{BOT}", "guilds", f"applications:{BOT}"}


def test_ready_drops_the_guilds_that_were_left_while_offline(feed: Feed) -> None:
    """With everything that belongs to them (docs/resolutions.md#a64)."""
    feed("GUILD_CREATE", guild(GUILD, roles=[{"id": ROLE}], members=[whole_member(ANN)]))
    feed("GUILD_CREATE", guild(OTHER_GUILD))
    feed("READY", ready(OTHER_GUILD))
    assert feed.at("guilds") == {OTHER_GUILD}
    assert not [name for name in feed.names() if GUILD in name]


def test_ready_leaves_the_guilds_of_other_shards(feed: Feed) -> None:
    """A shard receives only its own guilds, (id >> 22) % shards (docs/resolutions.md#a64)."""
    one, two = str(6 << 22), str(7 << 22)
    feed("GUILD_CREATE", guild(one))
    feed("GUILD_CREATE", guild(two))
    feed("READY", ready(shard=(1, 2)))
    assert feed.at("guilds") == {one}
    assert feed.at(f"guilds:{one}") is not None
    assert feed.at(f"guilds:{two}") is None


def test_ready_merges_into_a_known_application(feed: Feed) -> None:
    """It has only the id and the flags (docs/resolutions.md#a70)."""
    feed("READY", ready())
    feed("READY", {**ready(), "application": {"id": BOT, "name": "Bot"}})
    assert feed.at(f"applications:{BOT}") == {"id": BOT, "flags": 64, "name": "Bot"}


@pytest.mark.parametrize(
    "wrong",
    [{"guilds": None}, {"shard": [2, 2]}, {"shard": [0, 0]}, {"shard": "0"}, {"user": {}}, {"user": None}],
    ids=str,
)
def test_a_malformed_ready_drops_no_guild(feed: Feed, wrong: dict[str, object]) -> None:
    """It is refused before anything of it is applied, and the session stays as it was."""
    feed("READY", ready(GUILD))
    feed.refuses("READY", {**ready(), **wrong})
    assert feed.cache.session.bot == BOT


def test_resumed_means_no_change(feed: Feed) -> None:
    feed("READY", ready(GUILD))
    feed.changes_nothing("RESUMED", {"_trace": []})
    feed.changes_nothing("RESUMED", None)


def test_guild_create_gives_every_child_its_key(feed: Feed) -> None:
    """The guild keeps parts without keys; children get its id (docs/resolutions.md#a59, #a57, #a68)."""
    feed("READY", ready(GUILD))
    feed(
        "GUILD_CREATE",
        guild(
            member_count=9,
            guild_hashes={"version": 1},
            soundboard_sounds=[],
            channels=[channel()],
            threads=[thread()],
            roles=[{"id": ROLE, "colors": {"primary_color": 0}}],
            emojis=[{"id": EMOJI, "user": user(BEN)}],
            stickers=[{"id": "7", "user": user(BEN)}],
            members=[whole_member(ANN)],
            voice_states=[{"user_id": ANN, "channel_id": "8", "session_id": "s"}],
            presences=[{"user": {"id": ANN}, "status": "idle", "activities": []}],
            stage_instances=[{"id": "9", "channel_id": "8", "topic": "t"}],
            guild_scheduled_events=[{"id": "10", "guild_id": GUILD, "creator": user(BEN)}],
            welcome_screen={"description": None, "welcome_channels": []},
        ),
    )
    kept = guild(member_count=9, guild_hashes={"version": 1}, soundboard_sounds=[])
    assert feed.at(f"guilds:{GUILD}") == kept
    assert feed.at("guilds") == {GUILD}
    assert feed.at(f"channels:{GUILD}") == {CHANNEL: channel(guild_id=GUILD)}
    assert feed.at(f"threads:{THREAD}") == thread()
    assert feed.at(f"roles:{GUILD}") == {ROLE: {"id": ROLE, "colors": {"primary_color": 0}}}
    assert feed.at(f"emojis:{GUILD}") == {EMOJI: {"id": EMOJI, "user": BEN}}
    assert feed.at(f"stickers:{GUILD}") == {"7": {"id": "7", "user": BEN}}
    assert feed.at(f"members:{GUILD}") == {ANN}
    assert feed.at(f"members:{GUILD}:{ANN}") == member()
    assert feed.at(f"users:{ANN}") == user(ANN)
    assert feed.at(f"users:{BEN}") == user(BEN)
    state = {"user_id": ANN, "channel_id": "8", "session_id": "s", "guild_id": GUILD}
    assert feed.at(f"voice-states:{GUILD}") == {ANN: state}
    shown = {"user": ANN, "status": "idle", "activities": [], "guild_id": GUILD}
    assert feed.at(f"presence:{GUILD}:{ANN}") == shown
    assert feed.at("stage-instances:8") == {"id": "9", "channel_id": "8", "topic": "t", "guild_id": GUILD}
    assert feed.at(f"scheduled-events:{GUILD}") == {"10": {"id": "10", "guild_id": GUILD, "creator": BEN}}
    assert feed.at(f"welcome-screen:{GUILD}") == {"description": None, "welcome_channels": []}


def test_guild_create_replaces_the_children(feed: Feed) -> None:
    """Stale children are removed; rules and integrations stay (docs/resolutions.md#a60)."""
    children: Json = {
        "channels": [channel()],
        "roles": [{"id": ROLE}],
        "emojis": [{"id": EMOJI}],
        "stickers": [{"id": "7"}],
        "voice_states": [{"user_id": ANN, "channel_id": "8"}],
        "stage_instances": [{"id": "9", "channel_id": "8"}],
        "guild_scheduled_events": [{"id": "10"}],
    }
    feed("GUILD_CREATE", guild(unavailable=True, **children) | {"unavailable": False})
    feed("AUTO_MODERATION_RULE_CREATE", {"id": "11", "guild_id": GUILD})
    nothing: Json = {name: [] for name in children}
    feed("GUILD_CREATE", guild(**nothing))
    assert feed.names() == {"guilds", f"guilds:{GUILD}", f"automod-rules:{GUILD}"}
    assert feed.at(f"guilds:{GUILD}") == guild()


def test_guild_create_without_a_list_leaves_those_children(feed: Feed) -> None:
    """Absent is not empty."""
    feed("GUILD_CREATE", guild(roles=[{"id": ROLE}]))
    feed("GUILD_CREATE", guild())
    assert feed.at(f"roles:{GUILD}") == {ROLE: {"id": ROLE}}


def test_guild_create_adds_the_members_of_a_partial_list(feed: Feed) -> None:
    """Of a large guild only some members are listed, so the others stay (docs/resolutions.md#a60)."""
    feed("GUILD_CREATE", guild(member_count=3, members=[whole_member(ANN)]))
    feed("GUILD_CREATE", guild(member_count=3, members=[whole_member(BEN)]))
    assert feed.at(f"members:{GUILD}") == {ANN, BEN}


def test_guild_create_drops_who_is_not_in_a_whole_list_of_members(feed: Feed) -> None:
    """A list as long as member_count is complete, so others left while offline (docs/resolutions.md#a60).

    Else a session that is replayed from its GUILD_CREATE would find members that are not counted yet.
    """
    feed("GUILD_CREATE", guild(member_count=2, members=[whole_member(ANN), whole_member(BOT)]))
    feed("PRESENCE_UPDATE", {"guild_id": GUILD, "user": {"id": ANN}, "status": "online"})
    feed("GUILD_CREATE", guild(member_count=1, members=[whole_member(BOT)]))
    assert feed.at(f"members:{GUILD}") == {BOT}
    assert feed.at(f"members:{GUILD}:{ANN}") is None
    assert feed.at(f"presence:{GUILD}:{ANN}") is None
    assert feed.at(f"users:{ANN}") == user(ANN)


def test_somebody_who_is_listed_twice_hides_nobody_who_left(feed: Feed) -> None:
    feed("GUILD_CREATE", guild(member_count=2, members=[whole_member(ANN), whole_member(BOT)]))
    feed("GUILD_CREATE", guild(member_count=2, members=[whole_member(BOT), whole_member(BOT)]))
    assert feed.at(f"members:{GUILD}") == {BOT}
    assert feed.at(f"members:{GUILD}:{ANN}") is None


def test_guild_create_of_an_unavailable_guild_only_lists_it(feed: Feed) -> None:
    """The stored guild stays (docs/resolutions.md#a61)."""
    feed("GUILD_CREATE", {"id": OTHER_GUILD, "unavailable": True})
    assert feed.names() == {"guilds"}
    feed("GUILD_CREATE", guild(roles=[{"id": ROLE}]))
    feed.changes_nothing("GUILD_CREATE", {"id": GUILD, "unavailable": True})


def test_guild_update_merges_and_replaces_its_lists(feed: Feed) -> None:
    """It lacks joined_at, large and member_count (docs/resolutions.md#a62)."""
    feed("GUILD_CREATE", guild(member_count=5, large=False, roles=[{"id": ROLE}], channels=[channel()]))
    feed("GUILD_UPDATE", guild(name="Dogs", roles=[{"id": "2"}], emojis=[], stickers=[]))
    assert feed.at(f"guilds:{GUILD}") == guild(name="Dogs", member_count=5, large=False)
    assert feed.at(f"roles:{GUILD}") == {"2": {"id": "2"}}
    assert feed.at(f"channels:{GUILD}") == {CHANNEL: channel(guild_id=GUILD)}


def test_guild_delete_of_an_unavailable_guild_marks_it(feed: Feed) -> None:
    """An outage, so everything is kept (docs/resolutions.md#a63)."""
    feed("GUILD_CREATE", guild(roles=[{"id": ROLE}], members=[whole_member(ANN)]))
    names = feed.names()
    feed("GUILD_DELETE", {"id": GUILD, "unavailable": True})
    assert feed.names() == names
    assert feed.at(f"guilds:{GUILD}") == guild(unavailable=True)
    feed("GUILD_CREATE", guild(unavailable=False))
    assert feed.at(f"guilds:{GUILD}") == guild(unavailable=False)


def test_guild_delete_of_an_unknown_unavailable_guild_changes_nothing(feed: Feed) -> None:
    feed.changes_nothing("GUILD_DELETE", {"id": GUILD, "unavailable": True})


def test_guild_delete_leaves_nothing_of_the_guild(feed: Feed) -> None:
    """Private indexes too; users do not belong to a guild and stay (docs/resolutions.md#a66, #a53)."""
    feed("READY", ready(GUILD))
    feed(
        "GUILD_CREATE",
        guild(
            channels=[channel()],
            roles=[{"id": ROLE}],
            emojis=[{"id": EMOJI}],
            stickers=[{"id": "7"}],
            members=[whole_member(ANN)],
            voice_states=[{"user_id": ANN, "channel_id": "8"}],
            presences=[{"user": {"id": BEN}, "status": "dnd"}],
            stage_instances=[{"id": "9", "channel_id": "8"}],
            guild_scheduled_events=[{"id": "10"}],
            threads=[thread(member={"flags": 1})],
            welcome_screen={"description": None},
        ),
    )
    feed("AUTO_MODERATION_RULE_CREATE", {"id": "11", "guild_id": GUILD})
    feed("INTEGRATION_CREATE", {"id": "12", "guild_id": GUILD})
    feed("THREAD_MEMBER_UPDATE", {"id": "13", "user_id": BOT, "guild_id": GUILD, "flags": 0})
    feed("THREAD_CREATE", {"id": "14", "guild_id": GUILD, "parent_id": None})
    feed("GUILD_DELETE", {"id": GUILD})
    assert feed.names() == {f"users:{BOT}", f"users:{ANN}", f"applications:{BOT}"}
    assert feed.everything()[1] == {}


@pytest.mark.parametrize("event", ["GUILD_ROLE_CREATE", "GUILD_ROLE_UPDATE"])
def test_a_role_is_written(feed: Feed, event: str) -> None:
    feed(event, {"guild_id": GUILD, "role": {"id": ROLE, "name": "new", "tags": {"bot_id": "1"}}})
    assert feed.at(f"roles:{GUILD}") == {ROLE: {"id": ROLE, "name": "new", "tags": {"bot_id": "1"}}}


def test_guild_role_delete_removes_the_role_and_leaves_its_holders(feed: Feed) -> None:
    """Members may name a role that is gone, as on Discord until they are updated."""
    feed("GUILD_ROLE_CREATE", {"guild_id": GUILD, "role": {"id": ROLE}})
    feed("GUILD_MEMBER_ADD", {"guild_id": GUILD, **whole_member(ANN, roles=[ROLE])})
    feed("GUILD_ROLE_DELETE", {"guild_id": GUILD, "role_id": ROLE})
    assert feed.at(f"roles:{GUILD}") is None
    assert feed.at(f"members:{GUILD}:{ANN}")["roles"] == [ROLE]


@pytest.mark.parametrize(
    ("event", "field"), [("GUILD_EMOJIS_UPDATE", "emojis"), ("GUILD_STICKERS_UPDATE", "stickers")]
)
def test_emojis_and_stickers_are_replaced_as_a_whole(feed: Feed, event: str, field: str) -> None:
    """The user who added them becomes an id (docs/resolutions.md#a72)."""
    feed(event, {"guild_id": GUILD, field: [{"id": "1"}, {"id": "2", "user": user(ANN)}]})
    assert feed.at(f"{field}:{GUILD}") == {"1": {"id": "1"}, "2": {"id": "2", "user": ANN}}
    assert feed.at(f"users:{ANN}") == user(ANN)
    feed(event, {"guild_id": GUILD, field: [{"id": "3"}]})
    assert feed.at(f"{field}:{GUILD}") == {"3": {"id": "3"}}
    feed(event, {"guild_id": GUILD, field: []})
    assert feed.at(f"{field}:{GUILD}") is None


@pytest.mark.parametrize("event", ["INTEGRATION_CREATE", "INTEGRATION_UPDATE"])
def test_an_integration_is_merged(feed: Feed, event: str) -> None:
    """The gateway omits `user`, so the stored one stays; the bot becomes an id (docs/resolutions.md#a72)."""
    given = {"id": "5", "guild_id": GUILD, "name": "old", "user": user(ANN)}
    feed("INTEGRATION_CREATE", given)
    application = {"id": "6", "name": "App", "bot": user(BOT, bot=True)}
    feed(event, {"id": "5", "guild_id": GUILD, "name": "new", "application": application})
    assert feed.at(f"integrations:{GUILD}") == {
        "5": {
            "id": "5",
            "guild_id": GUILD,
            "name": "new",
            "user": ANN,
            "application": {"id": "6", "name": "App", "bot": BOT},
        }
    }
    assert feed.at(f"users:{BOT}") == user(BOT, bot=True)


def test_integration_delete_removes_it(feed: Feed) -> None:
    feed("INTEGRATION_CREATE", {"id": "5", "guild_id": GUILD})
    feed("INTEGRATION_DELETE", {"id": "5", "guild_id": GUILD, "application_id": "6"})
    assert feed.names() == set()


@pytest.mark.parametrize("event", ["AUTO_MODERATION_RULE_CREATE", "AUTO_MODERATION_RULE_UPDATE"])
def test_a_rule_is_written(feed: Feed, event: str) -> None:
    rule = {"id": "5", "guild_id": GUILD, "creator_id": ANN, "exempt_roles": []}
    feed(event, rule)
    assert feed.at(f"automod-rules:{GUILD}") == {"5": rule}


def test_auto_moderation_rule_delete_removes_it(feed: Feed) -> None:
    feed("AUTO_MODERATION_RULE_CREATE", {"id": "5", "guild_id": GUILD})
    feed("AUTO_MODERATION_RULE_DELETE", {"id": "5", "guild_id": GUILD})
    assert feed.names() == set()


@pytest.mark.parametrize("event", ["GUILD_SCHEDULED_EVENT_CREATE", "GUILD_SCHEDULED_EVENT_UPDATE"])
def test_a_scheduled_event_is_written(feed: Feed, event: str) -> None:
    """Its creator becomes an id; null stays null (docs/resolutions.md#a73)."""
    feed(event, {"id": "5", "guild_id": GUILD, "creator": user(ANN), "image": None, "user_count": 3})
    held = {"id": "5", "guild_id": GUILD, "creator": ANN, "image": None, "user_count": 3}
    assert feed.at(f"scheduled-events:{GUILD}") == {"5": held}
    assert feed.at(f"users:{ANN}") == user(ANN)


def test_guild_scheduled_event_delete_removes_it(feed: Feed) -> None:
    feed("GUILD_SCHEDULED_EVENT_CREATE", {"id": "5", "guild_id": GUILD})
    feed("GUILD_SCHEDULED_EVENT_DELETE", {"id": "5", "guild_id": GUILD, "creator": None})
    assert feed.names() == set()


@pytest.mark.parametrize("event", ["GUILD_SCHEDULED_EVENT_USER_ADD", "GUILD_SCHEDULED_EVENT_USER_REMOVE"])
def test_users_of_a_scheduled_event_are_not_counted(feed: Feed, event: str) -> None:
    """A repeated event looks like a second user (docs/resolutions.md#a73)."""
    feed("GUILD_SCHEDULED_EVENT_CREATE", {"id": "5", "guild_id": GUILD, "user_count": 3})
    feed.changes_nothing(event, {"guild_scheduled_event_id": "5", "user_id": ANN, "guild_id": GUILD})


@pytest.mark.parametrize("event", ["STAGE_INSTANCE_CREATE", "STAGE_INSTANCE_UPDATE"])
def test_a_stage_instance_is_under_its_channel(feed: Feed, event: str) -> None:
    """See docs/resolutions.md#a80."""
    stage = {"id": "5", "guild_id": GUILD, "channel_id": CHANNEL, "topic": "t"}
    feed(event, stage)
    assert feed.at(f"stage-instances:{CHANNEL}") == stage


def test_stage_instance_delete_removes_it(feed: Feed) -> None:
    stage = {"id": "5", "guild_id": GUILD, "channel_id": CHANNEL}
    feed("STAGE_INSTANCE_CREATE", stage)
    feed("STAGE_INSTANCE_DELETE", stage)
    assert feed.everything() == ({}, {})


NO_CHANGE = (
    "GUILD_INTEGRATIONS_UPDATE",
    "WEBHOOKS_UPDATE",
    "MESSAGE_POLL_VOTE_ADD",
    "MESSAGE_POLL_VOTE_REMOVE",
    "ENTITLEMENT_CREATE",
    "ENTITLEMENT_UPDATE",
    "ENTITLEMENT_DELETE",
    "SUBSCRIPTION_CREATE",
    "SUBSCRIPTION_UPDATE",
    "SUBSCRIPTION_DELETE",
    "APPLICATION_COMMAND_PERMISSIONS_UPDATE",
    "AUTO_MODERATION_ACTION_EXECUTION",
    "GUILD_AUDIT_LOG_ENTRY_CREATE",
    "VOICE_SERVER_UPDATE",
    "VOICE_CHANNEL_EFFECT_SEND",
    "RATE_LIMITED",
    "SOMETHING_OF_TOMORROW",
)


@pytest.mark.parametrize("event", NO_CHANGE)
def test_an_event_that_no_key_is_for_changes_nothing(feed: Feed, event: str) -> None:
    """They do not name a webhook or integration, or are unknown (docs/resolutions.md#a78, #a79)."""
    feed("READY", ready(GUILD))
    feed("GUILD_CREATE", guild(soundboard_sounds=[{"sound_id": "1"}], channels=[channel()]))
    feed("MESSAGE_CREATE", message(poll={"answers": []}))
    feed.changes_nothing(
        event,
        {"guild_id": GUILD, "channel_id": CHANNEL, "user_id": ANN, "message_id": MESSAGE, "sound_id": "1"},
    )
