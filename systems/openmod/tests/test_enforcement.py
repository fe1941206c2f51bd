"""The content deletion policy: deleted accounts are found and erased completely, others never."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from keywright.errors import WrongTypeError
from keywright_openmod.enforcement import next_check
from keywright_openmod.events import Event
from keywright_openmod.schema import EnforcementSet, ModActionSet, TrackingSet
from keywright_service.errors import PlatformRefusedError, PlatformTroubleError

from .newsroom import NOON, Newsroom, deleted, mod_action, submitted, updated
from .reddit_double import Fate

DAY = timedelta(days=1)


def ms(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)


def moderated(room: Newsroom) -> str:
    """Let Ann's post be removed and Ann be banned, and return the id of the post."""
    ann = room.reddit.join("Ann")
    room.reddit.join("Mod")
    post = room.reddit.write_post(ann, "secret")
    room.handle(submitted(post.id))
    room.handle(mod_action("removelink", "Mod", ann, post.id))
    room.handle(mod_action("banuser", "Mod", ann))
    return post.id


def test_everyone_who_is_cached_tracked_or_targeted_is_enrolled(room: Newsroom) -> None:
    """Upstream enrols nobody: docs/resolutions.md#mistake-1."""
    moderated(room)
    assert set(room.everything()["cdpComplianceUserList"]) == {"t2_ann", "t2_mod"}


def test_activity_does_not_postpone_the_check_of_an_account(room: Newsroom) -> None:
    ann = room.reddit.join("Ann")
    for text in ("one", "two"):
        room.handle(submitted(room.reddit.write_post(ann, text).id))
        room.clock.advance(hours=5)
    assert room.everything()["cdpComplianceUserList"] == {"t2_ann": ms(NOON + DAY)}


def test_a_deleted_account_leaves_nothing(any_room: Newsroom) -> None:
    post = moderated(any_room)
    any_room.reddit.delete_account("t2_ann")
    any_room.enforce_all()
    stored = any_room.everything()
    assert "t2_ann" not in str(stored)
    assert "Ann" not in str(stored)
    assert "secret" not in str(stored)
    assert f"cache:{post}" not in stored
    assert not [name for name in stored if name.startswith(("audit:", "mod-actions:", "user:"))]


def test_a_deleted_account_that_was_never_moderated_leaves_nothing(any_room: Newsroom) -> None:
    """Upstream leaves the cached user: docs/resolutions.md#mistake-10."""
    any_room.handle(submitted(any_room.reddit.write_comment(any_room.reddit.join("Ann"), "secret").id))
    any_room.reddit.delete_account("t2_ann")
    any_room.enforce_all()
    assert {name.split(":")[0] for name in any_room.everything()} == {"event"}


def test_a_submission_without_extract_is_untracked_when_its_cached_copy_has_expired(
    any_room: Newsroom,
) -> None:
    """Upstream expires cached copies only: docs/resolutions.md#mistake-12."""
    post = moderated(any_room)
    ann = any_room.reddit.accounts["t2_ann"]
    observed = [any_room.reddit.write_comment(ann, str(number)).id for number in range(60)]
    for thing in observed:
        any_room.handle(submitted(thing))
    for thing in (*observed[:55], post):
        any_room.raw("DEL", f"cache:{thing}")  # as if it had expired
    any_room.enforce_all()
    assert set(any_room.everything()["user:t2_ann"]) == {post, "t2_ann", *observed[55:]}
    assert "t3_x1" in any_room.everything()[f"mod-actions:{post}"]


def test_after_an_account_is_deleted_its_public_content_stays_without_the_person(room: Newsroom) -> None:
    moderated(room)
    room.reddit.delete_account("t2_ann")
    room.enforce_all()
    removal, ban = room.reddit.public.values()
    assert "body secret" in removal.body
    assert "Ann" not in removal.body + ban.body
    assert "deleted their account" in removal.body
    assert "deleted their account" in ban.body


def test_content_that_is_fetched_for_a_redaction_is_not_cached(room: Newsroom) -> None:
    """Upstream caches it again: docs/resolutions.md#mistake-11."""
    post = moderated(room)
    room.raw("DEL", f"cache:{post}")
    room.reddit.delete_account("t2_ann")
    room.enforce_all()
    assert "body secret" in room.reddit.public["t3_x1"].body
    assert "secret" not in str(room.everything())


