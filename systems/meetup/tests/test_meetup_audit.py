"""Every planted breach is found by the audit, repaired by the rules of the model, and can be taken back."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from audited import REMOVABLE, Sample, applied, audited, planned, repaired, undone
from invoking import invoke_keywright
from keywright import Keyring, RoundTrip, aconnect
from keywright.testing import Raw
from keywright.tools import audit_database
from keywright_meetup import channel_times, channels, intents
from keywright_meetup.account_links import link
from keywright_meetup.event_sync import sync
from keywright_meetup.model import meetup
from keywright_meetup.vacuum import vacuum

from .meetup_town import DAY, NOW, Opener, Place, announced, assert_invariants, everything, tokens

MEETUP = Sample(meetup, (), lambda _: None, {})
UNREADABLE = frozenset({"KW201", "KW202", "KW203"})
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
    run(intents.finish_role("guest_role", CHANNEL, "", GUEST))
    run(intents.finish_role("host_role", CHANNEL, "", HOST))
    run(channels.remove_user(CHANNEL, 101))
    run(channel_times.extend(CHANNEL, NOW))
    return series


class Breach(NamedTuple):
    """Raw commands, with S for the campaign's series; a code that the audit finds; the state afterwards."""

    planted: Planted
    code: str
    afterwards: dict[str, Any]


