"""Reads of DRC: every entity, every listing, and hydration in few round trips."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from keywright import Call, RoundTrip, aconnect, connect, expires_in
from keywright.errors import StoredDataError, UsageError
from keywright.operations import Procedure
from keywright.testing import OpenRun, Raw, Run
from keywright_discord import views
from keywright_discord.document_reads import drop_dead
from keywright_discord.drc import bind, schema
from keywright_discord.drc.reader import DrcReader, entities
from keywright_discord.drc.store import DrcCache
from keywright_discord.traffic import Traffic
from keywright_discord.views import view

from ..discord_sample import (
    ANN,
    ANSWER,
    BEN,
    BOT,
    CAT,
    CHANNEL,
    DEEP,
    FIRST,
    GUILD,
    OPENING,
    THREAD,
    VOICE,
    WEBHOOK,
    Event,
    Json,
    answer,
    event,
    member,
    message,
    rounds_of,
    user,
)

stored = DrcReader(hydrate=False)
reader = DrcReader(bot=BOT)


def fill(run: Run, *events: Event) -> None:
    assert run(DrcCache().apply([*OPENING, *events])) == []


@pytest.fixture(params=["single", "cluster"])
def drc(request: pytest.FixtureRequest, open_run: OpenRun) -> Run:
    """Return a runner of an empty DRC cache: on a single server and on a cluster, with each engine."""
    url = request.getfixturevalue("redis_url" if request.param == "single" else "cluster_url")
    return open_run(url, *bind("bot"))


def test_every_entity_is_read_as_it_is_stored(drc: Run) -> None:
    fill(drc, event("MESSAGE_CREATE", answer()))
    found = drc(stored.message(CHANNEL, ANSWER))
    assert found is not None
    assert (found["author"], found["mentions"], found["referenced_message"]) == (BEN, [ANN, CAT], FIRST)
    assert drc(stored.user(ANN)) == user(ANN)
    assert drc(stored.users([CAT, "999", ANN])) == [user(CAT), None, user(ANN)]
    assert drc(stored.member(GUILD, ANN)) == member()
    assert drc(stored.channel(GUILD, CHANNEL)) == {
        "guild_id": GUILD,
        "id": CHANNEL,
        "type": 0,
        "last_message_id": ANSWER,
    }
    assert drc(stored.emoji(GUILD, "120")) == {"id": "120", "name": "emoji", "user": ANN}
    assert drc(stored.thread_member(THREAD, BOT)) == {"flags": 1, "id": THREAD, "user_id": BOT}


@pytest.mark.parametrize("entity", sorted(entities()))
def test_an_entity_that_is_not_there_is_none(run: Run, entity: str) -> None:
    ids = ["7"] * len(entities()[entity].ids)
    if entity != "message":
        assert run(getattr(stored, entity.replace("-", "_"))(*ids)) is None
    assert run(stored.get(entity, *ids)) is None
    assert run(reader.get(entity, *ids)) is None


def test_an_entity_of_no_name_or_other_ids_is_refused() -> None:
    with pytest.raises(UsageError, match=r"there is no 'guildd' in this layout\. It has: application, "):
        stored.get("guildd", "1")
    with pytest.raises(UsageError, match="member takes GUILD USER, but 1 ids were given"):
        reader.get("member", "1")


def test_a_channel_is_also_found_as_a_thread(drc: Run) -> None:
    """A message's channel may be either, and one call takes both, in one round trip more at most."""
    fill(drc)
    assert drc(stored.channel(GUILD, CHANNEL)) == drc(reader.channel(GUILD, CHANNEL))
    thread = drc(stored.channel(GUILD, THREAD))
    assert thread is not None
    assert thread == drc(stored.thread(THREAD)) == drc(stored.channel(None, THREAD))
    own = {"flags": 1, "id": THREAD, "user_id": BOT}
    assert drc(reader.channel(GUILD, THREAD)) == {**thread, "member": own}
    assert drc(reader.get("channel", GUILD, THREAD)) == {**thread, "member": own}
    assert drc(reader.channel(None, CHANNEL)) is None
    assert rounds_of(reader.channel(GUILD, CHANNEL), drc) == 1
    assert rounds_of(reader.channel(GUILD, THREAD), drc) == 2


