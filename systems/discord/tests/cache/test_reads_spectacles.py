"""Reads of Spectacles: objects as they came, hydrated with the parts that their events omit."""

from __future__ import annotations

import pytest

from keywright.errors import UsageError
from keywright.testing import OpenRun, Run
from keywright_discord.spectacles import bind, schema
from keywright_discord.spectacles.reads import (
    SpectaclesHydrated,
    SpectaclesListings,
    SpectaclesReads,
    entities,
)
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

reads = SpectaclesReads()
listings = SpectaclesListings()
hydrated = SpectaclesHydrated()


def fill(run: Run, *events: Event) -> None:
    assert run(SpectaclesCache().apply([*OPENING, *events])) == []


@pytest.fixture(params=["single", "cluster"])
def cache(request: pytest.FixtureRequest, open_run: OpenRun) -> Run:
    """Return a runner of an empty cache: on a single server and on a cluster, with each engine."""
    url = request.getfixturevalue("redis_url" if request.param == "single" else "cluster_url")
    return open_run(url, *bind("bot"))


def test_every_entity_is_read_as_it_came(cache: Run) -> None:
    fill(cache, event("MESSAGE_CREATE", message()))
    assert cache(reads.message(CHANNEL, FIRST)) == message()
    assert cache(reads.user(ANN)) == user(ANN)
    found = cache(reads.member(GUILD, ANN))
    assert found is not None
    assert found["roles"] == ["110"]
    assert cache(reads.role(GUILD, "110")) == {"id": "110", "name": "role"}
    thread = cache(reads.channel(THREAD))
    assert thread is not None
    assert thread["parent_id"] == CHANNEL


@pytest.mark.parametrize("entity", sorted(entities()))
def test_an_entity_that_is_not_there_is_none(run: Run, entity: str) -> None:
    ids = ["7"] * len(entities()[entity].ids)
    assert run(getattr(reads, entity.replace("-", "_"))(*ids)) is None
    assert run(hydrated.get(entity, *ids)) is None


def test_a_message_takes_its_channel_too() -> None:
    with pytest.raises(UsageError, match="message takes CHANNEL MESSAGE, but 1 ids were given"):
        reads.get("message", FIRST)


def test_every_listing_is_by_id(cache: Run) -> None:
    fill(cache)
    assert set(cache(listings.guilds())) == {GUILD}
    for listing, ids in {
        listings.members: {ANN, BEN, BOT},
        listings.channels: {CHANNEL, VOICE, THREAD},
        listings.threads: {THREAD},
        listings.roles: {"110"},
        listings.emojis: {"120"},
        listings.voice_states: {BEN},
    }.items():
        assert set(cache(listing(GUILD))) == ids, listing


def test_a_channel_that_is_gone_leaves_the_index_when_it_is_met(cache: Run) -> None:
    fill(cache)
    cache(schema.Channels().remove(VOICE))
    assert set(cache(listings.channels(GUILD))) == {CHANNEL, THREAD}
    assert cache(schema.ChannelIds(GUILD).members()) == {CHANNEL, THREAD}


def test_what_an_event_left_out_is_put_in(cache: Run) -> None:
    fill(cache, event("MESSAGE_CREATE", answer()), event("PRESENCE_UPDATE", PRESENCE))
    cache(schema.Members(GUILD).put(CAT, {"roles": []}))  # as a writer that strips users leaves it
    assert cache(hydrated.member(GUILD, CAT)) == {"roles": [], "user": user(CAT)}
    assert cache(hydrated.presence(ANN)) == {**PRESENCE, "user": user(ANN, username="renamed")}
    state = cache(hydrated.voice_state(GUILD, BEN))
    assert state is not None
    assert state["member"]["user"] == user(BEN)
    found = cache(hydrated.message(CHANNEL, ANSWER))
    assert found is not None
    assert found["author"] == user(BEN)
    assert found["mentions"][1] == {**user(CAT), "member": {"roles": []}}
    assert found["referenced_message"]["author"] == user(ANN)
    assert cache(hydrated.messages([(CHANNEL, ANSWER), (CHANNEL, "9")])) == [found, None]
    assert set(cache(hydrated.emojis(GUILD))) == {"120"}
    assert {each["user"]["id"] for each in cache(hydrated.members(GUILD)).values()} == {ANN, BEN, BOT, CAT}


PRESENCE = {"guild_id": GUILD, "user": {"id": ANN, "username": "renamed"}, "status": "idle"}


def test_messages_are_hydrated_in_three_round_trips(cache: Run) -> None:
    ids = [str(1000 + number) for number in range(100)]
    fill(cache, *(event("MESSAGE_CREATE", answer(each)) for each in ids))
    assert rounds_of(hydrated.messages((CHANNEL, each) for each in ids), cache) <= 3
