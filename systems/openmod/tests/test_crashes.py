"""Crashes at any command or request: nothing is lost, duplicated, or left behind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from keywright_openmod.events import Event

from .newsroom import Newsroom, deleted, mod_action, submitted, updated
from .reddit_double import Fate, Reddit

POST, COMMENT = "t3_p1", "t1_c2"
MOST_STEPS = 200


class Scenario(NamedTuple):
    """The events before, the change on Reddit, and the event that is interrupted."""

    before: Callable[[Newsroom], None]
    then: Callable[[Newsroom], None]
    event: Callable[[Newsroom], Event]


def nothing(room: Newsroom) -> None:
    del room


def moderated(room: Newsroom) -> None:
    ann = room.reddit.accounts["t2_ann"]
    room.handle(submitted(POST))
    room.handle(mod_action("removelink", "Mod", ann, POST))
    room.handle(mod_action("approvelink", "Mod", ann, POST))
    room.handle(mod_action("banuser", "Mod", ann))


def removal(room: Newsroom) -> Event:
    return mod_action("removelink", "Mod", room.reddit.accounts["t2_ann"], POST)


def submission(room: Newsroom) -> Event:
    return submitted(COMMENT)


def change(room: Newsroom) -> Event:
    return updated(POST)


def deletion(room: Newsroom) -> Event:
    return deleted(POST, "t2_ann")


def observed(room: Newsroom) -> None:
    room.handle(submitted(POST))


def taken_back(room: Newsroom) -> None:
    del room.reddit.things[POST]


SCENARIOS = {
    "submit": Scenario(nothing, nothing, submission),
    "first action": Scenario(nothing, nothing, removal),
    "another action": Scenario(
        observed,
        nothing,
        lambda room: mod_action("spamlink", "Mod", room.reddit.accounts["t2_ann"], POST),
    ),
    "ban": Scenario(
        nothing, nothing, lambda room: mod_action("banuser", "Mod", room.reddit.accounts["t2_ann"])
    ),
    "update": Scenario(moderated, lambda room: room.reddit.rewrite(POST, "changed"), change),
    "delete": Scenario(moderated, taken_back, deletion),
}


def begin(room: Newsroom) -> None:
    """Start with the same Reddit on an empty database."""
    for name in room.raw.names():
        room.raw("DEL", name)
    room.reddit = Reddit()
    ann = room.reddit.join("Ann")
    room.reddit.join("Mod")
    assert room.reddit.write_post(ann, "secret").id == POST
    assert room.reddit.write_comment(ann, "secret").id == COMMENT


def timeless(room: Newsroom) -> tuple[dict[str, Any], list[tuple[str, str, str]]]:
    """Return everything that is stored and published, without times."""
    stored = {
        name: set(value) if name.startswith(("mod-actions:", "cdp")) else value
        for name, value in room.everything().items()
    }
    stored = {name: "when" if name.startswith("event:") else value for name, value in stored.items()}
    if "user:t2_ann" in stored:
        stored["user:t2_ann"] = set(stored["user:t2_ann"])
    return stored, [(post, made.title, made.body) for post, made in room.reddit.public.items()]


def undisturbed(room: Newsroom, scenario: Scenario) -> tuple[Any, Any]:
    begin(room)
    scenario.before(room)
    scenario.then(room)
    before = timeless(room)[0]
    room.handle(scenario.event(room))
    return before, timeless(room)


def claims_aside(stored: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in stored.items() if not name.startswith("event:")}


@pytest.mark.parametrize("name", SCENARIOS)
def test_an_event_whose_process_dies_at_any_step_is_completed_by_the_next_delivery(
    any_room: Newsroom, name: str
) -> None:
    scenario = SCENARIOS[name]
    _, after = undisturbed(any_room, scenario)
    deaths = 0
    for steps in range(MOST_STEPS):
        begin(any_room)
        scenario.before(any_room)
        scenario.then(any_room)
        survived = any_room.handle(scenario.event(any_room), Fate(steps)) is not None
        any_room.holds_end()
        any_room.handle(scenario.event(any_room))
        assert timeless(any_room) == after, steps
        if survived:
            break
        deaths += 1
    else:
        raise AssertionError("it never ended")
    assert deaths >= 5


@pytest.mark.parametrize("name", ["submit", "first action", "another action", "ban"])
def test_on_one_server_a_dead_process_has_recorded_all_or_nothing(room: Newsroom, name: str) -> None:
    scenario = SCENARIOS[name]
    before, (after, _) = undisturbed(room, scenario)
    seen = set()
    for steps in range(MOST_STEPS):
        begin(room)
        scenario.before(room)
        if room.handle(scenario.event(room), Fate(steps)) is not None:
            break
        found = claims_aside(timeless(room)[0])
        assert found in (claims_aside(before), claims_aside(after)), steps
        seen.add(found == claims_aside(after))
    assert False in seen


def test_the_claim_of_a_dead_process_expires(room: Newsroom) -> None:
    """Upstream leaves a marker without expiry: docs/resolutions.md#mistake-6 and #mistake-14."""
    begin(room)
    event = removal(room)
    for steps in range(1, MOST_STEPS):
        begin(room)
        if room.handle(event, Fate(steps)) is not None:
            break
        left = [name for name in room.raw.names() if name.startswith(b"event:")]
        assert len(left) == 1
        assert room.raw("PTTL", left[0]) > 0, steps


