"""Linking people: once, one to one, with their tokens, and without a trace when it ends."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest

from keywright import Database, Secret
from keywright.errors import TakenError
from keywright_meetup.account_links import (
    begin_linking,
    discord_users_of,
    keep_csrf,
    link,
    look_up_linking,
    redeem_csrf,
    store_tokens,
    take_linking,
    unlink,
    unlink_discord,
)
from keywright_meetup.schema import Csrf, MeetupLinking, UserTokens

from .meetup_town import BIG, Opener, Place, assert_invariants, everything, tokens

ANN, BEN = 11, 12
ANN_ON_DISCORD, BEN_ON_DISCORD = BIG, BIG + 1


def test_a_link_is_two_keys_and_two_index_entries(anywhere: Place) -> None:
    assert anywhere.db.run(link(ANN, ANN_ON_DISCORD)) is True
    assert everything(anywhere.raw) == {
        "meetup_users": {"11"},
        "discord_users": {str(BIG)},
        "meetup_user:11:discord_user": str(BIG),
        f"discord_user:{BIG}:meetup_user": "11",
    }


def test_linking_the_same_two_again_changes_nothing(anywhere: Place) -> None:
    anywhere.db.run(link(ANN, ANN_ON_DISCORD))
    before = everything(anywhere.raw)
    assert anywhere.db.run(link(ANN, ANN_ON_DISCORD)) is False
    assert everything(anywhere.raw) == before


@pytest.mark.parametrize(("one", "other"), [(ANN, BEN_ON_DISCORD), (BEN, ANN_ON_DISCORD)])
def test_a_link_with_someone_who_is_linked_is_refused_and_stores_no_tokens(
    one: int, other: int, anywhere: Place
) -> None:
    anywhere.db.run(link(ANN, ANN_ON_DISCORD))
    before = everything(anywhere.raw)
    with pytest.raises(TakenError):
        anywhere.db.run(link(one, other, tokens()))
    assert everything(anywhere.raw) == before


def test_tokens_come_with_the_link_and_go_with_it(anywhere: Place) -> None:
    anywhere.db.run(link(ANN, ANN_ON_DISCORD, tokens()))
    assert anywhere.db.run(UserTokens(ANN).get()) == tokens()
    assert anywhere.db.run(unlink(ANN)) is True
    assert everything(anywhere.raw) == {}
    assert anywhere.db.run(unlink(ANN)) is False


def test_a_link_that_stands_gets_newer_tokens(anywhere: Place) -> None:
    anywhere.db.run(link(ANN, ANN_ON_DISCORD, tokens("a")))
    assert anywhere.db.run(link(ANN, ANN_ON_DISCORD, tokens("b"))) is False
    assert anywhere.db.run(UserTokens(ANN).get()) == tokens("b")


def test_tokens_of_someone_who_is_not_linked_are_not_stored(anywhere: Place) -> None:
    assert anywhere.db.run(store_tokens(ANN, tokens())) is False
    assert everything(anywhere.raw) == {}
    anywhere.db.run(link(ANN, ANN_ON_DISCORD))
    assert anywhere.db.run(store_tokens(ANN, tokens())) is True


def test_unlinking_by_the_discord_user_leaves_nothing_either(anywhere: Place) -> None:
    anywhere.db.run(link(ANN, ANN_ON_DISCORD, tokens()))
    anywhere.db.run(link(BEN, BEN_ON_DISCORD, tokens()))
    assert anywhere.db.run(unlink_discord(ANN_ON_DISCORD)) is True
    assert set(everything(anywhere.raw)) == {
        "meetup_users",
        "discord_users",
        "meetup_user:12:discord_user",
        "meetup_user:12:oauth2_tokens",
        f"discord_user:{BIG + 1}:meetup_user",
    }


def test_unlinking_half_a_link_leaves_the_partners_own(place: Place) -> None:
    place.db.run(link(ANN, ANN_ON_DISCORD, tokens()))
    place.raw("SET", f"discord_user:{BEN_ON_DISCORD}:meetup_user", ANN)
    place.raw("SADD", "discord_users", BEN_ON_DISCORD)
    assert place.db.run(unlink_discord(BEN_ON_DISCORD)) is True
    stored = everything(place.raw)
    assert_invariants(stored)
    assert stored["meetup_user:11:oauth2_tokens"]


def test_of_many_who_race_for_one_user_one_is_linked(anywhere: Place, open_database: Opener) -> None:
    databases = [open_database(anywhere.url) for _ in range(4)]
    refused: list[int] = []

    def race(number: int, db: Database) -> None:
        try:
            db.run(link(ANN, BIG + number, tokens(str(number))))
        except TakenError:
            refused.append(number)

    threads = [threading.Thread(target=race, args=pair) for pair in enumerate(databases)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refused) == 3
    (winner,) = {0, 1, 2, 3} - set(refused)
    assert_invariants(everything(anywhere.raw))
    assert anywhere.db.run(UserTokens(ANN).get()) == tokens(str(winner))


def test_a_linking_id_expires_from_the_start_and_looking_does_not_renew_it(place: Place) -> None:
    linking = place.db.run(begin_linking(ANN_ON_DISCORD))
    place.raw("PEXPIRE", f"meetup_linking:{linking}:discord_user", 5000)
    assert place.db.run(look_up_linking(linking)) == ANN_ON_DISCORD
    left = place.db.run(MeetupLinking(linking).ttl())
    assert left is not None
    assert left <= timedelta(seconds=5)


def test_a_linking_id_works_once(place: Place) -> None:
    linking = place.db.run(begin_linking(ANN_ON_DISCORD))
    assert place.db.run(take_linking(linking)) == ANN_ON_DISCORD
    assert place.db.run(take_linking(linking)) is None
    assert place.db.run(look_up_linking(linking)) is None


def test_someone_who_is_linked_gets_no_linking_id(place: Place) -> None:
    place.db.run(link(ANN, ANN_ON_DISCORD))
    with pytest.raises(TakenError):
        place.db.run(begin_linking(ANN_ON_DISCORD))


def test_a_csrf_token_is_used_up_by_a_right_and_by_a_wrong_answer(place: Place) -> None:
    for linking, state in (("first", "one"), ("second", "two")):
        place.db.run(keep_csrf(linking, Secret(state)))
    assert place.db.run(Csrf("first").ttl()) is not None
    assert place.db.run(redeem_csrf("first", Secret("one"))) is True
    assert place.db.run(redeem_csrf("first", Secret("one"))) is False
    assert place.db.run(redeem_csrf("second", Secret("one"))) is False
    assert place.db.run(redeem_csrf("second", Secret("two"))) is False
    assert everything(place.raw) == {}


def test_a_linking_id_has_the_latest_csrf_token_only(place: Place) -> None:
    for state in ("one", "two"):
        place.db.run(keep_csrf("linking", Secret(state)))
    assert set(everything(place.raw)) == {"csrf:linking"}
    assert place.db.run(redeem_csrf("linking", Secret("two"))) is True


def test_the_discord_users_of_many_are_read_together(place: Place) -> None:
    place.db.run(link(ANN, ANN_ON_DISCORD))
    assert place.db.run(discord_users_of([ANN, BEN])) == {ANN: ANN_ON_DISCORD}
    assert place.db.run(discord_users_of([])) == {}
