"""Each event about people, messages and reactions: the keys that it leaves in Redis."""

from __future__ import annotations

import pytest

from keywright_discord.interpreter import EVENTS

from .feed import (
    ANN,
    BEN,
    BOT,
    CHANNEL,
    EMOJI,
    GUILD,
    MESSAGE,
    THREAD,
    Feed,
    channel,
    guild,
    member,
    message,
    reaction,
    ready,
    thread,
    user,
    whole_member,
)

FIRE = {"id": None, "name": "🔥"}
PARROT = {"id": EMOJI, "name": "parrot", "animated": True}


def test_user_update_stores_the_bot_without_its_address(feed: Feed) -> None:
    """See docs/resolutions.md#a58."""
    feed("USER_UPDATE", user(BOT, bot=True, email="bot@example.com", mfa_enabled=True))
    assert feed.at(f"users:{BOT}") == user(BOT, bot=True, mfa_enabled=True)


def test_guild_member_add_stores_member_user_and_count(feed: Feed) -> None:
    """`member_count` follows, and guild_id stays as received (docs/resolutions.md#a65, #a48)."""
    feed("GUILD_CREATE", guild(member_count=1))
    feed("GUILD_MEMBER_ADD", {"guild_id": GUILD, **whole_member(ANN)})
    assert feed.at(f"members:{GUILD}") == {ANN}
    assert feed.at(f"members:{GUILD}:{ANN}") == member(guild_id=GUILD)
    assert feed.at(f"users:{ANN}") == user(ANN)
    assert feed.at(f"guilds:{GUILD}") == guild(member_count=2)


def test_guild_member_add_counts_nobody_twice(feed: Feed) -> None:
    """It may come for members that are known (docs/resolutions.md#a50)."""
    feed("GUILD_CREATE", guild(member_count=1))
    feed("GUILD_MEMBER_ADD", {"guild_id": GUILD, **whole_member(ANN)})
    feed.changes_nothing("GUILD_MEMBER_ADD", {"guild_id": GUILD, **whole_member(ANN)})


def test_guild_member_update_merges(feed: Feed) -> None:
    """It lacks deaf and mute; the user that comes with it is whole (docs/resolutions.md#a49)."""
    feed("GUILD_MEMBER_ADD", {"guild_id": GUILD, **whole_member(ANN, deaf=True, nick="A")})
    feed("GUILD_MEMBER_UPDATE", {"guild_id": GUILD, "user": user(ANN, global_name="An"), "nick": None})
    assert feed.at(f"members:{GUILD}:{ANN}") == member(guild_id=GUILD, deaf=True, nick=None)
    assert feed.at(f"users:{ANN}") == user(ANN, global_name="An")


def test_guild_member_update_makes_a_member_that_was_not_known(feed: Feed) -> None:
    feed("GUILD_MEMBER_UPDATE", {"guild_id": GUILD, "user": user(ANN), "nick": "A"})
    assert feed.at(f"members:{GUILD}") == {ANN}
    assert feed.at(f"members:{GUILD}:{ANN}") == {"guild_id": GUILD, "nick": "A"}


def test_guild_member_remove_leaves_only_the_user(feed: Feed) -> None:
    """Member, presence and voice state are removed; the user is updated (docs/resolutions.md#a51)."""
    feed("GUILD_CREATE", guild(member_count=3, members=[whole_member(ANN)]))
    feed("PRESENCE_UPDATE", {"guild_id": GUILD, "user": {"id": ANN}, "status": "online"})
    feed("VOICE_STATE_UPDATE", {"guild_id": GUILD, "user_id": ANN, "channel_id": CHANNEL})
    gone = {"guild_id": GUILD, "user": user(ANN, global_name="An")}
    feed("GUILD_MEMBER_REMOVE", gone)
    assert feed.names() == {"guilds", f"guilds:{GUILD}", f"users:{ANN}"}
    assert feed.at(f"users:{ANN}") == user(ANN, global_name="An")
    assert feed.at(f"guilds:{GUILD}") == guild(member_count=2)
    feed.changes_nothing("GUILD_MEMBER_REMOVE", gone)
    assert feed.everything()[1] == {}