def test_after_a_submission_is_deleted_its_public_content_is_removed_too(room: Newsroom) -> None:
    post = moderated(room)
    del room.reddit.things[post]
    room.handle(deleted(post, "t2_ann"))
    assert "secret" not in room.reddit.public["t3_x1"].body
    assert "secret" not in str(room.everything())
    assert set(room.everything()["user:t2_ann"]) == {"t2_ann"}, "the ban stays until the account is deleted"


def test_the_author_of_a_deletion_event_without_one_is_found_in_the_cache_or_the_extracts(
    room: Newsroom,
) -> None:
    post = moderated(room)
    other = room.reddit.write_post(room.reddit.accounts["t2_ann"], "other").id
    room.handle(submitted(other))
    room.raw("DEL", f"cache:{post}")
    for thing in (post, other):
        del room.reddit.things[thing]
        room.handle(deleted(thing))
    assert set(room.everything()["user:t2_ann"]) == {"t2_ann"}


def test_an_error_of_the_platform_is_never_treated_as_a_deletion(any_room: Newsroom) -> None:
    """Upstream purges the account after any error: docs/resolutions.md#mistake-2."""
    moderated(any_room)
    before = any_room.everything()
    any_room.clock.advance(days=1, minutes=1)
    any_room.reddit.calm, any_room.reddit.troubled = 1, 2
    done = any_room.enforce()
    assert done is not None
    assert (done.active, done.erased, len(done.troubles)) == (0, 0, 2)
    after = any_room.everything()
    assert after.pop("cdpComplianceUserList").keys() == before.pop("cdpComplianceUserList").keys()
    assert after == before


def test_no_account_is_checked_while_the_platform_does_not_answer(room: Newsroom) -> None:
    moderated(room)
    before = room.everything()
    room.clock.advance(days=1, minutes=1)
    room.reddit.troubled = 1
    with pytest.raises(PlatformTroubleError):
        room.enforce()
    assert room.everything() == before


def test_an_account_without_a_certain_answer_is_retried_after_ten_minutes(room: Newsroom) -> None:
    moderated(room)
    room.clock.advance(days=1, minutes=1)
    room.reddit.calm, room.reddit.troubled = 2, 1
    done = room.enforce()
    assert done is not None
    assert (done.active, done.erased, len(done.troubles)) == (1, 0, 1)
    room.clock.advance(minutes=11)
    done = room.enforce()
    assert done is not None
    assert (done.active, done.erased, done.troubles) == (1, 0, ())


def test_an_erasure_that_fails_in_the_middle_is_continued(any_room: Newsroom) -> None:
    for calm in range(3, 30):
        for name in any_room.raw.names():
            any_room.raw("DEL", name)
        moderated(any_room)
        any_room.reddit.delete_account("t2_ann")
        any_room.clock.advance(days=1, minutes=1)
        any_room.reddit.calm, any_room.reddit.troubled = calm, 1
        done = any_room.enforce()
        assert done is not None
        assert len(done.troubles) == 1 - any_room.reddit.troubled
        if not done.troubles:
            assert calm > 4
            return
        assert "t2_ann" in any_room.everything()["cdpComplianceUserList"]
        any_room.clock.advance(minutes=11)
        any_room.enforce()
        assert "t2_ann" not in str(any_room.everything())


def test_a_daily_run_checks_every_account_every_day(room: Newsroom) -> None:
    """Upstream checks every second day: docs/resolutions.md#mistake-5."""
    for name in ("Ann", "Bob", "Cleo"):
        room.handle(submitted(room.reddit.write_post(room.reddit.join(name), name).id))
    for day in range(1, 10):
        room.clock.advance(NOON + day * DAY - room.clock.now())
        done = room.enforce(Slow(room))
        assert done is not None
        assert done.active == 3, "a day was skipped"


class Slow(Fate):
    """Each step takes 10 ms."""

    def __init__(self, room: Newsroom) -> None:
        super().__init__()
        self._room = room

    def step(self) -> None:
        super().step()
        self._room.clock.advance(milliseconds=10)


