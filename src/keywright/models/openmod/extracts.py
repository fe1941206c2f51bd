"""Extracts: read in whatever version they are, rendered again, redacted.

Owns no writes of its own but the upgrade of a v1 audit; what is recorded and what is erased is
decided in `recording` and `erasing`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from keywright.engine import AsyncDatabase
from keywright.errors import KeywrightError
from keywright.keyspace import Call, Upgrade
from keywright.models.openmod.accounts import DELETED, UNAVAILABLE, special_account, special_named
from keywright.models.openmod.platform import Account, Platform, Post, Thing
from keywright.models.openmod.rendering import Disclosure, ExtractUpdateReason, render_body
from keywright.models.openmod.schema import (
    Cache,
    Extract,
    ModActions,
    UnresolvedAuditError,
    audit_of,
    converted,
    is_audit,
)
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

__all__ = [
    "Extracts",
    "Subject",
    "actor_of",
    "author_of",
    "cached_account",
    "cached_thing",
    "extract_as_of",
    "read_extract",
]

PAGE = 50


class Subject(NamedTuple):
    """What is stored about one extract, whatever its version; the moderator as an account."""

    action: ModActionType
    moderator: Account
    target: str
    """The t2 of the person concerned; empty where a v1 audit does not tell."""
    thing: str


async def read_extract(db: AsyncDatabase, platform: Platform, post: str) -> AnyExtract | None:
    """An extract, or None; a v1 audit is upgraded in place first, with what the platform knows.

    A moderator who no longer exists becomes `t2_deleted`; so does an author. Where the submission is
    gone too, the author is `t2_unavailable`. Both readers of an audit that upgrade it at once agree.
    """
    found = await db.run(Extract(post).get().attempt())
    if isinstance(found, UnresolvedAuditError):
        audit = found.audit
        actor = await actor_of(platform, audit.actor)
        return await db.run(extract_as_of(post, actor, await author_of(platform, audit.thing_id)))
    if isinstance(found, KeywrightError):
        raise found
    return found


def extract_as_of(post: str, actor: str, target: str) -> Call[AnyExtract | None]:
    """The read of an extract that upgrades a v1 audit with these people; atomic, and once."""

    def convert(members: Mapping[bytes, bytes], key: Extract) -> AnyExtract:
        return converted(audit_of(members, key), actor, target)

    return Extract(post).get_upgraded(Upgrade("v1", is_audit, convert))


async def actor_of(platform: Platform, name: str) -> str:
    """The t2 of a moderator that a v1 audit names."""
    account = special_named(name) or await platform.account_named(name)
    return (account or DELETED).id


async def author_of(platform: Platform, thing: str) -> str:
    """The t2 of the person that a v1 audit of this thing is about."""
    if thing.startswith("t2_"):
        return thing
    found = await platform.thing(thing)
    if found is None:
        return UNAVAILABLE.id
    return found.author or DELETED.id


class Extracts:
    """The public side of extracts on one database and platform."""

    def __init__(self, db: AsyncDatabase, platform: Platform) -> None:
        self._db = db
        self._platform = platform

    async def render_again(self, thing: str, reason: ExtractUpdateReason) -> int:
        """Bring every public extract about a thing up to date; how many."""
        count = 0
        while page := await self._db.run(ModActions(thing).range(count, count + PAGE - 1)):
            for post, _ in page:
                extract = await read_extract(self._db, self._platform, post)
                if extract is not None:
                    await self._platform.edit(post, await self._body(extract, reason))
            count += len(page)
        return count

    async def redact(self, post: str, reason: ExtractUpdateReason) -> Subject | None:
        """Take out of a public extract what must not be told any more; what is stored about it.

        Stores nothing. Done twice it is the same; a post that is gone needs no redaction.
        """
        subject = await self._subject(post)
        if subject is None:
            await self._platform.edit(post, render_body(None, reason))
            return None
        content = None
        if reason is ExtractUpdateReason.USER_DELETED and not subject.thing.startswith("t2_"):
            content = await self._content(subject.thing)
            reason = reason if content is not None else ExtractUpdateReason.CONTENT_DELETED
        disclosure = Disclosure(
            action=subject.action, moderator=subject.moderator, author=DELETED, content=content
        )
        await self._platform.edit(post, render_body(disclosure, reason))
        return subject

    async def account(self, user: str) -> Account | None:
        """An account: a special one, the cached copy, or what the platform says."""
        special = special_account(user)
        if special is not None:
            return special
        cached = await self._db.run(Cache(user).get())
        if isinstance(cached, CachedUser):
            return Account(user, cached.username, cached.is_admin, cached.is_app)
        return await self._platform.account(user)

    async def _body(self, extract: AnyExtract, reason: ExtractUpdateReason) -> str:
        thing = thing_of(extract)
        disclosure = Disclosure(
            action=extract.type,
            moderator=await self.account(extract.actor) or DELETED,
            author=await self.account(extract.target) or DELETED,
            content=None if thing.startswith("t2_") else await self._content(thing),
        )
        return render_body(disclosure, reason)

    async def _content(self, thing: str) -> CachedPost | CachedComment | None:
        """The cached copy, else the platform's; never stored here, it may belong to a deleted account."""
        cached = await self._db.run(Cache(thing).get())
        if isinstance(cached, CachedPost | CachedComment):
            return cached
        found = await self._platform.thing(thing)
        return None if found is None else cached_thing(found)

    async def _subject(self, post: str) -> Subject | None:
        found = await self._db.run(Extract(post).get().attempt())
        if isinstance(found, UnresolvedAuditError):
            return _subject_of(found.audit)
        if isinstance(found, KeywrightError):
            raise found
        if found is None:
            return None
        moderator = await self.account(found.actor) or DELETED
        return Subject(found.type, moderator, found.target, thing_of(found))


def _subject_of(audit: Audit) -> Subject:
    """No platform is asked: the name is there, and a purge must not wait for an upgrade."""
    action = action_of(audit.type)
    assert action is not None  # the literals of Audit.type are the actions
    target = audit.thing_id if audit.thing_id.startswith("t2_") else ""
    moderator = special_named(audit.actor) or Account("", audit.actor)
    return Subject(action, moderator, target, audit.thing_id)


def cached_thing(thing: Thing) -> CachedPost | CachedComment:
    """A post or comment as it is cached."""
    author = thing.author or DELETED.id
    if isinstance(thing, Post):
        return CachedPost(
            type="post",
            title=thing.title,
            url=thing.url,
            body=thing.body,
            permalink=thing.permalink,
            author=author,
        )
    return CachedComment("comment", thing.body, thing.permalink, author)


def cached_account(account: Account) -> CachedUser:
    return CachedUser("user", account.name, account.is_admin, account.is_app)