def test_ids_are_text_or_int(drc: Run) -> None:
    fill(drc, event("MESSAGE_CREATE", message()))
    assert drc(reader.guild(int(GUILD))) == drc(reader.guild(GUILD)) is not None
    assert drc(reader.message(int(CHANNEL), int(FIRST))) == drc(reader.message(CHANNEL, FIRST)) is not None
    assert drc(reader.members(int(GUILD))) == drc(reader.members(GUILD)) != {}
    assert drc(DrcReader(bot=int(BOT)).thread(int(THREAD))) == drc(reader.thread(THREAD)) is not None


@pytest.mark.parametrize("wrong", ["x", "", "0123", 1.5, None, True, -1, 2**64, b"1"])
def test_an_id_that_discord_cannot_have_is_refused_with_the_forms_of_one(wrong: Any) -> None:
    """It was answered with advice about the schema, which a bot's author does not have."""
    expected = r"must be a Discord id, as text \('334385199974967042'\) or int, got "
    for call in (
        lambda: reader.guild(wrong),
        lambda: reader.channel(GUILD, wrong),
        lambda: reader.members(wrong),
        lambda: reader.message(CHANNEL, wrong),
        lambda: reader.reactions(wrong),
        lambda: DrcReader(bot="x"),
    ):
        with pytest.raises(UsageError, match=expected):
            call()


def test_check_names_a_prefix_that_has_no_cache(open_run: OpenRun, redis_url: str) -> None:
    fill(open_run(redis_url, *bind("bot")))
    open_run(redis_url, *bind("bot"))(reader.check())
    with pytest.raises(UsageError, match=r"keywright:v1json:guilds is empty\. Pass .*bind\(prefix="):
        open_run(redis_url)(reader.check())


def test_every_listing_is_by_id(drc: Run) -> None:
    fill(drc, event("INTEGRATION_CREATE", {"guild_id": GUILD, "id": "160", "user": user(CAT)}))
    assert drc(stored.guild_ids()) == {GUILD}
    assert {each: set(body) for each, body in drc(stored.guilds()).items()} == {
        GUILD: {"id", "name", "member_count"}
    }
    for listing, ids in {
        stored.members: {ANN, BEN, BOT},
        stored.channels: {CHANNEL, VOICE},
        stored.roles: {"110"},
        stored.emojis: {"120"},
        stored.stickers: {"130"},
        stored.voice_states: {BEN},
        stored.presences: {ANN},
        stored.threads: {THREAD},
        stored.stage_instances: {VOICE},
        stored.scheduled_events: {"150"},
        stored.integrations: {"160"},
        stored.automod_rules: set(),
        stored.templates: set(),
        stored.commands: set(),
    }.items():
        assert set(drc(listing(GUILD))) == ids, listing
    assert set(drc(stored.thread_members(THREAD))) == {BOT}


def test_a_guild_of_which_only_the_id_is_known_stays_listed(run: Run, raw: Raw) -> None:
    fill(run)
    raw("DEL", "keywright:v1json:guilds:100")
    assert run(stored.guilds()) == {}
    assert run(stored.guild_ids()) == {GUILD}


def test_an_expired_member_leaves_the_index_when_it_is_met(drc: Run) -> None:
    fill(drc)
    drc(schema.Member(GUILD, BEN).delete())
    drc(schema.Thread(THREAD).delete())
    drc(schema.Presence(GUILD, ANN).delete())
    assert set(drc(stored.members(GUILD))) == {ANN, BOT}
    assert drc(stored.threads(GUILD)) == drc(stored.presences(GUILD)) == {}
    assert drc(schema.Members(GUILD).members()) == {ANN, BOT}
    assert drc(schema.ThreadIndex(GUILD).all()) == {}
    assert drc(schema.PresenceIndex(GUILD).members()) == set()


def test_a_record_of_another_type_is_not_dropped_from_its_index(run: Run, raw: Raw) -> None:
    fill(run)
    raw("DEL", "keywright:v1json:members:100:12")
    raw("HSET", "keywright:v1json:members:100:12", "a", "b")
    assert set(run(stored.members(GUILD))) == {ANN, BOT}
    assert BEN in run(schema.Members(GUILD).members())


