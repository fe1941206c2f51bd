"""The public log as it is read: filters, pages, and nothing that was deleted."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from keywright import aconnect
from keywright.errors import EngineError
from keywright_openmod import public_log
from keywright_openmod.public_log import LogPage, LogPosition, LogQuery, bind_to_read, read_action, read_log
from keywright_openmod.schema import CachedComment
from keywright_openmod.settings import OpenModSettings

from .log_server import minutes, plant
from .newsroom import NOON, Newsroom, deleted, mod_action, updated

SETTINGS = OpenModSettings.read(
    {"targetSubredit": "cats_log", "excludedUsers": "Zoe", "excludedModerators": "Boss"}
)


def read(room: Newsroom, settings: OpenModSettings | None = None, **query: Any) -> LogPage:
    page: LogPage = room.run(read_log(LogQuery(**query), settings))
    return page


def posts(room: Newsroom, settings: OpenModSettings | None = None, **query: Any) -> list[str]:
    """Return the posts of all pages."""
    listed: list[str] = []
    page = read(room, settings, **query)
    listed += [each.post for each in page.actions]
    while page.next is not None:
        page = read(room, settings, **{**query, "before": page.next})
        listed += [each.post for each in page.actions]
    return listed


@pytest.fixture
def filled(room: Newsroom) -> Newsroom:
    plant(room, "t3_a", at=NOON)
    plant(room, "t3_b", at=NOON - minutes(1), action="banuser", user="Bob", thing="t2_bob")
    plant(room, "t3_c", at=NOON - minutes(2), moderator="Other", thing="t1_c2")
    plant(room, "t3_d", at=NOON - timedelta(days=1), subreddit="Dogs", thing="t1_c3")
    return room


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, ["t3_a", "t3_b", "t3_c", "t3_d"]),
        ({"subreddit": "CATS"}, ["t3_a", "t3_b", "t3_c"]),
        ({"subreddit": "dogs"}, ["t3_d"]),
        ({"moderator": "mod"}, ["t3_a", "t3_b", "t3_d"]),
        ({"moderator": "Other"}, ["t3_c"]),
        ({"action": "banuser"}, ["t3_b"]),
        ({"user": "ANN"}, ["t3_a", "t3_c", "t3_d"]),
        ({"user": "ann", "moderator": "mod"}, ["t3_a", "t3_d"]),
        ({"user": "ann", "moderator": "mod", "subreddit": "cats", "action": "removecomment"}, ["t3_a"]),
        ({"user": "bob", "action": "removecomment"}, []),
        ({"user": "Mod"}, []),
        ({"user": "nobody"}, []),
        ({"moderator": "[ deleted ]"}, []),
        ({"since": NOON - minutes(2)}, ["t3_a", "t3_b", "t3_c"]),
        ({"until": NOON - minutes(2)}, ["t3_c", "t3_d"]),
        ({"since": NOON - minutes(2), "until": NOON - minutes(1), "user": "ann"}, ["t3_c"]),
    ],
)
def test_entries_are_listed_newest_first_by_every_filter(
    filled: Newsroom, query: dict[str, Any], expected: list[str]
) -> None:
    assert posts(filled, **query) == expected
    assert posts(filled, **query, size=1) == expected


def test_an_entry_has_its_people_and_the_cached_copy(room: Newsroom) -> None:
    content = CachedComment("comment", "the text", "/r/cats/comments/p1/_/c1/", "t2_ann")
    entry = plant(room, "t3_a", content=content)
    (action,) = read(room).actions
    assert (action.moderator.name, action.user.name, action.entry) == ("Mod", "Ann", entry)
    assert action.content == content
    assert room.run(read_action("t3_a")) == action


def test_special_accounts_are_found_by_name(room: Newsroom) -> None:
    ann = room.reddit.join("Ann")
    room.handle(mod_action("banuser", "Reddit Legal", ann))
    room.handle(mod_action("muteuser", "[ redacted ]", ann))
    assert posts(room, moderator="reddit legal") == ["t3_x1"]
    assert posts(room, moderator="[ redacted ]") == posts(room, moderator="t2_redacted") == ["t3_x2"]


@pytest.mark.parametrize("number", [100, 101, 501, 1203])
def test_pages_have_every_entry_once_also_of_the_same_millisecond(room: Newsroom, number: int) -> None:
    names = [f"t3_{place:04}" for place in range(number)]
    for name in names:
        plant(room, name)
    assert posts(room, size=100) == sorted(names, reverse=True)


def test_a_page_continues_where_its_last_entry_was_deleted(filled: Newsroom) -> None:
    page = read(filled, size=2)
    assert page.next == LogPosition(NOON - minutes(1), "t3_b")
    filled.raw("ZREM", "log", "t3_b")
    filled.raw("DEL", "log-entry:t3_b")
    assert [each.post for each in read(filled, before=page.next).actions] == ["t3_c", "t3_d"]


def test_the_last_page_has_no_next(filled: Newsroom) -> None:
    assert read(filled, size=4).next is None
    assert read(filled, size=3).next == LogPosition(NOON - minutes(2), "t3_c")


def test_a_rare_combination_is_searched_in_bounded_steps(
    room: Newsroom, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both logs are long, and have one entry in common, the oldest."""
    monkeypatch.setattr(public_log, "MOST_EXAMINED", 10)
    for place in range(25):
        at = NOON - minutes(place)
        plant(room, f"t3_m{place:02}", user="Bob", at=at)
        plant(room, f"t3_u{place:02}", moderator="Other", at=at)
    plant(room, "t3_both", user="Ann", moderator="Mod", at=NOON - timedelta(days=1))
    first = read(room, user="Ann", moderator="Mod")
    assert first.actions == []
    assert first.next is not None
    assert posts(room, user="Ann", moderator="Mod") == ["t3_both"]


