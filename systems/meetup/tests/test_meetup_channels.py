"""Channels: provisioning without leaks, roles, removals, times, orphans until Discord confirms."""

from __future__ import annotations

from datetime import timedelta

import pytest

from keywright.errors import TakenError
from keywright_meetup import channel_times, channels, intents
from keywright_meetup.channel_times import ChannelTimes
from keywright_meetup.errors import RefusedChangeError
from keywright_meetup.event_sync import sync
from keywright_meetup.intents import Begun, Finished
from keywright_meetup.schema import Intent, RoleKind, Target
from keywright_meetup.series import delete_series
from kinship import Mortal

from .meetup_town import DAY, NOW, Place, announced, assert_invariants, everything

CHANNEL, GUEST, HOST = 5, 6, 7


@pytest.fixture
def series(anywhere: Place) -> str:
    anywhere.db.run(sync([announced("e1")]))
    found: str = anywhere.raw("GET", "meetup_event:e1:event_series").decode()
    return found


def provisioned(place: Place, series: str) -> None:
    begun = place.db.run(intents.begin_channel(series, NOW))
    assert begun.intent is not None
    place.db.run(intents.finish_channel(series, begun.intent.mark, CHANNEL))
    kinds: dict[RoleKind, int] = {"guest_role": GUEST, "host_role": HOST}
    for made, role in kinds.items():
        begun = place.db.run(intents.begin_role(made, CHANNEL, NOW))
        assert begun.intent is not None
        place.db.run(intents.finish_role(made, CHANNEL, begun.intent.mark, role))


def test_a_channel_is_recorded_before_it_is_made_and_attached_with_its_intent_dropped(
    anywhere: Place, series: str
) -> None:
    begun = anywhere.db.run(intents.begin_channel(series, NOW))
    assert begun.mine
    assert begun.intent is not None
    assert anywhere.db.run(intents.pending()) == {Target("channel", series): begun.intent}
    done = anywhere.db.run(intents.finish_channel(series, begun.intent.mark, CHANNEL))
    assert done == Finished(kept=True, existing=CHANNEL)
    assert anywhere.db.run(intents.pending()) == {}
    stored = everything(anywhere.raw)
    assert_invariants(stored)
    assert stored["discord_channels"] == {"5"}
    again = anywhere.db.run(intents.begin_channel(series, NOW))
    assert again == Begun(mine=False, existing=CHANNEL)


def test_of_two_bots_one_makes_the_channel(anywhere: Place, series: str) -> None:
    mine = anywhere.db.run(intents.begin_channel(series, NOW))
    other = anywhere.db.run(intents.begin_channel(series, NOW + DAY))
    assert (mine.mine, other.mine) == (True, False)
    assert other.intent == mine.intent


def test_a_channel_made_for_a_series_that_is_gone_becomes_an_orphan(anywhere: Place, series: str) -> None:
    begun = anywhere.db.run(intents.begin_channel(series, NOW))
    assert begun.intent is not None
    anywhere.db.run(delete_series(series))
    done = anywhere.db.run(intents.finish_channel(series, begun.intent.mark, CHANNEL))
    assert done == Finished(kept=False, existing=None)
    assert everything(anywhere.raw) == {"orphaned_discord_channels": {"5"}}


def test_a_channel_that_lost_to_another_becomes_an_orphan(anywhere: Place, series: str) -> None:
    begun = anywhere.db.run(intents.begin_channel(series, NOW))
    assert begun.intent is not None
    anywhere.db.run(channels.attach_channel(series, 99))
    done = anywhere.db.run(intents.finish_channel(series, begun.intent.mark, CHANNEL))
    assert done == Finished(kept=False, existing=99)
    assert anywhere.raw("SMEMBERS", "orphaned_discord_channels") == {b"5"}
    assert_invariants(everything(anywhere.raw))


