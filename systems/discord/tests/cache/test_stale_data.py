"""Nothing out of date is left in either layout after a downtime, a removal or a complete list."""

from __future__ import annotations

import json
from typing import Any

import pytest

from invoking import invoke_keywright
from keywright_discord.drc import rest
from keywright_discord.traffic import Traffic
from keywright_discord.traffic.world import Home

from .both import Event, Fed
from .feed import (
    ANN,
    BEN,
    BOT,
    CHANNEL,
    GUILD,
    MESSAGE,
    OTHER_GUILD,
    THREAD,
    channel,
    guild,
    member,
    ready,
    thread,
    user,
    whole_member,
)
from .sessions import after_downtime, chunks

ONLINE = {"user": {"id": ANN}, "status": "online"}


def interaction(**more: Any) -> Event:
    asked = {"id": "5", "application_id": "1", "type": 2, "token": "t", "guild_id": GUILD}
    return "INTERACTION_CREATE", {**asked, "member": whole_member(ANN), **more}


def chunk(index: int, count: int, *people: str, **more: Any) -> Event:
    part = {"guild_id": GUILD, "chunk_index": index, "chunk_count": count, "nonce": "{n}:1"}
    return "GUILD_MEMBERS_CHUNK", {**part, "members": [whole_member(each) for each in people], **more}


def webhook(**more: Any) -> dict[str, Any]:
    return {"id": "77", "type": 1, "guild_id": GUILD, "channel_id": CHANNEL, "token": "secret", **more}


def invite(code: str = "abc", max_age: int = 0, **more: Any) -> Event:
    made = {"code": code, "guild_id": GUILD, "channel_id": CHANNEL, "max_age": max_age, **more}
    return "INVITE_CREATE", made


def joined_thread(*people: str) -> Event:
    added = [{"id": THREAD, "user_id": each, "member": whole_member(each)} for each in people]
    return "THREAD_MEMBERS_UPDATE", {"id": THREAD, "guild_id": GUILD, "added_members": added}


def test_user_installed_app_members_of_a_guild_the_bot_is_not_in_stay_for_ever(fed: Fed) -> None:
    """They did. Now only the users are stored, and the interaction, which expires."""
    resolved = {"users": {BEN: user(BEN)}, "members": {BEN: member()}}
    fed(("READY", ready()), interaction(data={"name": "ask", "resolved": resolved}))
    assert fed.members(GUILD) == set()
    assert [name for name in fed.names() if GUILD in name] == []


def test_members_of_an_interaction_are_stored_where_the_bot_is(fed: Fed) -> None:
    fed(("READY", ready(GUILD)), interaction())
    assert fed.members(GUILD) == {ANN}


@pytest.mark.parametrize("together", [True, False])
def test_a_guild_that_the_bot_joins_or_leaves_at_that_moment_counts_as_it_is_then(
    fed: Fed, together: bool
) -> None:
    events: list[Event] = [
        ("GUILD_CREATE", guild()),
        interaction(),
        ("GUILD_DELETE", {"id": GUILD}),
        interaction(),
    ]
    if together:
        fed(*events)
    else:
        for event in events:
            fed(event)
    assert fed.members(GUILD) == set()


def test_threads_of_a_channel_that_went_while_the_bot_was_away_stay(fed: Fed) -> None:
    """They did. The same holds for threads that were archived or deleted meanwhile."""
    fed(("READY", ready(GUILD)))
    fed(("GUILD_CREATE", guild(channels=[channel()], threads=[thread()])), joined_thread(ANN))
    fed(("GUILD_CREATE", guild(channels=[], threads=[])))
    assert fed.channel(GUILD, THREAD) is None
    assert [name for name in fed.names() if "thread" in name] == []


