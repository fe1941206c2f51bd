"""The recorder: each event is stored as the document says, once."""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec
import pytest

from keywright_openmod.recorder import EventOutcome
from keywright_service.errors import PlatformRefusedError, PlatformTroubleError

from .newsroom import NOON, Newsroom, deleted, mod_action, submitted, updated

DAY_MS = 86_400_000


def milliseconds(at: datetime) -> int:
    return round(at.timestamp() * 1000)


def test_a_submission_is_cached_tracked_and_its_author_enrolled(any_room: Newsroom) -> None:
    ann = any_room.reddit.join("Ann")
    post = any_room.reddit.write_post(ann, "one")
    handled = any_room.handle(submitted(post.id))
    assert handled is not None
    assert handled.outcome is EventOutcome.RECORDED
    now = any_room.clock.now_ms()
    created = int(post.created_at.timestamp() * 1000)
    assert any_room.everything() == {
        "cache:t2_ann": {"type": "user", "username": "Ann"},
        f"cache:{post.id}": {
            "type": "post",
            "title": "title one",
            "url": post.url,
            "body": "body one",
            "permalink": post.permalink,
            "author": "t2_ann",
        },
        "cdpComplianceUserList": {"t2_ann": now + DAY_MS},
        f"event:submit:{post.id}": str(created),
        "user:t2_ann": {post.id: created},
    }
    assert 27 * DAY_MS < any_room.raw("PTTL", f"cache:{post.id}") <= 28 * DAY_MS
    assert 13 * DAY_MS < any_room.raw("PTTL", f"event:submit:{post.id}") <= 14 * DAY_MS


def test_a_mod_action_writes_tracking_set_action_set_and_extract(any_room: Newsroom) -> None:
    ann, mod = any_room.reddit.join("Ann"), any_room.reddit.join("Mod")
    comment = any_room.reddit.write_comment(ann, "rude")
    handled = any_room.handle(mod_action("removecomment", "Mod", ann, comment.id))
    assert handled is not None
    assert (handled.outcome, handled.post) == (EventOutcome.RECORDED, "t3_x1")
    stored = any_room.everything()
    now = any_room.clock.now_ms()
    assert stored["audit:t3_x1"] == {
        "type": "removecomment",
        "actor": mod.id,
        "target": ann.id,
        "comment": comment.id,
    }
    assert stored[f"mod-actions:{comment.id}"] == {"t3_x1": now}
    assert stored["user:t2_ann"] == {comment.id: int(comment.created_at.timestamp() * 1000)}
    assert stored[f"cache:{comment.id}"]["body"] == "body rude"
    assert stored["cdpComplianceUserList"] == {"t2_ann": now + DAY_MS, "t2_mod": now + DAY_MS}
    made = any_room.reddit.public["t3_x1"]
    assert made.subreddit == "cats_log"
    assert made.title == "u/Mod removed a comment from r/cats"
    assert "body rude" in made.body


def test_the_marker_of_an_event_has_the_time_of_the_event(room: Newsroom) -> None:
    """The document: "the time of the event in ms since the epoch". It is not the time of its processing."""
    ann, _ = room.reddit.join("Ann"), room.reddit.join("Mod")
    post = room.reddit.write_post(ann, "one")
    acted = NOON - timedelta(hours=3, milliseconds=322)
    action = mod_action("removelink", "Mod", ann, post.id, at=acted)
    room.handle(submitted(post.id))
    room.handle(action)
    room.handle(submitted("t3_gone"))
    room.handle(deleted(post.id))
    now = room.clock.now_ms()
    stored = room.everything()
    assert {name: value for name, value in stored.items() if name.startswith("event:")} == {
        f"event:submit:{post.id}": str(milliseconds(post.created_at)),
        f"event:{action.id}": str(milliseconds(acted)),
        "event:submit:t3_gone": str(now),  # Reddit has no time of a submission that does not exist
        f"event:delete:{post.id}": str(now),  # nor of a deletion
    }