def test_more_entries_of_one_millisecond_than_are_searched_do_not_end_the_log(
    room: Newsroom, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(public_log, "MOST_EXAMINED", 5)
    monkeypatch.setattr(public_log, "MOST_EQUAL", 10)
    for place in range(30):
        plant(room, f"t3_{place:02}")
    plant(room, "t3_old", at=NOON - minutes(1))
    assert posts(room)[-1] == "t3_old"


def test_a_deleted_submission_is_gone_with_the_next_read(any_room: Newsroom) -> None:
    ann, _ = any_room.reddit.join("Ann"), any_room.reddit.join("Mod")
    comment = any_room.reddit.write_comment(ann, "secret")
    any_room.handle(mod_action("removecomment", "Mod", ann, comment.id))
    assert posts(any_room, user="Ann") == ["t3_x1"]
    del any_room.reddit.things[comment.id]
    any_room.handle(deleted(comment.id))
    assert posts(any_room) == posts(any_room, user="Ann") == posts(any_room, moderator="Mod") == []
    assert any_room.run(read_action("t3_x1")) is None


@pytest.mark.parametrize("editable", [True, False])
def test_a_deleted_account_is_gone_with_the_next_read(any_room: Newsroom, editable: bool) -> None:
    """Also while its extracts on Reddit cannot be edited, and its entries are still stored."""
    ann, _ = any_room.reddit.join("Ann"), any_room.reddit.join("Mod")
    any_room.handle(mod_action("banuser", "Mod", ann))
    any_room.reddit.uneditable = set() if editable else {"t3_x1"}
    any_room.reddit.delete_account("t2_ann")
    any_room.clock.advance(days=1, seconds=1)
    any_room.enforce()
    assert posts(any_room) == posts(any_room, user="Ann") == posts(any_room, moderator="Mod") == []
    assert any_room.run(read_action("t3_x1")) is None


def test_a_deleted_moderator_is_shown_without_a_name(room: Newsroom) -> None:
    ann, _ = room.reddit.join("Ann"), room.reddit.join("Mod")
    room.handle(mod_action("banuser", "Mod", ann))
    room.raw("DEL", "log-account:t2_mod", "log-name:mod")
    (action,) = read(room).actions
    assert action.moderator.name == "[ unavailable ]"
    assert posts(room, moderator="Mod") == []
    room.reddit.delete_account("t2_mod")
    room.enforce_all()
    (action,) = read(room).actions
    assert action.moderator.name == "[ deleted ]"


def test_an_update_is_shown_with_the_next_read(room: Newsroom) -> None:
    ann, _ = room.reddit.join("Ann"), room.reddit.join("Mod")
    comment = room.reddit.write_comment(ann, "before")
    room.handle(mod_action("removecomment", "Mod", ann, comment.id))
    room.reddit.rewrite(comment.id, "after")
    room.handle(updated(comment.id))
    (action,) = read(room).actions
    assert isinstance(action.content, CachedComment)
    assert action.content.body == "body after"


def test_people_who_were_excluded_later_are_not_shown(room: Newsroom) -> None:
    plant(room, "t3_a")
    plant(room, "t3_b", user="Zoe")
    plant(room, "t3_c", moderator="Boss")
    assert posts(room, SETTINGS) == ["t3_a"]
    assert posts(room, SETTINGS, user="zoe") == posts(room, SETTINGS, moderator="boss") == []
    assert room.run(read_action("t3_b", SETTINGS)) is None
    assert len(posts(room)) == 3


def test_visitors_do_not_renew_the_expiry_of_a_cached_copy(room: Newsroom) -> None:
    plant(room, "t3_a", content=CachedComment("comment", "text", "/r/cats/", "t2_ann"))
    room.raw("PEXPIRE", "cache:t1_c1", 60_000)

    async def visit() -> LogPage:
        async with aconnect(room.url, bind_to_read()) as db:
            return await db.run(read_log(LogQuery()))

    assert room.wait(visit()).actions[0].content is not None
    assert 0 < room.raw("PTTL", "cache:t1_c1") <= 60_000


def test_a_malformed_entry_is_left_out_and_an_outage_is_not_an_empty_log(room: Newsroom) -> None:
    plant(room, "t3_a")
    plant(room, "t3_b")
    room.raw("HSET", "log-entry:t3_b", "at", "yesterday")
    room.raw("HSET", "log-account:t2_mod", "isAdmin", "perhaps")
    room.raw("SET", "cache:t1_c1", "not a hash")
    assert posts(room) == ["t3_a"]
    room.raw("ACL", "SETUSER", "default", "-hgetall")
    try:
        with pytest.raises(EngineError):
            read(room)
    finally:
        room.raw("ACL", "SETUSER", "default", "+hgetall")
