"""`member_count` follows the members who join and leave, most of whom the cache never stored."""

from __future__ import annotations

from typing import Any

import pytest

from .both import Event, Fed
from .feed import ANN, GUILD, guild, user, whole_member

CREATED: Event = ("GUILD_CREATE", guild(member_count=1000, members=[]))


def joined(person: str, at: str = "2024-05-01T00:00:00+00:00") -> Event:
    return "GUILD_MEMBER_ADD", {"guild_id": GUILD, **whole_member(person, joined_at=at)}


def left(person: str) -> Event:
    return "GUILD_MEMBER_REMOVE", {"guild_id": GUILD, "user": user(person)}


def count(fed: Fed) -> Any:
    return fed.guild(GUILD)["member_count"]


def test_member_count_drift_when_uncached_members_leave(fed: Fed) -> None:
    fed(CREATED, *(left(str(each)) for each in range(100, 110)))
    assert count(fed) == 990
    fed(*(joined(str(each)) for each in range(200, 210)))
    assert count(fed) == 1000


@pytest.mark.parametrize("together", [True, False])
def test_a_repeated_event_is_not_counted_twice(fed: Fed, together: bool) -> None:
    fed(CREATED)
    events = [joined("1"), joined("1"), left("2"), left("2"), left("1"), left("1")]
    if together:
        fed(*events)
    else:
        for event in events:
            fed(event)
    assert count(fed) == 999


def test_who_leaves_and_joins_again_is_counted_each_time(fed: Fed) -> None:
    fed(CREATED, left("1"))
    assert count(fed) == 999
    fed(joined("1"))
    assert count(fed) == 1000
    fed(left("1"), joined("1", at="2024-06-01T00:00:00+00:00"), left("1"))
    assert count(fed) == 999


def test_a_stored_member_who_left_during_a_downtime_is_counted_when_joining_again(fed: Fed) -> None:
    """The list of GUILD_CREATE is mostly partial, so the member is still stored."""
    fed(CREATED, joined(ANN))
    fed(("GUILD_CREATE", guild(member_count=1000, members=[])))
    fed(joined(ANN, at="2024-06-01T00:00:00+00:00"))
    assert count(fed) == 1001


def test_a_new_count_of_discord_begins_again(fed: Fed) -> None:
    """Who left, and joined again while the bot was away, is counted when leaving once more."""
    fed(CREATED, left(ANN))
    fed(("GUILD_CREATE", guild(member_count=1000, members=[])), left(ANN))
    assert count(fed) == 999


def test_a_removed_guild_leaves_no_counted_member(fed: Fed) -> None:
    fed(CREATED, left("1"))
    assert any("departed:" in name for name in fed.names())
    fed(("GUILD_DELETE", {"id": GUILD}))
    assert not any("departed:" in name for name in fed.names())


def test_counted_members_are_kept_for_two_hours_at_most(fed: Fed) -> None:
    fed(CREATED, left("1"))
    (name,) = [name for name in fed.raw.names() if b":departed:" in name]
    assert 0 < fed.raw("TTL", name) <= 2 * 60 * 60