def test_guild_members_chunk_stores_members_users_and_presences(feed: Feed) -> None:
    feed(
        "GUILD_MEMBERS_CHUNK",
        {
            "guild_id": GUILD,
            "members": [whole_member(ANN), whole_member(BEN)],
            "chunk_index": 0,
            "chunk_count": 1,
            "not_found": ["1"],
            "presences": [{"user": {"id": BEN}, "status": "dnd"}],
        },
    )
    assert feed.at(f"members:{GUILD}") == {ANN, BEN}
    assert feed.at(f"members:{GUILD}:{BEN}") == member()
    assert feed.at(f"users:{ANN}") == user(ANN)
    assert feed.at(f"presence:{GUILD}:{BEN}") == {"user": BEN, "status": "dnd", "guild_id": GUILD}


@pytest.mark.parametrize("event", ["GUILD_BAN_ADD", "GUILD_BAN_REMOVE"])
def test_a_ban_stores_only_the_user(feed: Feed, event: str) -> None:
    """The specification has no key for bans."""
    feed(event, {"guild_id": GUILD, "user": user(ANN)})
    assert feed.names() == {f"users:{ANN}"}


def test_invite_create_stores_the_invite_and_its_people(feed: Feed) -> None:
    """Partial guilds and channels stay as they came (docs/resolutions.md#a75)."""
    given = {"code": "abc", "guild_id": GUILD, "channel_id": CHANNEL, "max_age": 0}
    inline = {"target_application": {"id": "6"}}
    feed("INVITE_CREATE", {**given, **inline, "inviter": user(ANN), "target_user": user(BEN)})
    assert feed.at("invites:abc") == {**given, **inline, "inviter": ANN, "target_user": BEN}
    assert feed.at(f"users:{BEN}") == user(BEN)
    assert feed.expires_in("invites:abc") == -1


def test_invite_delete_removes_it(feed: Feed) -> None:
    feed("INVITE_CREATE", {"code": "abc", "channel_id": CHANNEL, "max_age": 60})
    assert 0 < feed.expires_in("invites:abc") <= 60
    feed("INVITE_DELETE", {"code": "abc", "channel_id": CHANNEL})
    assert feed.names() == set()


def test_message_create_stores_the_message_and_everybody_in_it(feed: Feed) -> None:
    """Author and mentions become ids; members are removed, since guild and user lead to them."""
    mention = {**user(BEN), "member": member(nick="B")}
    feed("MESSAGE_CREATE", message(member=member(nick="A"), mentions=[mention], embeds=[]))
    assert feed.at(f"messages:{MESSAGE}") == message(embeds=[]) | {"author": ANN, "mentions": [BEN]}
    assert feed.at(f"users:{ANN}") == user(ANN)
    assert feed.at(f"users:{BEN}") == user(BEN)
    assert feed.at(f"members:{GUILD}:{ANN}") == member(nick="A")
    assert feed.at(f"members:{GUILD}:{BEN}") == member(nick="B")
    assert feed.at(f"members:{GUILD}") == {ANN, BEN}
    assert 590 < feed.expires_in(f"messages:{MESSAGE}") <= 600


@pytest.mark.parametrize("where", [CHANNEL, THREAD])
def test_message_create_is_the_last_message_of_its_channel(feed: Feed, where: str) -> None:
    """Discord sends no CHANNEL_UPDATE for it."""
    feed("CHANNEL_CREATE", channel(guild_id=GUILD, last_message_id=None))
    feed("THREAD_CREATE", thread(last_message_id=None))
    feed("MESSAGE_CREATE", message(channel_id=where))
    held = {
        CHANNEL: feed.at(f"channels:{GUILD}")[CHANNEL]["last_message_id"],
        THREAD: feed.at(f"threads:{THREAD}")["last_message_id"],
    }
    assert held == {CHANNEL: None, THREAD: None} | {where: MESSAGE}


def test_message_update_merges(feed: Feed) -> None:
    """A write renews the expiry (docs/resolutions.md#a19, #a16)."""
    feed("MESSAGE_CREATE", message(embeds=[], pinned=False))
    feed.raw("EXPIRE", f"keywright:v1json:messages:{MESSAGE}", 5)
    feed("MESSAGE_UPDATE", message(content="hello!", edited_timestamp="t"))
    given = message(content="hello!", edited_timestamp="t", embeds=[], pinned=False)
    assert feed.at(f"messages:{MESSAGE}") == given | {"author": ANN}
    assert feed.expires_in(f"messages:{MESSAGE}") > 590