def test_the_next_check_is_a_whole_number_of_days_after_the_last() -> None:
    for late in (timedelta(0), timedelta(seconds=7), timedelta(hours=23, minutes=59)):
        assert next_check(NOON, NOON + late) == NOON + DAY
    assert next_check(NOON, NOON + 3 * DAY + timedelta(hours=1)) == NOON + 4 * DAY
    assert next_check(NOON, NOON - timedelta(milliseconds=5)) == NOON + DAY, "clocks may disagree"


def test_a_worker_that_runs_all_the_time_checks_once_a_day_without_drift(room: Newsroom) -> None:
    room.handle(submitted(room.reddit.write_post(room.reddit.join("Ann"), "one").id))
    checked = []
    for _ in range(5 * 24 * 6):
        room.clock.advance(minutes=10, milliseconds=3)
        done = room.enforce()
        assert done is not None
        if done.active:
            checked.append(room.everything()["cdpComplianceUserList"]["t2_ann"])
    assert len(checked) == 5
    assert checked == [ms(NOON + (day + 2) * DAY) for day in range(5)]


def test_more_accounts_than_a_batch_are_checked_in_several_batches(room: Newsroom) -> None:
    people = {f"t2_n{number}": NOON for number in range(120)}
    room.run(EnforcementSet().schedule_many(people))
    seen = [room.enforce() for _ in range(3)]
    assert [(done.erased, done.more) for done in seen if done] == [(50, True), (50, True), (20, False)]
    assert not room.everything()


def test_an_account_with_more_than_a_thousand_submissions_is_erased_completely(any_room: Newsroom) -> None:
    """Upstream erases only the first 1,000: docs/resolutions.md#mistake-4."""
    any_room.reddit.join("Ann")
    things = {f"t1_{number}": NOON for number in range(1234)}
    any_room.run(TrackingSet("t2_ann").add_many(things))
    for number in range(0, 1234, 2):
        any_room.raw("HSET", f"cache:t1_{number}", "type", "comment", "body", "secret", "permalink", "/p")
    any_room.run(ModActionSet("t1_1233").add("t3_last", NOON))
    any_room.raw(
        "HSET",
        "audit:t3_last",
        "type",
        "removecomment",
        "actor",
        "t2_m",
        "target",
        "t2_ann",
        "comment",
        "t1_1233",
    )
    any_room.run(EnforcementSet().schedule("t2_ann", NOON))
    any_room.reddit.delete_account("t2_ann")
    any_room.enforce()
    assert not any_room.everything()


def test_an_extract_that_cannot_be_edited_does_not_block_the_rest_of_an_erasure(room: Newsroom) -> None:
    post = moderated(room)
    other = room.reddit.write_post(room.reddit.accounts["t2_ann"], "other").id
    room.handle(submitted(other))
    room.reddit.uneditable.add("t3_x1")
    room.reddit.delete_account("t2_ann")
    room.clock.advance(days=1, minutes=1)
    done = room.enforce()
    assert done is not None
    assert [type(trouble) for trouble in done.troubles] == [PlatformRefusedError]
    assert set(room.everything()["user:t2_ann"]) == {post}
    room.reddit.uneditable.clear()
    room.clock.advance(minutes=11)
    room.enforce()
    assert "t2_ann" not in str(room.everything())


def test_an_extract_that_cannot_be_edited_does_not_block_others_about_the_same_submission(
    room: Newsroom,
) -> None:
    post = moderated(room)
    room.handle(mod_action("spamlink", "Mod", room.reddit.accounts["t2_ann"], post))
    room.reddit.uneditable.add("t3_x1")
    del room.reddit.things[post]
    with pytest.raises(PlatformRefusedError):
        room.handle(deleted(post, "t2_ann"))
    assert "secret" not in room.reddit.public["t3_x3"].body
    assert set(room.everything()[f"mod-actions:{post}"]) == {"t3_x1"}
    room.reddit.uneditable.clear()
    room.handle(deleted(post, "t2_ann"))
    assert "secret" not in str(room.reddit.public)


def broken(room: Newsroom, name: str, **members: str) -> None:
    """Store a record that no version writes."""
    room.raw("DEL", name)
    room.raw("HSET", name, *(word for pair in members.items() for word in pair))


