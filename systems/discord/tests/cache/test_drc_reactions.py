"""Reactions that are added and removed in one batch leave what the same events leave one by one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from keywright import RoundTrip, connect
from keywright_discord.drc import bind
from keywright_discord.drc.store import DrcCache

from .feed import CHANNEL, GUILD, Feed, Json, encoded, message, reaction

FIRE, ICE = {"id": None, "name": "🔥"}, {"id": None, "name": "🧊"}
PEOPLE = [str(900 + number) for number in range(4)]
MESSAGES = ["501", "502"]


def _about(name: str, **more: object) -> Json:
    return {"message_id": name, "channel_id": CHANNEL, "guild_id": GUILD, **more}


def _events() -> st.SearchStrategy[tuple[str, Json]]:
    of_one = st.builds(
        lambda event, emoji, person, name, burst: (
            event,
            {**reaction(emoji, person, burst=burst, type=int(burst)), "message_id": name},
        ),
        st.sampled_from(["MESSAGE_REACTION_ADD", "MESSAGE_REACTION_REMOVE"]),
        st.sampled_from([FIRE, ICE]),
        st.sampled_from(PEOPLE),
        st.sampled_from(MESSAGES),
        st.booleans(),
    )
    of_an_emoji = st.builds(
        lambda emoji, name: ("MESSAGE_REACTION_REMOVE_EMOJI", _about(name, emoji=emoji)),
        st.sampled_from([FIRE, ICE]),
        st.sampled_from(MESSAGES),
    )
    of_all = st.builds(lambda name: ("MESSAGE_REACTION_REMOVE_ALL", _about(name)), st.sampled_from(MESSAGES))
    whole = st.builds(
        lambda event, name: (event, {**message(), "id": name}),
        st.sampled_from(["MESSAGE_CREATE", "MESSAGE_DELETE"]),
        st.sampled_from(MESSAGES),
    )
    return st.one_of(of_one, of_one, of_one, of_an_emoji, of_all, whole)


@given(before=st.lists(_events(), max_size=12), together=st.lists(_events(), min_size=2, max_size=12))
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_batch_leaves_what_its_events_leave_one_by_one(
    feed: Feed, before: list[tuple[str, Json]], together: list[tuple[str, Json]]
) -> None:
    found: list[Any] = []
    for parts in ([[each] for each in together], [together]):
        feed.raw("FLUSHALL")
        for batch in ([each] for each in before):
            _apply(feed, batch)
        for batch in parts:
            _apply(feed, batch)
        found.append(feed.everything())
    assert found[0] == found[1]


def test_a_batch_knows_whether_any_of_many_users_remain(feed: Feed) -> None:
    people = [str(1000 + number) for number in range(40)]
    _apply(feed, [("MESSAGE_REACTION_ADD", reaction(FIRE, person)) for person in people])
    gone = [("MESSAGE_REACTION_REMOVE", reaction(FIRE, person)) for person in people]
    _apply(feed, gone[:-1])
    ((_, users),) = [(name, found) for name, found in feed.everything()[0].items() if "🔥" in name]
    assert users == {people[-1]}
    _apply(feed, gone[-1:])
    assert feed.everything() == ({}, {})


@pytest.mark.parametrize("burst", [False, True])
def test_events_of_reactions_share_their_round_trips(redis_url: str, burst: bool) -> None:
    trips: list[RoundTrip] = []
    people = [str(1000 + number) for number in range(30)]
    events = [
        (event, encoded(reaction(FIRE, person, burst=burst)))
        for person in people
        for event in ("MESSAGE_REACTION_ADD", "MESSAGE_REACTION_REMOVE")
    ]
    with connect(redis_url, *bind(), observers=[trips.append]) as db:
        trips.clear()  # opening asks for the features of the server
        assert db.run(DrcCache().apply(events)) == []
    assert len(trips) == 2


def _apply(feed: Feed, events: list[tuple[str, Json]]) -> None:
    assert feed.database.run(DrcCache().apply([(event, encoded(data)) for event, data in events])) == []