def test_members_of_a_thread_are_not_trusted_after_a_downtime(fed: Fed) -> None:
    """The list of threads has only the bot's own membership."""
    fed(("READY", ready(GUILD)), ("GUILD_CREATE", guild(channels=[channel()], threads=[thread()])))
    fed(joined_thread(ANN))
    own = {"id": THREAD, "user_id": BOT, "flags": 1}
    fed(("GUILD_CREATE", guild(channels=[channel()], threads=[thread(member=own)])))
    if fed.layout == "drc":
        assert set(fed.raw("HKEYS", f"keywright:v1json:thread-members:{THREAD}")) == {BOT.encode()}
        assert not fed.raw("EXISTS", f"keywright:v1json-private:member-threads:{GUILD}:{ANN}")


def test_thread_list_sync_removes_threads_and_members_that_it_does_not_list(fed: Fed) -> None:
    fed(("THREAD_CREATE", thread()), ("THREAD_CREATE", thread("31")), joined_thread(ANN))
    fed(("THREAD_LIST_SYNC", {"guild_id": GUILD, "channel_ids": [CHANNEL], "threads": [thread()]}))
    assert fed.channel(GUILD, "31") is None
    assert fed.channel(GUILD, THREAD) is not None
    assert [name for name in fed.names() if "thread-members" in name or "member-threads" in name] == []


def test_presences_of_those_who_went_offline_meanwhile_stay_online(fed: Fed) -> None:
    """They did, though the list of GUILD_CREATE lacks them."""
    fed(("GUILD_CREATE", guild(presences=[ONLINE])))
    assert fed.is_online(GUILD, ANN)
    fed(("GUILD_CREATE", guild(presences=[{**ONLINE, "user": {"id": BEN}}])))
    assert not fed.is_online(GUILD, ANN)
    assert fed.is_online(GUILD, BEN)


def test_a_presence_in_another_guild_stays(fed: Fed) -> None:
    fed(("GUILD_CREATE", guild(presences=[ONLINE])), ("GUILD_CREATE", guild(OTHER_GUILD, presences=[ONLINE])))
    fed(("GUILD_CREATE", guild(presences=[])))
    assert fed.is_online(OTHER_GUILD, ANN)
    fed(("GUILD_CREATE", guild(OTHER_GUILD, presences=[])))
    assert not fed.is_online(OTHER_GUILD, ANN)


def test_members_who_left_a_large_guild_go_with_a_complete_request(fed: Fed) -> None:
    """They stayed, also after all chunks of all members."""
    fed(("GUILD_CREATE", guild(member_count=3, members=[])))
    fed(("TYPING_START", {"guild_id": GUILD, "user_id": ANN, "member": whole_member(ANN)}))
    fed(("PRESENCE_UPDATE", {**ONLINE, "guild_id": GUILD}))
    fed(chunk(0, 3, BEN), chunk(1, 3, "31"))
    assert fed.members(GUILD) == {ANN, BEN, "31"}
    fed(chunk(2, 3, "32"))
    assert fed.members(GUILD) == {BEN, "31", "32"}
    assert not fed.is_online(GUILD, ANN)
    assert not any("received-members" in name for name in fed.names())


def test_a_request_of_one_chunk_is_complete_too(fed: Fed) -> None:
    fed(("GUILD_CREATE", guild(member_count=1, members=[whole_member(ANN), whole_member(BOT)])))
    fed(chunk(0, 1, BOT))
    assert fed.members(GUILD) == {BOT}


@pytest.mark.parametrize(
    "chunks",
    [
        [chunk(0, 2, BEN), chunk(1, 2, "31")],
        [chunk(1, 3, BEN), chunk(2, 3, "31", "32")],
        [chunk(0, 2, BEN, "31"), chunk(1, 2, "32", nonce="of another request")],
        [chunk(0, 2, "31", "32"), chunk(0, 2, BEN), chunk(1, 2, "33")],
    ],
    ids=["fewer than the guild has", "the first chunk is missing", "two requests", "begun again"],
)
def test_an_incomplete_request_removes_nobody(fed: Fed, chunks: list[Event]) -> None:
    fed(("GUILD_CREATE", guild(member_count=4, members=[whole_member(ANN)])))
    for event in chunks:
        fed(event)
    assert ANN in fed.members(GUILD)