def test_message_update_of_an_unknown_message_stores_it_when_it_is_whole(feed: Feed) -> None:
    feed("MESSAGE_UPDATE", message())
    assert feed.at(f"messages:{MESSAGE}") == message() | {"author": ANN}


def test_message_delete_removes_message_and_reactions(feed: Feed) -> None:
    """See docs/resolutions.md#a34."""
    feed("MESSAGE_CREATE", message())
    feed("MESSAGE_REACTION_ADD", reaction(FIRE))
    feed("MESSAGE_REACTION_ADD", reaction(PARROT))
    feed("MESSAGE_DELETE", {"id": MESSAGE, "channel_id": CHANNEL, "guild_id": GUILD})
    assert feed.names() == {f"users:{ANN}"}


def test_message_delete_bulk_removes_messages_and_reactions(feed: Feed) -> None:
    for identity in ("1", "2", "3"):
        feed("MESSAGE_CREATE", message(identity))
        feed("MESSAGE_REACTION_ADD", reaction(FIRE) | {"message_id": identity})
    feed("MESSAGE_DELETE_BULK", {"ids": ["1", "3", "99"], "channel_id": CHANNEL, "guild_id": GUILD})
    assert feed.names() == {f"users:{ANN}", "messages:2", "reactions:2", "reactions:2:🔥"}


def test_message_reaction_add_stores_emoji_and_user(feed: Feed) -> None:
    """A custom emoji by its id, another by its characters (docs/resolutions.md#a31)."""
    feed("MESSAGE_REACTION_ADD", reaction(FIRE, member=whole_member(ANN)))
    feed("MESSAGE_REACTION_ADD", reaction(PARROT))
    feed("MESSAGE_REACTION_ADD", reaction(FIRE, BEN))
    assert feed.at(f"reactions:{MESSAGE}") == {"🔥", EMOJI}
    assert feed.at(f"reactions:{MESSAGE}:🔥") == {ANN, BEN}
    assert feed.at(f"reactions:{MESSAGE}:{EMOJI}") == {ANN}
    assert feed.at(f"members:{GUILD}:{ANN}") == member()
    assert feed.at(f"users:{ANN}") == user(ANN)
    assert 590 < feed.expires_in(f"reactions:{MESSAGE}") <= 600
    assert 590 < feed.expires_in(f"reactions:{MESSAGE}:🔥") <= 600


def test_message_reaction_remove_takes_one_user(feed: Feed) -> None:
    """The last one takes the emoji along (docs/resolutions.md#a32)."""
    feed("MESSAGE_REACTION_ADD", reaction(FIRE))
    feed("MESSAGE_REACTION_ADD", reaction(FIRE, BEN))
    feed("MESSAGE_REACTION_ADD", reaction(PARROT))
    feed("MESSAGE_REACTION_REMOVE", reaction(FIRE))
    assert feed.at(f"reactions:{MESSAGE}:🔥") == {BEN}
    assert feed.at(f"reactions:{MESSAGE}") == {"🔥", EMOJI}
    feed("MESSAGE_REACTION_REMOVE", reaction(FIRE, BEN))
    assert feed.at(f"reactions:{MESSAGE}:🔥") is None
    assert feed.at(f"reactions:{MESSAGE}") == {EMOJI}
    feed.changes_nothing("MESSAGE_REACTION_REMOVE", reaction(FIRE, BEN))


def test_message_reaction_remove_of_somebody_unseen_leaves_the_others(feed: Feed) -> None:
    feed("MESSAGE_REACTION_ADD", reaction(FIRE))
    feed.changes_nothing("MESSAGE_REACTION_REMOVE", reaction(FIRE, BEN))


def test_message_reaction_remove_emoji_takes_one_emoji(feed: Feed) -> None:
    feed("MESSAGE_REACTION_ADD", reaction(FIRE))
    feed("MESSAGE_REACTION_ADD", reaction(PARROT))
    given = {"channel_id": CHANNEL, "guild_id": GUILD, "message_id": MESSAGE, "emoji": PARROT}
    feed("MESSAGE_REACTION_REMOVE_EMOJI", given)
    assert feed.at(f"reactions:{MESSAGE}") == {"🔥"}
    assert feed.at(f"reactions:{MESSAGE}:{EMOJI}") is None


