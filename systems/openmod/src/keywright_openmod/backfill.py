"""The backfill: extracts of earlier versions and of other programs get what a new extract has.

Their moderator and their user are enrolled for compliance checks, the sets lead from the user to the extract,
so that it is found when the account is deleted, and the public log lists it. An extract with an entry in the
log has all of that, and costs one lookup.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from keywright import AsyncDatabase, Call, gather, gather_list
from keywright.operations import Check, absent, commit, owned, stored_field_equals
from keywright_openmod.accounts import is_special
from keywright_openmod.enforcement import enrol
from keywright_openmod.extracts import account_of
from keywright_openmod.log_index import listing, naming, parent_of
from keywright_openmod.platform import Platform
from keywright_openmod.schema import (
    AnyExtract,
    CachedComment,
    CachedPost,
    CachedUser,
    CacheHash,
    EventMarker,
    ExtractHash,
    LogAccount,
    LogEntry,
    LogHash,
    ModActionSet,
    TrackingSet,
    thing_of,
)

__all__ = ["complete"]


async def complete(
    db: AsyncDatabase, platform: Platform | None, posts: Sequence[str], subreddit: str | None
) -> int:
    """Complete these extracts, those that can be read, and return how many the public log lists now.

    The log lists none without a subreddit, and none whose submission is neither cached nor found on the
    platform: it may be deleted, and its check will tell.
    """
    known = await db.run(gather_list(LogHash(post).exists() for post in posts))
    unlisted = [post for post, listed in zip(posts, known, strict=True) if not listed]
    stored = await db.run(gather_list(ExtractHash(post).get().attempt() for post in unlisted))
    extracts = [
        (post, found)
        for post, found in zip(unlisted, stored, strict=True)
        if isinstance(found, AnyExtract)  # others are reported by the upgrade
    ]
    permalinks: list[str | None] = [None] * len(extracts)
    if subreddit is not None:
        lookups = (_permalink(db, platform, thing_of(extract)) for _, extract in extracts)
        permalinks = await asyncio.gather(*lookups)
    listed = 0
    for (post, extract), permalink in zip(extracts, permalinks, strict=True):
        done = await _complete(db, post, extract, subreddit, permalink)
        listed += done and permalink is not None
    return listed


async def _complete(
    db: AsyncDatabase, post: str, extract: AnyExtract, subreddit: str | None, permalink: str | None
) -> bool:
    """Complete one extract. Return False if it was changed or deleted meanwhile."""
    thing = thing_of(extract)
    at = await db.run(ModActionSet(thing).score(post)) or db.context.now()
    checks, writes = _reaching(post, extract, at, db.context.now())
    if subreddit is not None and permalink is not None:
        entry = LogEntry(
            at=at,
            subreddit=subreddit,
            type=extract.type.value,
            actor=extract.actor,
            target=extract.target,
            thing=thing,
            parent=parent_of(thing, permalink),
        )
        names = await asyncio.gather(*(_naming(db, user) for user in (extract.actor, extract.target)))
        for more_checks, more_writes in (listing(post, entry), *names):
            checks += more_checks
            writes += more_writes
    unchanged = [
        stored_field_equals(ExtractHash(post), field.encode(), value.encode())
        for field, value in (("type", extract.type), ("actor", extract.actor), ("target", extract.target))
    ]
    not_deleted = absent(EventMarker(f"delete:{thing}"))
    return bool(await db.run(commit("complete", [*unchanged, not_deleted, *checks], writes, subject=post)))


def _reaching(
    post: str, extract: AnyExtract, at: datetime, now: datetime
) -> tuple[list[Check], list[Call[Any]]]:
    """Return the checks and writes by which the deletion of either account leads to the extract."""
    thing = thing_of(extract)
    checks = [owned(ModActionSet(thing))]
    writes: list[Call[Any]] = [ModActionSet(thing).add(post, at, when="absent")]
    if not is_special(extract.target):
        checks.append(owned(TrackingSet(extract.target)))
        writes.append(TrackingSet(extract.target).add(thing, at, when="absent"))
    people = {extract.actor, extract.target}
    writes += [enrol(user, now) for user in sorted(people) if not is_special(user)]
    return checks, writes


async def _permalink(db: AsyncDatabase, platform: Platform | None, thing: str) -> str | None:
    """Return the permalink of an existing submission, "" for a user, None if it may be deleted."""
    if thing.startswith("t2_"):
        return ""
    cached = await db.run(CacheHash(thing).get().attempt())
    if isinstance(cached, CachedPost | CachedComment):
        return cached.permalink
    found = None if platform is None else await platform.thing(thing)
    return None if found is None else found.permalink


async def _naming(db: AsyncDatabase, user: str) -> tuple[list[Check], list[Call[Any]]]:
    """Return the checks and writes of a cached name. Other names come with the daily check of the account."""
    known, cached = await db.run(gather(LogAccount(user).get(), CacheHash(user).get().attempt()))
    account = account_of(user, cached) if isinstance(cached, CachedUser) else None
    return ([], []) if account is None else naming(account, known)