def test_members_of_a_request_cut_short_are_forgotten_by_themselves(fed: Fed) -> None:
    fed(("GUILD_CREATE", guild(member_count=4)), chunk(0, 2, BEN))
    (name,) = [name for name in fed.raw.names() if b"received-members" in name]
    assert 0 < fed.raw("TTL", name) <= 600


def test_members_without_a_presence_in_a_chunk_with_presences_are_offline(fed: Fed) -> None:
    fed(("GUILD_CREATE", guild(presences=[ONLINE, {**ONLINE, "user": {"id": "31"}}])))
    fed(chunk(0, 2, ANN))
    assert fed.is_online(GUILD, ANN)
    fed(chunk(0, 2, ANN, BEN, presences=[{**ONLINE, "user": {"id": BEN}}]))
    assert [each for each in (ANN, BEN, "31") if fed.is_online(GUILD, each)] == [BEN, "31"]


@pytest.mark.parametrize("gone", ["CHANNEL_DELETE", "GUILD_DELETE", "GUILD_CREATE", "READY"])
def test_invites_without_an_end_outlive_channel_and_guild(fed: Fed, gone: str) -> None:
    """They did, and so did webhooks with their tokens."""
    fed(("READY", ready(GUILD)), ("GUILD_CREATE", guild(channels=[channel(), channel("21")])))
    fed(invite(), invite("temporary", 60), invite("other", channel_id="21"))
    fed.store(rest.store_webhook(webhook()))
    fed.store(rest.store_webhook(webhook(id="78", channel_id="21")))
    without: dict[str, Event] = {
        "CHANNEL_DELETE": ("CHANNEL_DELETE", channel(guild_id=GUILD)),
        "GUILD_DELETE": ("GUILD_DELETE", {"id": GUILD}),
        "GUILD_CREATE": ("GUILD_CREATE", guild(channels=[channel("21")], threads=[])),
        "READY": ("READY", ready()),
    }
    fed(without[gone])
    left = {name for name in fed.names() if name.startswith(("invites:", "webhooks:"))}
    if fed.layout == "spectacles":
        assert left == set()
        return
    assert {"invites:abc", "webhooks:77"}.isdisjoint(left)
    of_guild = {"invites:other", "webhooks:78", f"invites:{GUILD}", f"webhooks:{GUILD}"}
    stays = gone in ("CHANNEL_DELETE", "GUILD_CREATE")
    assert left - {"invites:temporary"} == (of_guild if stays else set())


@pytest.mark.parametrize("fed", ["drc"], indirect=True)
def test_removed_webhooks_and_invites_leave_the_index(fed: Fed) -> None:
    fed(invite(), ("INVITE_DELETE", {"code": "abc", "guild_id": GUILD, "channel_id": CHANNEL}))
    fed.store(rest.store_webhook(webhook()))
    fed.store(rest.drop_webhook("77"))
    fed.store(rest.store_invite({"code": "rest", "guild": {"id": GUILD}, "channel": {"id": CHANNEL}}))
    assert fed.raw("HGETALL", f"keywright:v1json-private:invites:{GUILD}") == {b"rest": CHANNEL.encode()}
    fed(invite("rest", 60))
    assert fed.names() == {"invites:rest"}


