"""The recorder: turns events into tracked submissions and public extracts, each event once.

An event is claimed, looked up on the platform, and written in one commit that also turns the claim into the
marker of the event. So a process that dies has recorded all of it or nothing, and the next delivery starts
over. The checks of the commit keep late writers out: it fails if the claim expired, if the submission was
deleted, or if another process wrote its cached copy since the lookup.

Public posts are made before that commit, because their id is part of it. Each contains a marker made of the
event id, and is searched for before it is made, so a crash in between does not cause a duplicate post. One
case remains: a process that is suspended for longer than its claim exactly when it submits.
"""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import msgspec

from keywright import AsyncDatabase, Call, ClaimState, new_token
from keywright.errors import ConflictError, KeywrightError, StoredDataError
from keywright.operations import Check, absent, commit, owned, stored_field_equals
from keywright_openmod.accounts import DELETED, is_special, special_account, special_named
from keywright_openmod.enforcement import enrol
from keywright_openmod.erasure import Eraser
from keywright_openmod.events import (
    CommentDelete,
    CommentSubmit,
    CommentUpdate,
    DeleteEvent,
    Event,
    EventSource,
    ModAction,
    PersonRef,
    PostDelete,
    PostSubmit,
    PostUpdate,
)
from keywright_openmod.extracts import PublicExtracts, cached_account, cached_thing, marker_of
from keywright_openmod.log_index import listing, naming, parent_of
from keywright_openmod.platform import Account, Platform, Thing
from keywright_openmod.renderer import Disclosure, ExtractUpdateReason, render_body, render_title
from keywright_openmod.schema import (
    AnyCached,
    CacheHash,
    EventMarker,
    ExtractHash,
    LogAccount,
    LogEntry,
    ModActionSet,
    TrackingSet,
    extract_of,
)
from keywright_openmod.settings import OpenModSettings

__all__ = ["EventOutcome", "HandledEvent", "Recorder"]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
HOLD = timedelta(minutes=5)
ATTEMPTS = 8


class EventOutcome(enum.StrEnum):
    """The result of an event. After BUSY, and after an error, it must be delivered again."""

    RECORDED = "recorded"
    GONE = "gone"
    LEFT_OUT = "left out"
    DUPLICATE = "duplicate"
    BUSY = "busy"


class HandledEvent(NamedTuple):
    """The result of an event."""

    outcome: EventOutcome
    reason: str = ""
    """Why it was left out."""
    post: str | None = None
    """The public post that was made."""


class _Turn(NamedTuple):
    """The claim on an event that this process holds."""

    claim: EventMarker
    token: str

    @property
    def held(self) -> Check:
        return self.claim.held_by(self.token)


class _LostTurn(Exception):  # noqa: N818  # control flow, caught in `handle`
    """The claim expired. The process that has it now will finish the event."""


class _Lookup(NamedTuple):
    """A submission as the platform has it, and the checks that must hold when it is written."""

    thing: Thing | None
    author: Account | None
    checks: list[Check]


