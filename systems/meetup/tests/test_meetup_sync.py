"""The sync of Meetup's events: differences are written, events that are the same are only read."""

from __future__ import annotations

from collections import Counter

import pytest

from keywright import RoundTrip
from keywright_meetup.account_links import link
from keywright_meetup.channels import (
    attach_channel,
    forget_channel,
    remove_host,
    remove_user,
    retire_channel,
)
from keywright_meetup.event_sync import Synced, sync
from keywright_meetup.queries import read_series, tracked_events, upcoming_series
from keywright_meetup.schema import MeetupEvents
from keywright_meetup.series import delete_series, remove_event
from kinship import Mortal

from .meetup_town import BIG, DAY, NOW, Opener, Place, announced, assert_invariants, everything, part

READS = {"get", "get_many", "members", "has", "has_many", "exists"}


def series_of(place: Place, event: str) -> str:
    found: str = place.raw("GET", f"meetup_event:{event}:event_series").decode()
    return found


def test_a_new_event_is_stored_with_all_that_is_its_own(anywhere: Place) -> None:
    done = anywhere.db.run(sync([announced("e1", hosts=[1], guests=[2, 3])]))
    assert done == Synced(added={"e1"})
    series = series_of(anywhere, "e1")
    assert everything(anywhere.raw) == {
        "meetup_events": {"e1"},
        "event_series": {series},
        "meetup_event:e1:event_series": series,
        f"event_series:{series}:meetup_events": {"e1"},
        f"event_series:{series}:type": "adventure",
        "meetup_event:e1:meetup_hosts": {"1"},
        "meetup_event:e1:meetup_users": {"2", "3"},
        "meetup_event:e1": {
            "name": "Dungeon night [1]",
            "time": "2019-08-09T17:30:00+00:00",
            "link": "https://meetup.example/e",
            "urlname": "swiss-rpg",
        },
    }


def test_an_event_without_hosts_and_guests_is_stored_too(anywhere: Place) -> None:
    anywhere.db.run(sync([announced("e1")]))
    assert_invariants(everything(anywhere.raw))
    assert anywhere.raw("SMEMBERS", "meetup_events") == {b"e1"}


def test_a_sync_that_changes_nothing_sends_reads_only(anywhere: Place, open_database: Opener) -> None:
    events = [announced(f"e{n}", hosts=[n], guests=range(n)) for n in range(60)]
    events += [announced(f"f{n}", f"[campaign e{n}]") for n in range(20)]
    anywhere.db.run(sync(events))
    before = everything(anywhere.raw)
    trips: list[RoundTrip] = []
    watched = open_database(anywhere.url, observers=(trips.append,))
    watched.run(MeetupEvents().size())  # connected, and the server known
    trips.clear()
    done = watched.run(sync(events, gone=["unknown"]))
    sent = sum((trip.operations for trip in trips), Counter[tuple[str, str]]())
    assert done == Synced(unchanged=80)
    assert {operation for _, operation in sent} <= READS
    assert len(trips) <= 4
    assert everything(anywhere.raw) == before


def test_only_differences_are_written(place: Place, open_database: Opener) -> None:
    events = [announced(f"e{n}", hosts=[1], guests=[2]) for n in range(50)]
    place.db.run(sync(events))
    trips: list[RoundTrip] = []
    watched = open_database(place.url, observers=(trips.append,))
    done = watched.run(sync([*events[:-1], announced("e49", hosts=[1], guests=[2, 3])]))
    commits = sum(trip.operations[("", "commit sync event")] for trip in trips)
    assert (done.changed, done.unchanged, commits) == ({"e49"}, 49, 1)


def test_cancelled_guests_and_former_hosts_are_removed(anywhere: Place) -> None:
    anywhere.db.run(sync([announced("e1", hosts=[1, 2], guests=[3, 4])]))
    done = anywhere.db.run(sync([announced("e1", hosts=[2], guests=[4, 5])]))
    assert done.changed == {"e1"}
    stored = everything(anywhere.raw)
    assert stored["meetup_event:e1:meetup_hosts"] == {"2"}
    assert stored["meetup_event:e1:meetup_users"] == {"4", "5"}


def test_a_further_event_joins_the_series_and_makes_it_a_campaign(anywhere: Place) -> None:
    anywhere.db.run(sync([announced("e1")]))
    anywhere.db.run(sync([announced("e2", "[campaign e1]")]))
    assert series_of(anywhere, "e1") == series_of(anywhere, "e2")
    stored = everything(anywhere.raw)
    assert_invariants(stored)
    assert set(part(stored, "event_series", "type").values()) == {"campaign"}


