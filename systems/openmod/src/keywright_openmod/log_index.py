"""The index of the public log: the writes that list an extract, remove it, and remember or forget a name.

An extract is listed in the commit that records it. It is removed before its public post is redacted, because
the log is ours and needs no answer of the platform. Names are stored once for each account: without its name
an account is not shown, and entries about it are not either.
"""

from __future__ import annotations

import re
from typing import Any

from keywright import Call, SortedSet, gather
from keywright.errors import StoredDataError
from keywright.operations import Check, Steps, absent, commit, exists, owned, procedure
from keywright_openmod.accounts import is_nobody, is_special
from keywright_openmod.platform import Account
from keywright_openmod.schema import (
    ActionLog,
    Log,
    LogAccount,
    LogEntry,
    LoggedAccount,
    LogHash,
    LogName,
    ModeratorLog,
    SubredditLog,
    UserLog,
)

__all__ = ["forget_name", "keep_name", "listing", "naming", "parent_of", "unlist", "unlisting"]

_post_of_comment = re.compile(r"/comments/([0-9a-z]+)/").search


def parent_of(thing: str, permalink: str) -> str | None:
    """Return the post of a comment by its permalink. Titles, which permalinks contain, are not kept."""
    match = _post_of_comment(permalink) if thing.startswith("t1_") else None
    return None if match is None else f"t3_{match[1]}"


def _logs(entry: LogEntry) -> list[SortedSet[str, Any]]:
    people: list[tuple[type[ModeratorLog | UserLog], str]] = [
        (ModeratorLog, entry.actor),
        (UserLog, entry.target),
    ]
    return [
        Log(),
        SubredditLog(entry.subreddit.lower()),
        ActionLog(entry.type),
        *(log(user) for log, user in people if not is_nobody(user)),
    ]


def listing(post: str, entry: LogEntry) -> tuple[list[Check], list[Call[Any]]]:
    """Return the checks and writes that list an extract, for the commit that records it."""
    logs = _logs(entry)
    writes = [LogHash(post).put(entry), *(log.add(post, entry.at) for log in logs)]
    # Owned, because an eraser checks that the logs of an account are empty.
    return [owned(log) for log in logs[3:]], writes


def unlisting(post: str, entry: LogEntry) -> list[Call[Any]]:
    """Return the writes that remove an extract from the log."""
    return [LogHash(post).delete(), *(log.remove(post) for log in _logs(entry))]


@procedure
def unlist(post: str) -> Steps[None]:
    """Remove an extract from the log. A malformed entry is removed as far as it is shown."""
    entry = yield LogHash(post).get().attempt()
    if isinstance(entry, LogEntry):
        yield commit("unlist", [], unlisting(post, entry), subject=post)
    elif isinstance(entry, StoredDataError):
        yield commit("unlist", [], [LogHash(post).delete(), Log().remove(post)], subject=post)
    elif entry is not None:
        raise entry


def naming(account: Account, known: LoggedAccount | None) -> tuple[list[Check], list[Call[Any]]]:
    """Return the checks and writes that let the log name an account; `known` is its stored name."""
    name = LoggedAccount(account.name, account.is_admin)
    if is_special(account.id) or not account.name or name == known:
        return [], []
    lower = account.name.lower()
    former = [] if known is None else [LogName(each).delete() for each in {known.username.lower()} - {lower}]
    writes = [*former, LogAccount(account.id).put(name), LogName(lower).set(account.id)]
    return [owned(LogAccount(account.id))], writes


@procedure
def keep_name(account: Account) -> Steps[None]:
    """Remember the name of an existing account while the log has entries with it, else forget it."""
    moderated, concerned = ModeratorLog(account.id), UserLog(account.id)
    known, *listed = yield gather(LogAccount(account.id).get(), moderated.exists(), concerned.exists())
    if not any(listed):
        if known is not None:
            yield _forgetting(account.id, known, [absent(moderated), absent(concerned)])
        return
    checks, writes = naming(account, known)
    if writes:
        unless_erased = exists(moderated if listed[0] else concerned)
        yield commit("name", [*checks, unless_erased], writes, subject=account.id)


@procedure
def forget_name(user: str) -> Steps[None]:
    """Forget the name of an account: the log shows neither it nor entries about it any more."""
    known = yield LogAccount(user).get().attempt()
    if isinstance(known, LoggedAccount):
        yield _forgetting(user, known, [])
    elif isinstance(known, StoredDataError):
        yield LogAccount(user).delete()
    elif known is not None:
        raise known


@procedure
def _forgetting(user: str, known: LoggedAccount, checks: list[Check]) -> Steps[None]:
    name = LogName(known.username.lower())
    holder = yield name.get()
    searched = [name.delete()] if holder == user else []
    yield commit("forget", checks, [LogAccount(user).delete(), *searched], subject=user)
