"""Decoding of events and of settings, and the errors of malformed ones."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from keywright.errors import UsageError
from keywright_openmod.actions import BanAction, CommentAction, LinkAction, MuteAction
from keywright_openmod.errors import MalformedEventError
from keywright_openmod.events import (
    CommentDelete,
    CommentSubmit,
    CommentUpdate,
    ModAction,
    PostDelete,
    PostSubmit,
    PostUpdate,
    decode_event,
)
from keywright_openmod.settings import OpenModSettings

from .newsroom import EVERY_ACTION, mod_action
from .reddit_double import Reddit

ACTION: dict[str, Any] = {
    "type": "ModAction",
    "action": "removelink",
    "actionedAt": "2024-01-02T03:04:05.678Z",
    "subreddit": {"id": "t5_cats", "name": "cats", "nsfw": False},
    "moderator": {"id": "t2_m", "name": "Mod", "karma": 7},
    "targetUser": {"id": "t2_ann", "name": "Ann"},
    "targetPost": {"id": "t3_1", "title": "T"},
    "targetComment": {"id": "", "permalink": ""},
    "newlyInvented": [1, 2],
}


def test_each_event_is_decoded_by_its_type() -> None:
    samples: list[tuple[dict[str, Any], type, str]] = [
        ({"type": "PostSubmit", "post": {"id": "t3_1"}}, PostSubmit, "submit:t3_1"),
        ({"type": "CommentSubmit", "comment": {"id": "t1_1"}}, CommentSubmit, "submit:t1_1"),
        ({"type": "PostUpdate", "post": {"id": "t3_1"}, "previousBody": ""}, PostUpdate, "update:t3_1"),
        ({"type": "CommentUpdate", "comment": {"id": "t1_1"}}, CommentUpdate, "update:t1_1"),
        ({"type": "PostDelete", "postId": "t3_1", "source": 1}, PostDelete, "delete:t3_1"),
        ({"type": "CommentDelete", "commentId": "t1_1", "source": 3}, CommentDelete, "delete:t1_1"),
        (ACTION, ModAction, "mod:"),
    ]
    for raw, kind, marker in samples:
        for form in (raw, msgspec.json.encode(raw), msgspec.json.encode(raw).decode()):
            event = decode_event(form)
            assert type(event) is kind
            assert event.id.startswith(marker)


@pytest.mark.parametrize(
    "broken",
    [
        b"{",
        b"\xff",
        {"type": "PostSubmit"},
        {"type": "PostSubmit", "post": {"id": "t1_1"}},
        {"type": "PostDelete", "postId": "t3_1"},
        {"type": "Unheard"},
        {"post": {"id": "t3_1"}},
        {**ACTION, "moderator": None},
        {**ACTION, "moderator": {"id": "", "name": ""}},
        {**ACTION, "action": ""},
        {**ACTION, "actionedAt": "yesterday"},
        {**ACTION, "actionedAt": 10**18},
        {**ACTION, "actionedAt": "2024-01-02T03:04:05"},
        {**ACTION, "subreddit": {"name": ""}},
        {**ACTION, "targetPost": {"id": ""}},
        {**ACTION, "targetPost": {"id": "t3_"}},
        {**ACTION, "targetPost": {"id": "t3_1:x"}},
        {**ACTION, "action": "removecomment"},
        {**ACTION, "action": "banuser", "targetUser": {"id": "", "name": "Ann"}},
        {name: value for name, value in ACTION.items() if name != "targetUser"},
    ],
    ids=lambda broken: str(broken)[:60],
)
def test_a_malformed_event_is_refused(broken: Any) -> None:
    with pytest.raises(MalformedEventError, match="is not as the platform documents it"):
        decode_event(broken)


@pytest.mark.parametrize(
    "change",
    [
        {"action": "spamlink"},
        {"actionedAt": "2024-01-02T03:04:05.679Z"},
        {"moderator": {"name": "Mox"}},
        {"targetPost": {"id": "t3_2"}},
        {"subreddit": {"name": "dogs"}},
    ],
    ids=str,
)
def test_different_actions_have_different_markers(change: dict[str, Any]) -> None:
    """Upstream hashes action and time only: docs/resolutions.md#mistake-7."""
    assert decode_event({**ACTION, **change}).id != decode_event(ACTION).id


