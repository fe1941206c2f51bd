"""Recording: events become tracked submissions and public extracts, each event once.

An event is claimed, looked up on the platform, and written in one commit that also turns the claim
into the event's marker; so a process that dies has recorded all of it or nothing, and the delivery
that follows starts over. The commit's checks keep late writers out: it fails when the hold ran out,
when the submission was deleted, or when another wrote its cached copy since it was looked up.

Public posts are made before that commit, since their id is part of it. Each carries a marker made of
the event's id, and is looked for by it before it is made: a death in between costs no second post.
What remains is a process that sleeps longer than its hold just as it submits; it may make one.
"""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any, NamedTuple

import msgspec

from keywright import AsyncDatabase, Call, ClaimState, new_token
from keywright.errors import ConflictError, KeywrightError
from keywright.operations import Check, absent, commit, owned, stored_field_equals
from keywright_openmod.accounts import DELETED, is_special, special_account, special_named
from keywright_openmod.enforcement import enrol
from keywright_openmod.erasure import Eraser
from keywright_openmod.events import (
    CommentDelete,
    CommentSubmit,
    CommentUpdate,
    Deletion,
    Event,
    EventSource,
    ModAction,
    Party,
    PostDelete,
    PostSubmit,
    PostUpdate,
)
from keywright_openmod.extracts import Extracts, cached_account, cached_thing
from keywright_openmod.platform import Account, Platform, Thing
from keywright_openmod.renderer import Disclosure, ExtractUpdateReason, render_body, render_title
from keywright_openmod.schema import (
    AnyCached,
    CacheHash,
    EventMarker,
    ExtractHash,
    ModActionSet,
    TrackingSet,
    extract_of,
)
from keywright_openmod.settings import Settings

__all__ = ["Handled", "Outcome", "Recorder"]

HOLD = timedelta(minutes=5)
ATTEMPTS = 8


class Outcome(enum.StrEnum):
    """What became of an event. After BUSY it must be delivered again; after an error, too."""

    RECORDED = "recorded"
    GONE = "gone"
    LEFT_OUT = "left out"
    DUPLICATE = "duplicate"
    BUSY = "busy"


class Handled(NamedTuple):
    """What became of an event, why it was left out, and the public post that was made of it."""

    outcome: Outcome
    reason: str = ""
    post: str | None = None


class _Turn(NamedTuple):
    """Our turn at an event."""

    claim: EventMarker
    token: str

    @property
    def held(self) -> Check:
        return self.claim.held_by(self.token)


class _LostTurn(Exception):  # noqa: N818  # a way out, not an error: caught where turns are taken
    """The hold ran out; whoever has the event now will finish it."""


class _Sighting(NamedTuple):
    """A submission as the platform has it now, and what must not have changed when it is written."""

    thing: Thing | None
    author: Account | None
    checks: list[Check]