@pytest.mark.parametrize("fed", ["drc"], indirect=True)
def test_webhooks_and_invites_that_are_gone_stay_when_a_guild_is_fetched_again(fed: Fed) -> None:
    """They did, with their tokens. The lists of the REST API are complete."""
    elsewhere: dict[str, Any] = {"guild_id": OTHER_GUILD, "channel_id": "21"}
    kept = {"code": "kept", "guild": {"id": GUILD}, "channel": {"id": CHANNEL}, "max_age": 0}
    fed(invite(), invite("far", **elsewhere))
    fed.store(rest.store_webhook(webhook()))
    fed.store(rest.store_webhook(webhook(id="78", **elsewhere)))
    fed.store(rest.store_webhooks(GUILD, [webhook(id="79")]))
    fed.store(rest.store_invites(GUILD, [kept]))
    left = {name for name in fed.names() if name.startswith(("invites:", "webhooks:"))}
    indexes = {f"{kind}:{each}" for kind in ("invites", "webhooks") for each in (GUILD, OTHER_GUILD)}
    assert left - indexes == {"invites:kept", "invites:far", "webhooks:78", "webhooks:79"}
    fed.store(rest.store_webhooks(GUILD, []))
    fed.store(rest.store_invites(GUILD, []))
    left = {name for name in fed.names() if name.startswith(("invites:", "webhooks:"))}
    assert left == {"invites:far", "webhooks:78", f"invites:{OTHER_GUILD}", f"webhooks:{OTHER_GUILD}"}


def test_a_thread_member_outlives_the_guild_member(fed: Fed) -> None:
    """It did, when the member left, was not in a complete list, or the guild was removed."""
    left = ("GUILD_MEMBER_REMOVE", {"guild_id": GUILD, "user": user(ANN)})
    fed(("GUILD_CREATE", guild()), joined_thread(ANN, BEN), left)
    assert _thread_members(fed) in ({BEN}, set())
    fed(("GUILD_CREATE", guild(member_count=1, members=[whole_member(BOT)])))
    assert _thread_members(fed) == set()
    fed(joined_thread(ANN), left)
    assert _thread_members(fed) == set()
    fed(joined_thread(ANN), ("GUILD_DELETE", {"id": GUILD}))
    assert [name for name in fed.names() if "thread" in name] == []


def test_a_thread_member_who_joins_and_leaves_in_one_batch_is_gone(fed: Fed) -> None:
    fed(joined_thread(ANN), ("GUILD_MEMBER_REMOVE", {"guild_id": GUILD, "user": user(ANN)}))
    assert _thread_members(fed) == set()


def _thread_members(fed: Fed) -> set[str]:
    return {each.decode() for each in fed.raw("HKEYS", f"keywright:v1json:thread-members:{THREAD}")}


@pytest.mark.parametrize("seed", range(8))
def test_after_a_downtime_the_cache_has_only_what_discord_has(fed: Fed, seed: int, redis_url: str) -> None:
    """The traffic is the truth: whatever changed unseen, the new session removes it, and the audit agrees.

    The members of a large guild follow with a complete request of them.
    """
    traffic = Traffic(seed)
    fed(*traffic.events(200, members=8))
    fed(*after_downtime(traffic, 150))
    homes = [home for home in traffic.world.homes.values() if home.available]
    for home in homes:
        assert stored_of(fed, home.id) | people_of(home) == truth_of(home) | people_of(home)
    fed(*(event for home in homes for event in chunks(home, 5)))
    for home in homes:
        assert stored_of(fed, home.id) == truth_of(home)
    known = {*traffic.world.homes.ids, *(each for home in homes for each in home.threads.ids)}
    kinds = ("channels", "members", "roles", "presence", "threads", "guilds", "CHANNELS", "MEMBERS", "ROLES")
    parts = [name.split(":") for name in fed.names()]
    away = len(homes) < len(traffic.world.homes)  # a guild that is unavailable keeps its threads
    assert away or not [each for each in parts if each[0] in kinds and each[1:2] and each[1] not in known]
    audit = invoke_keywright("audit", fed.layout, "--url", redis_url)
    assert audit.exit_code == 0, audit.stdout + audit.stderr


def people_of(home: Home) -> dict[str, set[str]]:
    return {"members": set(home.members.ids), "presences": set(home.presences.ids)}


