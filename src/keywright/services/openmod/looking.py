"""Looking at extracts with what is stored: which there are about someone or something, and how one reads."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any

import msgspec

from keywright.engine import AsyncDatabase
from keywright.errors import KeywrightError
from keywright.keyspace import gather
from keywright.models.openmod.accounts import UNAVAILABLE, special_account
from keywright.models.openmod.platform import Account
from keywright.models.openmod.rendering import Disclosure, ExtractUpdateReason, render_body
from keywright.models.openmod.schema import Cache, Extract, ModActions, TrackingSet, UnresolvedAuditError
from keywright.models.openmod.shapes import (
    AnyExtract,
    Audit,
    CachedComment,
    CachedPost,
    CachedUser,
    ModActionType,
    action_of,
    thing_of,
)
from keywright.services.openmod.schema import LocalPost

__all__ = ["Listed", "Shown", "extracts_about", "show"]


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
    for each in things:
        for post, at in await db.run(ModActions(each).range()):
            found, kept = await db.run(gather(Extract(post).get().attempt(), LocalPost(post).get()))
            action = _action(found)
            yield Listed(post, each, at, action.value if action else None, kept.title if kept else None)


async def show(db: AsyncDatabase, post: str) -> Shown | None:
    """An extract; None where there is none. As published where the post is kept here, else rendered."""
    found, kept = await db.run(gather(Extract(post).get().attempt(), LocalPost(post).get()))
    if isinstance(found, KeywrightError) and not isinstance(found, UnresolvedAuditError):
        raise found
    if found is None:
        return None if kept is None else Shown(post, kept.title, kept.body, None)
    stored: AnyExtract | Audit = found.audit if isinstance(found, UnresolvedAuditError) else found
    body = kept.body if kept else await _rendered(db, stored)
    return Shown(post, kept.title if kept else None, body, msgspec.to_builtins(stored))


async def _rendered(db: AsyncDatabase, stored: AnyExtract | Audit) -> str:
    action = _action(stored)
    assert action is not None  # what is stored names one of the actions
    thing = stored.thing_id if isinstance(stored, Audit) else thing_of(stored)
    content = None if thing.startswith("t2_") else await db.run(Cache(thing).get())
    disclosure = Disclosure(
        action=action,
        moderator=Account("", stored.actor)
        if isinstance(stored, Audit)
        else await _account(db, stored.actor),
        author=await _author(db, stored, content),
        content=content if isinstance(content, CachedPost | CachedComment) else None,
    )
    return render_body(disclosure, ExtractUpdateReason.NEW)


async def _moderator(db: AsyncDatabase, stored: AnyExtract | Audit) -> Account:
    return Account("", stored.actor) if isinstance(stored, Audit) else await _account(db, stored.actor)


async def _author(db: AsyncDatabase, stored: AnyExtract | Audit, content: object) -> Account:
    if not isinstance(stored, Audit):
        return await _account(db, stored.target)
    if stored.thing_id.startswith("t2_"):
        return await _account(db, stored.thing_id)
    return await _account(db, getattr(content, "author", None) or UNAVAILABLE.id)


async def _account(db: AsyncDatabase, user: str) -> Account:
    special = special_account(user)
    if special is not None:
        return special
    cached = await db.run(Cache(user).get())
    if not isinstance(cached, CachedUser):
        return UNAVAILABLE
    return Account(user, cached.username, cached.is_admin, cached.is_app)


def _action(found: object) -> ModActionType | None:
    if isinstance(found, UnresolvedAuditError):
        found = found.audit
    if isinstance(found, Audit):
        return action_of(found.type)
    action: ModActionType | None = getattr(found, "type", None)
    return action
