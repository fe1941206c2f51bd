"""The public log, read from its index: newest first, by subreddit, moderator, action, user and time.

Nothing is remembered between two reads, so an entry that was removed, and a name that was forgotten, is gone
with the next one. The work of a read is bounded: it looks at no more than `MOST_EXAMINED` entries, of the
shortest log that has all entries asked for, and returns the position at which the next read continues.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple, TypeVar

import msgspec

from keywright import Binding, SortedSet, expires_in, gather_list
from keywright.errors import KeywrightError, StoredDataError
from keywright.operations import Steps, procedure
from keywright_openmod.accounts import UNAVAILABLE, is_nobody, special_account, special_named
from keywright_openmod.platform import Account
from keywright_openmod.schema import (
    CACHED_FOR,
    ActionLog,
    CachedComment,
    CachedPost,
    CacheHash,
    Log,
    LogAccount,
    LogEntry,
    LoggedAccount,
    LogHash,
    LogName,
    ModeratorLog,
    SubredditLog,
    UserLog,
    openmod,
)
from keywright_openmod.settings import OpenModSettings

__all__ = [
    "LARGEST_PAGE",
    "LogPage",
    "LogPosition",
    "LogQuery",
    "LoggedAction",
    "bind_to_read",
    "read_action",
    "read_log",
]

T = TypeVar("T")

LARGEST_PAGE = 100
MOST_EXAMINED = 500
CHUNK = 100
# Entries of one millisecond that are searched for the position of a page.
MOST_EQUAL = 10_000


def bind_to_read(prefix: str | None = None) -> Binding:
    """Bind the model for readers of the log, who do not renew the expiry of cached copies."""
    return openmod.bind(prefix=prefix, expiry={CacheHash: expires_in(CACHED_FOR)})


class LogPosition(NamedTuple):
    """The place of an entry in a log: its time, and its post, as times may be equal."""

    at: datetime
    post: str


class LogQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The entries to list. Names are compared in any case; times include both ends."""

    subreddit: str | None = None
    moderator: str | None = None
    action: str | None = None
    user: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    before: LogPosition | None = None
    """List older entries than this one."""
    size: int = 50


class LoggedAction(NamedTuple):
    """An entry with the names of its people, and the cached copy of the submission while there is one."""

    post: str
    entry: LogEntry
    moderator: Account
    user: Account
    content: CachedPost | CachedComment | None


class LogPage(NamedTuple):
    """Entries, newest first, and the position before which older ones may follow."""

    actions: list[LoggedAction]
    next: LogPosition | None


@procedure
def read_log(query: LogQuery, settings: OpenModSettings | None = None) -> Steps[LogPage]:
    """List entries. People whom the settings exclude are not shown, whatever was recorded of them before."""
    resolved = yield _resolved(query)
    if resolved is None:
        return LogPage([], None)
    query, logs = resolved, _logs(resolved)
    counts = yield gather_list(log.count(query.since, query.until) for log in logs)
    shortest = min(zip(counts, logs, strict=True), key=lambda each: each[0])[1]
    found, more = yield _candidates(shortest, query)
    shown: list[LoggedAction] = []
    for start in range(0, len(found), CHUNK):
        shown += yield _named([post for post, _ in found[start : start + CHUNK]], query, settings)
        if len(shown) > query.size:
            shown, last = shown[: query.size], shown[query.size - 1].post
            actions = yield _with_content(shown)
            return LogPage(actions, LogPosition(dict(found)[last], last))
    actions = yield _with_content(shown[: query.size])
    return LogPage(actions, LogPosition(found[-1][1], found[-1][0]) if more else None)


@procedure
def read_action(post: str, settings: OpenModSettings | None = None) -> Steps[LoggedAction | None]:
    """Return an entry, or None if there is none, or none that is shown."""
    named = yield _named([post], LogQuery(), settings)
    found = yield _with_content(named)
    return found[0] if found else None


@procedure
def _resolved(query: LogQuery) -> Steps[LogQuery | None]:
    """Return the query with ids in place of names, or None if it names an account that the log does not."""
    ids = {}
    for role, name in (("moderator", query.moderator), ("user", query.user)):
        if name:
            ids[role] = yield _user_named(name)
            if ids[role] is None:
                return None
    return msgspec.structs.replace(query, **ids)


