"""The index of the public log: complete, clean, and without anything that was deleted."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from keywright import aconnect
from keywright.tools import AuditOptions, audit_database
from keywright_openmod.model import openmod
from keywright_openmod.renderer import ExtractUpdateReason, render_body
from keywright_openmod.service.schema import bind
from keywright_openmod.upgrade import upgrade_all
from keywright_service.errors import PlatformError

from .newsroom import NOON, EventOutcome, Newsroom, deleted, mod_action, submitted, updated
from .reddit_double import PublicPost

AT = NOON - timedelta(minutes=5)
AT_MS = round(AT.timestamp() * 1000)
NOON_MS = round(NOON.timestamp() * 1000)


def log_keys(room: Newsroom) -> dict[str, Any]:
    return {name: value for name, value in room.everything().items() if name.startswith("log")}


def recorded(room: Newsroom) -> str:
    """Let Mod remove a comment of Ann, and return its id."""
    ann, _ = room.reddit.join("Ann"), room.reddit.join("Mod")
    comment = room.reddit.write_comment(ann, "secret")
    room.handle(mod_action("removecomment", "Mod", ann, comment.id, at=AT))
    return comment.id


def findings(room: Newsroom) -> list[str]:
    """Return all findings of `keywright audit openmod`."""
    found: list[str] = []

    async def audited() -> None:
        async with aconnect(room.url, *bind()) as db:
            await audit_database(
                db, openmod, AuditOptions(prefer_replica=False), on_finding=lambda f: found.append(str(f))
            )

    asyncio.run(audited())
    return found


def test_an_extract_is_listed_in_every_log_with_the_time_of_the_action(any_room: Newsroom) -> None:
    comment = recorded(any_room)
    in_logs = {"t3_x1": AT_MS}
    stored = log_keys(any_room)
    reference = stored["log-entry:t3_x1"].pop("reference")
    assert stored == {
        "log": in_logs,
        "log:action:removecomment": in_logs,
        "log:moderator:t2_mod": in_logs,
        "log:subreddit:cats": in_logs,
        "log:user:t2_ann": in_logs,
        "log-account:t2_ann": {"username": "Ann"},
        "log-account:t2_mod": {"username": "Mod"},
        "log-name:ann": "t2_ann",
        "log-name:mod": "t2_mod",
        "log-entry:t3_x1": {
            "at": str(AT_MS),
            "subreddit": "cats",
            "type": "removecomment",
            "actor": "t2_mod",
            "target": "t2_ann",
            "thing": comment,
            "parent": "t3_p1",
        },
    }
    assert f"event:mod:{reference}" in any_room.everything()
    assert f"openmod-{reference}" in any_room.reddit.public["t3_x1"].body


def test_the_audit_finds_nothing_and_then_every_planted_fault_of_the_log(room: Newsroom) -> None:
    recorded(room)
    assert findings(room) == []
    room.raw("ZREM", "log:user:t2_ann", "t3_x1")
    room.raw("ZADD", "log:action:banuser", 1, "t3_gone")
    room.raw("DEL", "log-name:mod")
    assert len(findings(room)) == 3


def test_an_action_left_out_by_the_settings_is_not_listed(room: Newsroom) -> None:
    ann, _ = room.reddit.join("Ann"), room.reddit.join("AutoModerator")
    room.handle(mod_action("banuser", "AutoModerator", ann))
    assert log_keys(room) == {}


@pytest.mark.parametrize("edits", ["succeed", "are refused", "fail"])
def test_a_deleted_submission_leaves_the_log_at_once(any_room: Newsroom, edits: str) -> None:
    """Also if the public extracts cannot be edited now. They are edited when it is retried."""
    comment = recorded(any_room)
    any_room.handle(mod_action("spamcomment", "Mod", any_room.reddit.accounts["t2_ann"], comment))
    del any_room.reddit.things[comment]
    if edits == "succeed":
        any_room.handle(deleted(comment))
        assert findings(any_room) == []
    else:
        any_room.reddit.uneditable = {"t3_x1", "t3_x2"} if edits == "are refused" else set()
        any_room.reddit.troubled = edits == "fail"
        with pytest.raises(PlatformError):
            any_room.handle(deleted(comment))
    left = {name for name in log_keys(any_room) if not name.startswith(("log-name:", "log-account:"))}
    assert left == set()
    any_room.enforce_all()
    assert log_keys(any_room) == {}, "names without entries are forgotten by the daily check"


@pytest.mark.parametrize("editable", [True, False])
def test_the_name_of_a_deleted_account_leaves_the_log_at_once(any_room: Newsroom, editable: bool) -> None:
    """Entries about an account without a name are not shown."""
    recorded(any_room)
    any_room.reddit.uneditable = set() if editable else {"t3_x1"}
    any_room.reddit.delete_account("t2_ann")
    any_room.clock.advance(days=1, seconds=1)
    done = any_room.enforce()
    assert done is not None
    assert len(done.troubles) == (not editable)
    stored = log_keys(any_room)
    assert "log-name:ann" not in stored
    assert "log-account:t2_ann" not in stored
    if editable:
        assert set(stored) <= {"log-account:t2_mod", "log-name:mod"}
        assert "t2_ann" not in str(any_room.everything())


def test_a_deleted_moderator_is_removed_from_the_log_and_from_extracts_about_others(
    any_room: Newsroom,
) -> None:
    comment = recorded(any_room)
    reference = any_room.everything()["log-entry:t3_x1"]["reference"]
    any_room.reddit.delete_account("t2_mod")
    any_room.enforce_all()
    stored = any_room.everything()
    assert "t2_mod" not in str(stored)
    assert "mod" not in {name.partition(":")[2] for name in stored}
    assert stored["audit:t3_x1"] == {
        "type": "removecomment",
        "actor": "t2_deleted",
        "target": "t2_ann",
        "comment": comment,
    }
    assert stored["log-entry:t3_x1"]["actor"] == "t2_deleted"
    assert stored["log:user:t2_ann"] == {"t3_x1": AT_MS}
    body = any_room.reddit.public["t3_x1"].body
    assert "Mod" not in body.replace("Moderator", "").replace("moderator", "")
    assert "body secret" in body, "the submission of somebody else stays"
    assert f"openmod-{reference}" in body


def test_an_updated_extract_keeps_its_reference_so_after_a_lost_redis_no_post_is_made_twice(
    any_room: Newsroom,
) -> None:
    ann, _ = any_room.reddit.join("Ann"), any_room.reddit.join("Mod")
    post = any_room.reddit.write_post(ann, "one")
    action = mod_action("removelink", "Mod", ann, post.id)
    any_room.handle(action)
    any_room.reddit.rewrite(post.id, "two")
    any_room.handle(updated(post.id))
    body = any_room.reddit.public["t3_x1"].body
    assert "body two" in body
    assert body.splitlines()[-1] == f"Reference: `openmod-{action.id.removeprefix('mod:')}`"
    for name in any_room.raw.names():
        any_room.raw("DEL", name)
    handled = any_room.handle(action)
    assert handled is not None
    assert (handled.outcome, handled.post) == (EventOutcome.RECORDED, "t3_x1")
    assert list(any_room.reddit.public) == ["t3_x1"]


def test_a_redacted_extract_has_no_reference(room: Newsroom) -> None:
    """It is a hash of the target, among others: with a guess of the target anybody could prove it."""
    comment = recorded(room)
    del room.reddit.things[comment]
    room.handle(deleted(comment))
    assert "Reference" not in room.reddit.public["t3_x1"].body


def upstream_ban(room: Newsroom, *, listed: bool = True, audited: bool = True) -> None:
    """Store a ban of Eve with the commands of upstream's v1.1, which tracks and enrols nobody."""
    room.reddit.join("Eve")
    room.reddit.join("Mod")
    room.reddit.public["t3_old"] = PublicPost("cats_log", "u/Mod banned a user from r/cats", "Eve was banned")
    if listed:
        room.raw("ZADD", "mod-actions:t2_eve", NOON_MS, "t3_old")
    if audited:
        fields = ("type", "banuser", "actor", "t2_mod", "target", "t2_eve", "length", "")
        room.raw("HSET", "audit:t3_old", *fields)


