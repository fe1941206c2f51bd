"""Token refresh: the organizer's tokens on a schedule that is stored, those of users over four days."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from http import HTTPStatus

from keywright import AsyncDatabase, Call, Secret
from keywright.errors import EngineError, StoredDataError
from keywright_meetup import tokens
from keywright_meetup.account_links import store_tokens
from keywright_meetup.errors import RefusedChangeError
from keywright_meetup.schema import (
    MeetupId,
    MeetupUsers,
    OrganizerLease,
    Tokens,
    UserTokens,
    UserTokensLease,
    new_id,
)
from keywright_meetup.service.oauth import Granted, OAuthClient
from keywright_service.backoff import Backoff, Sleep, retry
from keywright_service.errors import (
    HttpRefusedError,
    PlatformError,
    PlatformRefusedError,
    PlatformTroubleError,
)
from keywright_service.process_lock import ProcessLock

__all__ = ["TokenRefresher"]

log = logging.getLogger("keywright.meetup")

BUSY = timedelta(minutes=1)
SPREAD_HOURS = 96
STORING_ATTEMPTS = 6
WAITING_ATTEMPTS = 8
BACKOFF = Backoff(0.25, 60.0)
AUTHORIZE = "Run keywright meetup authorize"
# What OAuth 2 answers to a token, or a client, that is not valid: another try needs a person.
INVALID = (HTTPStatus.BAD_REQUEST, HTTPStatus.UNAUTHORIZED)
# Less than the hold of the lease: a refresh that takes longer must not end after that of another bot.
LIMIT_SECONDS = tokens.REFRESH_HOLD.total_seconds() * 0.75


class TokenRefresher:
    """Refreshes under a lease, so that of several bots one uses a refresh token.

    `configured` is a refresh token of the organizer to try where the stored one is missing or refused.
    """

    def __init__(
        self,
        db: AsyncDatabase,
        oauth: OAuthClient,
        clock: Callable[[], datetime],
        *,
        configured: Secret[str] | None = None,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._db = db
        self._oauth = oauth
        self._clock = clock
        self._configured = configured
        self._sleep = sleep
        self._refused: list[Secret[str]] = []
        """The refresh tokens of the organizer that Meetup refused since the last success."""

    async def needs_authorization(self) -> bool:
        """Return whether only a person can help: no refresh token is left that Meetup takes."""
        stored = (await self._db.run(tokens.organizer())).refresh_token
        return all(token in self._refused for token in self._candidates(stored))

    async def organizer_token(self) -> Secret[str]:
        """Return the access token to ask Meetup with."""
        found = (await self._db.run(tokens.organizer())).access_token
        if found is None:
            raise RefusedChangeError("the bot", "has no organizer's tokens", f"{AUTHORIZE}.")
        return found

    async def fresh_token(self, *, instead_of: Secret[str]) -> Secret[str]:
        """Return another access token than this one, which Meetup does not accept any more."""
        for attempt in range(1, WAITING_ATTEMPTS + 1):
            found = await self.organizer_token()
            if found != instead_of:
                return found  # another bot, or another task, was faster
            if await self.refresh_now(instead_of=instead_of):
                return await self.organizer_token()
            await self._sleep(BACKOFF.pause(attempt))
        raise PlatformTroubleError("Meetup", "a refresh for tokens", "another bot is refreshing them")

    async def refresh_when_due(self) -> datetime:
        """Refresh the organizer's tokens if it is time. Return when to look again."""
        now = self._clock()
        due = await self._db.run(tokens.due_time(now))
        if due > now:
            return due
        if not await self.refresh_now():
            return now + BUSY
        return await self._db.run(tokens.due_time(now))

    async def refresh_now(self, *, instead_of: Secret[str] | None = None) -> bool:
        """Refresh the organizer's tokens. Return False if another bot is refreshing them.

        After a failure the next refresh is due in an hour. No request is sent if there is another access
        token than `instead_of` already.
        """
        holder = new_id()
        if not await self._db.run(tokens.begin_refresh(holder)):
            return False
        # Read under the lease: the bot that had it before has stored others.
        old = await self._db.run(tokens.organizer())
        if instead_of is not None and old.access_token != instead_of:
            await self._db.run(OrganizerLease().release(holder))
            return True
        try:
            granted = await self._in_time(self._organizer_granted(old.refresh_token))
        except (PlatformError, RefusedChangeError):
            await self._db.run(tokens.postpone_refresh(holder, self._clock()))
            raise
        finish = tokens.finish_refresh(holder, self._clock(), granted.access_token, granted.refresh_token)
        # After a lost reply the lease is gone with what it guarded.
        if not await self._stored(finish) and await self.organizer_token() != granted.access_token:
            raise PlatformTroubleError("Meetup", "a refresh for tokens", "it took longer than the lease held")
        log.info("refreshed the organizer's tokens")
        return True

    async def _stored(self, store: Call[bool]) -> bool:
        """Store tokens, through outages of Redis: the old ones are invalid, the new ones nowhere else."""
        return await retry(
            lambda: self._db.run(store),
            "store fresh tokens",
            on=EngineError,
            backoff=BACKOFF,
            attempts=STORING_ATTEMPTS,
            sleep=self._sleep,
        )

    def _candidates(self, stored: Secret[str] | None) -> list[Secret[str]]:
        others = [] if self._configured in (None, stored) else [self._configured]
        return [token for token in (stored, *others) if token is not None]

    async def _organizer_granted(self, stored: Secret[str] | None) -> Granted:
        """Return new tokens for the stored refresh token, or else for the configured one."""
        refusal: HttpRefusedError | None = None
        for token in self._candidates(stored):
            try:
                granted = await self._oauth.refresh(token)
            except HttpRefusedError as error:
                if error.status not in INVALID:
                    raise
                refusal = error
                self._refused = [*(each for each in self._refused if each != token), token]
                continue
            if token != stored:
                log.warning("the stored tokens of the organizer are not valid: the configured ones are used")
            self._refused.clear()
            return Granted(granted.access_token, granted.refresh_token or token)
        if refusal is None:
            raise RefusedChangeError("the organizer", "has no refresh token", f"{AUTHORIZE}.")
        remedy = f"{AUTHORIZE}; if that does not help, check the client's id and secret."
        asked = "a refresh of the organizer's tokens"
        raise PlatformRefusedError("Meetup", asked, refusal.reason, remedy) from refusal

    async def _in_time(self, refresh: Awaitable[Granted]) -> Granted:
        try:
            async with asyncio.timeout(LIMIT_SECONDS):
                return await refresh
        except TimeoutError as error:
            raise PlatformTroubleError("Meetup", "a refresh for tokens", "no answer in time") from error

    async def refresh_users(self) -> int:
        """Refresh the tokens of the users whose hour it is. Return how many."""
        now = self._clock()
        hour = (now.toordinal() % (SPREAD_HOURS // 24)) * 24 + now.hour
        users = await self._db.run(MeetupUsers().members())
        refreshed = 0
        for user in sorted(each for each in users if each % SPREAD_HOURS == hour):
            refreshed += await self._refresh_user(user)
        return refreshed

    async def _refresh_user(self, user: MeetupId) -> bool:
        async with ProcessLock(self._db, UserTokensLease(user), tokens.REFRESH_HOLD).held() as held:
            try:
                # Read under the lease: the bot that had it before has stored others.
                old = await self._db.run(UserTokens(user).get()) if held else None
                if old is None:
                    return False
                granted = await self._in_time(self._oauth.refresh(old.refresh_token))
            except (PlatformError, StoredDataError) as error:
                log.warning("the tokens of Meetup user %d stay as they are: %s", user, error)
                return False
            fresh = Tokens(granted.access_token, granted.refresh_token or old.refresh_token)
            return await self._stored(store_tokens(user, fresh))
