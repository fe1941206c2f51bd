"""Every breach that is planted is found and mended; a sound state is left alone, a plan writes nothing."""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple

import pytest
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from keywright import aconnect
from keywright.testing.runs import Raw
from keywright_meetup import channel_times as expiring
from keywright_meetup import channels
from keywright_meetup import intents as provisioning
from keywright_meetup import own_repair as repairing
from keywright_meetup.account_links import link
from keywright_meetup.event_sync import sync
from keywright_meetup.own_audit import audit
from keywright_meetup.own_repair import arepair, repair, vacuum
from kinship import Mortal

from .meetup_town import DAY, NOW, Place, announced, assert_invariants, everything, tokens

CHANNEL, GUEST, HOST = 5, 6, 7
Planted = list[tuple[Any, ...]]


def furnish(place: Place) -> str:
    """Two people, two events of a campaign with a channel and roles, an adventure; the campaign's series."""
    run = place.db.run
    run(link(1, 101, tokens()))
    run(link(2, 102))
    run(sync([announced("e1", hosts=[1], guests=[2]), announced("e2", "[campaign e1]"), announced("e3")]))
    series: str = place.raw("GET", "meetup_event:e1:event_series").decode()
    run(channels.attach_channel(series, CHANNEL))
    run(provisioning.finish_role("guest_role", CHANNEL, "", GUEST))
    run(provisioning.finish_role("host_role", CHANNEL, "", HOST))
    run(channels.remove_user(CHANNEL, 101))
    run(expiring.extend(CHANNEL, NOW))
    return series


class Breach(NamedTuple):
    """Raw commands, with S for the campaign's series; the invariant they break; what holds afterwards."""

    planted: Planted
    invariant: int
    afterwards: dict[str, Any]


