"""The organizer's tokens: stored together, refreshed by one bot at a time when the stored time comes."""

from __future__ import annotations

from datetime import timedelta

import pytest

from keywright import Secret
from keywright_meetup.tokens import (
    begin_refresh,
    due_time,
    finish_refresh,
    organizer,
    postpone_refresh,
    seed_organizer,
    store_organizer,
)
from kinship import Mortal

from .meetup_town import DAY, NOW, Place, everything

OLD, NEW = Secret("old"), Secret("new")
STORED = {
    "meetup_access_token": "old",
    "meetup_refresh_token": "old",
    "meetup_access_token_refresh_time": "2019-08-08T17:30:00+00:00",
}


def test_a_refresh_stores_all_three_and_frees_the_lease(anywhere: Place) -> None:
    anywhere.db.run(store_organizer(OLD, OLD, NOW))
    assert everything(anywhere.raw) == STORED
    assert anywhere.db.run(begin_refresh("bot-1")) is True
    assert anywhere.db.run(begin_refresh("bot-2")) is False
    assert anywhere.db.run(finish_refresh("bot-1", NOW, NEW, NEW)) is True
    assert anywhere.db.run(organizer()) == (NEW, NEW)
    assert anywhere.db.run(due_time(NOW)) == NOW + 7 * DAY
    assert anywhere.db.run(begin_refresh("bot-2")) is True


def test_without_a_new_refresh_token_the_old_one_stays(anywhere: Place) -> None:
    anywhere.db.run(store_organizer(OLD, OLD, NOW))
    anywhere.db.run(begin_refresh("bot-1"))
    anywhere.db.run(finish_refresh("bot-1", NOW, NEW, None))
    assert anywhere.db.run(organizer()) == (NEW, OLD)


def test_a_bot_that_lost_the_lease_stores_nothing(anywhere: Place) -> None:
    anywhere.db.run(store_organizer(OLD, OLD, NOW))
    anywhere.db.run(begin_refresh("bot-2"))
    assert anywhere.db.run(finish_refresh("bot-1", NOW, NEW, NEW)) is False
    assert anywhere.db.run(organizer()) == (OLD, OLD)


def test_a_refresh_that_failed_is_tried_again_in_an_hour(anywhere: Place) -> None:
    anywhere.db.run(store_organizer(OLD, OLD, NOW))
    anywhere.db.run(begin_refresh("bot-1"))
    assert anywhere.db.run(postpone_refresh("bot-1", NOW)) is True
    assert anywhere.db.run(due_time(NOW)) == NOW + timedelta(hours=1)
    assert anywhere.db.run(begin_refresh("bot-2")) is True


def test_without_a_readable_time_a_refresh_is_due_at_once(place: Place) -> None:
    assert place.db.run(due_time(NOW)) == NOW
    place.raw("SET", "meetup_access_token_refresh_time", "soon")
    assert place.db.run(due_time(NOW)) == NOW


@pytest.mark.parametrize("rounds", range(2))
def test_tokens_that_another_bot_stored_meanwhile_stay(rounds: int, place: Place) -> None:
    slow = Mortal(place.db, seed_organizer(OLD, OLD, NOW))
    for _ in range(rounds):
        slow.step()
    assert place.db.run(seed_organizer(NEW, NEW, NOW)) is True
    assert slow.finish() is False
    assert place.db.run(organizer()) == (NEW, NEW)


def test_tokens_of_which_one_is_missing_are_set_up_again(anywhere: Place) -> None:
    anywhere.db.run(store_organizer(OLD, OLD, NOW))
    anywhere.raw("DEL", "meetup_refresh_token")
    assert anywhere.db.run(seed_organizer(NEW, NEW, NOW)) is True
    assert anywhere.db.run(organizer()) == (NEW, NEW)