def test_events_of_one_run_may_name_each_other_in_any_order(anywhere: Place) -> None:
    chain = [announced(f"e{n}", f"[campaign e{n - 1}]") for n in range(5, 0, -1)]
    done = anywhere.db.run(sync([*chain, announced("e0")]))
    assert done.added == {f"e{n}" for n in range(6)}
    assert len({series_of(anywhere, f"e{n}") for n in range(6)}) == 1
    assert_invariants(everything(anywhere.raw))


def test_many_events_join_one_series_in_one_run(anywhere: Place) -> None:
    done = anywhere.db.run(
        sync([announced("e0"), *(announced(f"e{n}", "[campaign e0]") for n in range(1, 9))])
    )
    assert len(done.added) == 9
    assert_invariants(everything(anywhere.raw))


def test_events_that_only_name_each_other_are_reported(place: Place) -> None:
    done = place.db.run(sync([announced("e1", "[campaign e2]"), announced("e2", "[campaign e1]")]))
    assert (done.ignored, set(done.warnings)) == (2, {"e1", "e2"})
    assert everything(place.raw) == {}


def test_a_channel_that_an_event_names_is_its_series_own(anywhere: Place) -> None:
    tag = f"[new adventure] [channel {BIG}]"
    done = anywhere.db.run(sync([announced("e1", tag), announced("e2", tag)]))
    assert (done.added, set(done.warnings)) == ({"e1"}, {"e2"})
    stored = everything(anywhere.raw)
    assert_invariants(stored)
    assert stored["discord_channels"] == {str(BIG)}


def test_a_channel_that_is_being_deleted_is_not_taken(anywhere: Place) -> None:
    anywhere.db.run(sync([announced("e1", "[new adventure] [channel 5]")]))
    anywhere.db.run(retire_channel(5))
    done = anywhere.db.run(sync([announced("e2", "[new adventure] [channel 5]")]))
    assert set(done.warnings) == {"e2"}
    assert_invariants(everything(anywhere.raw))


def test_an_event_that_is_gone_from_meetup_leaves_nothing_but_its_series(anywhere: Place) -> None:
    anywhere.db.run(sync([announced("e1", hosts=[1], guests=[2]), announced("e2", "[campaign e1]")]))
    done = anywhere.db.run(sync([], gone=["e1", "e3"]))
    assert done == Synced(removed={"e1"})
    stored = everything(anywhere.raw)
    assert_invariants(stored)
    assert not [name for name in stored if name.startswith("meetup_event:e1")]


def test_a_series_goes_with_all_of_its_events(anywhere: Place) -> None:
    anywhere.db.run(sync([announced("e1", hosts=[1], guests=[2]), announced("e2", "[campaign e1]")]))
    series = series_of(anywhere, "e1")
    anywhere.db.run(attach_channel(series, 5))
    assert anywhere.db.run(delete_series(series)) is False
    anywhere.db.run(retire_channel(5))
    assert anywhere.db.run(delete_series(series, only_with=["e1"])) is False
    assert anywhere.db.run(delete_series(series)) is True
    assert everything(anywhere.raw) == {"orphaned_discord_channels": {"5"}}


@pytest.mark.parametrize("rounds", range(3))
def test_an_event_that_comes_while_its_series_goes_is_never_left_alone(rounds: int, place: Place) -> None:
    place.db.run(sync([announced("e1")]))
    series = series_of(place, "e1")
    slow = Mortal(place.db, sync([announced("e2", "[campaign e1]")]))
    for _ in range(rounds):
        slow.step()
    place.db.run(delete_series(series))
    slow.finish()
    assert_invariants(everything(place.raw))


@pytest.mark.parametrize("rounds", range(3))
def test_an_event_that_comes_before_its_series_goes_keeps_it(rounds: int, place: Place) -> None:
    place.db.run(sync([announced("e1")]))
    slow = Mortal(place.db, delete_series(series_of(place, "e1"), only_with=["e1"]))
    for _ in range(rounds):
        slow.step()
    place.db.run(sync([announced("e2", "[campaign e1]")]))
    slow.finish()
    stored = everything(place.raw)
    assert_invariants(stored)
    assert stored["meetup_events"] == {"e1", "e2"}