@pytest.mark.parametrize("marker", ["1700000000000", "garbage", "done"])
def test_any_value_of_another_program_means_duplicate(room: Newsroom, marker: str) -> None:
    ann = room.reddit.join("Ann")
    post = room.reddit.write_post(ann, "one")
    room.raw("SET", f"event:submit:{post.id}", marker)
    handled = room.handle(submitted(post.id))
    assert handled is not None
    assert handled.outcome is EventOutcome.DUPLICATE
    assert room.everything() == {f"event:submit:{post.id}": marker}


@pytest.mark.parametrize("action", ["banuser", "unbanuser", "muteuser", "unmuteuser"])
def test_a_ban_tracks_the_person(room: Newsroom, action: str) -> None:
    """Upstream does not, and cannot find the extract later: docs/resolutions.md#mistake-13."""
    ann, mod = room.reddit.join("Ann"), room.reddit.join("Mod")
    room.handle(mod_action(action, "Mod", ann))
    stored = room.everything()
    assert stored["user:t2_ann"] == {"t2_ann": room.clock.now_ms()}
    assert stored["mod-actions:t2_ann"] == {"t3_x1": room.clock.now_ms()}
    assert stored["audit:t3_x1"] == {"type": action, "actor": mod.id, "target": ann.id}


@pytest.mark.parametrize("event", ["submit", "delete", "action"])
def test_a_second_delivery_changes_nothing(any_room: Newsroom, event: str) -> None:
    ann = any_room.reddit.join("Ann")
    any_room.reddit.join("Mod")
    post = any_room.reddit.write_post(ann, "one")
    events = {
        "submit": submitted(post.id),
        "delete": deleted(post.id, ann.id),
        "action": mod_action("removelink", "Mod", ann, post.id),
    }
    any_room.handle(events[event])
    before = any_room.everything(), dict(any_room.reddit.public)
    any_room.clock.advance(minutes=1)
    handled = any_room.handle(events[event])
    assert handled is not None
    assert handled.outcome is EventOutcome.DUPLICATE
    assert (any_room.everything(), dict(any_room.reddit.public)) == before


def test_an_update_renders_the_extracts_again(any_room: Newsroom) -> None:
    ann = any_room.reddit.join("Ann")
    any_room.reddit.join("Mod")
    post = any_room.reddit.write_post(ann, "one")
    any_room.handle(submitted(post.id))
    any_room.handle(mod_action("removelink", "Mod", ann, post.id))
    any_room.reddit.rewrite(post.id, "two")
    any_room.handle(updated(post.id))
    body = any_room.reddit.public["t3_x1"].body
    assert "body two" in body
    assert "body one" not in body
    assert "was updated" in body
    assert any_room.everything()[f"cache:{post.id}"]["body"] == "body two"


@pytest.mark.parametrize("wrong", ["unreadable", "refused"])
def test_an_extract_that_cannot_be_rendered_again_does_not_block_the_others(
    room: Newsroom, wrong: str
) -> None:
    ann = room.reddit.join("Ann")
    room.reddit.join("Mod")
    post = room.reddit.write_post(ann, "one")
    for action in ("removelink", "approvelink"):
        room.handle(mod_action(action, "Mod", ann, post.id))
    room.reddit.rewrite(post.id, "two")
    if wrong == "refused":
        room.reddit.uneditable.add("t3_x1")
        with pytest.raises(PlatformRefusedError):
            room.handle(updated(post.id))
    else:
        room.raw("HSET", "audit:t3_x1", "type", "lock")
        handled = room.handle(updated(post.id))
        assert handled is not None
        assert handled.outcome is EventOutcome.RECORDED
    assert "body two" in room.reddit.public["t3_x2"].body


def test_equal_updates_are_each_processed(room: Newsroom) -> None:
    """They look alike if an author goes back and forth, and each asks for the present state."""
    post = room.reddit.write_post(room.reddit.join("Ann"), "one")
    for text in ("two", "one", "two"):
        room.reddit.rewrite(post.id, text)
        handled = room.handle(updated(post.id))
        assert handled is not None
        assert handled.outcome is EventOutcome.RECORDED
        assert room.everything()[f"cache:{post.id}"]["body"] == f"body {text}"
    assert not [name for name in room.everything() if name.startswith("event:")]