class Recorder:
    """Handles the events of one installation. Any number may run on one database."""

    def __init__(
        self, db: AsyncDatabase, platform: Platform, settings: Settings, *, hold: timedelta = HOLD
    ) -> None:
        self._db = db
        self._platform = platform
        self._settings = settings
        self._hold = hold
        self._extracts = Extracts(db, platform)
        self._eraser = Eraser(db, platform)

    async def handle(self, event: Event) -> Handled:
        """Process one event, once. When it raises, nothing is marked: deliver it again."""
        reason = self._leaves_out(event)
        if reason is not None:
            return Handled(Outcome.LEFT_OUT, reason)
        turn = _Turn(EventMarker(event.id), new_token())
        if not await self._db.run(turn.claim.begin(turn.token, self._hold)):
            return await self._taken(turn.claim)
        try:
            return await self._process(event, turn)
        except _LostTurn:
            return await self._taken(turn.claim)
        finally:
            # Frees it unless it became the marker. Where that fails the hold ends by itself.
            with contextlib.suppress(KeywrightError):
                await self._db.run(turn.claim.release(turn.token))

    def _leaves_out(self, event: Event) -> str | None:
        if isinstance(event, ModAction):
            return self._settings.leaves_out(event)
        if isinstance(event, Deletion) and event.source != EventSource.USER:
            return "only what its author deleted falls under the policy"
        return None

    async def _taken(self, claim: EventMarker) -> Handled:
        done = await self._db.run(claim.state()) is ClaimState.DONE
        return Handled(Outcome.DUPLICATE if done else Outcome.BUSY)

    async def _process(self, event: Event, turn: _Turn) -> Handled:
        match event:
            case ModAction():
                return await self._disclose(event, turn)
            case PostSubmit() | CommentSubmit():
                return await self._observe(event.thing, turn, self._done(turn))
            case PostUpdate() | CommentUpdate():
                return await self._update(event.thing, turn)
            case PostDelete() | CommentDelete():
                return await self._delete(event, turn)

    async def _update(self, thing: str, turn: _Turn) -> Handled:
        """Updates leave no marker: two of one submission look alike, and each asks for the present state."""
        handled = await self._observe(thing, turn, [])
        if handled.outcome is Outcome.RECORDED:
            await self._extracts.render_again(
                thing, ExtractUpdateReason.UPDATED, lambda: self._still_ours(turn)
            )
        return handled

    async def _delete(self, event: Deletion, turn: _Turn) -> Handled:
        # The claim keeps later writers out. A commit across slots that began before it must be over
        # before anything is read: a commit of our own on the claim waits for it, or finishes it.
        if not await self._db.run(commit("wait for writers", [turn.held], [])):
            raise _LostTurn
        done = self._done(turn)
        try:
            if not await self._eraser.submission(event.thing, {event.author.id}, [turn.held], done):
                raise _LostTurn
        except ConflictError:
            return Handled(Outcome.BUSY)
        return Handled(Outcome.RECORDED)

    async def _observe(self, thing: str, turn: _Turn, also: Sequence[Call[Any]]) -> Handled:
        """Cache a submission and its author, track it and enrol the author, in one commit."""
        for _ in range(ATTEMPTS):
            seen = await self._look(thing)
            if seen.thing is None or seen.author is None:
                await self._commit(turn, [], also)
                return Handled(Outcome.GONE)
            checks, writes = await self._tracking(seen.author, thing, seen.thing.created_at)
            writes.append(CacheHash(thing).put(cached_thing(seen.thing)))
            if await self._commit(turn, [*seen.checks, *checks], [*writes, *also]):
                return Handled(Outcome.RECORDED)
        raise ConflictError(f"recording {thing}", ATTEMPTS)

    async def _disclose(self, event: ModAction, turn: _Turn) -> Handled:
        """Publish an extract, then record it: tracking, set, extract and marker in one commit."""
        moderator = await self._moderator(event.moderator)
        excluded = self._settings.leaves_out_actor(moderator)
        if excluded is not None:
            return Handled(Outcome.LEFT_OUT, excluded)
        post = None
        for _ in range(ATTEMPTS):
            seen = await self._concerned(event)
            post = await self._publish(event, moderator, seen, turn, post)
            checks, writes = await self._record(event, moderator, seen, post)
            if await self._commit(turn, checks, [*writes, *self._done(turn)]):
                return Handled(Outcome.RECORDED, post=post)
        raise ConflictError(f"recording {event.id}", ATTEMPTS)

    async def _concerned(self, event: ModAction) -> _Sighting:
        if not event.thing.startswith("t2_"):
            return await self._look(event.thing)
        return _Sighting(None, await self._platform.account(event.thing), [])

    async def _look(self, thing: str) -> _Sighting:
        deleted = EventMarker(f"delete:{thing}")
        cached = await self._extracts.cached(thing)
        state = await self._db.run(deleted.state())
        checks = [absent(deleted), *_unchanged(CacheHash(thing), cached)]
        found = await self._platform.thing(thing) if state is ClaimState.FREE else None
        author = await self._platform.account(found.author) if found and found.author else None
        return _Sighting(found, author, checks if state is ClaimState.FREE else [])

    async def _publish(
        self, event: ModAction, moderator: Account, seen: _Sighting, turn: _Turn, post: str | None
    ) -> str:
        """The public post of an event with its present content; made unless there is one already."""
        action = event.known
        assert action is not None  # the settings left others out
        about_person = event.thing.startswith("t2_")
        gone = seen.thing is None and not about_person
        disclosure = Disclosure(
            action=action,
            moderator=moderator,
            author=seen.author or DELETED,
            content=None if seen.thing is None else cached_thing(seen.thing),
        )
        reason = ExtractUpdateReason.CONTENT_DELETED if gone else ExtractUpdateReason.NEW
        marker = f"openmod-{event.id.removeprefix('mod:')}"
        body = render_body(disclosure, reason, marker=marker)
        subreddit = self._settings.target_subreddit
        made = post or await self._platform.find_submission(subreddit, marker)
        if made is not None:
            await self._platform.edit(made, body)
            return made
        await self._still_ours(turn)
        title = render_title(action, moderator, event.subreddit.name)
        return await self._platform.submit(subreddit, title, body)

    async def _record(
        self, event: ModAction, moderator: Account, seen: _Sighting, post: str
    ) -> tuple[list[Check], list[Call[Any]]]:
        """What is kept of an extract. Of what is gone already nothing is: it was redacted at once."""
        checks, writes = await self._knowing(moderator)
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
        assert event.known is not None  # the settings left others out
        extract = extract_of(event.known, moderator.id, (seen.author or DELETED).id, event.thing)
        writes.append(ModActionSet(event.thing).add(post, self._db.context.now()))
        writes.append(ExtractHash(post).put(extract))
        return [*seen.checks, *checks, owned(ModActionSet(event.thing))], writes

    async def _tracking(
        self, author: Account, thing: str, created: Any
    ) -> tuple[list[Check], list[Call[Any]]]:
        checks, writes = await self._knowing(author)
        # Owned, as are the other keys by which an eraser tells that nothing is left: on a cluster too it
        # must not find them empty while they are being written.
        checks.append(owned(TrackingSet(author.id)))
        writes.append(TrackingSet(author.id).add(thing, created))
        return checks, writes

    async def _knowing(self, account: Account) -> tuple[list[Check], list[Call[Any]]]:
        """Cache an account, unless that is how it is cached, and have it checked for compliance."""
        if is_special(account.id):
            return [], []
        key, wanted = CacheHash(account.id), cached_account(account)
        enrolment = enrol(account.id, self._db.context.now())
        if await self._extracts.cached(account.id) == wanted:
            return [], [enrolment]
        return [owned(key)], [key.put(wanted), enrolment]

    async def _moderator(self, party: Party) -> Account:
        special = special_account(party.id) or special_named(party.name)
        if special is not None:
            return special
        if party.id:
            return await self._platform.account(party.id) or DELETED
        return await self._platform.account_named(party.name) or DELETED

    async def _commit(self, turn: _Turn, checks: Iterable[Check], writes: Sequence[Call[Any]]) -> bool:
        """Write, if it is still our turn and nothing changed; False when something did: look again."""
        if await self._db.run(commit(f"record {turn.claim.event}", [turn.held, *checks], writes)):
            return True
        await self._still_ours(turn)
        return False

    async def _still_ours(self, turn: _Turn) -> None:
        if not await self._db.run(turn.claim.extend(turn.token, self._hold)):
            raise _LostTurn

    def _done(self, turn: _Turn) -> list[Call[Any]]:
        return [turn.claim.done(self._db.context.now_ms())]


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