BREACHES: dict[str, Breach] = {
    "half a link, Meetup side": Breach(
        [("DEL", "discord_user:101:meetup_user")], 1, {"discord_user:101:meetup_user": "1"}
    ),
    "half a link, Discord side": Breach(
        [("DEL", "meetup_user:1:discord_user")], 1, {"meetup_user:1:discord_user": "101"}
    ),
    "no link at all, with tokens": Breach(
        [("DEL", "meetup_user:1:discord_user", "discord_user:101:meetup_user")],
        1,
        {"meetup_user:1:oauth2_tokens": None, "meetup_users": {"2"}, "discord_users": {"102"}},
    ),
    "a second claim on a linked user": Breach(
        [("SET", "discord_user:103:meetup_user", 1)],
        1,
        {"discord_user:103:meetup_user": None, "meetup_user:1:discord_user": "101"},
    ),
    "two claims and no link": Breach(
        [("SET", "discord_user:103:meetup_user", 9), ("SET", "discord_user:104:meetup_user", 9)],
        1,
        {"discord_user:103:meetup_user": None, "discord_user:104:meetup_user": None},
    ),
    "a linked user outside the index": Breach([("SREM", "meetup_users", 1)], 1, {"meetup_users": {"1", "2"}}),
    "a stranger in the index": Breach([("SADD", "discord_users", 999)], 1, {"discord_users": {"101", "102"}}),
    "tokens of a stranger": Breach(
        [("HSET", "meetup_user:9:oauth2_tokens", "access_token", "x", "refresh_token", "y")],
        1,
        {"meetup_user:9:oauth2_tokens": None},
    ),
    "a link to no id": Breach(
        [("SET", "discord_user:101:meetup_user", "one")], 1, {"discord_user:101:meetup_user": "1"}
    ),
    "a member that is no id": Breach([("SADD", "meetup_users", "ann")], 1, {"meetup_users": {"1", "2"}}),
    "a link of another type": Breach(
        [("DEL", "discord_user:101:meetup_user"), ("SADD", "discord_user:101:meetup_user", 1)],
        1,
        {"discord_user:101:meetup_user": "1"},
    ),
    "an index of another type": Breach(
        [("DEL", "meetup_users"), ("SET", "meetup_users", "1,2")], 1, {"meetup_users": {"1", "2"}}
    ),
    "an event outside the index": Breach(
        [("SREM", "meetup_events", "e1")], 2, {"meetup_events": {"e1", "e2", "e3"}}
    ),
    "an event without details": Breach(
        [("DEL", "meetup_event:e1")],
        2,
        {"meetup_events": {"e2", "e3"}, "meetup_event:e1:meetup_users": None},
    ),
    "an event with half its details": Breach(
        [("HDEL", "meetup_event:e1", "urlname")],
        2,
        {"meetup_event:e1": None, "meetup_event:e1:event_series": None},
    ),
    "an event that lost its series": Breach(
        [("DEL", "meetup_event:e1:event_series")], 2, {"meetup_event:e1:event_series": "S"}
    ),
    "a series that lost its event": Breach(
        [("SREM", "event_series:S:meetup_events", "e1")], 2, {"event_series:S:meetup_events": {"e1", "e2"}}
    ),
    "a series that names a foreign event": Breach(
        [("SADD", "event_series:S:meetup_events", "e3")], 2, {"event_series:S:meetup_events": {"e1", "e2"}}
    ),
    "an event whose series is gone": Breach(
        [("SET", "meetup_event:e3:event_series", "gone")],
        2,
        {"meetup_event:e3": None, "meetup_events": {"e1", "e2"}},
    ),
    "a series outside the index": Breach(
        [("SREM", "event_series", "S")], 2, {"event_series:S:type": "campaign"}
    ),
    "guests of no event": Breach(
        [("SADD", "meetup_event:zz:meetup_users", 1)], 2, {"meetup_event:zz:meetup_users": None}
    ),
    "hosts of no event": Breach(
        [("SADD", "meetup_event:zz:meetup_hosts", 1)], 2, {"meetup_event:zz:meetup_hosts": None}
    ),
    "an unknown event in the index": Breach(
        [("SADD", "meetup_events", "zz")], 2, {"meetup_events": {"e1", "e2", "e3"}}
    ),
    "a channel without its way back": Breach(
        [("DEL", "discord_channel:5:event_series")], 3, {"discord_channel:5:event_series": "S"}
    ),
    "a series without its way forth": Breach(
        [("DEL", "event_series:S:discord_channel")], 3, {"event_series:S:discord_channel": "5"}
    ),
    "a channel outside the index": Breach([("SREM", "discord_channels", 5)], 3, {"discord_channels": {"5"}}),
    "a second channel that claims the series": Breach(
        [("SET", "discord_channel:8:event_series", "S")],
        3,
        {"discord_channel:8:event_series": None, "event_series:S:discord_channel": "5"},
    ),
    "a role without its way back": Breach(
        [("DEL", "discord_role:6:discord_channel")], 4, {"discord_role:6:discord_channel": "5"}
    ),
    "a host role without its way forth": Breach(
        [("DEL", "discord_channel:5:discord_host_role")], 4, {"discord_channel:5:discord_host_role": "7"}
    ),
    "a role outside the index": Breach([("SREM", "discord_roles", 6)], 4, {"discord_roles": {"6"}}),
    "a role of an unknown channel": Breach(
        [
            ("SET", "discord_role:9:discord_channel", 55),
            ("SET", "discord_channel:55:discord_role", 9),
            ("SADD", "discord_roles", 9),
        ],
        4,
        {
            "discord_role:9:discord_channel": None,
            "discord_channel:55:discord_role": None,
            "discord_roles": {"6"},
            "orphaned_discord_roles": {"9"},
        },
    ),
    "a role of no channel in the index": Breach(
        [("SADD", "discord_host_roles", 9)],
        4,
        {"discord_host_roles": {"7"}, "orphaned_discord_roles": {"9"}},
    ),
    "a host role alone": Breach(
        [
            ("DEL", "discord_channel:5:discord_role", "discord_role:6:discord_channel"),
            ("SREM", "discord_roles", 6),
        ],
        4,
        {"discord_channel:5:discord_host_role": None, "orphaned_discord_roles": {"7"}},
    ),
    "a role of both kinds": Breach(
        [
            ("SET", "discord_channel:5:discord_host_role", 6),
            ("SET", "discord_host_role:6:discord_channel", 5),
            ("DEL", "discord_host_role:7:discord_channel"),
            ("SREM", "discord_host_roles", 7),
            ("SADD", "discord_host_roles", 6),
        ],
        4,
        {"discord_channel:5:discord_role": "6", "discord_channel:5:discord_host_role": None},
    ),
    "a series without a type": Breach(
        [("DEL", "event_series:S:type")], 5, {"event_series:S:type": "campaign"}
    ),
    "a type that there is not": Breach(
        [("SET", "event_series:S:type", "oneshot")], 5, {"event_series:S:type": "campaign"}
    ),
    "an adventure of two events": Breach(
        [("SET", "event_series:S:type", "adventure")], 5, {"event_series:S:type": "campaign"}
    ),
    "a channel in use among the orphans": Breach(
        [("SADD", "orphaned_discord_channels", 5)],
        6,
        {"orphaned_discord_channels": None, "discord_channels": {"5"}},
    ),
    "an orphan in the index": Breach(
        [("SADD", "orphaned_discord_channels", 8), ("SADD", "discord_channels", 8)],
        3,
        {"orphaned_discord_channels": {"8"}, "discord_channels": {"5"}},
    ),
    "a role in use among the orphans": Breach(
        [("SADD", "orphaned_discord_roles", 6)], 6, {"orphaned_discord_roles": None}
    ),
    "orphans under the wrong name": Breach(
        [("SADD", "orphaned_roles", 9)],
        6,
        {"orphaned_roles": None, "orphaned_discord_roles": {"9"}},
    ),
    "removed users of an unknown channel": Breach(
        [("SADD", "discord_channel:8:removed_users", 101)], 7, {"discord_channel:8:removed_users": None}
    ),
    "removed hosts of an unknown channel": Breach(
        [("SADD", "discord_channel:8:removed_hosts", 101)], 7, {"discord_channel:8:removed_hosts": None}
    ),
    "a time of an unknown channel": Breach(
        [("SET", "discord_channel:8:deletion_time", "2019-08-08T17:30:00Z")],
        7,
        {"discord_channel:8:deletion_time": None},
    ),
    "a time that is none": Breach(
        [("SET", "discord_channel:5:expiration_time", "soon")], 7, {"discord_channel:5:expiration_time": None}
    ),
}