@pytest.mark.parametrize(
    ("listed", "audited"), [(True, True), (True, False), (False, True)], ids=["both", "no audit", "no set"]
)
def test_a_person_known_only_from_an_extract_is_checked_and_erased(
    any_room: Newsroom, listed: bool, audited: bool
) -> None:
    upstream_ban(any_room, listed=listed, audited=audited)
    any_room.upgrade(subreddit="cats")
    enrolled = any_room.everything()["cdpComplianceUserList"]
    assert set(enrolled) == ({"t2_eve", "t2_mod"} if audited else {"t2_eve"})
    any_room.reddit.delete_account("t2_eve")
    any_room.enforce_all()
    stored = any_room.everything()
    assert "eve" not in str(stored).lower()
    assert not [name for name in stored if name.startswith(("audit:", "mod-actions:", "user:", "log"))]
    assert "Eve" not in any_room.reddit.public["t3_old"].body


def test_an_extract_about_a_submission_that_was_never_observed_is_erased_with_its_author(
    any_room: Newsroom,
) -> None:
    """Upstream tracks a submission when it is submitted, not when it is moderated."""
    eve, _ = any_room.reddit.join("Eve"), any_room.reddit.join("Mod")
    post = any_room.reddit.write_post(eve, "secret")
    any_room.reddit.public["t3_old"] = PublicPost("cats_log", "title", "Eve wrote secret")
    any_room.raw("ZADD", f"mod-actions:{post.id}", NOON_MS, "t3_old")
    fields = ("type", "removelink", "actor", "t2_mod", "target", "t2_eve", "link", post.id)
    any_room.raw("HSET", "audit:t3_old", *fields)
    assert any_room.upgrade(subreddit="cats").listed == 1
    assert any_room.everything()["user:t2_eve"] == {post.id: NOON_MS}
    any_room.reddit.delete_account("t2_eve")
    any_room.enforce_all()
    assert "t2_eve" not in str(any_room.everything())
    assert "Eve" not in any_room.reddit.public["t3_old"].body


