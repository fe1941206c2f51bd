"""The mistakes of the original bot, by their numbers in docs/resolutions.md; each has a test."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from keywright import RoundTrip, Secret, aconnect
from keywright.errors import TakenError
from keywright.tools import AuditOptions, audit_database, repair_database
from keywright_meetup import account_links, channel_times, channels, intents
from keywright_meetup.errors import RefusedChangeError
from keywright_meetup.event_sync import sync
from keywright_meetup.model import meetup
from keywright_meetup.queries import upcoming_series
from keywright_meetup.series import remove_event
from kinship import Mortal

from .meetup_town import BIG, DAY, NOW, Opener, Place, announced, assert_invariants, everything, tokens


def furnished(place: Place, channel: int = 5) -> str:
    run = place.db.run
    run(sync([announced(f"e{channel}", f"[new adventure] [channel {channel}]", hosts=[1], guests=[2])]))
    run(intents.finish_role("guest_role", channel, "", channel + 1))
    run(intents.finish_role("host_role", channel, "", channel + 2))
    run(channels.remove_user(channel, 1))
    run(channels.remove_host(channel, 2))
    run(channel_times.extend(channel, NOW))
    found: str = place.raw("GET", f"meetup_event:e{channel}:event_series").decode()
    return found


def test_1_a_linking_id_expires_though_nobody_opens_it_and_serves_one_of_two(place: Place) -> None:
    linking_id = place.db.run(account_links.begin_linking(BIG))
    assert 0 < place.raw("PTTL", f"meetup_linking:{linking_id}:discord_user") <= 600_000
    taken = [place.db.run(account_links.take_linking(linking_id)) for _ in range(2)]
    assert taken == [BIG, None]


def test_2_a_csrf_token_is_consumed(place: Place) -> None:
    place.db.run(account_links.keep_csrf("linking", Secret("state")))
    assert place.db.run(account_links.redeem_csrf("linking", Secret("state")))
    assert place.raw("EXISTS", "csrf:linking") == 0


@pytest.mark.parametrize("rounds", range(3))
def test_3_an_unlink_that_is_overtaken_leaves_the_new_partner_alone(rounds: int, place: Place) -> None:
    place.db.run(account_links.link(1, 101, tokens()))
    slow = Mortal(place.db, account_links.unlink_discord(101))
    for _ in range(rounds):
        slow.step()
    place.db.run(account_links.unlink(1))
    place.db.run(account_links.link(1, 102, tokens("new")))
    slow.finish()
    stored = everything(place.raw)
    assert_invariants(stored)
    assert stored["meetup_user:1:discord_user"] == "102"
    assert stored["meetup_user:1:oauth2_tokens"]["access_token"] == "access-new"


@pytest.mark.parametrize("rounds", range(3))
def test_3_of_two_that_unlink_at_once_one_did_it(rounds: int, place: Place) -> None:
    place.db.run(account_links.link(1, 101, tokens()))
    slow = Mortal(place.db, account_links.unlink_discord(101))
    for _ in range(rounds):
        slow.step()
    assert place.db.run(account_links.unlink(1))
    assert not slow.finish()
    assert everything(place.raw) == {}


def test_3_an_unlink_leaves_neither_index_entries_nor_tokens(place: Place) -> None:
    place.db.run(account_links.link(1, 101, tokens()))
    place.db.run(account_links.unlink_discord(101))
    assert everything(place.raw) == {}


@pytest.mark.parametrize("rounds", range(2))
def test_4_a_link_that_fails_leaves_no_tokens(rounds: int, place: Place) -> None:
    slow = Mortal(place.db, account_links.link(1, 101, tokens("lost")))
    for _ in range(rounds):
        slow.step()
    place.db.run(account_links.link(2, 101))
    with pytest.raises(TakenError):
        slow.finish()
    assert place.raw("EXISTS", "meetup_user:1:oauth2_tokens") == 0


def test_5_roles_to_be_deleted_are_kept_under_the_documented_name(place: Place) -> None:
    furnished(place)
    place.db.run(channels.retire_channel(5))
    assert place.raw("SMEMBERS", "orphaned_discord_roles") == {b"6", b"7"}
    assert place.raw("EXISTS", "orphaned_roles") == 0


@pytest.mark.anyio
async def test_6_an_audit_reads_ids_from_names_without_keys_and_one_by_one_gets(
    place: Place, tmp_path: Path
) -> None:
    for number in range(300):
        place.raw("SET", f"discord_user:{number}:meetup_user", number + 1000)
    trips: list[RoundTrip] = []

    def observe(trip: RoundTrip) -> None:
        trips.append(trip)

    place.raw("CONFIG", "RESETSTAT")
    async with aconnect(place.url, observers=(observe,)) as db:
        report = await audit_database(db, meetup)
        assert report.counts == {"KW403": 300, "KW405": 300}
        assert len(trips) < 20
        await repair_database(db, meetup, AuditOptions(), tmp_path / "undo")
    assert place.raw.calls_of("keys") == 0
    stored = everything(place.raw)
    assert len(stored["meetup_users"]) == 300
    assert_invariants(stored)


def test_6_cleaning_up_a_channel_does_not_forget_its_series_and_the_roles_way_back(place: Place) -> None:
    furnished(place)
    place.db.run(channels.forget_channel(5))
    assert not [name for name in everything(place.raw) if ":discord_channel" in name]


def test_7_a_channel_that_is_gone_leaves_no_roles_removals_or_times(place: Place) -> None:
    furnished(place)
    place.db.run(channels.forget_channel(5))
    stored = everything(place.raw)
    assert not [name for name in stored if name.startswith("discord_channel:5:")]
    assert stored["orphaned_discord_roles"] == {"6", "7"}


def test_8_a_crash_between_discord_and_redis_leaves_a_record(place: Place) -> None:
    place.db.run(sync([announced("e1")]))
    series = place.raw("GET", "meetup_event:e1:event_series").decode()
    begun = place.db.run(intents.begin_channel(series, NOW))
    assert begun.intent is not None
    # Discord made channel 5 here, and the process died. Another finds the mark on Discord:
    ((target, intent),) = place.db.run(intents.pending()).items()
    assert (target.made, target.owner) == ("channel", series)
    assert place.db.run(intents.finish_channel(series, intent.mark, 5)).kept
    assert place.db.run(intents.pending()) == {}


def test_9_empty_lists_are_not_an_error(place: Place) -> None:
    done = place.db.run(sync([announced("e1", hosts=[], guests=[])]))
    assert done.added == {"e1"}
    assert place.db.run(sync([], gone=[])).removed == set()
    assert place.db.run(account_links.discord_users_of([])) == {}
    assert place.db.run(upcoming_series(NOW + 9 * DAY)) == []


def test_10_cancellations_and_host_changes_are_followed_and_past_guests_not_added(place: Place) -> None:
    for user in (1, 2, 3):
        place.db.run(account_links.link(user, 100 + user))
    past = announced("e0", hosts=[1], guests=[2], time=NOW - DAY)
    place.db.run(sync([past, announced("e1", "[campaign e0]", hosts=[1, 2], guests=[3])]))
    place.db.run(sync([announced("e1", "[campaign e0]", hosts=[2], guests=[])]))
    (state,) = place.db.run(upcoming_series(NOW))
    assert (set(state.hosts), set(state.guests)) == ({102}, set())


@pytest.mark.parametrize("rounds", range(3))
def test_11_the_event_that_names_the_series_is_looked_up_inside_the_commit(rounds: int, place: Place) -> None:
    place.db.run(sync([announced("e1")]))
    slow = Mortal(place.db, sync([announced("e2", "[campaign e1]")]))
    for _ in range(rounds):
        slow.step()
    place.db.run(remove_event("e1"))
    slow.finish()
    stored = everything(place.raw)
    assert_invariants(stored)
    assert "meetup_event:e2" not in stored


def test_12_reads_do_not_grow_into_one_round_trip_per_event(place: Place, open_database: Opener) -> None:
    def trips_for(count: int) -> int:
        place.raw("FLUSHALL")
        events = [announced(f"e{n}", hosts=[n], guests=[n]) for n in range(count)]
        trips: list[RoundTrip] = []
        open_database(place.url, observers=(trips.append,)).run(sync(events))
        return len(trips)

    assert trips_for(5) == trips_for(500)


def test_12_a_field_that_is_not_ours_survives_a_write(place: Place) -> None:
    place.db.run(sync([announced("e1")]))
    place.raw("HSET", "meetup_event:e1", "discord_category", "7")
    place.db.run(sync([announced("e1", name="Other")]))
    assert place.raw("HMGET", "meetup_event:e1", "discord_category", "name") == [b"7", b"Other"]


def test_13_an_extension_takes_back_the_deletion_of_its_own_channel_only(place: Place) -> None:
    for channel in (5, 15):
        furnished(place, channel)
        place.db.run(channel_times.end(channel, NOW))
    place.db.run(channel_times.extend(5, NOW + DAY))
    left = [place.raw("EXISTS", f"discord_channel:{channel}:deletion_time") for channel in (5, 15)]
    assert left == [0, 1]


def test_14_ids_above_2_to_the_53_stay_exact_everywhere(place: Place) -> None:
    place.db.run(account_links.link(BIG, BIG + 1, tokens()))
    place.db.run(sync([announced("e1", f"[new campaign] [channel {BIG + 2}]", guests=[BIG])]))
    place.db.run(intents.finish_role("guest_role", BIG + 2, "", BIG + 3))
    stored = everything(place.raw)
    assert_invariants(stored)
    assert stored[f"discord_channel:{BIG + 2}:discord_role"] == str(BIG + 3)
    (state,) = place.db.run(upcoming_series(NOW))
    assert (state.channel, state.guest_role, set(state.guests)) == (BIG + 2, BIG + 3, {BIG + 1})


def test_15_a_change_that_a_database_with_constraints_would_refuse_is_refused(place: Place) -> None:
    series = furnished(place)
    before = everything(place.raw)
    for call in (
        channels.attach_channel(series, 8),
        channels.attach_channel("unknown", 8),
        channels.remove_user(8, 1),
        channel_times.extend(8, NOW),
        intents.begin_channel("unknown", NOW),
        intents.begin_role("guest_role", 8, NOW),
    ):
        with pytest.raises((TakenError, RefusedChangeError)):
            place.db.run(call)
    assert everything(place.raw) == before


def test_every_command_of_a_sync_is_counted(place: Place, open_database: Opener) -> None:
    """The benchmark counts three reads an event, and one commit for each that differs."""
    trips: list[RoundTrip] = []
    watched = open_database(place.url, observers=(trips.append,))
    watched.run(sync([announced(f"e{n}", hosts=[n], guests=[n]) for n in range(100)]))
    sent = sum((trip.operations for trip in trips), Counter[tuple[str, str]]())
    assert sum(count for (_, operation), count in sent.items() if operation == "commit sync event") == 100