def test_a_member_that_is_written_again_is_not_dropped(drc: Run) -> None:
    fill(drc)
    seen_dead = {BEN: ((schema.Member, GUILD), BEN)}  # by a reader that looked before it was written
    drc(Procedure(lambda: drop_dead(schema.Members(GUILD), seen_dead), "drop"))
    assert drc(schema.Members(GUILD).members()) == {ANN, BEN, BOT}


def test_a_large_guild_is_listed_in_pages(run: Run) -> None:
    ids = [str(1000 + number) for number in range(2500)]
    chunk = {"guild_id": GUILD, "members": [member(each) for each in ids]}
    fill(run, event("GUILD_MEMBERS_CHUNK", chunk))
    found = run(reader.members(GUILD))
    assert set(found) == {*ids, ANN, BEN, BOT}
    assert all(body["user"]["id"] == each for each, body in found.items())


def test_reactions_are_emojis_with_their_users_and_expire_with_them(drc: Run) -> None:
    for person, emoji in ((ANN, {"id": None, "name": "🔥:x"}), (BEN, {"id": None, "name": "🔥:x"})):
        reaction = {"message_id": FIRST, "channel_id": CHANNEL, "user_id": person, "emoji": emoji}
        fill(drc, event("MESSAGE_REACTION_ADD", reaction))
    custom = {"message_id": FIRST, "channel_id": CHANNEL, "user_id": CAT, "emoji": {"id": "120", "name": "e"}}
    fill(drc, event("MESSAGE_REACTION_ADD", custom))
    assert drc(stored.reactions(FIRST)) == {"🔥:x": {ANN, BEN}, "120": {CAT}}
    assert drc(stored.reaction_users(FIRST, "120")) == {CAT}
    drc(schema.Reactions(FIRST).expire(timedelta(seconds=100)))
    drc(schema.ReactionUsers(FIRST, "120").delete())
    assert drc(stored.reactions(FIRST)) == {"🔥:x": {ANN, BEN}}
    assert drc(schema.Reactions(FIRST).members()) == {"🔥:x"}
    left = drc(schema.Reactions(FIRST).ttl())
    assert left is not None, "the index still expires"
    assert left <= timedelta(seconds=100), "a read renews nothing"


def test_a_message_is_hydrated_with_all_that_it_refers_to(drc: Run) -> None:
    deeper = message(FIRST, referenced_message=message(DEEP), message_reference={"channel_id": CHANNEL})
    fill(drc, event("MESSAGE_CREATE", message(DEEP)), event("MESSAGE_CREATE", deeper))
    fill(drc, event("MESSAGE_CREATE", answer(to=deeper)))
    found = drc(reader.message(CHANNEL, ANSWER))
    assert found is not None
    assert found["author"] == user(BEN)
    assert found["member"] == member()
    assert found["mentions"] == [{**user(ANN), "member": member()}, user(CAT)]
    assert found["interaction"] == {"id": "500", "user": user(ANN), "member": member()}
    assert found["interaction_metadata"] == {
        "id": "500",
        "user": user(ANN),
        "target_user": user(CAT),
        "triggering_interaction_metadata": {"id": "501", "user": user(BEN)},
    }
    assert found["thread"]["parent_id"] == CHANNEL
    assert found["thread"]["member"] == {"flags": 1, "id": THREAD, "user_id": BOT}
    referenced = found["referenced_message"]
    assert (referenced["author"], referenced["member"]) == (user(ANN), member())
    assert referenced["referenced_message"] == {"id": DEEP}, "one level, then only the id"


def test_hydrating_gives_back_what_the_gateway_sent(run: Run) -> None:
    sent = answer()
    fill(run, event("MESSAGE_CREATE", sent))
    thread = {**sent["thread"], "guild_id": GUILD, "member": {"flags": 1, "id": THREAD, "user_id": BOT}}
    known = {**sent["referenced_message"], "guild_id": GUILD, "member": member()}
    # The stored thread has a newer last_message_id, so it is compared with the event.
    found = run(reader.message(CHANNEL, ANSWER))
    assert found is not None
    assert found["thread"].items() >= thread.items()
    assert {**found, "thread": None} == {**sent, "thread": None, "referenced_message": known}


