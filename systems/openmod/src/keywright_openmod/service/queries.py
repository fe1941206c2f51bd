"""Looking at extracts with what is stored: which there are about someone or something, and how one reads."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import Any

import msgspec

from keywright import AsyncDatabase, gather, gather_list
from keywright.errors import KeywrightError
from keywright_openmod.accounts import UNAVAILABLE, account_named, special_account
from keywright_openmod.actions import ModActionType
from keywright_openmod.extracts import account_of
from keywright_openmod.platform import Account
from keywright_openmod.renderer import Disclosure, ExtractUpdateReason, render_body
from keywright_openmod.schema import (
    AnyCached,
    AnyExtract,
    Audit,
    CachedUser,
    CacheHash,
    ExtractHash,
    ModActionSet,
    TrackingSet,
    UnresolvedAuditError,
    thing_of,
)
from keywright_openmod.service.schema import LocalPost

__all__ = ["Listed", "Shown", "extracts_about", "show"]

PAGE = 500


class Listed(msgspec.Struct, frozen=True, omit_defaults=True):
    """An extract about something: the public post, what it is about, and since when."""

    post: str
    thing: str
    at: datetime
    type: str | None = None
    title: str | None = None
    """Where the post is kept here; Reddit has it otherwise."""


class Shown(msgspec.Struct, frozen=True):
    """How an extract reads, and what it was made of; nothing any more of one that was redacted."""

    post: str
    title: str | None
    body: str
    extract: dict[str, Any] | None


async def extracts_about(db: AsyncDatabase, thing: str) -> AsyncIterator[Listed]:
    """Those about a post, a comment, or a person (t2): then also about everything the person submitted."""
    things = [thing]
    if thing.startswith("t2_"):
        things += [each for each in await db.run(TrackingSet(thing).members()) if each != thing]
    for start in range(0, len(things), PAGE):
        page = things[start : start + PAGE]
        disclosed = await db.run(gather_list(ModActionSet(each).range() for each in page))
        posts = [(each, post, at) for each, found in zip(page, disclosed, strict=True) for post, at in found]
        for listed in await _listed(db, posts):
            yield listed


async def _listed(db: AsyncDatabase, posts: Sequence[tuple[str, str, datetime]]) -> list[Listed]:
    stored = await db.run(
        gather_list(gather(ExtractHash(post).get().attempt(), LocalPost(post).get()) for _, post, _ in posts)
    )
    listed = []
    for (thing, post, at), (found, kept) in zip(posts, stored, strict=True):
        action = _action(found)
        listed.append(Listed(post, thing, at, action.value if action else None, kept.title if kept else None))
    return listed


async def show(db: AsyncDatabase, post: str) -> Shown | None:
    """An extract; None where there is none. As published where the post is kept here, else rendered."""
    found, kept = await db.run(gather(ExtractHash(post).get().attempt(), LocalPost(post).get()))
    if isinstance(found, KeywrightError) and not isinstance(found, UnresolvedAuditError):
        raise found
    if found is None:
        return None if kept is None else Shown(post, kept.title, kept.body, None)
    stored: AnyExtract | Audit = found.audit if isinstance(found, UnresolvedAuditError) else found
    body = kept.body if kept else await _rendered(db, stored)
    return Shown(post, kept.title if kept else None, body, msgspec.to_builtins(stored))


async def _rendered(db: AsyncDatabase, stored: AnyExtract | Audit) -> str:
    thing = stored.thing_id if isinstance(stored, Audit) else thing_of(stored)
    content = await db.run(CacheHash(thing).get())
    disclosure = Disclosure(
        action=stored.action if isinstance(stored, Audit) else stored.type,
        moderator=await _moderator(db, stored),
        author=await _author(db, stored, content),
        content=None if isinstance(content, CachedUser) else content,
    )
    return render_body(disclosure, ExtractUpdateReason.NEW)


async def _moderator(db: AsyncDatabase, stored: AnyExtract | Audit) -> Account:
    return account_named(stored.actor) if isinstance(stored, Audit) else await _account(db, stored.actor)


async def _author(db: AsyncDatabase, stored: AnyExtract | Audit, content: AnyCached | None) -> Account:
    if not isinstance(stored, Audit):
        return await _account(db, stored.target)
    if stored.thing_id.startswith("t2_"):
        return await _account(db, stored.thing_id)
    return await _account(db, getattr(content, "author", None) or UNAVAILABLE.id)


async def _account(db: AsyncDatabase, user: str) -> Account:
    return special_account(user) or account_of(user, await db.run(CacheHash(user).get())) or UNAVAILABLE


def _action(found: AnyExtract | KeywrightError | None) -> ModActionType | None:
    if isinstance(found, UnresolvedAuditError):
        return found.audit.action
    return None if found is None or isinstance(found, KeywrightError) else found.type