def plant(raw: Raw, planted: Planted, series: str) -> None:
    for verb, *words in planted:
        # One key at a time: a cluster has them in different slots.
        keys = [[word] for word in words] if verb == "DEL" else [words]
        for some in keys:
            raw(verb, *(_filled(word, series) for word in some))


def _filled(word: Any, series: str) -> Any:
    if word == "S":
        return series
    return word.replace(":S:", f":{series}:") if isinstance(word, str) else word


def expected(afterwards: dict[str, Any], series: str) -> dict[str, Any]:
    return {_filled(name, series): _filled(value, series) for name, value in afterwards.items()}


def _check(breach: Breach, place: Place) -> None:
    series = furnish(place)
    plant(place.raw, breach.planted, series)
    before = everything(place.raw)
    planned = repair(place.db)
    assert breach.invariant in {finding.invariant for finding in planned.found}, planned.found
    assert (planned.mended, planned.left) == (0, planned.found)
    assert everything(place.raw) == before, "a plan writes nothing"
    done = repair(place.db, apply=True)
    assert done.left == []
    assert done.mended >= len(done.found)
    stored = everything(place.raw)
    assert_invariants(stored)
    wanted = expected(breach.afterwards, series)
    assert {name: stored.get(name) for name in wanted} == wanted


@pytest.mark.parametrize("name", BREACHES)
def test_a_planted_breach_is_found_told_and_mended(name: str, place: Place) -> None:
    _check(BREACHES[name], place)


@pytest.mark.parametrize(
    "name", ["half a link, Meetup side", "an event whose series is gone", "a role of an unknown channel"]
)
def test_a_planted_breach_is_mended_on_a_cluster_too(name: str, cluster_place: Place) -> None:
    _check(BREACHES[name], cluster_place)


def test_all_breaches_at_once_are_mended(anywhere: Place) -> None:
    series = furnish(anywhere)
    for breach in BREACHES.values():
        for word in breach.planted:
            _tampered(anywhere.raw, word, series)
    done = repair(anywhere.db, apply=True)
    assert done.left == []
    assert_invariants(everything(anywhere.raw))


def test_a_sound_state_has_no_findings_and_is_left_as_it_is(anywhere: Place) -> None:
    furnish(anywhere)
    before = everything(anywhere.raw)
    assert_invariants(before)
    found = audit(anywhere.db)
    assert found.holds
    assert found.keys == len(before)
    assert repair(anywhere.db, apply=True).mended == 0
    assert everything(anywhere.raw) == before


def test_a_known_channel_without_a_series_is_told_but_no_breach(place: Place) -> None:
    furnish(place)
    place.raw("SADD", "discord_channels", 8)
    found = audit(place.db)
    assert (found.holds, found.unplaced) == (True, {8})


def test_what_is_not_the_models_is_not_touched(place: Place) -> None:
    place.raw("SET", "someone:else", "1")
    place.raw("SET", "csrf:abc", "1")
    place.raw("SET", "meetup_event:e1:something:else", "1")
    before = everything(place.raw)
    assert repair(place.db, apply=True).found == []
    assert everything(place.raw) == before


def test_the_plan_reads_well(place: Place) -> None:
    place.raw("SET", "discord_user:101:meetup_user", 1)
    place.raw("SADD", "meetup_users", "ann")
    told = sorted(map(str, audit(place.db).findings))
    assert told == [
        "1 discord_users: add 101",
        "1 meetup_user:1:discord_user: set it to 101",
        "1 meetup_users: add 1",
        "1 meetup_users: should hold an unsigned 64-bit integer; remove the member b'ann'",
    ]