BREACHES: dict[str, Breach] = {
    "half a link, Meetup side": Breach(
        [("DEL", "discord_user:101:meetup_user")], "KW402", {"discord_user:101:meetup_user": "1"}
    ),
    "half a link, Discord side": Breach(
        [("DEL", "meetup_user:1:discord_user")], "KW403", {"meetup_user:1:discord_user": "101"}
    ),
    "no link at all, with tokens": Breach(
        [("DEL", "meetup_user:1:discord_user", "discord_user:101:meetup_user")],
        "KW401",
        {"meetup_user:1:oauth2_tokens": None, "meetup_users": {"2"}, "discord_users": {"102"}},
    ),
    "a second claim on a linked user": Breach(
        [("SET", "discord_user:103:meetup_user", 1)],
        "KW403",
        {"discord_user:103:meetup_user": None, "meetup_user:1:discord_user": "101"},
    ),
    "two claims and no link": Breach(
        [("SET", "discord_user:103:meetup_user", 9), ("SET", "discord_user:104:meetup_user", 9)],
        "KW403",
        {"discord_user:103:meetup_user": None, "discord_user:104:meetup_user": None},
    ),
    "a linked user outside the index": Breach(
        [("SREM", "meetup_users", 1)], "KW405", {"meetup_users": {"1", "2"}}
    ),
    "a stranger in the index": Breach(
        [("SADD", "discord_users", 999)], "KW404", {"discord_users": {"101", "102"}}
    ),
    "tokens of a stranger": Breach(
        [("HSET", "meetup_user:9:oauth2_tokens", "access_token", "x", "refresh_token", "y")],
        "KW401",
        {"meetup_user:9:oauth2_tokens": None},
    ),
    "a link that is not an id": Breach(
        [("SET", "discord_user:101:meetup_user", "one")], "KW202", {"discord_user:101:meetup_user": "1"}
    ),
    "a member that is not an id": Breach(
        [("SADD", "meetup_users", "ann")], "KW202", {"meetup_users": {"1", "2"}}
    ),
    "a link of another type": Breach(
        [("DEL", "discord_user:101:meetup_user"), ("SADD", "discord_user:101:meetup_user", 1)],
        "KW201",
        {"discord_user:101:meetup_user": "1"},
    ),
    "an index of another type": Breach(
        [("DEL", "meetup_users"), ("SET", "meetup_users", "1,2")], "KW201", {"meetup_users": {"1", "2"}}
    ),
    "an event outside the index": Breach(
        [("SREM", "meetup_events", "e1")], "KW405", {"meetup_events": {"e1", "e2", "e3"}}
    ),
    "an event without details": Breach(
        [("DEL", "meetup_event:e1")],
        "KW401",
        {"meetup_events": {"e2", "e3"}, "meetup_event:e1:meetup_users": None},
    ),
    "an event with half its details": Breach(
        [("HDEL", "meetup_event:e1", "urlname")],
        "KW203",
        {"meetup_event:e1": None, "meetup_event:e1:event_series": None},
    ),
    "an event that lost its series": Breach(
        [("DEL", "meetup_event:e1:event_series")], "KW403", {"meetup_event:e1:event_series": "S"}
    ),
    "a series that lost its event": Breach(
        [("SREM", "event_series:S:meetup_events", "e1")],
        "KW402",
        {"event_series:S:meetup_events": {"e1", "e2"}},
    ),
    "a series that names a foreign event": Breach(
        [("SADD", "event_series:S:meetup_events", "e3")],
        "KW403",
        {"event_series:S:meetup_events": {"e1", "e2"}},
    ),
    "an event whose series is gone": Breach(
        [("SET", "meetup_event:e3:event_series", "gone")],
        "KW402",
        {"meetup_event:e3": None, "meetup_events": {"e1", "e2"}},
    ),
    "a series outside the index": Breach(
        [("SREM", "event_series", "S")], "KW405", {"event_series:S:type": "campaign"}
    ),
    "guests of an unknown event": Breach(
        [("SADD", "meetup_event:zz:meetup_users", 1)], "KW401", {"meetup_event:zz:meetup_users": None}
    ),
    "hosts of an unknown event": Breach(
        [("SADD", "meetup_event:zz:meetup_hosts", 1)], "KW401", {"meetup_event:zz:meetup_hosts": None}
    ),
    "an unknown event in the index": Breach(
        [("SADD", "meetup_events", "zz")], "KW404", {"meetup_events": {"e1", "e2", "e3"}}
    ),
    "a channel without its way back": Breach(
        [("DEL", "discord_channel:5:event_series")], "KW402", {"discord_channel:5:event_series": "S"}
    ),
    "a series without its way forth": Breach(
        [("DEL", "event_series:S:discord_channel")], "KW403", {"event_series:S:discord_channel": "5"}
    ),
    "a channel outside the index": Breach(
        [("SREM", "discord_channels", 5)], "KW401", {"discord_channels": {"5"}}
    ),
    "a second channel that claims the series": Breach(
        [("SET", "discord_channel:8:event_series", "S")],
        "KW403",
        {"discord_channel:8:event_series": None, "event_series:S:discord_channel": "5"},
    ),
    "a role without its way back": Breach(
        [("DEL", "discord_role:6:discord_channel")], "KW402", {"discord_role:6:discord_channel": "5"}
    ),
    "a host role without its way forth": Breach(
        [("DEL", "discord_channel:5:discord_host_role")],
        "KW403",
        {"discord_channel:5:discord_host_role": "7"},
    ),
    "a role outside the index": Breach([("SREM", "discord_roles", 6)], "KW405", {"discord_roles": {"6"}}),
    "a role of an unknown channel": Breach(
        [
            ("SET", "discord_role:9:discord_channel", 55),
            ("SET", "discord_channel:55:discord_role", 9),
            ("SADD", "discord_roles", 9),
        ],
        "KW401",
        {
            "discord_role:9:discord_channel": None,
            "discord_channel:55:discord_role": None,
            "discord_roles": {"6"},
            "orphaned_discord_roles": {"9"},
        },
    ),
    "a role of no channel in the index": Breach(
        [("SADD", "discord_host_roles", 9)],
        "KW404",
        {"discord_host_roles": {"7"}, "orphaned_discord_roles": {"9"}},
    ),
    "a host role alone": Breach(
        [
            ("DEL", "discord_channel:5:discord_role", "discord_role:6:discord_channel"),
            ("SREM", "discord_roles", 6),
        ],
        "KW401",
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
        "KW601",
        {"discord_channel:5:discord_role": "6", "discord_channel:5:discord_host_role": None},
    ),
    "a series without a type": Breach(
        [("DEL", "event_series:S:type")], "KW404", {"event_series:S:type": "campaign"}
    ),
    "a type that does not exist": Breach(
        [("SET", "event_series:S:type", "oneshot")], "KW202", {"event_series:S:type": "campaign"}
    ),
    "an adventure of two events": Breach(
        [("SET", "event_series:S:type", "adventure")], "KW601", {"event_series:S:type": "campaign"}
    ),
    "a channel in use among the orphans": Breach(
        [("SADD", "orphaned_discord_channels", 5)],
        "KW601",
        {"orphaned_discord_channels": None, "discord_channels": {"5"}},
    ),
    "an orphan in the index": Breach(
        [("SADD", "orphaned_discord_channels", 8), ("SADD", "discord_channels", 8)],
        "KW601",
        {"orphaned_discord_channels": {"8"}, "discord_channels": {"5"}},
    ),
    "a role in use among the orphans": Breach(
        [("SADD", "orphaned_discord_roles", 6)], "KW601", {"orphaned_discord_roles": None}
    ),
    "orphans under the wrong name": Breach(
        [("SADD", "orphaned_roles", 9)],
        "KW601",
        {"orphaned_roles": None, "orphaned_discord_roles": {"9"}},
    ),
    "removed users of an unknown channel": Breach(
        [("SADD", "discord_channel:8:removed_users", 101)], "KW401", {"discord_channel:8:removed_users": None}
    ),
    "removed hosts of an unknown channel": Breach(
        [("SADD", "discord_channel:8:removed_hosts", 101)], "KW401", {"discord_channel:8:removed_hosts": None}
    ),
    "added users of an unknown channel": Breach(
        [("HSET", "discord_channel:8:added_users", 101, '{"role":"6","joined_at":null}')],
        "KW401",
        {"discord_channel:8:added_users": None},
    ),
    "a time of an unknown channel": Breach(
        [("SET", "discord_channel:8:deletion_time", "2019-08-08T17:30:00Z")],
        "KW401",
        {"discord_channel:8:deletion_time": None},
    ),
    "a malformed time": Breach(
        [("SET", "discord_channel:5:expiration_time", "soon")],
        "KW202",
        {"discord_channel:5:expiration_time": None},
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


@pytest.mark.parametrize("name", BREACHES)
def test_a_planted_breach_is_found_and_repaired(name: str, anywhere: Place, tmp_path: Path) -> None:
    breach = BREACHES[name]
    series = furnish(anywhere)
    plant(anywhere.raw, breach.planted, series)
    before = everything(anywhere.raw)
    report, findings = audited(anywhere.url, MEETUP)
    assert breach.code in {finding.code for finding in findings}
    assert report.failed
    assert planned(anywhere.url, MEETUP, tmp_path / "plan").steps
    assert everything(anywhere.raw) == before, "a plan writes nothing"
    remove = UNREADABLE if breach.code in UNREADABLE else frozenset[str]()
    done = repaired(anywhere.url, MEETUP, tmp_path / "undo", remove)
    assert (done.left, done.failed, done.waiting) == ({}, [], 0)
    stored = everything(anywhere.raw)
    assert_invariants(stored)
    wanted = expected(breach.afterwards, series)
    assert {name: stored.get(name) for name in wanted} == wanted
    assert not audited(anywhere.url, MEETUP)[0].failed


@pytest.mark.parametrize("name", BREACHES)
def test_the_repair_of_a_breach_can_be_taken_back(name: str, place: Place, tmp_path: Path) -> None:
    series = furnish(place)
    plant(place.raw, BREACHES[name].planted, series)
    before = everything(place.raw)
    repaired(place.url, MEETUP, tmp_path / "undo", UNREADABLE)
    assert everything(place.raw) != before
    assert undone(place.url, MEETUP, tmp_path / "undo").left == 0
    assert everything(place.raw) == before


@pytest.mark.parametrize("name", [name for name, breach in BREACHES.items() if breach.code in UNREADABLE])
def test_a_value_that_cannot_be_read_is_removed_only_where_that_is_asked_for(
    name: str, place: Place, tmp_path: Path
) -> None:
    plant(place.raw, BREACHES[name].planted, furnish(place))
    before = everything(place.raw)
    done = repaired(place.url, MEETUP, tmp_path / "undo", frozenset())
    assert BREACHES[name].code in done.left
    assert everything(place.raw) == before


def test_all_breaches_at_once_are_repaired(anywhere: Place, tmp_path: Path) -> None:
    series = furnish(anywhere)
    for breach in BREACHES.values():
        for word in breach.planted:
            _tampered(anywhere.raw, word, series)
    done = repaired(anywhere.url, MEETUP, tmp_path / "undo")
    assert (done.left, done.failed) == ({}, [])
    assert_invariants(everything(anywhere.raw))


def test_a_sound_state_has_no_findings_and_is_left_as_it_is(anywhere: Place, tmp_path: Path) -> None:
    furnish(anywhere)
    before = everything(anywhere.raw)
    assert_invariants(before)
    report, findings = audited(anywhere.url, MEETUP)
    assert findings == []
    assert sum(row.keys for row in report.rows) == len(before)
    assert repaired(anywhere.url, MEETUP, tmp_path / "undo").steps == 0
    assert everything(anywhere.raw) == before


def test_a_known_channel_without_a_series_is_noted_and_kept(place: Place, tmp_path: Path) -> None:
    furnish(place)
    place.raw("SADD", "discord_channels", 8)
    report, findings = audited(place.url, MEETUP)
    assert [(finding.code, finding.invariant, finding.member) for finding in findings] == [
        ("KW602", "unplaced-channels", b"8")
    ]
    assert not report.failed
    done = repaired(place.url, MEETUP, tmp_path / "undo")
    assert (done.steps, done.left) == (0, {})
    assert place.raw("SMEMBERS", "discord_channels") == {b"5", b"8"}


def test_the_command_repair_completes_half_links_and_makes_roles_of_unknown_channels_orphans(
    place: Place, tmp_path: Path
) -> None:
    """It removed both: a person lost the link, and the role stayed on Discord."""
    place.raw("SET", "discord_user:5:meetup_user", 50)
    place.raw("SADD", "discord_users", 5)
    place.raw("SET", "discord_channel:9:discord_role", 77)
    undo = str(tmp_path / "undo")
    done = invoke_keywright("repair", "meetup", "--url", place.url, "--yes", "--undo-to", undo)
    assert done.exit_code == 0, done.output
    assert everything(place.raw) == {
        "discord_user:5:meetup_user": "50",
        "discord_users": {"5"},
        "meetup_user:50:discord_user": "5",
        "meetup_users": {"50"},
        "orphaned_discord_roles": {"77"},
    }


def test_keys_that_are_not_of_the_model_are_not_touched(place: Place, tmp_path: Path) -> None:
    place.raw("SET", "someone:else", "1")
    place.raw("SET", "csrf:abc", "1", "EX", 60)
    place.raw("SET", "meetup_event:e1:something:else", "1")
    before = everything(place.raw)
    done = repaired(place.url, MEETUP, tmp_path / "undo", frozenset())
    assert (done.steps, done.left) == (0, {"KW101": 2})
    assert everything(place.raw) == before


def test_the_plan_says_what_the_model_would_do(place: Place, tmp_path: Path) -> None:
    place.raw("SET", "discord_user:101:meetup_user", 1)
    place.raw("SADD", "discord_host_roles", 9)
    place.raw("SET", "discord_channel:8:discord_role", 10)
    plan = planned(place.url, MEETUP, tmp_path / "plan")
    assert {(step.name.decode(), step.link, step.does) for step in plan.steps_in_order()} == {
        ("discord_user:101:meetup_user", "linked-people", "complete it"),
        ("discord_host_roles", "roles-in-use", "make it an orphan"),
        ("discord_channel:8:discord_role", "roles-in-use", "make it an orphan"),
    }


def test_a_step_that_was_overtaken_by_a_link_removes_nothing(place: Place, tmp_path: Path) -> None:
    """The audit saw tokens without a link; before the plan is applied, the link is there."""
    place.raw("HSET", "meetup_user:9:oauth2_tokens", "access_token", "x", "refresh_token", "y")
    planned(place.url, MEETUP, tmp_path / "plan")
    place.db.run(link(9, 109, tokens()))
    done = applied(place.url, MEETUP, tmp_path)
    assert (done.steps, done.overtaken) == (0, 1)
    assert place.raw("EXISTS", "meetup_user:9:oauth2_tokens") == 1


def test_tokens_without_a_link_are_found_where_they_cannot_be_opened(
    place: Place, open_database: Opener, tmp_path: Path
) -> None:
    sealing = open_database(place.url, meetup.spaces[0].bind(keyring=Keyring("k1", {"k1": bytes(32)})))
    sealing.run(link(1, 101, tokens()))
    for name in ("meetup_user:1:discord_user", "discord_user:101:meetup_user"):
        place.raw("DEL", name)
    assert "KW401" in {finding.code for finding in audited(place.url, MEETUP)[1]}
    repaired(place.url, MEETUP, tmp_path / "undo", frozenset())
    assert everything(place.raw) == {}


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
def test_a_repair_leaves_what_was_healed_meanwhile(what: str, place: Place, tmp_path: Path) -> None:
    series = furnish(place)
    before = everything(place.raw)
    corrupting, healing = HEALED[what]
    plant(place.raw, corrupting, series)
    assert planned(place.url, MEETUP, tmp_path / "plan").steps
    plant(place.raw, healing, series)
    assert applied(place.url, MEETUP, tmp_path).steps == 0
    assert everything(place.raw) == before


@pytest.mark.anyio
async def test_checking_the_invariants_takes_no_round_trip_for_each_key(place: Place) -> None:
    for number in range(300):
        place.raw("SADD", "orphaned_discord_channels", number)
        place.raw("SADD", "orphaned_discord_roles", number)
    trips: list[RoundTrip] = []

    def observe(trip: RoundTrip) -> None:
        trips.append(trip)

    async with aconnect(place.url, observers=(observe,)) as db:
        report = await audit_database(db, meetup)
    assert not report.failed
    assert len(trips) < 40


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
def test_any_tampering_is_found_and_repaired(
    place: Place, tmp_path: Path, words: list[tuple[str, ...]]
) -> None:
    place.raw("FLUSHALL")
    series = furnish(place)
    for word in words:
        _tampered(place.raw, word, series)
    if not _sound(everything(place.raw)):
        assert audited(place.url, MEETUP)[0].failed
    done = repaired(place.url, MEETUP, tmp_path / "undo", REMOVABLE - {"KW401"})
    assert (done.left, done.failed) == ({}, [])
    assert_invariants(everything(place.raw))