def test_an_account_is_erased_though_its_records_are_malformed(any_room: Newsroom) -> None:
    """The subject of the extract is unknown, so the public post keeps only the notice."""
    post = moderated(any_room)
    broken(any_room, "audit:t3_x1", type="lock", link=post)
    broken(any_room, f"cache:{post}", type="nothing")
    broken(any_room, "cache:t2_mod", type="nothing")
    any_room.reddit.delete_account("t2_ann")
    any_room.enforce_all()
    assert "t2_ann" not in str(any_room.everything())
    for made in any_room.reddit.public.values():
        assert "Ann" not in made.body
        assert "deleted their account" in made.body


def test_a_deleted_submission_is_erased_though_its_records_are_malformed(any_room: Newsroom) -> None:
    post = moderated(any_room)
    broken(any_room, "audit:t3_x1", type="lock")
    broken(any_room, f"cache:{post}", type="nothing")
    del any_room.reddit.things[post]
    any_room.handle(deleted(post, "t2_ann"))
    assert "secret" not in any_room.reddit.public["t3_x1"].body
    assert not [
        name for name in any_room.everything() if name.endswith(post) and not name.startswith("event:")
    ]


def test_an_account_that_cannot_be_erased_does_not_block_the_others(room: Newsroom) -> None:
    moderated(room)
    bob = room.reddit.join("Zob")
    room.handle(submitted(room.reddit.write_post(bob, "other").id))
    room.raw("DEL", "user:t2_ann")
    room.raw("SET", "user:t2_ann", "of another program")
    for gone in ("t2_ann", bob.id):
        room.reddit.delete_account(gone)
    room.clock.advance(days=1, minutes=1)
    done = room.enforce()
    assert done is not None
    assert [type(trouble) for trouble in done.troubles] == [WrongTypeError]
    assert (done.active, done.erased) == (1, 1)
    assert bob.id not in str(room.everything())
    assert room.everything()["cdpComplianceUserList"]["t2_ann"] == ms(room.clock.now()) + 600_000


def test_a_public_post_that_no_longer_exists_needs_no_redaction(room: Newsroom) -> None:
    moderated(room)
    del room.reddit.public["t3_x1"]
    room.reddit.delete_account("t2_ann")
    room.enforce_all()
    assert "t2_ann" not in str(room.everything())


@pytest.mark.parametrize("event", ["submit", "action", "update"])
def test_data_that_is_recorded_during_the_erasure_of_an_account_is_erased_too(
    any_room: Newsroom, event: str
) -> None:
    """At any step of the erasure another process that looked up the account before records an event."""
    for steps in range(200):
        for name in any_room.raw.names():
            any_room.raw("DEL", name)
        post = moderated(any_room)
        ann = any_room.reddit.accounts["t2_ann"]
        comment = any_room.reddit.write_comment(ann, "late").id
        events = {
            "submit": submitted(comment),
            "action": mod_action("spamlink", "Mod", ann, post),
            "update": updated(post),
        }
        meanwhile = Meanwhile(any_room, steps, events[event])
        any_room.reddit.delete_account("t2_ann")
        any_room.clock.advance(days=1, minutes=1)
        any_room.enforce(meanwhile)
        if not meanwhile.done:
            assert steps > 20
            return
        any_room.holds_end()
        if not meanwhile.delivered:
            any_room.handle(events[event])
        any_room.enforce_all()
        stored = any_room.everything()
        for secret in ("t2_ann", "secret", "late"):
            assert secret not in str(stored), steps
        assert not [made for made in any_room.reddit.public.values() if "Ann" in made.body], steps
        if meanwhile.delivered:  # an extract that is published only now names nobody, and stays
            assert not [name for name in stored if name.startswith(("audit:", "mod-actions:"))], steps


class Meanwhile(Fate):
    """During one step another process, which still sees the account, handles an event."""

    def __init__(self, room: Newsroom, at: int, event: Event) -> None:
        super().__init__()
        self._room = room
        self._at = at
        self._event = event
        self._ann = room.reddit.accounts["t2_ann"]
        self._things = dict(room.reddit.things)
        self.done = False
        self.delivered = False

    def step(self) -> None:
        super().step()
        if self.taken != self._at + 1:
            return
        self.done = True
        reddit, things = self._room.reddit, self._room.reddit.things
        reddit.accounts["t2_ann"], reddit.things = self._ann, self._things
        self.delivered = self._room.meanwhile(self._event)
        del reddit.accounts["t2_ann"]
        reddit.things = things