def test_a_person_known_only_from_a_cached_copy_is_checked(room: Newsroom) -> None:
    room.raw("HSET", "cache:t2_eve", "type", "user", "username", "Eve")
    assert room.upgrade().enrolled == 1
    assert set(room.everything()["cdpComplianceUserList"]) == {"t2_eve"}


def test_extracts_of_earlier_versions_are_listed_and_named_by_the_daily_check(any_room: Newsroom) -> None:
    upstream_ban(any_room)
    assert any_room.upgrade(subreddit="cats").listed == 1
    stored = log_keys(any_room)
    assert stored["log"] == stored["log:user:t2_eve"] == {"t3_old": NOON_MS}
    assert "log-account:t2_eve" not in stored
    any_room.enforce_all()
    assert log_keys(any_room)["log-name:eve"] == "t2_eve"
    assert [each for each in findings(any_room) if "length" not in each] == [], (
        "upstream's length is reported"
    )
    assert any_room.upgrade(subreddit="cats").listed == 0


def test_the_survey_lists_no_extract_about_a_submission_that_reddit_does_not_have(room: Newsroom) -> None:
    room.reddit.join("Eve")
    room.raw("ZADD", "mod-actions:t3_gone", NOON_MS, "t3_old")
    fields = ("type", "removelink", "actor", "t2_mod", "target", "t2_eve", "link", "t3_gone")
    room.raw("HSET", "audit:t3_old", *fields)
    assert room.upgrade(subreddit="cats").listed == 0
    assert log_keys(room) == {}


def test_an_erased_extract_is_not_listed_again_by_a_slow_survey(room: Newsroom) -> None:
    """Another process erases the submission while the survey waits for the platform."""
    ann, _ = room.reddit.join("Ann"), room.reddit.join("Mod")
    post = room.reddit.write_post(ann, "secret")
    room.handle(submitted(post.id))
    room.handle(mod_action("removelink", "Mod", ann, post.id))
    room.raw("DEL", "log-entry:t3_x1", f"cache:{post.id}")

    class Slow:
        def __init__(self) -> None:
            self._inner = room.reddit.session()

        def __getattr__(self, name: str) -> Any:
            return getattr(self._inner, name)

        async def thing(self, thing: str) -> Any:
            found = await self._inner.thing(thing)
            assert room.meanwhile(deleted(thing))
            return found

    done = room.wait(upgrade_all(room.db, Slow(), subreddit="cats"))
    assert done.listed == 0
    assert "log-entry:t3_x1" not in room.everything()


def test_every_reason_has_a_notice_or_is_new() -> None:
    assert [reason for reason in ExtractUpdateReason if not render_body(None, reason)] == [
        ExtractUpdateReason.NEW
    ]