def test_a_deleted_submission_leaves_nothing_but_its_marker(any_room: Newsroom) -> None:
    ann = any_room.reddit.join("Ann")
    any_room.reddit.join("Mod")
    post, other = any_room.reddit.write_post(ann, "one"), any_room.reddit.write_post(ann, "two")
    for each in (post, other):
        any_room.handle(submitted(each.id))
        any_room.handle(mod_action("removelink", "Mod", ann, each.id))
    del any_room.reddit.things[post.id]
    any_room.handle(deleted(post.id, ann.id))
    stored = any_room.everything()
    assert [name for name in stored if name.endswith(post.id)] == [
        f"event:delete:{post.id}",
        f"event:submit:{post.id}",
    ]
    assert "audit:t3_x1" not in stored
    assert set(stored["user:t2_ann"]) == {other.id}, "docs/resolutions.md#mistake-10"
    assert "body one" not in any_room.reddit.public["t3_x1"].body
    assert "Ann" not in any_room.reddit.public["t3_x1"].body
    assert "body two" in any_room.reddit.public["t3_x2"].body


@pytest.mark.parametrize("source", [0, 2, 3])
def test_only_a_deletion_by_the_author_erases_a_submission(room: Newsroom, source: int) -> None:
    post = room.reddit.write_post(room.reddit.join("Ann"), "one")
    room.handle(submitted(post.id))
    before = room.everything()
    handled = room.handle(deleted(post.id, source=source))
    assert handled is not None
    assert handled.outcome is EventOutcome.LEFT_OUT
    assert room.everything() == before


def test_a_failure_frees_the_event_for_the_next_delivery(any_room: Newsroom) -> None:
    """Upstream writes the marker first and loses the event: docs/resolutions.md#mistake-6."""
    ann = any_room.reddit.join("Ann")
    any_room.reddit.join("Mod")
    post = any_room.reddit.write_post(ann, "one")
    action = mod_action("removelink", "Mod", ann, post.id)
    any_room.reddit.troubled = 1
    with pytest.raises(PlatformTroubleError):
        any_room.handle(action)
    assert not any_room.everything()
    handled = any_room.handle(action)
    assert handled is not None
    assert handled.outcome is EventOutcome.RECORDED


def test_an_event_that_another_process_handles_must_be_delivered_again(room: Newsroom) -> None:
    post = room.reddit.write_post(room.reddit.join("Ann"), "one")
    room.raw("SET", f"event:submit:{post.id}", "claim:another")
    handled = room.handle(submitted(post.id))
    assert handled is not None
    assert handled.outcome is EventOutcome.BUSY


def test_an_action_on_a_deleted_submission_is_published_redacted_and_not_stored(any_room: Newsroom) -> None:
    ann = any_room.reddit.join("Ann")
    mod = any_room.reddit.join("Mod")
    post = any_room.reddit.write_post(ann, "one")
    action = mod_action("removelink", "Mod", ann, post.id)
    del any_room.reddit.things[post.id]
    handled = any_room.handle(action)
    assert handled is not None
    assert handled.outcome is EventOutcome.RECORDED
    body = any_room.reddit.public["t3_x1"].body
    assert "Ann" not in body
    assert "one" not in body.replace("openmod", "")
    assert {name.split(":")[0] for name in any_room.everything()} == {
        "cache",
        "cdpComplianceUserList",
        "event",
    }
    assert set(any_room.everything()["cdpComplianceUserList"]) == {mod.id}


def test_an_action_on_a_submission_of_a_deleted_account_is_published_without_a_name(room: Newsroom) -> None:
    ann = room.reddit.join("Ann")
    room.reddit.join("Mod")
    post = room.reddit.write_post(ann, "one")
    room.reddit.delete_account(ann.id)
    room.handle(mod_action("removelink", "Mod", ann, post.id))
    stored = room.everything()
    assert stored["audit:t3_x1"]["target"] == "t2_deleted"
    assert not [name for name in stored if "t2_ann" in name or "t2_deleted" in name]
    assert f"cache:{post.id}" not in stored
    assert "Ann" not in room.reddit.public["t3_x1"].body


