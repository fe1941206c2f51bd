"""One test for each entry of docs/resolutions.md about DRC.

Those about names and expiries are in test_drc_schema; those that the test of an event covers are not
repeated.
"""

from __future__ import annotations

import json

import pytest

from keywright_discord.drc import rest

from .feed import (
    ANN,
    BEN,
    BOT,
    CHANNEL,
    EMOJI,
    GUILD,
    MESSAGE,
    OTHER_GUILD,
    THREAD,
    Feed,
    Json,
    channel,
    encoded,
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


def test_the_author_of_a_webhook_is_an_id_and_not_a_user(feed: Feed) -> None:
    """As the reference says; the object stays beside it (docs/resolutions.md#a17)."""
    author = {"id": "77", "username": "Hook", "avatar": None}
    feed("MESSAGE_CREATE", message(webhook_id="77", author=author))
    assert feed.at(f"messages:{MESSAGE}")["author"] == "77"
    assert feed.at(f"messages:{MESSAGE}")["webhook_author"] == author
    assert feed.names() == {f"messages:{MESSAGE}"}


def test_an_update_without_an_author_is_merged_into_a_stored_message(feed: Feed) -> None:
    """Author and mentions may be absent (docs/resolutions.md#a18, #a20)."""
    feed("MESSAGE_CREATE", message())
    feed(
        "MESSAGE_UPDATE", {"id": MESSAGE, "channel_id": CHANNEL, "guild_id": GUILD, "embeds": [{"type": "x"}]}
    )
    assert feed.at(f"messages:{MESSAGE}") == message(embeds=[{"type": "x"}]) | {"author": ANN}


def test_an_update_without_an_author_makes_no_message(feed: Feed) -> None:
    """See docs/resolutions.md#a19."""
    feed.changes_nothing("MESSAGE_UPDATE", {"id": MESSAGE, "channel_id": CHANNEL, "embeds": []})


def test_a_partial_member_is_merged_into_the_stored_one(feed: Feed) -> None:
    """The member of a message is partial (docs/resolutions.md#a21)."""
    feed("GUILD_MEMBER_ADD", {"guild_id": GUILD, **whole_member(ANN, premium_since="t")})
    feed("MESSAGE_CREATE", message(member={"nick": "A", "roles": ["1"]}))
    expected = member(guild_id=GUILD, premium_since="t", nick="A", roles=["1"])
    assert feed.at(f"members:{GUILD}:{ANN}") == expected


def test_no_member_without_a_guild(feed: Feed) -> None:
    """The member of a message without guild_id stays where it is (docs/resolutions.md#a22, #a26)."""
    named = {"id": "5", "user": user(BEN), "member": {"nick": "B"}}
    given = message(member={"nick": "A"}, interaction=named)
    del given["guild_id"]
    feed("MESSAGE_CREATE", given)
    held = feed.at(f"messages:{MESSAGE}")
    assert held["member"] == {"nick": "A"}
    assert held["interaction"] == {"id": "5", "user": BEN, "member": {"nick": "B"}}
    assert feed.names() == {f"messages:{MESSAGE}", f"users:{ANN}", f"users:{BEN}"}


def test_a_referenced_message_that_is_null_stays_null(feed: Feed) -> None:
    """Null is deleted, absent is unknown (docs/resolutions.md#a23)."""
    feed("MESSAGE_CREATE", message("1", referenced_message=None))
    feed("MESSAGE_CREATE", message("2"))
    assert feed.at("messages:1")["referenced_message"] is None
    assert "referenced_message" not in feed.at("messages:2")


def test_a_referenced_message_is_merged_into_the_stored_one(feed: Feed) -> None:
    """It comes without guild and member, which the cached one may have (docs/resolutions.md#a24)."""
    feed("MESSAGE_CREATE", message("1", nonce="n"))
    inner = message("1", content="edited")
    del inner["guild_id"]
    feed("MESSAGE_CREATE", message("2", referenced_message=inner))
    assert feed.at("messages:2")["referenced_message"] == "1"
    assert feed.at("messages:1") == message("1", content="edited", nonce="n") | {"author": ANN}


@pytest.mark.parametrize(("where", "expected"), [(GUILD, GUILD), (OTHER_GUILD, None), (None, None)])
def test_a_referenced_message_gets_the_guild_of_its_reference(
    feed: Feed, where: str | None, expected: str | None
) -> None:
    """Only when the reference says that it is the same (docs/resolutions.md#a24)."""
    inner = message("1")
    del inner["guild_id"]
    reference = {"message_id": "1", "guild_id": where}
    feed("MESSAGE_CREATE", message("2", referenced_message=inner, message_reference=reference))
    assert feed.at("messages:1").get("guild_id") == expected


def test_users_of_interaction_metadata_become_ids(feed: Feed) -> None:
    """As those of the older `interaction`, at any depth (docs/resolutions.md#a25)."""
    inner = {"id": "6", "user": user(BEN), "target_user": user(BOT)}
    metadata = {"id": "5", "user": user(ANN), "triggering_interaction_metadata": inner}
    named = {"id": "5", "user": user(ANN), "member": {"nick": "A"}, "name": "x"}
    feed("MESSAGE_CREATE", message(interaction_metadata=metadata, interaction=named))
    held = feed.at(f"messages:{MESSAGE}")
    assert held["interaction"] == {"id": "5", "user": ANN, "name": "x"}
    assert held["interaction_metadata"] == {
        "id": "5",
        "user": ANN,
        "triggering_interaction_metadata": {"id": "6", "user": BEN, "target_user": BOT},
    }
    assert feed.at(f"users:{BOT}") == user(BOT)
    assert feed.at(f"members:{GUILD}:{ANN}") == {"nick": "A"}


def test_a_member_belongs_to_the_user_of_the_interaction_and_to_nobody_else(feed: Feed) -> None:
    """With a target user alone it is not known whose member it is (docs/resolutions.md#a26)."""
    feed(
        "MESSAGE_CREATE", message(interaction={"id": "5", "target_user": user(BEN), "member": {"nick": "?"}})
    )
    assert feed.at(f"members:{GUILD}") is None
    assert feed.at(f"messages:{MESSAGE}")["interaction"]["member"] == {"nick": "?"}


def test_the_thread_of_a_message_becomes_an_id(feed: Feed) -> None:
    """And a thread, with the bot's membership apart (docs/resolutions.md#a27)."""
    feed("READY", ready())
    started = thread(member={"flags": 1})
    del started["guild_id"]
    feed("MESSAGE_CREATE", message(thread=started))
    assert feed.at(f"messages:{MESSAGE}")["thread"] == THREAD
    assert feed.at(f"threads:{THREAD}") == thread()
    assert set(feed.at(f"thread-members:{THREAD}")) == {BOT}


def test_a_thread_of_no_known_guild_stays_in_its_message(feed: Feed) -> None:
    """Without a guild it could not be removed again (docs/resolutions.md#a27, #a44)."""
    started = thread()
    del started["guild_id"]
    given = message(thread=started)
    del given["guild_id"]
    feed("MESSAGE_CREATE", given)
    assert feed.at(f"messages:{MESSAGE}")["thread"] == started
    assert feed.at(f"threads:{THREAD}") is None


def test_other_nested_objects_stay_as_they_came(feed: Feed) -> None:
    """See docs/resolutions.md#a28."""
    inline: Json = {
        "reactions": [{"emoji": FIRE, "count": 2, "me": False}],
        "application": {"id": BOT, "bot": user(BOT)},
        "sticker_items": [{"id": "1"}],
        "mention_channels": [channel(guild_id=OTHER_GUILD)],
        "message_snapshots": [{"message": {"content": "x", "mentions": [user(BEN)]}}],
        "resolved": {"users": {BEN: user(BEN)}},
        "poll": {"answers": [], "results": None},
        "call": {"participants": [BEN]},
        "role_subscription_data": {"total": 1.50},
    }
    feed("MESSAGE_CREATE", message(**inline))
    assert feed.at(f"messages:{MESSAGE}") == message(**inline) | {"author": ANN}
    assert feed.at(f"users:{BEN}") is None


def test_counts_in_a_message_are_not_rewritten_by_reactions(feed: Feed) -> None:
    """The array has counts, the sets have the users that were seen (docs/resolutions.md#a29, #a35)."""
    counted = [{"emoji": FIRE, "count": 7, "me": False}]
    feed("MESSAGE_CREATE", message(reactions=counted))
    assert feed.at(f"reactions:{MESSAGE}") is None
    feed("MESSAGE_REACTION_ADD", reaction(FIRE))
    assert feed.at(f"messages:{MESSAGE}")["reactions"] == counted


def test_no_index_of_messages_is_kept(feed: Feed) -> None:
    """They expire, also those of a removed guild (docs/resolutions.md#a30)."""
    feed("MESSAGE_CREATE", message())
    assert feed.everything()[1] == {}
    feed("GUILD_DELETE", {"id": GUILD})
    assert feed.at(f"messages:{MESSAGE}") is not None
    assert feed.expires_in(f"messages:{MESSAGE}") > 0


def test_a_burst_reaction_is_a_reaction(feed: Feed) -> None:
    """See docs/resolutions.md#a33."""
    feed("MESSAGE_REACTION_ADD", reaction(FIRE, burst=True, type=1, burst_colors=["#fff"]))
    feed("MESSAGE_REACTION_ADD", reaction(FIRE, BEN, burst=False, type=0))
    assert feed.at(f"reactions:{MESSAGE}:🔥") == {ANN, BEN}
    feed("MESSAGE_REACTION_REMOVE", reaction(FIRE, burst=True, type=1))
    assert feed.at(f"reactions:{MESSAGE}:🔥") == {BEN}


def test_a_deleted_custom_emoji_is_still_named_by_its_id(feed: Feed) -> None:
    """Its name is null then (docs/resolutions.md#a31)."""
    feed("MESSAGE_REACTION_ADD", reaction({"id": EMOJI, "name": None}))
    assert feed.at(f"reactions:{MESSAGE}") == {EMOJI}
    feed.refuses("MESSAGE_REACTION_ADD", reaction({"id": None, "name": None}))


def test_the_bots_membership_is_left_out_while_the_bot_is_unknown(feed: Feed) -> None:
    """Members inside a guild's threads name neither thread nor user (docs/resolutions.md#a36)."""
    feed("GUILD_CREATE", guild(threads=[thread(member={"flags": 1})]))
    assert feed.at(f"threads:{THREAD}") == thread()
    assert feed.at(f"thread-members:{THREAD}") is None
    feed("READY", ready(GUILD))
    feed("GUILD_CREATE", guild(threads=[thread(member={"flags": 1})]))
    assert feed.at(f"thread-members:{THREAD}") == {BOT: {"flags": 1, "id": THREAD, "user_id": BOT}}


@pytest.mark.parametrize("given", [{}, {"member": None}], ids=["absent", "null"])
def test_a_thread_need_not_have_a_member(feed: Feed, given: Json) -> None:
    """And never keeps one (docs/resolutions.md#a37, #a38)."""
    feed("THREAD_CREATE", thread(**given))
    assert feed.at(f"threads:{THREAD}") == thread()


def test_a_thread_member_may_take_its_user_from_its_guild_member(feed: Feed) -> None:
    """Either of them has the user (docs/resolutions.md#a41)."""
    added = [{"flags": 0, "member": whole_member(ANN)}, {"flags": 1, "user_id": BEN, "member": {"nick": "B"}}]
    update = {"id": THREAD, "guild_id": GUILD, "member_count": 2, "added_members": added}
    feed("THREAD_MEMBERS_UPDATE", update)
    assert feed.at(f"thread-members:{THREAD}") == {
        ANN: {"flags": 0, "id": THREAD, "user_id": ANN},
        BEN: {"flags": 1, "id": THREAD, "user_id": BEN},
    }
    assert feed.at(f"members:{GUILD}:{BEN}") == {"nick": "B"}


def test_a_presence_of_a_thread_member_may_be_null(feed: Feed) -> None:
    """See docs/resolutions.md#a42."""
    added = [{"flags": 0, "user_id": ANN, "member": None, "presence": None}]
    update = {"id": THREAD, "guild_id": GUILD, "member_count": 2, "added_members": added}
    feed("THREAD_MEMBERS_UPDATE", update)
    assert feed.names() == {f"thread-members:{THREAD}"}


def test_members_of_an_unknown_thread_go_with_the_guild(feed: Feed) -> None:
    """The private index lists threads that were never received (docs/resolutions.md#a44)."""
    own = {"id": THREAD, "user_id": BOT, "guild_id": GUILD, "flags": 0}
    feed("THREAD_MEMBER_UPDATE", own)
    feed("GUILD_DELETE", {"id": GUILD})
    assert feed.everything() == ({}, {})


def test_a_membership_does_not_hide_the_parent_of_its_thread(feed: Feed) -> None:
    """The index keeps the channel, in any order of events (docs/resolutions.md#a44)."""
    own = {"id": THREAD, "user_id": BOT, "guild_id": GUILD, "flags": 0}
    feed("THREAD_MEMBER_UPDATE", own)
    feed("THREAD_CREATE", thread())
    feed("THREAD_MEMBER_UPDATE", own)
    feed("CHANNEL_DELETE", channel(guild_id=GUILD))
    assert feed.everything() == ({}, {})


def test_computed_permissions_are_not_part_of_a_member(feed: Feed) -> None:
    """They are computed per channel; those of a role or an overwrite stay (docs/resolutions.md#a52)."""
    feed("TYPING_START", {"guild_id": GUILD, "user_id": ANN, "member": whole_member(ANN, permissions="8")})
    assert feed.at(f"members:{GUILD}:{ANN}") == member()
    feed(
        "GUILD_CREATE",
        guild(members=[whole_member(ANN, permissions="8")], roles=[{"id": "1", "permissions": "8"}]),
    )
    assert feed.at(f"members:{GUILD}:{ANN}") == member()
    assert feed.at(f"roles:{GUILD}") == {"1": {"id": "1", "permissions": "8"}}


def test_users_are_never_removed(feed: Feed) -> None:
    """See docs/resolutions.md#a53."""
    feed("GUILD_CREATE", guild(members=[whole_member(ANN)]))
    feed("GUILD_MEMBER_REMOVE", {"guild_id": GUILD, "user": user(ANN)})
    feed("GUILD_DELETE", {"id": GUILD})
    assert feed.names() == {f"users:{ANN}"}


def test_a_partial_user_makes_no_user(feed: Feed) -> None:
    """A presence may name its user with any of the fields (docs/resolutions.md#a54)."""
    shown = {"guild_id": GUILD, "status": "online", "user": {"id": ANN, "username": "an", "avatar": "a"}}
    feed("PRESENCE_UPDATE", shown)
    assert feed.names() == {f"presence:{GUILD}:{ANN}"}
    feed("GUILD_BAN_ADD", {"guild_id": GUILD, "user": {"id": ANN}})
    assert feed.at(f"users:{ANN}") is None


def test_a_partial_user_never_overwrites_a_whole_one(feed: Feed) -> None:
    """Its fields are merged (docs/resolutions.md#a54)."""
    feed("USER_UPDATE", user(ANN, bot=False, banner="b"))
    feed("PRESENCE_UPDATE", {"guild_id": GUILD, "status": "online", "user": {"id": ANN, "avatar": "new"}})
    assert feed.at(f"users:{ANN}") == user(ANN, bot=False, banner="b", avatar="new")
    feed("GUILD_MEMBER_UPDATE", {"guild_id": GUILD, "user": {"id": ANN}, "nick": "A"})
    assert feed.at(f"users:{ANN}") == user(ANN, bot=False, banner="b", avatar="new")


def test_users_of_an_application_are_merged_into_stored_ones(feed: Feed) -> None:
    """Team members and the bot have a name, but not all that a user has (docs/resolutions.md#a70)."""
    feed("USER_UPDATE", user(ANN, banner="b"))
    few = {"id": ANN, "username": "ann", "discriminator": "0", "avatar": None}
    team = {"id": "3", "members": [{"role": "admin", "user": few}]}
    given = {"id": BOT, "owner": few, "bot": user(BOT), "team": team, "guild": {"id": GUILD}}
    feed.database.run(feed.cache.store(rest.store_application(json.dumps(given).encode())))
    assert feed.at(f"applications:{BOT}") == {
        "id": BOT,
        "owner": ANN,
        "bot": BOT,
        "team": {"id": "3", "members": [{"role": "admin", "user": ANN}]},
        "guild": {"id": GUILD},
    }
    assert feed.at(f"users:{ANN}") == {**user(ANN, banner="b"), **few}
    assert feed.at(f"users:{BOT}") == user(BOT)


def test_member_count_is_kept_only_where_the_guild_has_one(feed: Feed) -> None:
    """See docs/resolutions.md#a65."""
    feed("GUILD_CREATE", guild())
    feed("GUILD_MEMBER_ADD", {"guild_id": GUILD, **whole_member(ANN)})
    assert feed.at(f"guilds:{GUILD}") == guild()
    feed("GUILD_UPDATE", guild(member_count=None))
    feed("GUILD_MEMBER_ADD", {"guild_id": GUILD, **whole_member(BEN)})
    assert feed.at(f"guilds:{GUILD}") == guild(member_count=None)


def test_member_count_does_not_fall_below_zero(feed: Feed) -> None:
    """See docs/resolutions.md#a65."""
    feed("GUILD_CREATE", guild(member_count=0, members=[whole_member(ANN)]))
    feed("GUILD_MEMBER_REMOVE", {"guild_id": GUILD, "user": user(ANN)})
    assert feed.at(f"guilds:{GUILD}") == guild(member_count=0)


def test_an_interaction_in_a_direct_message_names_its_user(feed: Feed) -> None:
    """See docs/resolutions.md#a69."""
    feed("INTERACTION_CREATE", {"id": "5", "user": user(ANN), "type": 2})
    assert feed.at("interactions:5") == {"id": "5", "user": ANN, "type": 2}


def test_the_message_of_an_interaction_becomes_an_id(feed: Feed) -> None:
    """It comes without the guild, which the interaction has (docs/resolutions.md#a69)."""
    inner = message()
    del inner["guild_id"]
    feed("INTERACTION_CREATE", {"id": "5", "guild_id": GUILD, "user": user(BEN), "message": inner})
    assert feed.at("interactions:5")["message"] == MESSAGE
    assert feed.at(f"messages:{MESSAGE}") == message() | {"author": ANN}


def test_resolved_users_and_members_become_ids(feed: Feed) -> None:
    """Roles, channels, messages and attachments are partial, and stay (docs/resolutions.md#a69)."""
    rest_of_it = {"roles": {"1": {"id": "1"}}, "channels": {}, "attachments": {"2": {"id": "2", "size": 1}}}
    partial = {"nick": "A", "roles": [], "permissions": "8"}
    resolved = {"users": {ANN: user(ANN)}, "members": {ANN: partial}, **rest_of_it}
    given = {"id": "5", "guild_id": GUILD, "user": user(BEN), "data": {"name": "x", "resolved": resolved}}
    feed("GUILD_CREATE", guild())
    feed("INTERACTION_CREATE", given)
    held = feed.at("interactions:5")["data"]
    assert held == {"name": "x", "resolved": {"users": [ANN], "members": [ANN], **rest_of_it}}
    assert feed.at(f"members:{GUILD}:{ANN}") == {"nick": "A", "roles": []}
    assert feed.at(f"users:{ANN}") == user(ANN)


def test_an_interaction_elsewhere_keeps_its_people_inline(feed: Feed) -> None:
    """The bot is not in the guild, so they are not stored apart (docs/resolutions.md#a87)."""
    resolved = {"users": {BEN: user(BEN)}, "members": {BEN: {"nick": "B"}}}
    given = {"id": "5", "guild_id": GUILD, "member": whole_member(ANN), "data": {"resolved": resolved}}
    feed("INTERACTION_CREATE", given)
    assert feed.at("interactions:5") == {**given, "user": ANN}
    assert feed.names() == {"interactions:5", f"users:{ANN}", f"users:{BEN}"}


def test_resolved_members_without_a_guild_stay(feed: Feed) -> None:
    """An object that cannot be stored elsewhere is not removed (docs/resolutions.md#a22, #a69)."""
    resolved = {"members": {ANN: {"nick": "A"}}}
    feed("INTERACTION_CREATE", {"id": "5", "user": user(BEN), "data": {"resolved": resolved}})
    assert feed.at("interactions:5")["data"] == {"resolved": resolved}


def test_an_id_above_2_to_the_53_is_exact_as_a_number_too(feed: Feed) -> None:
    """ETF sends ids as numbers; they are the same ids."""
    feed("USER_UPDATE", b'{"id":18446744073709551615,"username":"a"}')
    assert feed.stored("users:18446744073709551615") == b'{"id":18446744073709551615,"username":"a"}'
    for wrong in ("18446744073709551616", "-1", '"007"', '"1e3"', "1.5", '""', "true", "null", "{}"):
        feed.refuses("USER_UPDATE", f'{{"id":{wrong},"username":"a"}}'.encode())


ODD = (
    '{"a":[],"b":{},"c":null,"d":1.0,"e":1e3,"f":-0.0,"g":151120006600001,"h":123456789012345678901234567890,'
    '"i":"\\/ \\u00e9 \\ud83d\\ude00","j":[[],[null]],"k":"","l":0.1000,"m":true}'
)


@pytest.mark.parametrize(
    ("event", "data", "name", "field"),
    [
        ("AUTO_MODERATION_RULE_CREATE", f'{{"id":"5","guild_id":"6","odd":{ODD}}}', "automod-rules:6", "5"),
        ("GUILD_CREATE", f'{{"id":"6","odd":{ODD},"roles":[]}}', "guilds:6", None),
        ("GUILD_CREATE", f'{{"id":"6","roles":[{{"id":"5","odd":{ODD}}}]}}', "roles:6", "5"),
        (
            "GUILD_CREATE",
            f'{{"id":"6","members":[{{"odd":{ODD},"user":{{"id":"5","username":"a"}}}}]}}',
            "members:6:5",
            None,
        ),
        (
            "GUILD_CREATE",
            f'{{"id":"6","members":[{{"user":{{"id":"5","username":"a","odd":{ODD}}}}}]}}',
            "users:5",
            None,
        ),
        (
            "MESSAGE_CREATE",
            f'{{"id":"5","channel_id":"6","mentions":[],"odd":{ODD},"author":{{"id":"7","username":"a"}}}}',
            "messages:5",
            None,
        ),
        (
            "INTERACTION_CREATE",
            f'{{"id":"5","data":{{"odd":{ODD},"resolved":{{"users":{{}}}}}}}}',
            "interactions:5",
            None,
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and value.isascii() and len(value) < 30 else "",
)
def test_what_is_not_understood_is_stored_byte_for_byte(
    feed: Feed, event: str, data: str, name: str, field: str | None
) -> None:
    """Unknown fields, empty arrays, nulls, floats and numbers of any length, which cjson would corrupt."""
    feed(event, data.encode())
    assert f'"odd":{ODD}'.encode() in feed.stored(name, field)


def test_a_merge_keeps_the_bytes_of_both(feed: Feed) -> None:
    feed("THREAD_CREATE", b'{"id":"5","guild_id":"6","a":1.0,"b":[ ],"c":null}')
    feed("THREAD_UPDATE", b'{"id":"5","guild_id":"6","c":1e2}')
    assert feed.stored("threads:5") == b'{"id":"5","guild_id":"6","a":1.0,"b":[ ],"c":1e2}'


def test_white_space_and_the_order_of_fields_do_not_matter(feed: Feed) -> None:
    """The fast path for a compact guild and the slow one give the same."""
    given = guild(
        members=[whole_member(ANN), {**member(), "user": user(BEN)}],
        channels=[channel()],
        emojis=[{"id": EMOJI, "user": user(ANN)}],
    )
    feed("GUILD_CREATE", json.dumps(given, separators=(",", ":")).encode())
    compact = feed.everything()
    feed("GUILD_DELETE", {"id": GUILD})
    feed("GUILD_CREATE", json.dumps(given, indent=2).encode())
    assert feed.everything() == compact


def test_a_thread_whose_parent_is_not_an_id_is_refused(feed: Feed) -> None:
    """It would corrupt the index (docs/resolutions.md#a44)."""
    feed.refuses("THREAD_CREATE", thread(parent_id="general"))


def test_an_event_that_is_refused_does_not_keep_others_from_being_applied(feed: Feed) -> None:
    events = [
        ("GUILD_BAN_ADD", json.dumps({"user": user(ANN)}).encode()),
        ("GUILD_BAN_ADD", b'{"user": {"id": "x"}}'),
        ("GUILD_BAN_ADD", json.dumps({"user": user(BEN)}).encode()),
    ]
    (refused,) = feed.database.run(feed.cache.apply(events))
    assert (refused.place, refused.event) == (1, "GUILD_BAN_ADD")
    assert feed.names() == {f"users:{ANN}", f"users:{BEN}"}


def test_of_two_events_in_one_window_the_later_one_wins(feed: Feed) -> None:
    """Also if one has thousands of members, which are written in another way (docs/resolutions.md#a84)."""
    update = {"guild_id": GUILD, "user": user(ANN, avatar="update"), "nick": "update"}
    created = guild(members=[{"user": user(ANN, avatar="created"), **member(nick="created")}])
    events = [
        ("GUILD_MEMBER_UPDATE", encoded(update)),
        ("GUILD_CREATE", encoded(created)),
    ]
    feed.database.run(feed.cache.apply(events))
    assert feed.at(f"users:{ANN}")["avatar"] == "created"
    assert feed.at(f"members:{GUILD}:{ANN}")["nick"] == "created"
    feed.database.run(feed.cache.apply(events[::-1]))
    assert feed.at(f"users:{ANN}")["avatar"] == "update"
    assert feed.at(f"members:{GUILD}:{ANN}")["nick"] == "update"
    gone = ("GUILD_MEMBER_REMOVE", encoded({"guild_id": GUILD, "user": user(ANN)}))
    feed.database.run(feed.cache.apply([events[1], gone]))
    assert feed.at(f"members:{GUILD}:{ANN}") is None
    assert feed.at(f"members:{GUILD}") is None