def _logs(query: LogQuery) -> list[SortedSet[str, datetime]]:
    """Return the logs that each have all entries asked for."""
    logs: list[SortedSet[str, datetime]] = []
    if query.subreddit:
        logs.append(SubredditLog(query.subreddit.lower()))
    if query.action:
        logs.append(ActionLog(query.action))
    if query.moderator:
        logs.append(ModeratorLog(query.moderator))
    if query.user:
        logs.append(UserLog(query.user))
    return logs or [Log()]


@procedure
def _user_named(name: str) -> Steps[str | None]:
    """Return the account with a name, or the special account with an id, if the log may name it."""
    special = special_account(name) or special_named(name)
    if special is not None:
        return None if is_nobody(special.id) else special.id
    user = yield LogName(name.lower()).get()
    known = (yield LogAccount(user).get()) if user is not None else None
    return user if known is not None and known.username.lower() == name.lower() else None


@procedure
def _candidates(
    log: SortedSet[str, datetime], query: LogQuery
) -> Steps[tuple[list[tuple[str, datetime]], bool]]:
    """Return posts and times after the position, newest first, and whether there are more of them."""
    before = query.before
    ends = [each for each in (query.until, before.at if before else None) if each is not None]
    high = min(ends, default=None)
    for offset in range(0, MOST_EQUAL, MOST_EXAMINED):
        page = yield log.range_by_score(
            query.since, high, descending=True, limit=MOST_EXAMINED, offset=offset
        )
        after = [each for each in page if before is None or each[::-1] < before]
        if after or len(page) < MOST_EXAMINED:
            return after, len(page) == MOST_EXAMINED
    assert high is not None  # without a position the first page has something
    older = msgspec.structs.replace(query, before=None, until=high - timedelta(milliseconds=1))
    found: tuple[list[tuple[str, datetime]], bool] = yield _candidates(log, older)
    return found


@procedure
def _named(
    posts: Sequence[str], query: LogQuery, settings: OpenModSettings | None
) -> Steps[list[LoggedAction]]:
    """Return those entries that match and may be shown. Names are read after the entries."""
    stored = yield gather_list(LogHash(post).get().attempt() for post in posts)
    entries = [
        (post, entry) for post, found in zip(posts, stored, strict=True) if (entry := _readable(found))
    ]
    users = sorted({user for _, entry in entries for user in (entry.actor, entry.target)})
    names = yield gather_list(LogAccount(user).get().attempt() for user in users)
    people = {
        user: special_account(user) or _account(user, found) for user, found in zip(users, names, strict=True)
    }
    named = []
    for post, entry in entries:
        moderator, user = people[entry.actor] or UNAVAILABLE, people[entry.target]
        # An account without a name is being erased, or was not looked up yet.
        if user is None or (settings is not None and settings.excludes(moderator.name, user.name)):
            continue
        if _matches(query, entry):
            named.append(LoggedAction(post, entry, moderator, user, None))
    return named


@procedure
def _with_content(named: Sequence[LoggedAction]) -> Steps[list[LoggedAction]]:
    """Add the cached copies."""
    stored = yield gather_list(CacheHash(each.entry.thing).get().attempt() for each in named)
    contents = map(_readable, stored)
    return [
        each._replace(content=content) if isinstance(content, CachedPost | CachedComment) else each
        for each, content in zip(named, contents, strict=True)
    ]


def _matches(query: LogQuery, entry: LogEntry) -> bool:
    """Return whether an entry of one of the logs is in all of them."""
    wanted = (query.subreddit, query.action, query.moderator, query.user)
    found = (entry.subreddit, entry.type, entry.actor, entry.target)
    return all(not each or each.lower() == stored.lower() for each, stored in zip(wanted, found, strict=True))


def _account(user: str, found: LoggedAccount | KeywrightError | None) -> Account | None:
    known = _readable(found)
    return None if known is None else Account(user, known.username, known.is_admin)


def _readable(found: T | KeywrightError | None) -> T | None:
    """Return what is stored, or None if it is malformed. Raise other errors."""
    if isinstance(found, KeywrightError):
        if not isinstance(found, StoredDataError):
            raise found
        return None
    return found