def test_message_reaction_remove_all_takes_them_all(feed: Feed) -> None:
    feed("MESSAGE_REACTION_ADD", reaction(FIRE))
    feed("MESSAGE_REACTION_ADD", reaction(PARROT))
    feed("MESSAGE_REACTION_REMOVE_ALL", {"channel_id": CHANNEL, "message_id": MESSAGE})
    assert feed.names() == set()


def test_presence_update_stores_the_presence(feed: Feed) -> None:
    shown = {"guild_id": GUILD, "status": "dnd", "activities": [], "client_status": {"web": "dnd"}}
    feed("PRESENCE_UPDATE", {**shown, "user": {"id": ANN}})
    assert feed.at(f"presence:{GUILD}:{ANN}") == {**shown, "user": ANN}
    assert feed.names() == {f"presence:{GUILD}:{ANN}"}


def test_presence_update_to_offline_removes_it(feed: Feed) -> None:
    """See docs/resolutions.md#a55."""
    feed("PRESENCE_UPDATE", {"guild_id": GUILD, "user": {"id": ANN}, "status": "online"})
    feed("PRESENCE_UPDATE", {"guild_id": GUILD, "user": {"id": ANN}, "status": "offline"})
    assert feed.everything() == ({}, {})


def test_voice_state_update_stores_and_removes(feed: Feed) -> None:
    """The member is stored apart; without a channel the state is removed (docs/resolutions.md#a77)."""
    state = {"guild_id": GUILD, "user_id": ANN, "channel_id": CHANNEL, "self_mute": True}
    feed("VOICE_STATE_UPDATE", {**state, "member": whole_member(ANN)})
    assert feed.at(f"voice-states:{GUILD}") == {ANN: state}
    assert feed.at(f"members:{GUILD}:{ANN}") == member()
    assert feed.at(f"users:{ANN}") == user(ANN)
    feed("VOICE_STATE_UPDATE", {**state, "channel_id": None})
    assert feed.at(f"voice-states:{GUILD}") is None


def test_voice_state_update_without_a_guild_changes_nothing(feed: Feed) -> None:
    feed.changes_nothing("VOICE_STATE_UPDATE", {"user_id": ANN, "channel_id": CHANNEL, "guild_id": None})


def test_typing_start_stores_the_member(feed: Feed) -> None:
    typing = {"channel_id": CHANNEL, "user_id": ANN, "timestamp": 1}
    feed("TYPING_START", {**typing, "guild_id": GUILD, "member": whole_member(ANN)})
    assert feed.names() == {f"members:{GUILD}", f"members:{GUILD}:{ANN}", f"users:{ANN}"}
    feed.changes_nothing("TYPING_START", typing)


def test_interaction_create_is_stored_for_fifteen_minutes(feed: Feed) -> None:
    """The member is stored apart, by `user`, without its permissions (docs/resolutions.md#a69, #a52)."""
    feed("GUILD_CREATE", guild())
    given = {"id": "5", "application_id": BOT, "token": "secret", "guild_id": GUILD, "data": {"name": "x"}}
    feed("INTERACTION_CREATE", {**given, "member": whole_member(ANN, permissions="8")})
    assert feed.at("interactions:5") == {**given, "user": ANN}
    assert feed.at(f"members:{GUILD}:{ANN}") == member()
    assert feed.at(f"users:{ANN}") == user(ANN)
    assert 890 < feed.expires_in("interactions:5") <= 900


@pytest.mark.parametrize("event", sorted(EVENTS))
@pytest.mark.parametrize("data", [b"null", b"[]", b'"x"', b"{", b'{"guild_id": "x"}', b"\xff"])
def test_a_malformed_event_changes_nothing(feed: Feed, event: str, data: bytes) -> None:
    """It is refused with a reason, or means nothing; what was there stays."""
    feed("READY", ready(GUILD))
    feed("GUILD_CREATE", guild(members=[whole_member(ANN)]))
    before = feed.everything()
    refused = feed.database.run(feed.cache.apply([(event, data)]))
    assert all("was not applied" in each.reason for each in refused)
    assert feed.everything() == before