def test_a_reference_to_what_is_not_stored_is_an_object_with_its_id(run: Run, raw: Raw) -> None:
    fill(run, event("MESSAGE_CREATE", answer()))
    for name in raw.names():
        if b":messages:301" not in name:
            raw("DEL", name)
    found = run(reader.message(CHANNEL, ANSWER))
    assert found is not None
    assert found["author"] == {"id": BEN}
    assert "member" not in found
    assert found["mentions"] == [{"id": ANN}, {"id": CAT}]
    assert (found["referenced_message"], found["thread"]) == ({"id": FIRST}, {"id": THREAD})
    assert found["interaction"] == {"id": "500", "user": {"id": ANN}}


def test_a_webhook_message_keeps_name_and_avatar(run: Run) -> None:
    """Also one that is answered, and one that was edited."""
    sent = message(webhook_id=WEBHOOK)
    del sent["member"]
    sent["author"] = {"id": WEBHOOK, "username": "GitHub", "avatar": "a"}
    reply = message(ANSWER, referenced_message=sent)
    fill(run, event("MESSAGE_CREATE", sent), event("MESSAGE_CREATE", reply), event("MESSAGE_UPDATE", sent))
    found = run(reader.message(CHANNEL, FIRST))
    assert found == sent
    answer = run(reader.message(CHANNEL, ANSWER))
    assert answer is not None
    assert answer["referenced_message"]["author"] == sent["author"]


def test_a_message_outside_a_guild_gets_no_member(run: Run) -> None:
    sent = {name: value for name, value in message().items() if name not in ("guild_id", "member")}
    fill(run, event("MESSAGE_CREATE", sent))
    assert run(reader.message(CHANNEL, FIRST)) == sent


def test_a_deleted_referenced_message_stays_null(run: Run) -> None:
    fill(run, event("MESSAGE_CREATE", message(referenced_message=None)))
    found = run(reader.message(CHANNEL, FIRST))
    assert found is not None
    assert found["referenced_message"] is None


@pytest.mark.parametrize(
    "odd",
    [
        {"mentions": {}},
        {"mentions": None, "author": None, "thread": None, "interaction": None},
        {"mentions": ["x", 5.5, None, {"no": "id"}], "author": "x", "guild_id": "y"},
        {"interaction": [], "interaction_metadata": "5", "referenced_message": -1, "message_reference": []},
        {"author": user(ANN), "referenced_message": {"id": "9"}, "thread": {"id": "8"}},
    ],
)
def test_documents_of_other_writers_are_read_as_they_are(run: Run, odd: Json) -> None:
    stored = {"id": FIRST, "channel_id": CHANNEL, **odd}
    run(schema.Message(FIRST).set(stored))
    assert run(reader.message(CHANNEL, FIRST)) == stored


def test_a_document_that_is_not_json_names_its_key(run: Run, raw: Raw) -> None:
    fill(run, event("MESSAGE_CREATE", message()))
    raw("SET", "keywright:v1json:users:11", "{")
    with pytest.raises(StoredDataError, match="keywright:v1json:users:11"):
        run(reader.message(CHANNEL, FIRST))
    with pytest.raises(StoredDataError, match="'users:<user>'"):
        run(stored.user(ANN))


def test_users_put_in_two_places_are_two_objects(run: Run) -> None:
    fill(run, event("MESSAGE_CREATE", answer()))
    first, second = run(reader.messages([(CHANNEL, ANSWER)] * 2))
    assert first is not None
    untouched = copy.deepcopy(second)
    first["mentions"][0]["username"] = first["author"]["username"] = "changed"
    first["referenced_message"]["author"]["username"] = "changed"
    assert second == untouched
    assert first["interaction"]["user"] == user(ANN)


