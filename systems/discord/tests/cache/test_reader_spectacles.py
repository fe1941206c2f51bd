"""Reads of Spectacles: objects as they came, hydrated with the parts that their events omit."""

from __future__ import annotations

import pytest

from keywright.errors import UsageError
from keywright.testing import OpenRun, Run
from keywright_discord.spectacles import bind, schema
from keywright_discord.spectacles.reader import SpectaclesReader, entities
from keywright_discord.spectacles.store import SpectaclesCache

from ..discord_sample import (
    ANN,
    ANSWER,
    BEN,
    BOT,
    CAT,
    CHANNEL,
    FIRST,
    GUILD,
    OPENING,
    THREAD,
    VOICE,
    Event,
    answer,
    event,
    message,
    rounds_of,
    user,
)

stored = SpectaclesReader(hydrate=False)
reader = SpectaclesReader()


def fill(run: Run, *events: Event) -> None:
    assert run(SpectaclesCache().apply([*OPENING, *events])) == []


@pytest.fixture(params=["single", "cluster"])
def cache(request: pytest.FixtureRequest, open_run: OpenRun) -> Run:
    """Return a runner of an empty cache: on a single server and on a cluster, with each engine."""
    url = request.getfixturevalue("redis_url" if request.param == "single" else "cluster_url")
    return open_run(url, *bind("bot"))


def test_every_entity_is_read_as_it_came(cache: Run) -> None:
    fill(cache, event("MESSAGE_CREATE", message()))
    assert cache(stored.message(CHANNEL, FIRST)) == message()
    assert cache(stored.user(ANN)) == user(ANN)
    found = cache(stored.member(GUILD, ANN))
    assert found is not None
    assert found["roles"] == ["110"]
    assert cache(stored.role(GUILD, "110")) == {"id": "110", "name": "role"}
    thread = cache(stored.channel(GUILD, THREAD))
    assert thread is not None
    assert thread["parent_id"] == CHANNEL


@pytest.mark.parametrize("entity", sorted(entities()))
def test_an_entity_that_is_not_there_is_none(run: Run, entity: str) -> None:
    ids = ["7"] * len(entities()[entity].ids)
    assert run(stored.get(entity, *ids)) is None
    assert run(reader.get(entity, *ids)) is None


def test_a_message_takes_its_channel_too() -> None:
    with pytest.raises(UsageError, match="message takes CHANNEL MESSAGE, but 1 ids were given"):
        stored.get("message", FIRST)


def test_every_listing_is_by_id(cache: Run) -> None:
    fill(cache)
    assert set(cache(stored.guilds())) == cache(stored.guild_ids()) == {GUILD}
    for listing, ids in {
        stored.members: {ANN, BEN, BOT},
        stored.channels: {CHANNEL, VOICE},
        stored.threads: {THREAD},
        stored.roles: {"110"},
        stored.emojis: {"120"},
        stored.voice_states: {BEN},
        stored.presences: {ANN},
    }.items():
        assert set(cache(listing(GUILD))) == ids, listing


def test_a_channel_that_is_gone_leaves_the_index_when_it_is_met(cache: Run) -> None:
    fill(cache)
    cache(schema.Channels().remove(VOICE))
    assert set(cache(stored.channels(GUILD))) == {CHANNEL}
    assert cache(schema.ChannelIds(GUILD).members()) == {CHANNEL, THREAD}


def test_a_channel_is_also_found_as_a_thread(cache: Run) -> None:
    fill(cache)
    thread = cache(reader.channel(GUILD, THREAD))
    assert thread == cache(reader.thread(int(THREAD))) == cache(reader.channel(None, THREAD)) is not None
    assert cache(reader.channel(GUILD, CHANNEL)) is not None
    assert cache(reader.thread(CHANNEL)) is None


def test_the_stored_messages_of_a_channel_are_listed(cache: Run) -> None:
    fill(cache, event("MESSAGE_CREATE", message()), event("MESSAGE_CREATE", answer()))
    found = cache(reader.recent_messages(CHANNEL))
    assert list(found) == [FIRST, ANSWER]
    assert found[ANSWER] == cache(reader.message(CHANNEL, ANSWER))
    cache(schema.Message(CHANNEL, FIRST).delete())
    assert list(cache(reader.recent_messages(CHANNEL))) == [ANSWER]


def test_presences_are_hydrated(cache: Run) -> None:
    fill(cache, event("PRESENCE_UPDATE", PRESENCE))
    assert cache(reader.presences(GUILD)) == {ANN: cache(reader.presence(GUILD, ANN))}


def test_check_names_a_prefix_that_has_no_cache(cache: Run) -> None:
    with pytest.raises(UsageError, match="bot:spectacles-private:guilds is empty"):
        cache(reader.check())
    fill(cache)
    cache(reader.check())


def test_what_an_event_left_out_is_put_in(cache: Run) -> None:
    fill(cache, event("MESSAGE_CREATE", answer()), event("PRESENCE_UPDATE", PRESENCE))
    cache(schema.Members(GUILD).put(CAT, {"roles": []}))  # as a writer that strips users leaves it
    assert cache(reader.member(GUILD, CAT)) == {"roles": [], "user": user(CAT)}
    assert cache(reader.presence(GUILD, ANN)) == {**PRESENCE, "user": user(ANN, username="renamed")}
    state = cache(reader.voice_state(GUILD, BEN))
    assert state is not None
    assert state["member"]["user"] == user(BEN)
    found = cache(reader.message(CHANNEL, ANSWER))
    assert found is not None
    assert found["author"] == user(BEN)
    assert found["mentions"][1] == {**user(CAT), "member": {"roles": []}}
    assert found["referenced_message"]["author"] == user(ANN)
    assert cache(reader.messages([(CHANNEL, ANSWER), (CHANNEL, "9")])) == [found, None]
    assert set(cache(reader.emojis(GUILD))) == {"120"}
    assert {each["user"]["id"] for each in cache(reader.members(GUILD)).values()} == {ANN, BEN, BOT, CAT}


PRESENCE = {"guild_id": GUILD, "user": {"id": ANN, "username": "renamed"}, "status": "idle"}


def test_messages_are_hydrated_in_three_round_trips(cache: Run) -> None:
    ids = [str(1000 + number) for number in range(100)]
    fill(cache, *(event("MESSAGE_CREATE", answer(each)) for each in ids))
    assert rounds_of(reader.messages((CHANNEL, each) for each in ids), cache) <= 3
