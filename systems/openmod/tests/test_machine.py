"""Random events in any order, duplicated and interrupted: in the end each is recorded once, or erased."""

from __future__ import annotations

import asyncio
import itertools
from datetime import timedelta
from typing import Any, ClassVar

import msgspec
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from keywright.errors import ConflictError
from keywright_openmod.accounts import is_nobody, is_special
from keywright_openmod.events import Event
from keywright_openmod.recorder import EventOutcome, HandledEvent, Recorder
from keywright_openmod.schema import openmod
from keywright_service.errors import PlatformTroubleError

from .newsroom import NOON, Newsroom, deleted, mod_action, submitted, updated
from .reddit_double import Death, Fate, Reddit, mortal

NUMBER = st.integers(0, 7)
STEPS = st.none() | st.integers(0, 40)
LINK_ACTIONS = ("removelink", "spamlink", "approvelink")
COMMENT_ACTIONS = ("removecomment", "spamcomment", "approvecomment")
PERSON_ACTIONS = ("banuser", "unbanuser", "muteuser", "unmuteuser")


class Action(msgspec.Struct, frozen=True):
    """A mod action: its thing and the user concerned."""

    thing: str
    target: str


class Moderation(RuleBasedStateMachine):
    """Users write, edit, delete and leave; moderators act; deliveries are duplicated, late, interrupted."""

    room: ClassVar[Newsroom]

    @initialize()
    def an_empty_installation(self) -> None:
        for name in self.room.raw.names():
            self.room.raw("DEL", name)
        self.room.reddit = self.reddit = Reddit()
        self.people = [self.reddit.join(name) for name in ("Ann", "Bob", "Cleo")]
        self.reddit.join("Mod")
        self.queue: list[Event] = []
        self.actions: list[Action] = []
        self.written: dict[str, str] = {}
        self.gone: dict[str, list[str]] = {}
        self.texts: dict[str, list[str]] = {}
        self.numbers = itertools.count(1)

    @rule(who=NUMBER, post=st.booleans())
    def someone_writes(self, who: int, post: bool) -> None:
        author = self.people[who % 3]
        if author.id not in self.reddit.accounts:
            return
        text = self._text()
        write = self.reddit.write_post if post else self.reddit.write_comment
        thing = write(author, text).id
        self.written[thing] = author.id
        self.texts[thing] = [text]
        self.queue.append(submitted(thing))

    @rule(which=NUMBER)
    @precondition(lambda self: self._living())
    def someone_changes_it(self, which: int) -> None:
        thing = self._pick(which)
        self.texts[thing].append(self._text())
        self.reddit.rewrite(thing, self.texts[thing][-1])
        self.queue.append(updated(thing))

    @rule(which=NUMBER, kind=NUMBER)
    @precondition(lambda self: self.written)
    def a_moderator_acts(self, which: int, kind: int) -> None:
        thing = list(self.written)[which % len(self.written)]
        names = LINK_ACTIONS if thing.startswith("t3_") else COMMENT_ACTIONS
        self._act(names[kind % 3], thing, self.written[thing])

    @rule(who=NUMBER, kind=NUMBER)
    def a_moderator_bans(self, who: int, kind: int) -> None:
        user = self.people[who % 3].id
        self._act(PERSON_ACTIONS[kind % 4], user, user)

    @rule(which=NUMBER)
    @precondition(lambda self: self._living())
    def someone_deletes_it(self, which: int) -> None:
        thing = self._pick(which)
        del self.reddit.things[thing]
        self.gone[thing] = self.texts[thing]
        self.queue.append(deleted(thing, self.written[thing]))

    @rule(who=NUMBER)
    def someone_leaves(self, who: int) -> None:
        self.reddit.delete_account(self.people[who % 3].id)

    @rule(
        first=NUMBER, count=st.integers(1, 3), steps=st.tuples(STEPS, STEPS, STEPS), trouble=st.integers(0, 2)
    )
    @precondition(lambda self: self.queue)
    def events_are_delivered_at_once(
        self, first: int, count: int, steps: tuple[int | None, ...], trouble: int
    ) -> None:
        chosen = [self.queue[(first + place) % len(self.queue)] for place in range(count)]
        self.reddit.troubled = trouble
        self._deliver(chosen, steps)
        self.reddit.troubled = 0

    @rule(which=NUMBER)
    @precondition(lambda self: self.queue)
    def an_event_comes_again(self, which: int) -> None:
        self.queue.append(self.queue[which % len(self.queue)])

    @rule(steps=STEPS, trouble=st.integers(0, 3))
    def the_policy_is_enforced(self, steps: int | None, trouble: int) -> None:
        self.reddit.troubled = trouble
        try:
            self.room.enforce(Fate(steps), batch=2)
        except (PlatformTroubleError, ConflictError):
            pass
        finally:
            self.reddit.troubled = 0

    @rule(hours=st.integers(1, 30))
    def time_passes(self, hours: int) -> None:
        self.room.clock.advance(hours=hours)
        self.room.holds_end()

    def teardown(self) -> None:
        """Deliver all events, and let a day pass."""
        if not hasattr(self, "queue"):
            return
        self.room.holds_end()
        for event in list(self.queue):
            self._deliver([event], (None,))
        assert not self.queue, "an event stays BUSY"
        for _ in range(2):
            self.room.enforce_all()
        self.room.holds_end()
        self._check()

    def _check(self) -> None:
        stored = self.room.everything()
        assert len(self.reddit.public) == len(self.actions), "an event was lost or duplicated"
        self._check_names(stored)
        self._check_the_deleted(stored)
        self._check_the_living(stored)
        self._check_the_log(stored)

    def _check_names(self, stored: dict[str, Any]) -> None:
        for name, value in stored.items():
            assert openmod.find(name.encode()) is not None, name
            assert not (name.startswith("event:") and value.startswith("claim:"))

    def _check_the_deleted(self, stored: dict[str, Any]) -> None:
        public = [made.body for made in self.reddit.public.values()]
        for thing, texts in self.gone.items():
            names = [name for name in stored if name.endswith(thing) and not name.startswith("event:")]
            assert not names
            for text in texts:
                assert text not in str(stored)
                assert not [body for body in public if text in body]
        for person in self.people:
            if person.id in self.reddit.accounts:
                continue
            assert person.id not in str(stored)
            assert person.name not in str(stored) + str(public)
            assert f"log-name:{person.name.lower()}" not in stored
            for thing, author in self.written.items():
                assert author != person.id or not any(text in str(stored) for text in self.texts[thing])

    def _check_the_living(self, stored: dict[str, Any]) -> None:
        for thing in self._living():
            author = self.written[thing]
            assert stored[f"cache:{thing}"]["body"] == f"body {self.texts[thing][-1]}"
            assert thing in stored[f"user:{author}"]
            assert author in stored["cdpComplianceUserList"]
            assert stored[f"cache:{author}"]["username"]
        subjects = [*self._living(), *(p.id for p in self.people if p.id in self.reddit.accounts)]
        for thing in subjects:
            expected = [action for action in self.actions if action.thing == thing]
            posts = stored.get(f"mod-actions:{thing}", {})
            assert len(posts) == len(expected)
            for post in posts:
                self._check_extract(stored, thing, post, expected[0].target)

    def _check_the_log(self, stored: dict[str, Any]) -> None:
        """Check that the log has exactly the extracts that exist, and that every index agrees."""
        entries = {
            name.removeprefix("log-entry:"): e for name, e in stored.items() if name.startswith("log-entry:")
        }
        assert set(entries) == {name.removeprefix("audit:") for name in stored if name.startswith("audit:")}
        expected: dict[str, dict[str, int]] = {}
        for post, entry in entries.items():
            people = [("moderator", entry["actor"]), ("user", entry["target"])]
            of = [
                *("subreddit:cats", f"action:{entry['type']}"),
                *(f"{role}:{user}" for role, user in people if not is_nobody(user)),
            ]
            for log in ("log", *(f"log:{each}" for each in of)):
                expected.setdefault(log, {})[post] = int(entry["at"])
            if is_special(entry["target"]):
                assert f"log-account:{entry['target']}" not in stored
                continue
            name = stored[f"log-account:{entry['target']}"]["username"]
            assert stored[f"log-name:{name.lower()}"] == entry["target"]
        logs = {name: posts for name, posts in stored.items() if name == "log" or name.startswith("log:")}
        assert logs == expected

    def _check_extract(self, stored: dict[str, Any], thing: str, post: str, target: str) -> None:
        """Check that an extract is reachable from its user and shows the present text."""
        extract = stored[f"audit:{post}"]
        assert extract["target"] == target
        assert thing in (extract.get("link"), extract.get("comment"), extract["target"])
        assert thing in stored[f"user:{target}"]
        body = self.reddit.public[post].body
        for text in self.texts.get(thing, []):
            assert (f"body {text}" in body) == (text == self.texts[thing][-1])

    def _deliver(self, events: list[Event], steps: tuple[int | None, ...]) -> None:
        """Handle events concurrently, and keep those that must be delivered again."""

        async def all_of_them() -> list[HandledEvent | BaseException]:
            return await asyncio.gather(
                *(self._recorder(each).handle(event) for event, each in zip(events, steps, strict=False)),
                return_exceptions=True,
            )

        for event, outcome in zip(events, self.room.wait(all_of_them()), strict=True):
            if isinstance(outcome, HandledEvent):
                if outcome.outcome is not EventOutcome.BUSY and event in self.queue:
                    self.queue.remove(event)
            elif not isinstance(outcome, Death | PlatformTroubleError | ConflictError):
                raise outcome

    def _recorder(self, steps: int | None) -> Recorder:
        fate = Fate(steps)
        return Recorder(mortal(self.room.db, fate), self.reddit.session(fate), self.room.settings)

    def _act(self, name: str, thing: str, target: str) -> None:
        at = NOON + timedelta(milliseconds=next(self.numbers))
        person = next(person for person in self.people if person.id == target)
        self.queue.append(mod_action(name, "Mod", person, thing, at=at))
        self.actions.append(Action(thing, target))

    def _living(self) -> list[str]:
        """Return the submissions that exist, of users who exist."""
        return [t for t, a in self.written.items() if t in self.reddit.things and a in self.reddit.accounts]

    def _pick(self, which: int) -> str:
        living = self._living()
        return living[which % len(living)]

    def _text(self) -> str:
        return f"word{next(self.numbers)}x"


def play(room: Newsroom, examples: int) -> None:
    class Here(Moderation):
        pass

    Here.room = room
    run_state_machine_as_test(
        Here,
        settings=settings(
            max_examples=examples,
            stateful_step_count=25,
            deadline=None,
            derandomize=True,
            database=None,
            phases=[Phase.generate, Phase.shrink],
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_on_one_server_events_are_recorded_once_and_deleted_data_is_erased(room: Newsroom) -> None:
    play(room, examples=120)


def test_on_a_cluster_events_are_recorded_once_and_deleted_data_is_erased(cluster_room: Newsroom) -> None:
    play(cluster_room, examples=25)