def test_a_public_post_that_was_not_recorded_is_found_again_and_not_made_twice(any_room: Newsroom) -> None:
    begin(any_room)
    event = removal(any_room)
    died_after_submitting = 0
    for steps in range(MOST_STEPS):
        begin(any_room)
        if any_room.handle(event, Fate(steps)) is not None:
            break
        made = len(any_room.reddit.public)
        recorded = "audit:t3_x1" in any_room.everything()
        died_after_submitting += made == 1 and not recorded
        any_room.holds_end()
        any_room.handle(event)
        assert list(any_room.reddit.public) == ["t3_x1"], steps
    assert died_after_submitting >= 2


def test_a_public_post_that_was_not_recorded_is_redacted_if_its_subject_was_deleted_meanwhile(
    any_room: Newsroom,
) -> None:
    """No key lists it when the deletion is processed; the redelivered action must redact it."""
    for steps in range(MOST_STEPS):
        begin(any_room)
        event = removal(any_room)
        if any_room.handle(event, Fate(steps)) is not None:
            break
        any_room.holds_end()
        del any_room.reddit.things[POST]
        any_room.handle(deleted(POST, "t2_ann"))
        any_room.handle(event)
        assert len(any_room.reddit.public) == 1
        for made in any_room.reddit.public.values():
            assert "secret" not in made.body
        assert "secret" not in str(any_room.everything())


def test_an_enforcer_that_dies_at_any_step_is_completed_when_its_hold_ends(any_room: Newsroom) -> None:
    """Upstream deletes the index first: docs/resolutions.md#mistake-3."""
    deaths = 0
    for steps in range(MOST_STEPS):
        begin(any_room)
        moderated(any_room)
        any_room.handle(submitted(COMMENT))
        any_room.reddit.delete_account("t2_ann")
        any_room.clock.advance(days=1, minutes=1)
        survived = any_room.enforce(Fate(steps)) is not None
        any_room.holds_end()
        any_room.enforce()
        stored = any_room.everything()
        assert "t2_ann" not in str(stored), steps
        assert "secret" not in str(stored), steps
        assert not [name for name in stored if name.startswith(("audit:", "mod-actions:", "user:"))]
        for made in any_room.reddit.public.values():
            assert "Ann" not in made.body
        if survived:
            break
        deaths += 1
    else:
        raise AssertionError("it never ended")
    assert deaths >= 20


@pytest.mark.parametrize("name", ["submit", "action", "update"])
def test_a_late_recorder_stores_nothing_of_a_submission_that_was_deleted_meanwhile(
    any_room: Newsroom, name: str
) -> None:
    """It looks up the submission before the deletion, and writes after it."""
    late = 0
    for steps in range(MOST_STEPS):
        begin(any_room)
        if name == "update":
            any_room.handle(removal(any_room))
        sleeper = Sleeper(any_room, steps)
        event = {"submit": submitted(POST), "action": removal(any_room), "update": updated(POST)}[name]
        any_room.handle(event, sleeper)
        if not sleeper.slept:
            break
        late += 1
        if not sleeper.delivered:
            any_room.handle(deleted(POST, "t2_ann"))
        assert "secret" not in str(any_room.everything()), steps
        assert "secret" not in str(any_room.reddit.public), steps
        assert not any(name.startswith(("user:", "audit:")) for name in any_room.everything()), steps
    assert late >= 5


def test_a_late_update_does_not_publish_the_name_of_an_account_that_was_erased_meanwhile(
    any_room: Newsroom,
) -> None:
    """It renders the extract before the account is deleted, and publishes it afterwards."""
    late = 0
    for steps in range(MOST_STEPS):
        begin(any_room)
        any_room.handle(removal(any_room))
        any_room.clock.advance(days=1, minutes=1)
        sleeper = Sleeper(any_room, steps, leave=True)
        any_room.handle(updated(POST), sleeper)
        if not sleeper.slept:
            break
        late += 1
        any_room.holds_end()
        any_room.enforce_all()
        assert "Ann" not in str(any_room.reddit.public), steps
        assert "t2_ann" not in str(any_room.everything()), steps
    assert late >= 5


@pytest.mark.parametrize("name", ["submit", "action"])
def test_a_late_recorder_does_not_restore_an_older_text(any_room: Newsroom, name: str) -> None:
    """It looks up the submission before the author edits it, and writes afterwards."""
    late = 0
    for steps in range(MOST_STEPS):
        begin(any_room)
        sleeper = Sleeper(any_room, steps, change=True)
        any_room.handle(submitted(POST) if name == "submit" else removal(any_room), sleeper)
        if not sleeper.slept:
            break
        late += 1
        if not sleeper.delivered:
            any_room.handle(updated(POST))
        assert any_room.everything()[f"cache:{POST}"]["body"] == "body changed", steps
        for made in any_room.reddit.public.values():
            assert "body changed" in made.body, steps
    assert late >= 5


class Sleeper(Fate):
    """A process that is suspended at one step, while another deletes, edits or erases the submission."""

    def __init__(self, room: Newsroom, at: int, *, change: bool = False, leave: bool = False) -> None:
        super().__init__()
        self._room = room
        self._at = at
        self._change = change
        self._leave = leave
        self.slept = False
        self.delivered = False

    def step(self) -> None:
        super().step()
        if self.taken != self._at + 1 or self.slept:
            return
        self.slept = True
        if self._leave:
            self._room.reddit.delete_account("t2_ann")
            self.delivered = self._room.enforced_meanwhile()
        elif self._change:
            self._room.reddit.rewrite(POST, "changed")
            self.delivered = self._room.meanwhile(updated(POST))
        else:
            self._room.reddit.things.pop(POST)
            self.delivered = self._room.meanwhile(deleted(POST, "t2_ann"))