def truth_of(home: Home) -> dict[str, set[str]]:
    """Return the ids of what Discord has of a guild."""
    return people_of(home) | {
        "channels": set(home.channels.ids),
        "threads": set(home.threads.ids),
        "roles": set(home.roles.ids),
        "emojis": set(home.emojis.ids),
        "voice states": set(home.voice_states.ids),
        "stage instances": set(home.stages.ids),
    }


def stored_of(fed: Fed, guild_id: str) -> dict[str, set[str]]:
    """Return the ids of what Redis has of a guild, read without Keywright."""
    if fed.layout == "drc":
        strings = {name: name.split(":") for name in fed.names()}
        documents = {
            name: json.loads(fed.raw("GET", f"keywright:v1json:{name}"))
            for name, parts in strings.items()
            if parts[0] in ("threads", "stage-instances") and fed.raw("EXISTS", f"keywright:v1json:{name}")
        }
        of_guild = [strings[name] for name, body in documents.items() if body["guild_id"] == guild_id]
        return {
            "members": fed.members(guild_id),
            "presences": {parts[2] for parts in strings.values() if parts[:2] == ["presence", guild_id]},
            "threads": {identity for kind, identity in of_guild if kind == "threads"},
            "stage instances": {identity for kind, identity in of_guild if kind == "stage-instances"},
            **{
                kind.replace("-", " "): _fields(fed, f"keywright:v1json:{kind}:{guild_id}")
                for kind in ("channels", "roles", "emojis", "voice-states")
            },
        }
    listed = {each.decode() for each in fed.raw("SMEMBERS", f"CHANNELS:{guild_id}")}
    threads = {each for each in listed if fed.channel(guild_id, each)["type"] in (10, 11, 12)}
    shown = {each.decode() for each in fed.raw("SMEMBERS", f"spectacles-private:presences:{guild_id}")}
    return {
        "members": fed.members(guild_id),
        "presences": {each for each in shown if fed.raw("EXISTS", f"PRESENCES:{each}")},
        "channels": listed - threads,
        "threads": threads,
        "roles": _fields(fed, f"ROLES:{guild_id}"),
        "emojis": {each.decode() for each in fed.raw("SMEMBERS", f"EMOJIS:{guild_id}")},
        "voice states": _fields(fed, f"VOICE_STATES:{guild_id}"),
        "stage instances": {each["channel_id"] for each in fed.guild(guild_id)["stage_instances"]},
    }


def _fields(fed: Fed, name: str) -> set[str]:
    return {each.decode() for each in fed.raw("HKEYS", name)}


def test_super_reactions_lose_burst(fed: Fed) -> None:
    """They did: one user can react both ways, and each is removed by itself."""
    if fed.layout == "spectacles":
        return  # the table has no reactions
    reaction = {"user_id": ANN, "message_id": MESSAGE, "channel_id": CHANNEL, "emoji": {"name": "x"}}
    normal, burst = {**reaction, "burst": False}, {**reaction, "burst": True}
    supers = f"keywright:v1json-private:super-reactions:{MESSAGE}:x"
    fed(("MESSAGE_REACTION_ADD", burst))
    assert fed.raw("HGETALL", supers) == {ANN.encode(): b"1"}
    fed(("MESSAGE_REACTION_ADD", normal), ("MESSAGE_REACTION_ADD", burst))
    assert fed.raw("HGETALL", supers) == {ANN.encode(): b"2"}
    fed(("MESSAGE_REACTION_REMOVE", burst), ("MESSAGE_REACTION_REMOVE", burst))
    assert fed.raw("SMEMBERS", f"keywright:v1json:reactions:{MESSAGE}:x") == {ANN.encode()}
    fed(("MESSAGE_REACTION_ADD", burst), ("MESSAGE_REACTION_REMOVE", normal))
    assert fed.raw("HGETALL", supers) == {ANN.encode(): b"1"}
    fed(("MESSAGE_REACTION_REMOVE", burst))
    assert fed.names() == set()