@pytest.mark.parametrize("count", [1, 100])
def test_messages_are_hydrated_in_three_round_trips(drc: Run, count: int) -> None:
    ids = [str(1000 + number) for number in range(count)]
    fill(drc, *(event("MESSAGE_CREATE", answer(each)) for each in ids))
    asked = [(CHANNEL, each) for each in [*ids, "999"]]
    found = drc(reader.messages(asked))
    assert [body and body["id"] for body in found] == [*ids, None]
    assert rounds_of(reader.messages(asked), drc) == 3


def test_an_observer_sees_three_round_trips_for_a_hundred_messages(redis_url: str) -> None:
    trips: list[RoundTrip] = []

    def observe(trip: RoundTrip) -> None:
        trips.append(trip)

    ids = [str(1000 + number) for number in range(100)]
    with connect(redis_url, *bind("bot"), observers=[observe]) as db:
        db.run(DrcCache().apply([*OPENING, *(event("MESSAGE_CREATE", answer(each)) for each in ids)]))
        trips.clear()
        assert None not in db.run(reader.messages([(CHANNEL, each) for each in ids]))
    assert len(trips) == 3


@pytest.mark.anyio
async def test_many_readers_of_one_loop_read_at_the_same_time(redis_url: str) -> None:
    async with aconnect(redis_url, *bind("bot")) as db:
        await db.run(DrcCache().apply([*OPENING, event("MESSAGE_CREATE", answer())]))
        found = await asyncio.gather(*(db.run(reader.message(CHANNEL, ANSWER)) for _ in range(50)))
        assert all(each == found[0] for each in found)


@pytest.mark.parametrize(
    ("call", "most"),
    [
        (lambda: reader.member(GUILD, ANN), 2),
        (lambda: reader.voice_state(GUILD, BEN), 2),
        (lambda: reader.thread(THREAD), 2),
        (lambda: reader.presence(GUILD, ANN), 2),
        (lambda: reader.emojis(GUILD), 2),
        (lambda: reader.members(GUILD), 3),
        (lambda: reader.interaction("600"), 3),
    ],
)
def test_no_hydrated_read_takes_more_than_three_round_trips(
    drc: Run, call: Callable[[], Call[Any]], most: int
) -> None:
    fill(drc, event("INTERACTION_CREATE", INTERACTION))
    assert rounds_of(call(), drc) <= most


INTERACTION: Json = {
    "id": "600",
    "guild_id": GUILD,
    "channel_id": CHANNEL,
    "token": "in clear",
    "member": {**member(ANN), "permissions": "8"},
    "message": message(),
    "data": {"id": "601", "resolved": {"users": {CAT: user(CAT)}, "members": {CAT: member()}}},
}


def test_an_interaction_is_hydrated(drc: Run) -> None:
    fill(drc, event("INTERACTION_CREATE", INTERACTION))
    found = drc(reader.interaction("600"))
    assert found is not None
    assert (found["user"], found["member"]) == (user(ANN), member(ANN))
    assert (found["message"]["author"], found["message"]["member"]) == (user(ANN), member())
    assert found["data"] == INTERACTION["data"]


def test_what_belongs_to_somebody_is_hydrated_with_them(drc: Run) -> None:
    integration = {"guild_id": GUILD, "id": "160", "user": user(CAT), "application": {"id": "9", "bot": BOT}}
    invite = {"code": "abc", "guild_id": GUILD, "inviter": user(ANN), "target_user": user(BEN)}
    fill(drc, event("INTEGRATION_CREATE", integration), event("INVITE_CREATE", invite))
    assert drc(reader.member(GUILD, ANN)) == member(ANN)
    assert drc(reader.emoji(GUILD, "120")) == {"id": "120", "name": "emoji", "user": user(ANN)}
    assert drc(reader.sticker(GUILD, "130")) == {"id": "130", "name": "sticker", "user": user(BEN)}
    assert drc(reader.scheduled_event(GUILD, "150")) == {"id": "150", "creator": user(ANN)}
    assert drc(reader.invite("abc")) == invite
    found = drc(reader.integration(GUILD, "160"))
    assert found is not None
    assert (found["user"], found["application"]["bot"]) == (user(CAT), user(BOT))
    presence = drc(reader.presence(GUILD, ANN))
    assert presence is not None
    assert presence["user"] == user(ANN)
    state = drc(reader.voice_state(GUILD, BEN))
    assert state is not None
    assert state["member"] == member(BEN)
    for listing, ids in {
        reader.members: {ANN, BEN, BOT},
        reader.voice_states: {BEN},
        reader.presences: {ANN},
        reader.emojis: {"120"},
        reader.stickers: {"130"},
        reader.scheduled_events: {"150"},
        reader.integrations: {"160"},
        reader.templates: set(),
    }.items():
        found_all = drc(listing(GUILD))
        assert set(found_all) == ids
        assert not any(isinstance(body.get("user", {}), str) for body in found_all.values())