def test_a_repair_does_not_undo_what_was_mended_meanwhile(place: Place) -> None:
    """The audit saw tokens without a link; before the repair writes, the link is there."""
    place.raw("HSET", "meetup_user:9:oauth2_tokens", "access_token", "x", "refresh_token", "y")
    slow = Mortal(place.db, repairing._mend(audit(place.db)))
    place.db.run(link(9, 109, tokens()))
    assert slow.finish() == 0
    assert place.raw("EXISTS", "meetup_user:9:oauth2_tokens") == 1


GUESTS = "meetup_event:e1:meetup_users"
TOKENS = "meetup_user:1:oauth2_tokens"
HEALED: dict[str, tuple[Planted, Planted]] = {
    "half the details": (
        [("HDEL", "meetup_event:e1", "link")],
        [("HSET", "meetup_event:e1", "link", "https://meetup.example/e")],
    ),
    "a set": ([("DEL", GUESTS), ("SET", GUESTS, "stray")], [("DEL", GUESTS), ("SADD", GUESTS, 2)]),
    "a value": (
        [("DEL", "discord_channel:5:expiration_time"), ("SADD", "discord_channel:5:expiration_time", 1)],
        [
            ("DEL", "discord_channel:5:expiration_time"),
            ("SET", "discord_channel:5:expiration_time", "2019-08-08T17:30:00+00:00"),
        ],
    ),
    "tokens": (
        [("DEL", TOKENS), ("SET", TOKENS, "stray")],
        [("DEL", TOKENS), ("HSET", TOKENS, "access_token", "access-a", "refresh_token", "refresh-a")],
    ),
}


@pytest.mark.parametrize("what", HEALED)
def test_a_repair_leaves_what_was_healed_meanwhile(what: str, place: Place) -> None:
    series = furnish(place)
    before = everything(place.raw)
    spoiling, healing = HEALED[what]
    plant(place.raw, spoiling, series)
    found = audit(place.db)
    assert [finding for finding in found.findings if finding.spoilt is not None]
    plant(place.raw, healing, series)
    assert place.db.run(repairing._mend(found)) == 0
    assert everything(place.raw) == before


def test_repair_runs_on_asyncio(place: Place) -> None:
    place.raw("SADD", "meetup_users", 1)

    async def mended() -> int:
        async with aconnect(place.url) as db:
            return (await arepair(db, apply=True)).mended

    assert asyncio.run(mended()) == 1


def test_a_vacuum_deletes_series_without_a_channel_and_an_event_to_come(anywhere: Place) -> None:
    run = anywhere.db.run
    run(sync([announced("past", time=NOW - DAY), announced("next"), announced("kept", time=NOW - DAY)]))
    past, kept = (
        anywhere.raw("GET", f"meetup_event:{event}:event_series").decode() for event in ("past", "kept")
    )
    run(channels.attach_channel(kept, CHANNEL))
    assert run(vacuum(NOW)) == {past}
    stored = everything(anywhere.raw)
    assert_invariants(stored)
    assert stored["meetup_events"] == {"next", "kept"}


NAMES = st.sampled_from(sorted({name for breach in BREACHES.values() for _, name, *_ in breach.planted}))
IDS = st.sampled_from(["1", "2", "5", "6", "7", "8", "101", "102", "e1", "e2", "e3", "S", "zz", "campaign"])
TAMPERING: st.SearchStrategy[tuple[str, ...]] = st.one_of(
    st.tuples(st.just("DEL"), NAMES),
    st.tuples(st.just("SET"), NAMES.filter(lambda name: name.count(":") == 2), IDS),
    st.tuples(st.just("SADD"), NAMES, IDS),
    st.tuples(st.just("SREM"), NAMES, IDS),
)


def _tampered(raw: Raw, word: tuple[Any, ...], series: str) -> None:
    try:
        plant(raw, [word], series)
    except redis.ResponseError:
        return  # a key of another type


def _sound(stored: dict[str, Any]) -> bool:
    try:
        assert_invariants(stored)
    except (AssertionError, AttributeError, TypeError):
        return False
    return True


@settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(words=st.lists(TAMPERING, min_size=1, max_size=6))
def test_whatever_is_tampered_with_is_found_and_mended(place: Place, words: list[tuple[str, ...]]) -> None:
    place.raw("FLUSHALL")
    series = furnish(place)
    for word in words:
        _tampered(place.raw, word, series)
    if not _sound(everything(place.raw)):
        assert not audit(place.db).holds
    assert repair(place.db, apply=True).left == []
    assert_invariants(everything(place.raw))