@pytest.mark.parametrize("rounds", range(3))
def test_a_channel_that_becomes_an_orphan_meanwhile_is_not_attached(rounds: int, place: Place) -> None:
    place.db.run(sync([announced("e1"), announced("e2", "[new adventure] [channel 9]")]))
    series = place.raw("GET", "meetup_event:e1:event_series").decode()
    making = [
        Mortal(place.db, intents.finish_channel(series, "", CHANNEL)),
        Mortal(place.db, intents.finish_role("guest_role", 9, "", GUEST)),
    ]
    for slow in making:
        for _ in range(rounds):
            slow.step()
    place.raw("SADD", "orphaned_discord_channels", CHANNEL)
    place.raw("SADD", "orphaned_discord_roles", GUEST)
    assert [slow.finish().kept for slow in making] == [False, False]
    assert_invariants(everything(place.raw))


def test_finishing_twice_is_the_same_as_once(anywhere: Place, series: str) -> None:
    provisioned(anywhere, series)
    before = everything(anywhere.raw)
    assert anywhere.db.run(intents.finish_channel(series, "mark", CHANNEL)).kept
    assert anywhere.db.run(intents.finish_role("guest_role", CHANNEL, "mark", GUEST)).kept
    assert everything(anywhere.raw) == before


def test_an_intent_is_abandoned_only_by_its_mark(anywhere: Place, series: str) -> None:
    begun = anywhere.db.run(intents.begin_channel(series, NOW))
    assert isinstance(begun.intent, Intent)
    target = Target("channel", series)
    assert anywhere.db.run(intents.abandon(target, "another")) is False
    assert anywhere.db.run(intents.abandon(target, begun.intent.mark)) is True
    assert anywhere.db.run(intents.begin_channel(series, NOW)).mine


def test_a_host_role_needs_a_guest_role(anywhere: Place, series: str) -> None:
    anywhere.db.run(channels.attach_channel(series, CHANNEL))
    with pytest.raises(RefusedChangeError):
        anywhere.db.run(intents.begin_role("host_role", CHANNEL, NOW))
    done = anywhere.db.run(intents.finish_role("host_role", CHANNEL, "mark", HOST))
    assert not done.kept
    assert anywhere.raw("SMEMBERS", "orphaned_discord_roles") == {b"7"}
    assert_invariants(everything(anywhere.raw))


def test_a_role_is_of_one_kind_and_of_one_channel(anywhere: Place, series: str) -> None:
    provisioned(anywhere, series)
    before = everything(anywhere.raw)
    assert not anywhere.db.run(intents.finish_role("host_role", CHANNEL, "mark", GUEST)).kept
    assert everything(anywhere.raw) == before


def test_a_role_that_is_gone_from_discord_is_replaced_in_one_step(anywhere: Place, series: str) -> None:
    provisioned(anywhere, series)
    begun = anywhere.db.run(intents.begin_role("guest_role", CHANNEL, NOW, instead_of=GUEST))
    assert begun.intent is not None
    assert_invariants({k: v for k, v in everything(anywhere.raw).items() if k != "discord_provisioning"})
    mark = begun.intent.mark
    done = anywhere.db.run(intents.finish_role("guest_role", CHANNEL, mark, 66, instead_of=GUEST))
    assert done == Finished(kept=True, existing=66)
    stored = everything(anywhere.raw)
    assert_invariants(stored)
    assert stored["discord_roles"] == {"66"}
    assert "orphaned_discord_roles" not in stored


def test_a_retired_channel_leaves_only_orphans_until_discord_confirms(anywhere: Place, series: str) -> None:
    provisioned(anywhere, series)
    anywhere.db.run(channels.remove_user(CHANNEL, 1))
    anywhere.db.run(channel_times.extend(CHANNEL, NOW))
    assert anywhere.db.run(channels.retire_channel(CHANNEL)) is True
    stored = everything(anywhere.raw)
    assert_invariants(stored)
    assert not [
        name for name in stored if name.startswith(("discord_channel", "discord_role", "discord_host"))
    ]
    assert anywhere.db.run(channels.orphans()) == ({CHANNEL}, {GUEST, HOST}, set())
    assert anywhere.db.run(channels.confirm_channel_deleted(CHANNEL)) is True
    assert anywhere.db.run(channels.confirm_role_deleted(GUEST)) is True
    assert anywhere.db.run(channels.orphans()) == (set(), {HOST}, set())
    assert anywhere.db.run(channels.retire_channel(CHANNEL)) is False