class Recorder:
    """Handles the events of one installation. Several may run on one database."""

    def __init__(
        self, db: AsyncDatabase, platform: Platform, settings: OpenModSettings, *, hold: timedelta = HOLD
    ) -> None:
        self._db = db
        self._platform = platform
        self._settings = settings
        self._hold = hold
        self._extracts = PublicExtracts(db, platform)
        self._eraser = Eraser(db, platform)

    async def handle(self, event: Event) -> HandledEvent:
        """Process one event, once. If it raises, the event is not marked: deliver it again."""
        reason = self._leaves_out(event)
        if reason is not None:
            return HandledEvent(EventOutcome.LEFT_OUT, reason)
        turn = _Turn(EventMarker(event.id), new_token())
        if not await self._db.run(turn.claim.begin(turn.token, self._hold)):
            return await self._taken(turn.claim)
        try:
            return await self._process(event, turn)
        except _LostTurn:
            return await self._taken(turn.claim)
        finally:
            # Does nothing if the claim became the marker. If it fails, the claim expires.
            with contextlib.suppress(KeywrightError):
                await self._db.run(turn.claim.release(turn.token))

    def _leaves_out(self, event: Event) -> str | None:
        if isinstance(event, ModAction):
            return self._settings.leaves_out(event)
        if isinstance(event, DeleteEvent) and event.source != EventSource.USER:
            return "only deletions by the author fall under the policy"
        return None

    async def _taken(self, claim: EventMarker) -> HandledEvent:
        done = await self._db.run(claim.state()) is ClaimState.DONE
        return HandledEvent(EventOutcome.DUPLICATE if done else EventOutcome.BUSY)

    async def _process(self, event: Event, turn: _Turn) -> HandledEvent:
        match event:
            case ModAction():
                return await self._disclose(event, turn)
            case PostSubmit() | CommentSubmit():
                return await self._observe(event.thing, turn, mark=True)
            case PostUpdate() | CommentUpdate():
                return await self._update(event.thing, turn)
            case PostDelete() | CommentDelete():
                return await self._delete(event, turn)

    async def _update(self, thing: str, turn: _Turn) -> HandledEvent:
        """Updates leave no marker: two of one submission look alike, and each asks for the present state."""
        handled = await self._observe(thing, turn, mark=False)
        if handled.outcome is EventOutcome.RECORDED:
            await self._extracts.render_again(
                thing, ExtractUpdateReason.UPDATED, lambda: self._check_turn(turn)
            )
        return handled

    async def _delete(self, event: DeleteEvent, turn: _Turn) -> HandledEvent:
        # The claim keeps later writers out. A commit across slots that began before it must end before
        # anything is read: an empty commit on the claim waits for it, or finishes it.
        if not await self._db.run(commit("wait for writers", [turn.held], [])):
            raise _LostTurn
        # Reddit does not say when a submission was deleted.
        done = turn.claim.done(self._db.context.now_ms())
        try:
            if not await self._eraser.erase_submission(event.thing, {event.author.id}, [turn.held], [done]):
                raise _LostTurn
        except ConflictError:
            return HandledEvent(EventOutcome.BUSY)
        return HandledEvent(EventOutcome.RECORDED)

    async def _observe(self, thing: str, turn: _Turn, *, mark: bool) -> HandledEvent:
        """Cache a submission and its author, track it, and enrol the author, in one commit."""
        for _ in range(ATTEMPTS):
            seen = await self._look_up(thing)
            at = self._db.context.now() if seen.thing is None else seen.thing.created_at
            also = [_done(turn, at)] if mark else []
            if seen.thing is None or seen.author is None:
                await self._commit(turn, [], also)
                return HandledEvent(EventOutcome.GONE)
            checks, writes = await self._tracking(seen.author, thing, seen.thing.created_at)
            writes.append(CacheHash(thing).put(cached_thing(seen.thing)))
            if await self._commit(turn, [*seen.checks, *checks], [*writes, *also]):
                return HandledEvent(EventOutcome.RECORDED)
        raise ConflictError(f"recording {thing}", ATTEMPTS)

    async def _disclose(self, event: ModAction, turn: _Turn) -> HandledEvent:
        """Publish an extract, then record it: sets, extract, cached copies and marker in one commit."""
        moderator = await self._moderator(event.moderator)
        excluded = self._settings.leaves_out_actor(moderator)
        if excluded is not None:
            return HandledEvent(EventOutcome.LEFT_OUT, excluded)
        post = None
        for _ in range(ATTEMPTS):
            if event.thing.startswith("t2_"):
                seen = _Lookup(None, await self._platform.account(event.thing), [])
            else:
                seen = await self._look_up(event.thing)
            post = await self._publish(event, moderator, seen, turn, post)
            checks, writes = await self._record(event, moderator, seen, post)
            if await self._commit(turn, checks, [*writes, _done(turn, event.at)]):
                return HandledEvent(EventOutcome.RECORDED, post=post)
        raise ConflictError(f"recording {event.id}", ATTEMPTS)

    async def _look_up(self, thing: str) -> _Lookup:
        deleted = EventMarker(f"delete:{thing}")
        cached = await self._extracts.cached(thing)
        state = await self._db.run(deleted.state())
        checks = [absent(deleted), *_unchanged(CacheHash(thing), cached)]
        found = await self._platform.thing(thing) if state is ClaimState.FREE else None
        author = await self._platform.account(found.author) if found and found.author else None
        return _Lookup(found, author, checks if state is ClaimState.FREE else [])

    async def _publish(
        self, event: ModAction, moderator: Account, seen: _Lookup, turn: _Turn, post: str | None
    ) -> str:
        """Return the public post of an event, with the present content. Make it unless it exists already."""
        action = event.known
        assert action is not None  # otherwise the settings left it out
        about_person = event.thing.startswith("t2_")
        gone = seen.thing is None and not about_person
        disclosure = Disclosure(
            action=action,
            moderator=moderator,
            author=seen.author or DELETED,
            content=None if seen.thing is None else cached_thing(seen.thing),
        )
        reason = ExtractUpdateReason.CONTENT_DELETED if gone else ExtractUpdateReason.NEW
        marker = marker_of(event.id.removeprefix("mod:"))
        body = render_body(disclosure, reason, marker=marker)
        subreddit = self._settings.target_subreddit
        made = post or await self._platform.find_submission(subreddit, marker)
        if made is not None:
            await self._platform.edit(made, body)
            return made
        await self._check_turn(turn)
        title = render_title(action, moderator, event.subreddit.name)
        return await self._platform.submit(subreddit, title, body)

    async def _record(
        self, event: ModAction, moderator: Account, seen: _Lookup, post: str
    ) -> tuple[list[Check], list[Call[Any]]]:
        """Return the checks and writes that record an extract.

        If its subject no longer exists, only the moderator is stored: the extract was published redacted.
        """
        checks, writes = await self._caching(moderator)
        about_person = event.thing.startswith("t2_")
        if (seen.author if about_person else seen.thing) is None:
            return checks, writes
        if seen.author is not None:
            created = seen.thing.created_at if seen.thing else event.at
            more_checks, more_writes = await self._tracking(seen.author, event.thing, created)
            checks += more_checks
            writes += more_writes
            if seen.thing is not None:
                writes.append(CacheHash(event.thing).put(cached_thing(seen.thing)))
        assert event.known is not None  # otherwise the settings left it out
        author = seen.author or DELETED
        writes.append(ModActionSet(event.thing).add(post, self._db.context.now()))
        writes.append(ExtractHash(post).put(extract_of(event.known, moderator.id, author.id, event.thing)))
        entry = LogEntry(
            at=event.at,
            subreddit=event.subreddit.name,
            type=event.known.value,
            actor=moderator.id,
            target=author.id,
            thing=event.thing,
            parent=parent_of(event.thing, seen.thing.permalink) if seen.thing else None,
            reference=event.id.removeprefix("mod:"),
        )
        for more_checks, more_writes in (
            listing(post, entry),
            await self._naming(moderator),
            await self._naming(author),
        ):
            checks += more_checks
            writes += more_writes
        return [*seen.checks, *checks, owned(ModActionSet(event.thing))], writes

    async def _naming(self, account: Account) -> tuple[list[Check], list[Call[Any]]]:
        known = await self._db.run(LogAccount(account.id).get().attempt())
        if isinstance(known, KeywrightError) and not isinstance(known, StoredDataError):
            raise known
        return naming(account, None if isinstance(known, StoredDataError) else known)

    async def _tracking(
        self, author: Account, thing: str, created: datetime
    ) -> tuple[list[Check], list[Call[Any]]]:
        checks, writes = await self._caching(author)
        # Owned, like the other keys that an eraser checks to be empty: on a cluster, too, it must not find
        # them empty while they are being written.
        checks.append(owned(TrackingSet(author.id)))
        writes.append(TrackingSet(author.id).add(thing, created))
        return checks, writes

    async def _caching(self, account: Account) -> tuple[list[Check], list[Call[Any]]]:
        """Return the checks and writes that cache an account, unless its copy is current, and enrol it."""
        if is_special(account.id):
            return [], []
        key, wanted = CacheHash(account.id), cached_account(account)
        enrolment = enrol(account.id, self._db.context.now())
        if await self._extracts.cached(account.id) == wanted:
            return [], [enrolment]
        return [owned(key)], [key.put(wanted), enrolment]

    async def _moderator(self, person: PersonRef) -> Account:
        special = special_account(person.id) or special_named(person.name)
        if special is not None:
            return special
        if person.id:
            return await self._platform.account(person.id) or DELETED
        return await self._platform.account_named(person.name) or DELETED

    async def _commit(self, turn: _Turn, checks: Iterable[Check], writes: Sequence[Call[Any]]) -> bool:
        """Write if the claim and the checks hold. Return False if a check failed: look up and try again."""
        if await self._db.run(commit("record", [turn.held, *checks], writes, subject=turn.claim.event)):
            return True
        await self._check_turn(turn)
        return False

    async def _check_turn(self, turn: _Turn) -> None:
        if not await self._db.run(turn.claim.extend(turn.token, self._hold)):
            raise _LostTurn


def _done(turn: _Turn, at: datetime) -> Call[None]:
    """Return the write of the marker: "the time of the event in ms since the epoch" (the document)."""
    return turn.claim.done((at - EPOCH) // timedelta(milliseconds=1))


def _unchanged(key: CacheHash, cached: AnyCached | None) -> list[Check]:
    """Return the checks that a cached copy is as it was read.

    Only declared members are compared: one that another program added is not in the value, and would fail a
    check of the whole hash at every attempt.
    """
    if cached is None:
        return [absent(key)]
    stored = CacheHash.declaration.encode_members(key, cached)
    names = [field.encode_name.encode() for field in msgspec.structs.fields(cached)]
    return [stored_field_equals(key, name, stored.get(name)) for name in names]
