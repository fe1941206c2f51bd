"""Queries of stored extracts: list those about a thing or a user, and show one."""

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
    AnyExtract,
    AuditRecord,
    CachedUser,
    CacheHash,
    ExtractHash,
    ModActionSet,
    TrackingSet,
    UnresolvedAuditError,
    thing_of,
)
from keywright_openmod.service.schema import LocalPost

__all__ = ["ListedExtract", "ShownExtract", "extracts_about", "show_extract"]

PAGE = 500


class ListedExtract(msgspec.Struct, frozen=True, omit_defaults=True):
    """An extract in a list: the public post, its subject, and the time at which it was recorded."""

    post: str
    thing: str
    at: datetime
    type: str | None = None
    title: str | None = None
    """Only of a local post: otherwise Reddit has it."""


class ShownExtract(msgspec.Struct, frozen=True):
    """The text of an extract, and its record, which is None after a redaction."""

    post: str
    title: str | None
    body: str
    extract: dict[str, Any] | None


async def extracts_about(db: AsyncDatabase, thing: str) -> AsyncIterator[ListedExtract]:
    """Yield the extracts about a post, a comment or a user; for a user also those about their submissions."""
    things = [thing]
    if thing.startswith("t2_"):
        things += [each for each in await db.run(TrackingSet(thing).members()) if each != thing]
    for start in range(0, len(things), PAGE):
        page = things[start : start + PAGE]
        disclosed = await db.run(gather_list(ModActionSet(each).range() for each in page))
        posts = [(each, post, at) for each, found in zip(page, disclosed, strict=True) for post, at in found]
        for listed in await _listed(db, posts):
            yield listed


async def _listed(db: AsyncDatabase, posts: Sequence[tuple[str, str, datetime]]) -> list[ListedExtract]:
    stored = await db.run(
        gather_list(gather(ExtractHash(post).get().attempt(), LocalPost(post).get()) for _, post, _ in posts)
    )
    listed = []
    for (thing, post, at), (found, local) in zip(posts, stored, strict=True):
        if isinstance(found, UnresolvedAuditError):
            kind: str | None = found.audit.type
        else:
            kind = None if found is None or isinstance(found, KeywrightError) else found.type.value
        listed.append(ListedExtract(post, thing, at, kind, local.title if local else None))
    return listed


async def show_extract(db: AsyncDatabase, post: str) -> ShownExtract | None:
    """Return an extract, or None: as published if the post is local, else rendered from stored data."""
    found, local = await db.run(gather(ExtractHash(post).get().attempt(), LocalPost(post).get()))
    if isinstance(found, KeywrightError) and not isinstance(found, UnresolvedAuditError):
        raise found
    if found is None:
        return None if local is None else ShownExtract(post, local.title, local.body, None)
    stored: AnyExtract | AuditRecord = found.audit if isinstance(found, UnresolvedAuditError) else found
    body = local.body if local else await _rendered(db, stored)
    return ShownExtract(post, local.title if local else None, body, msgspec.to_builtins(stored))


async def _rendered(db: AsyncDatabase, stored: AnyExtract | AuditRecord) -> str:
    thing = stored.thing_id if isinstance(stored, AuditRecord) else thing_of(stored)
    content = await db.run(CacheHash(thing).get())
    if not isinstance(stored, AuditRecord):
        action: ModActionType = stored.type
        moderator, target = await _account(db, stored.actor), stored.target
    else:
        action, moderator = stored.action, account_named(stored.actor)
        # v1 does not have the author of a submission, but its cached copy does.
        is_user = stored.thing_id.startswith("t2_")
        target = stored.thing_id if is_user else getattr(content, "author", None) or UNAVAILABLE.id
    disclosure = Disclosure(
        action=action,
        moderator=moderator,
        author=await _account(db, target),
        content=None if isinstance(content, CachedUser) else content,
    )
    return render_body(disclosure, ExtractUpdateReason.NEW)


async def _account(db: AsyncDatabase, user: str) -> Account:
    return special_account(user) or account_of(user, await db.run(CacheHash(user).get())) or UNAVAILABLE