def test_an_orphan_that_is_in_use_by_mistake_is_not_to_be_deleted(anywhere: Place, series: str) -> None:
    provisioned(anywhere, series)
    for orphan in (CHANNEL, 98):
        anywhere.raw("SADD", "orphaned_discord_channels", orphan)
    for orphan in (GUEST, HOST, 99):
        anywhere.raw("SADD", "orphaned_discord_roles", orphan)
    assert anywhere.db.run(channels.orphans()) == ({98}, {99}, {CHANNEL, GUEST, HOST})


def test_a_channel_that_discord_says_is_gone_takes_all_of_its_keys_along(
    anywhere: Place, series: str
) -> None:
    provisioned(anywhere, series)
    anywhere.db.run(channels.remove_host(CHANNEL, 1))
    assert anywhere.db.run(channels.forget_channel(CHANNEL)) is True
    assert anywhere.db.run(channels.orphans()) == (set(), {GUEST, HOST}, set())
    assert anywhere.db.run(intents.begin_channel(series, NOW)).mine


@pytest.mark.parametrize(
    "inverse",
    [f"discord_channel:{CHANNEL}:event_series", f"discord_role:{GUEST}:discord_channel"],
    ids=["channel", "role"],
)
def test_an_orphan_that_half_a_link_names_is_in_use(anywhere: Place, series: str, inverse: str) -> None:
    provisioned(anywhere, series)
    anywhere.raw("SADD", "orphaned_discord_channels", CHANNEL)
    anywhere.raw("SADD", "orphaned_discord_roles", GUEST)
    anywhere.raw("DEL", inverse)
    assert anywhere.db.run(channels.orphans()) == (set(), set(), {CHANNEL, GUEST})


def test_attaching_a_taken_orphaned_or_unknown_channel_is_refused(anywhere: Place, series: str) -> None:
    anywhere.db.run(sync([announced("e2")]))
    other = anywhere.raw("GET", "meetup_event:e2:event_series").decode()
    assert anywhere.db.run(channels.attach_channel(series, CHANNEL)) is True
    assert anywhere.db.run(channels.attach_channel(series, CHANNEL)) is False
    for taken in ((series, 8), (other, CHANNEL)):
        with pytest.raises(TakenError):
            anywhere.db.run(channels.attach_channel(*taken))
    anywhere.db.run(channels.retire_channel(CHANNEL))
    for refused in ((other, CHANNEL), ("unknown", 9)):
        with pytest.raises(RefusedChangeError):
            anywhere.db.run(channels.attach_channel(*refused))
    assert_invariants(everything(anywhere.raw))


def test_people_are_removed_from_known_channels_only(anywhere: Place, series: str) -> None:
    with pytest.raises(RefusedChangeError):
        anywhere.db.run(channels.remove_user(CHANNEL, 1))
    anywhere.db.run(channels.attach_channel(series, CHANNEL))
    assert anywhere.db.run(channels.remove_user(CHANNEL, 1)) is True
    assert anywhere.db.run(channels.remove_user(CHANNEL, 1)) is False
    assert anywhere.db.run(channels.remove_host(CHANNEL, 1)) is True
    assert anywhere.db.run(channels.readmit(CHANNEL, 1)) is True
    assert anywhere.db.run(channels.readmit(CHANNEL, 1)) is False
    assert_invariants(everything(anywhere.raw))


@pytest.mark.parametrize("rounds", range(3))
def test_a_removal_that_comes_late_does_not_revive_a_channel(
    rounds: int, anywhere: Place, series: str
) -> None:
    anywhere.db.run(channels.attach_channel(series, CHANNEL))
    slow = Mortal(anywhere.db, channels.remove_user(CHANNEL, 1))
    for _ in range(rounds):
        slow.step()
    anywhere.db.run(channels.forget_channel(CHANNEL))
    with pytest.raises(RefusedChangeError):
        slow.finish()
    assert_invariants(everything(anywhere.raw))