def test_a_thread_is_hydrated_with_its_members(drc: Run) -> None:
    joined = {"id": THREAD, "user_id": ANN, "flags": 0}
    fill(drc, event("THREAD_MEMBERS_UPDATE", {"id": THREAD, "guild_id": GUILD, "added_members": [joined]}))
    found = drc(reader.thread(THREAD))
    assert found is not None
    assert found["member"] == {"flags": 1, "id": THREAD, "user_id": BOT}
    assert {each["user_id"]: each["member"] for each in found["members"]} == {
        ANN: member(ANN),
        BOT: member(BOT),
    }
    assert drc(reader.thread_member(THREAD, ANN)) == {**joined, "member": member(ANN)}
    assert drc(reader.get("thread", THREAD)) == found
    unknown = drc(DrcReader().thread(THREAD))
    assert unknown is not None
    assert "member" not in unknown, "whose membership to show was not said"


def test_a_read_does_not_renew_an_expiry(open_run: OpenRun, redis_url: str, raw: Raw) -> None:
    run = open_run(redis_url, *bind("bot", expiry={schema.User: expires_in(timedelta(hours=1))}))
    fill(run, event("MESSAGE_CREATE", message()))
    for name in ("messages:300", "users:11"):
        raw("PEXPIRE", f"bot:v1json:{name}", 5_000)
    run(reader.message(CHANNEL, FIRST))
    run(stored.message(CHANNEL, FIRST))
    for name in ("messages:300", "users:11"):
        assert 0 < raw("PTTL", f"bot:v1json:{name}") <= 5_000


def test_a_number_that_json_cannot_hold_as_a_float_survives(run: Run) -> None:
    sent = message(nonce=2**63 + 1)
    fill(run, event("MESSAGE_CREATE", sent))
    assert msgspec.json.encode(run(reader.message(CHANNEL, FIRST))).count(b"9223372036854775809") == 1


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_whatever_traffic_leaves_can_be_read_hydrated_and_viewed(run: Run, seed: int) -> None:
    traffic = Traffic(seed)
    events = [event(name, data) for name, data in traffic.events(1500, guilds=3, members=30)]
    assert run(DrcCache().apply(events)) == []
    whole = DrcReader(bot=traffic.bot)
    messages = [key.message for key in run.scan(schema.Message) if isinstance(key, schema.Message)]
    assert messages
    for found in run(whole.messages([(CHANNEL, each) for each in messages])):
        assert found is not None
        assert isinstance(view(views.MessageView, found).author, views.UserView)
        assert "username" in found["author"]
    for guild, body in run(stored.guilds()).items():
        assert view(views.GuildView, body).id == guild
        for member_id, each in run(whole.members(guild)).items():
            viewed = view(views.MemberView, each).user
            assert viewed is not None
            assert viewed.id == member_id
        for kind, listing in LISTED.items():
            for each in run(listing(whole, guild)).values():
                view(kind, each)


LISTED: dict[type[views.View], Callable[[DrcReader, str], Call[dict[str, Json]]]] = {
    views.ChannelView: lambda _, guild: stored.channels(guild),
    views.EmojiView: lambda whole, guild: whole.emojis(guild),
    views.PresenceView: lambda whole, guild: whole.presences(guild),
    views.RoleView: lambda _, guild: stored.roles(guild),
    views.ScheduledEventView: lambda whole, guild: whole.scheduled_events(guild),
    views.StageInstanceView: lambda _, guild: stored.stage_instances(guild),
    views.StickerView: lambda whole, guild: whole.stickers(guild),
    views.VoiceStateView: lambda whole, guild: whole.voice_states(guild),
}
