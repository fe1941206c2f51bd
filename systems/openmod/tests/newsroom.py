"""An installation of Open Mod on a test server: handle events, read everything stored and published."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

from keywright import AsyncDatabase, Call, aconnect, recover
from keywright.errors import ConflictError
from keywright.testing import ManualClock, Raw
from keywright_openmod.actions import BanAction, CommentAction, LinkAction, MuteAction
from keywright_openmod.enforcement import Enforcer, EnforcerBatch
from keywright_openmod.events import Event, decode_event
from keywright_openmod.platform import Account
from keywright_openmod.recorder import EventOutcome, HandledEvent, Recorder
from keywright_openmod.schema import bind
from keywright_openmod.settings import OpenModSettings
from keywright_openmod.upgrade import UpgradeProgress, upgrade_all

from .reddit_double import Death, Fate, Reddit, mortal

NOON = datetime.fromisoformat("2024-01-02T12:00:00+00:00")
EVERY_ACTION = [
    action.value for kind in (LinkAction, CommentAction, BanAction, MuteAction) for action in kind
]
SETTINGS = OpenModSettings.read({"targetSubredit": "cats_log", "moderationActions": EVERY_ACTION})


def mod_action(
    action: str, moderator: str, target: Account, thing: str = "", *, at: datetime = NOON, **more: Any
) -> Event:
    """Return a ModAction as the platform sends it: with both targets, the irrelevant one empty."""
    return decode_event(
        {
            "type": "ModAction",
            "action": action,
            "actionedAt": at.isoformat(),
            "subreddit": {"id": "t5_cats", "name": "cats"},
            "moderator": {"id": "", "name": moderator},
            "targetUser": {"id": target.id, "name": target.name},
            "targetPost": {"id": thing if thing.startswith("t3_") else "", "permalink": ""},
            "targetComment": {"id": thing if thing.startswith("t1_") else "", "permalink": ""},
            **more,
        }
    )


def submitted(thing: str) -> Event:
    kind, field = ("PostSubmit", "post") if thing.startswith("t3_") else ("CommentSubmit", "comment")
    return decode_event({"type": kind, field: {"id": thing}})


def updated(thing: str) -> Event:
    kind, field = ("PostUpdate", "post") if thing.startswith("t3_") else ("CommentUpdate", "comment")
    return decode_event({"type": kind, field: {"id": thing}, "previousBody": "before"})


def deleted(thing: str, author: str = "", source: int = 1) -> Event:
    kind, field = ("PostDelete", "postId") if thing.startswith("t3_") else ("CommentDelete", "commentId")
    return decode_event({"type": kind, field: thing, "source": source, "author": {"id": author}})


class Newsroom:
    """One event loop, one database, one Reddit. A new recorder handles each event."""

    def __init__(
        self, url: str, runner: asyncio.Runner, db: AsyncDatabase, raw: Raw, clock: ManualClock
    ) -> None:
        self.url = url
        self._runner = runner
        self.db = db
        self.raw = raw
        self.clock = clock
        self.reddit = Reddit()
        self.settings = SETTINGS

    def run(self, call: Call[Any]) -> Any:
        return self._runner.run(self.db.run(call))

    def wait(self, work: Any) -> Any:
        return self._runner.run(work)

    def handle(self, event: Event, fate: Fate | None = None) -> HandledEvent | None:
        """Handle an event; None if the process died."""
        fate = fate or Fate()
        recorder = Recorder(mortal(self.db, fate), self.reddit.session(fate), self.settings)
        try:
            handled: HandledEvent = self._runner.run(recorder.handle(event))
        except Death:
            return None
        return handled

    def meanwhile(self, event: Event) -> bool:
        """Handle an event in another process during a step of ours; False if it must be delivered again."""

        async def handled(db: AsyncDatabase) -> bool:
            done = await Recorder(db, self.reddit.session(), self.settings).handle(event)
            return done.outcome is not EventOutcome.BUSY

        return self._elsewhere(handled)

    def enforced_meanwhile(self) -> bool:
        """Enforce the policy in another process during a step of ours; False if there were errors."""

        async def enforced(db: AsyncDatabase) -> bool:
            return not (await Enforcer(db, self.reddit.session()).run_batch()).troubles

        return self._elsewhere(enforced)

    def _elsewhere(self, work: Callable[[AsyncDatabase], Awaitable[bool]]) -> bool:
        """Run it in another thread. Return False on a conflict with a commit that is under way."""

        async def connected() -> bool:
            async with aconnect(self.url, *bind(), clock=self.clock) as db:
                return await work(db)

        with ThreadPoolExecutor(1) as threads:
            try:
                return threads.submit(asyncio.run, connected()).result()
            except ConflictError:
                return False

    def enforce(self, fate: Fate | None = None, *, batch: int = 50) -> EnforcerBatch | None:
        """Run one batch; None if the process died."""
        fate = fate or Fate()
        enforcer = Enforcer(mortal(self.db, fate), self.reddit.session(fate), batch=batch)
        try:
            done: EnforcerBatch = self._runner.run(enforcer.run_batch())
        except Death:
            return None
        return done

    def enforce_all(self) -> None:
        """Let a day pass, and check all accounts."""
        self.clock.advance(days=1, seconds=1)
        while True:
            done = self.enforce()
            assert done is not None
            assert not done.troubles
            if not done.more:
                return

    def upgrade(self, **options: Any) -> UpgradeProgress:
        progress: UpgradeProgress = self._runner.run(upgrade_all(self.db, self.reddit.session(), **options))
        return progress

    def holds_end(self) -> None:
        """Let every hold end: claims of dead processes expire, entries are due, commits are recovered."""
        self.clock.advance(minutes=20)
        for name in self.raw.names():
            if name.startswith(b"event:") and self.raw("GET", name).startswith(b"claim:"):
                self.raw("DEL", name)
        if self.db.context.sharded:
            while any(self.run(recover(grace=timedelta(0)))):
                pass

    def everything(self) -> dict[str, Any]:
        """Return every key with its value, as redis-py reads it."""
        return {name.decode(): self._value(name) for name in sorted(self.raw.names())}

    def _value(self, name: bytes) -> Any:
        match self.raw("TYPE", name):
            case b"string" | "string":
                return self.raw("GET", name).decode()
            case b"hash" | "hash":
                flat = self.raw("HGETALL", name)
                pairs = flat.items() if isinstance(flat, dict) else zip(flat[::2], flat[1::2], strict=True)
                return {field.decode(): value.decode("utf-8", "replace") for field, value in pairs}
            case b"zset" | "zset":
                members = self.raw("ZRANGE", name, 0, -1)
                return {each.decode(): int(self.raw("ZSCORE", name, each)) for each in members}
            case other:
                raise AssertionError(other)


@contextmanager
def newsroom(url: str, raw: Raw) -> Iterator[Newsroom]:
    clock = ManualClock(NOON)
    with asyncio.Runner() as runner:

        async def opened() -> AsyncDatabase:
            return await aconnect(url, *bind(), clock=clock)

        db = runner.run(opened())
        try:
            yield Newsroom(url, runner, db, raw, clock)
        finally:
            runner.run(db.close())


__all__ = [
    "NOON",
    "EventOutcome",
    "Newsroom",
    "deleted",
    "mod_action",
    "newsroom",
    "submitted",
    "updated",
]
