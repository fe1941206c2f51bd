"""The organizer's tokens: stored together, and refreshed by one bot at a time when the stored time comes."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from keywright import Call, Secret, gather
from keywright.errors import StoredDataError
from keywright.operations import Check, Steps, Writes, absent, commit, optimistic
from keywright_meetup.schema import AccessToken, OrganizerLease, RefreshTime, RefreshToken

__all__ = [
    "REFRESH_EVERY",
    "REFRESH_HOLD",
    "RETRY_AFTER",
    "OrganizerTokens",
    "begin_refresh",
    "due_time",
    "finish_refresh",
    "organizer",
    "postpone_refresh",
    "seed_organizer",
    "store_organizer",
]

REFRESH_EVERY = timedelta(days=7)
RETRY_AFTER = timedelta(hours=1)
REFRESH_HOLD = timedelta(seconds=60)


class OrganizerTokens(NamedTuple):
    """The stored tokens of the organizer; each may be missing before the first set-up."""

    access_token: Secret[str] | None
    refresh_token: Secret[str] | None


def organizer() -> Call[OrganizerTokens]:
    """Return the organizer's tokens."""
    return gather(AccessToken().get(), RefreshToken().get()).map(lambda found: OrganizerTokens(*found))


def store_organizer(access_token: Secret[str], refresh_token: Secret[str], due: datetime) -> Call[None]:
    """Set up, or replace, the organizer's tokens and when to refresh them, in one step."""
    return commit("organizer", [], _writes(access_token, refresh_token, due)).map(lambda _: None)


def seed_organizer(access_token: Secret[str], refresh_token: Secret[str], due: datetime) -> Call[bool]:
    """Set up the organizer's tokens if one is missing. Return False, and change nothing, if both exist.

    Of several bots that start at once one does it, so none overwrites tokens that another has refreshed.
    """

    def attempt() -> Steps[bool | None]:
        found = yield organizer()
        keys = (AccessToken(), RefreshToken())
        missing = [key for key, token in zip(keys, found, strict=True) if token is None]
        if not missing:
            return False
        writes = _writes(access_token, refresh_token, due)
        return True if (yield commit("organizer", [absent(key) for key in missing], writes)) else None

    return optimistic("seed organizer", attempt)


def due_time(start: datetime) -> Call[datetime]:
    """Return when the next refresh is due; `start` if no time is stored, or a malformed one."""

    def chosen(found: datetime | Exception | None) -> datetime:
        if isinstance(found, Exception) and not isinstance(found, StoredDataError):
            raise found
        return found if isinstance(found, datetime) else start

    return RefreshTime().get().attempt().map(chosen)


def begin_refresh(token: str, hold: timedelta = REFRESH_HOLD) -> Call[bool]:
    """Take the lease of the refresh. Return False while another bot has it. `hold` is how long it lasts."""
    return OrganizerLease().acquire(token, hold)


def finish_refresh(
    token: str, now: datetime, access_token: Secret[str], refresh_token: Secret[str] | None
) -> Call[bool]:
    """Store the new tokens and when the next refresh is due, and release the lease, in one step.

    Return False, and store nothing, if the lease expired: another bot has, or will have, newer tokens. The
    old refresh token stays if the answer has none. On a cluster the lease and the tokens live in different
    slots: if a process dies between deciding and writing, a recovery writes its tokens.
    """
    return _guarded(token, _writes(access_token, refresh_token, now + REFRESH_EVERY))


def postpone_refresh(token: str, now: datetime) -> Call[bool]:
    """After a refresh that failed, release the lease and try again in an hour."""
    return _guarded(token, [RefreshTime().set(now + RETRY_AFTER)])


def _guarded(token: str, writes: Writes) -> Call[bool]:
    lease = OrganizerLease()
    checks: list[Check] = [lease.held_by(token)]
    return commit("refresh", checks, [*writes, lease.delete()]).map(bool)


def _writes(access_token: Secret[str], refresh_token: Secret[str] | None, due: datetime) -> Writes:
    kept: Writes = [] if refresh_token is None else [RefreshToken().set(refresh_token)]
    return [AccessToken().set(access_token), *kept, RefreshTime().set(due)]