def test_a_channel_is_only_ever_extended_and_that_takes_back_its_end(anywhere: Place, series: str) -> None:
    anywhere.db.run(channels.attach_channel(series, CHANNEL))
    assert anywhere.db.run(channel_times.extend(CHANNEL, NOW)) is True
    assert anywhere.db.run(channel_times.extend(CHANNEL, NOW - DAY)) is False
    assert anywhere.db.run(channel_times.claim_reminder(CHANNEL, "adventure", NOW)) is True
    deletion = anywhere.db.run(channel_times.end(CHANNEL, NOW))
    assert deletion == NOW + timedelta(hours=8)
    assert anywhere.db.run(channel_times.due_for_deletion(NOW)) == {}
    assert anywhere.db.run(channel_times.due_for_deletion(deletion)) == {CHANNEL: deletion}
    assert anywhere.db.run(channel_times.extend(CHANNEL, NOW + DAY)) is True
    assert anywhere.db.run(channel_times.times_of([CHANNEL])) == {CHANNEL: ChannelTimes(NOW + DAY)}
    assert anywhere.db.run(channels.retire_channel(CHANNEL, due=deletion)) is False
    assert_invariants(everything(anywhere.raw))


def test_a_channel_whose_time_has_come_is_retired(anywhere: Place, series: str) -> None:
    anywhere.db.run(channels.attach_channel(series, CHANNEL))
    anywhere.db.run(channel_times.extend(CHANNEL, NOW))
    due = anywhere.db.run(channel_times.end(CHANNEL, NOW))
    assert anywhere.db.run(channels.retire_channel(CHANNEL, due=due)) is True


def test_a_channel_cannot_be_ended_before_it_expires(anywhere: Place, series: str) -> None:
    anywhere.db.run(channels.attach_channel(series, CHANNEL))
    with pytest.raises(RefusedChangeError):
        anywhere.db.run(channel_times.end(CHANNEL, NOW))
    anywhere.db.run(channel_times.extend(CHANNEL, NOW))
    with pytest.raises(RefusedChangeError):
        anywhere.db.run(channel_times.end(CHANNEL, NOW - DAY))


def test_hosts_are_reminded_once_in_a_while(anywhere: Place, series: str) -> None:
    anywhere.db.run(channels.attach_channel(series, CHANNEL))
    anywhere.db.run(channel_times.extend(CHANNEL, NOW))
    asked = [NOW - DAY, NOW, NOW, NOW + DAY, NOW + timedelta(days=2)]
    claims = [channel_times.claim_reminder(CHANNEL, "adventure", moment) for moment in asked]
    claimed = [anywhere.db.run(claim) for claim in claims]
    assert claimed == [False, True, False, False, True]


def test_times_that_an_earlier_bot_wrote_otherwise_can_be_changed(place: Place) -> None:
    place.db.run(sync([announced("e1", "[new adventure] [channel 5]")]))
    place.raw("SET", "discord_channel:5:expiration_time", "2019-08-08T19:30:00.000000000+02:00")
    place.raw("SET", "discord_channel:5:deletion_time", "2019-08-08T17:30:00Z")
    assert place.db.run(channel_times.end(5, NOW)) == NOW + timedelta(hours=8)
    assert place.db.run(channel_times.extend(5, NOW + DAY)) is True
    place.raw("SET", "discord_channel:5:deletion_time", "2019-08-08T17:30:00Z")
    assert place.db.run(channels.retire_channel(5, due=NOW)) is True


@pytest.mark.parametrize(("kind", "days"), [("campaign", 3), ("adventure", 1)])
def test_a_channel_expires_some_days_after_the_last_event(kind: str, days: int) -> None:
    found = channel_times.expiration(kind, [NOW - DAY, NOW], NOW + 9 * DAY)  # type: ignore[arg-type]  # a literal
    assert found == NOW + days * DAY
    assert channel_times.expiration("campaign", [], NOW) == NOW