def test_a_repeated_delivery_has_the_same_marker() -> None:
    again = {**ACTION, "actionedAt": 1704164645678, "newlyInvented": "other", "retry": 2}
    assert decode_event(again).id == decode_event(ACTION).id


def settings(**stored: Any) -> OpenModSettings:
    return OpenModSettings.read({"targetSubredit": "cats_log", **stored})


def left_out(chosen: OpenModSettings, action: str, moderator: str = "Mod", target: str = "Ann") -> str | None:
    reddit = Reddit()
    thing = {"link": "t3_1", "comment": "t1_1"}.get(action.removeprefix("approve").removeprefix("remove"), "")
    event = mod_action(action, moderator, reddit.join(target), thing)
    assert isinstance(event, ModAction)
    return chosen.leaves_out(event)


def test_missing_settings_have_defaults() -> None:
    """Upstream crashes: docs/resolutions.md#mistake-9."""
    chosen = settings()
    assert chosen.moderation_actions == {
        LinkAction.REMOVE_LINK,
        LinkAction.SPAM_LINK,
        CommentAction.REMOVE_COMMENT,
        CommentAction.SPAM_COMMENT,
        BanAction.BAN_USER,
        MuteAction.MUTE_USER,
    }
    assert chosen.record_admin_actions
    assert not chosen.record_auto_moderator_actions
    assert chosen.excluded_moderators == chosen.excluded_users == frozenset()


@pytest.mark.parametrize("empty", ["", " ", ",", " , ,"])
def test_an_empty_list_of_names_excludes_nobody(empty: str) -> None:
    """Upstream excludes the empty name: docs/resolutions.md#mistake-9."""
    assert settings(excludedModerators=empty, excludedUsers=empty).excluded_users == frozenset()


def test_names_are_compared_whole_and_in_any_case() -> None:
    """Upstream compares by case, and later by substring: docs/resolutions.md#mistake-9."""
    chosen = settings(excludedModerators="Bobby, MOX", excludedUsers="anna")
    assert left_out(chosen, "removelink", moderator="bobby")
    assert left_out(chosen, "removelink", moderator="mox")
    assert left_out(chosen, "removelink", moderator="bob") is None
    assert left_out(chosen, "removelink", target="ANNA")
    assert left_out(chosen, "removelink", target="ann") is None


@pytest.mark.parametrize("spelling", ["approveComment", "approvecomment", "APPROVECOMMENT"])
def test_an_approved_comment_can_be_selected(spelling: str) -> None:
    """Upstream spells the option `approveComment`: docs/resolutions.md#mistake-8."""
    assert left_out(settings(moderationActions=[spelling]), "approvecomment") is None
    assert left_out(settings(moderationActions=[spelling]), "removecomment")


@pytest.mark.parametrize("action", ["lock", "unlock"])
def test_an_action_that_no_extract_can_hold_is_left_out(action: str) -> None:
    """Upstream fails after the marker was written: docs/resolutions.md#mistake-8."""
    chosen = settings(moderationActions=[action, "removelink"])
    assert chosen.moderation_actions == {LinkAction.REMOVE_LINK}
    assert left_out(chosen, action)


def test_every_action_can_be_selected() -> None:
    chosen = settings(moderationActions=EVERY_ACTION)
    assert sorted(action.value for action in chosen.moderation_actions) == sorted(EVERY_ACTION)


def test_auto_moderator_the_team_and_admins_are_left_out_as_the_settings_say() -> None:
    assert left_out(settings(), "removelink", moderator="AutoModerator")
    assert (
        left_out(settings(recordAutoModeratorActions=True), "removelink", moderator="AutoModerator") is None
    )
    assert left_out(settings(), "removelink", target="cats-ModTeam")
    assert left_out(settings(recordAdminActions=False), "removelink", moderator="Anti-Evil Operations")
    assert left_out(settings(), "removelink", moderator="Anti-Evil Operations") is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"targetSubredit": ""},
        {"targetSubredit": None},
        {"targetSubredit": "not a name"},
        {"moderationActions": []},
        {"moderationActions": ["dance"]},
        {"recordAdminActions": "yes"},
        {"excludedUsers": "ok_name, no name"},
        {"excludedUsers": ["ann"]},
    ],
    ids=str,
)
def test_invalid_settings_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        settings(**wrong)