@pytest.mark.parametrize(
    ("name", "user"),
    [
        ("reddit", "t2_reddit"),
        ("Reddit Legal", "t2_redditlegal"),
        ("Anti-Evil Operations", "t2_antieviloperations"),
        ("[ redacted ]", "t2_redacted"),
    ],
)
def test_special_accounts_act_under_synthetic_ids(room: Newsroom, name: str, user: str) -> None:
    ann = room.reddit.join("Ann")
    post = room.reddit.write_post(ann, "one")
    room.handle(mod_action("removelink", name, ann, post.id))
    stored = room.everything()
    assert stored["audit:t3_x1"]["actor"] == user
    assert set(stored["cdpComplianceUserList"]) == {"t2_ann"}, "special accounts are not enrolled"
    assert "(Admin)" in room.reddit.public["t3_x1"].body


def test_an_admin_is_left_out_if_the_settings_say_so(room: Newsroom) -> None:
    ann = room.reddit.join("Ann")
    room.reddit.join("Adm", is_admin=True)
    post = room.reddit.write_post(ann, "one")
    room.settings = msgspec.structs.replace(room.settings, record_admin_actions=False)
    for moderator in ("Adm", "reddit"):
        handled = room.handle(mod_action("removelink", moderator, ann, post.id))
        assert handled is not None
        assert handled.outcome is EventOutcome.LEFT_OUT
    assert not room.everything()
    assert not room.reddit.public


def test_two_equal_actions_in_one_millisecond_on_different_posts_are_both_recorded(room: Newsroom) -> None:
    """Upstream takes the second for a duplicate: docs/resolutions.md#mistake-7."""
    ann = room.reddit.join("Ann")
    room.reddit.join("Mod")
    posts = [room.reddit.write_post(ann, "one"), room.reddit.write_post(ann, "two")]
    for post in posts:
        room.handle(mod_action("removelink", "Mod", ann, post.id))
    assert len(room.reddit.public) == 2


def test_posts_are_cached_as_posts_and_extracts_published_to_the_configured_subreddit(room: Newsroom) -> None:
    """Upstream confuses both: docs/resolutions.md#mistake-11."""
    ann = room.reddit.join("Ann")
    room.reddit.join("Mod")
    post = room.reddit.write_post(ann, "one")
    room.handle(updated(post.id))
    assert room.everything()[f"cache:{post.id}"]["type"] == "post"
    room.handle(mod_action("spamlink", "Mod", ann, post.id))
    assert {made.subreddit for made in room.reddit.public.values()} == {"cats_log"}
    members = {"type": "spamlink", "actor": "t2_mod", "target": "t2_ann", "link": post.id}
    assert room.everything()["audit:t3_x1"] == members


@pytest.mark.parametrize("event", ["submit", "update", "action"])
def test_a_cached_copy_that_cannot_be_read_is_replaced(any_room: Newsroom, event: str) -> None:
    """Every read renews its expiry, so it would block the event forever."""
    ann = any_room.reddit.join("Ann")
    any_room.reddit.join("Mod")
    post = any_room.reddit.write_post(ann, "one")
    for name in (f"cache:{post.id}", "cache:t2_ann", "cache:t2_mod"):
        any_room.raw("HSET", name, "type", "nothing", "else", "x")
    events = {
        "submit": submitted(post.id),
        "update": updated(post.id),
        "action": mod_action("removelink", "Mod", ann, post.id),
    }
    handled = any_room.handle(events[event])
    assert handled is not None
    assert handled.outcome is EventOutcome.RECORDED
    assert any_room.everything()[f"cache:{post.id}"]["body"] == "body one"
    assert any_room.everything()["cache:t2_ann"] == {"type": "user", "username": "Ann"}


def test_a_member_that_another_program_added_to_a_cached_copy_does_not_block_the_event(
    any_room: Newsroom,
) -> None:
    post = any_room.reddit.write_post(any_room.reddit.join("Ann"), "one")
    any_room.handle(submitted(post.id))
    any_room.raw("HSET", f"cache:{post.id}", "score", "7")
    any_room.reddit.rewrite(post.id, "two")
    handled = any_room.handle(updated(post.id))
    assert handled is not None
    assert handled.outcome is EventOutcome.RECORDED
    assert any_room.everything()[f"cache:{post.id}"]["body"] == "body two"