@pytest.mark.parametrize("rounds", range(3))
def test_two_events_that_join_a_series_at_once_make_it_a_campaign(rounds: int, place: Place) -> None:
    """Two events join a series that knows none yet, as after half a write of an earlier bot."""
    place.db.run(sync([announced("e0")]))
    place.raw("DEL", f"event_series:{series_of(place, 'e0')}:meetup_events")
    slow = Mortal(place.db, sync([announced("e2", "[campaign e0]")]))
    for _ in range(rounds):
        slow.step()
    place.db.run(sync([announced("e3", "[campaign e0]")]))
    slow.finish()
    place.db.run(remove_event("e0"))
    stored = everything(place.raw)
    assert_invariants(stored)
    assert set(part(stored, "event_series", "type").values()) == {"campaign"}


def test_malformed_details_are_written_again_and_do_not_stop_the_run(place: Place) -> None:
    place.db.run(sync([announced("e1"), announced("e2")]))
    place.raw("HDEL", "meetup_event:e1", "time")
    done = place.db.run(sync([announced("e1"), announced("e2", name="New")]))
    assert done.changed == {"e1", "e2"}
    assert_invariants(everything(place.raw))


def test_fields_that_others_keep_in_an_event_stay(place: Place) -> None:
    place.db.run(sync([announced("e1")]))
    place.raw("HSET", "meetup_event:e1", "is_online", "true")
    place.db.run(sync([announced("e1", name="New")]))
    assert place.raw("HGET", "meetup_event:e1", "is_online") == b"true"


def test_one_event_that_cannot_be_written_does_not_stop_the_others(place: Place) -> None:
    place.raw("SET", "event_series", "stray")
    place.raw("SADD", "meetup_events", "e1")
    place.raw("SET", "meetup_event:e1:event_series", "s1")
    done = place.db.run(sync([announced("e1"), announced("e2")]))
    assert done.changed == {"e1"}
    assert set(done.failures) == {"e2"}
    assert "meetup_event:e2" not in everything(place.raw)


def test_a_series_state_tells_who_belongs_where(anywhere: Place) -> None:
    for user in range(1, 7):
        anywhere.db.run(link(user, 100 + user))
    past = announced("e0", hosts=[6], guests=[6], time=NOW - 9 * DAY)
    coming = announced("e1", "[campaign e0]", hosts=[1, 2, 3], guests=[3, 4, 5, 77])
    anywhere.db.run(sync([past, coming, announced("old", time=NOW - DAY)]))
    series = series_of(anywhere, "e1")
    anywhere.db.run(attach_channel(series, 5))
    anywhere.db.run(remove_user(5, 103))
    anywhere.db.run(remove_host(5, 102))
    (state,) = anywhere.db.run(upcoming_series(NOW))
    assert (state.series, state.type, state.channel) == (series, "campaign", 5)
    assert state.next_event(NOW) == "e1"
    assert state.guests == {104, 105}, "unlinked, removed and past guests are not added"
    assert state.hosts == {101}
    assert set(anywhere.db.run(tracked_events())) == {"e0", "e1", "old"}
    assert anywhere.db.run(read_series([], NOW)) == []


def test_reading_many_series_takes_a_handful_of_round_trips(place: Place, open_database: Opener) -> None:
    place.db.run(sync([announced(f"e{n}", hosts=[n], guests=[n + 1]) for n in range(200)]))
    trips: list[RoundTrip] = []
    watched = open_database(place.url, observers=(trips.append,))
    assert len(watched.run(upcoming_series(NOW))) == 200
    assert len(trips) <= 7


@pytest.mark.parametrize("named", ["[campaign e0]", "[new adventure] [channel 5]"])
def test_an_event_follows_its_page_after_the_event_it_names_is_gone(anywhere: Place, named: str) -> None:
    anywhere.db.run(sync([announced("e0"), announced("e1", named)]))
    anywhere.db.run(sync([], gone=["e0"]))
    anywhere.db.run(forget_channel(5))
    done = anywhere.db.run(sync([announced("e1", named, hosts=[1], name="New")]))
    assert done == Synced(changed={"e1"})
    assert anywhere.raw("HGET", "meetup_event:e1", "name") == b"New"


def test_ids_that_no_key_can_hold_stop_only_their_own_event(place: Place) -> None:
    done = place.db.run(sync([announced("e1", hosts=[2**64]), announced("e2")]))
    assert (done.added, set(done.failures)) == ({"e2"}, {"e1"})
    assert_invariants(everything(place.raw))
