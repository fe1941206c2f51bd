"""Extracts: read in whatever version they are, rendered again, redacted.

Owns no writes of its own but the upgrade of a v1 audit; what is recorded and what is erased is
decided in `recording` and `erasing`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple

from keywright import AsyncDatabase, Call, Upgrade
from keywright.errors import KeywrightError, StoredDataError
from keywright_openmod.accounts import (
    DELETED,
    UNAVAILABLE,
    account_named,
    special_account,
    special_named,
)
from keywright_openmod.actions import ModActionType
from keywright_openmod.platform import Account, Platform, Post, Thing
from keywright_openmod.renderer import Disclosure, ExtractUpdateReason, render_body
from keywright_openmod.schema import (
    AnyCached,
    AnyExtract,
    Audit,
    CachedComment,
    CachedPost,
    CachedUser,
    CacheHash,
    EventMarker,
    ExtractHash,
    ModActionSet,
    UnresolvedAuditError,
    audit_of,
    extract_of,
    is_audit,
    thing_of,
)
from keywright_service.errors import PlatformRefusedError

__all__ = [
    "Extracts",
    "Subject",
    "account_of",
    "actor_of",
    "author_of",
    "cached_account",
    "cached_thing",
    "extract_as_of",
    "read_extract",
    "rendering",
]

PAGE = 50


def rendering(thing: str) -> EventMarker:
    """What is held while public extracts about a thing are edited: an update's claim, and an eraser's.

    Without it an update that rendered before a deletion would publish after it what was redacted, and
    nothing would lead to that post any more.
    """
    return EventMarker(f"update:{thing}")


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
    found = await db.run(ExtractHash(post).get().attempt())
    if isinstance(found, UnresolvedAuditError):
        audit = found.audit
        actor = await actor_of(platform, audit.actor)
        return await db.run(extract_as_of(post, actor, await author_of(platform, audit.thing_id)))
    if isinstance(found, KeywrightError):
        raise found
    return found


def extract_as_of(post: str, actor: str, target: str) -> Call[AnyExtract | None]:
    """The read of an extract that upgrades a v1 audit with these people; atomic, and once."""

    def convert(members: Mapping[bytes, bytes], key: ExtractHash) -> AnyExtract:
        audit = audit_of(members, key)
        return extract_of(audit.action, actor, target, audit.thing_id)

    return ExtractHash(post).get_upgraded(Upgrade("v1", is_audit, convert))


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

    async def render_again(
        self, thing: str, reason: ExtractUpdateReason, still_ours: Callable[[], Awaitable[None]]
    ) -> None:
        """Bring every public extract about a thing up to date. Before each edit `still_ours` may raise.

        The caller holds `rendering(thing)`: else it might undo a redaction. An extract that cannot be edited
        does not keep the others, and is raised in the end; one that cannot be read stays as it is.
        """
        count = 0
        refusal: PlatformRefusedError | None = None
        while page := await self._db.run(ModActionSet(thing).range(count, count + PAGE - 1)):
            for post, _ in page:
                try:
                    await self._render(post, reason, still_ours)
                except PlatformRefusedError as error:
                    refusal = refusal or error
                except StoredDataError:
                    continue
            count += len(page)
        if refusal is not None:
            raise refusal

    async def _render(
        self, post: str, reason: ExtractUpdateReason, still_ours: Callable[[], Awaitable[None]]
    ) -> None:
        extract = await read_extract(self._db, self._platform, post)
        if extract is not None:
            body = await self._body(extract, reason)
            await still_ours()
            await self._platform.edit(post, body)

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
        cached = await self.cached(user)
        return account_of(user, cached) or await self._platform.account(user)

    async def cached(self, thing: str) -> AnyCached | None:
        """A cached copy. One that cannot be read is dropped, since it is only a copy: looks keep it alive."""
        found = await self._db.run(CacheHash(thing).get().attempt())
        if isinstance(found, StoredDataError):
            await self._db.run(CacheHash(thing).delete())
            return None
        if isinstance(found, KeywrightError):
            raise found
        return found

    async def _body(self, extract: AnyExtract, reason: ExtractUpdateReason) -> str:
        thing = thing_of(extract)
        disclosure = Disclosure(
            action=extract.type,
            moderator=await self._person(extract.actor),
            author=await self._person(extract.target),
            content=None if thing.startswith("t2_") else await self._content(thing),
        )
        return render_body(disclosure, reason)

    async def _content(self, thing: str) -> CachedPost | CachedComment | None:
        """The cached copy, else the platform's; never stored here, it may belong to a deleted account."""
        cached = await self.cached(thing)
        if isinstance(cached, CachedPost | CachedComment):
            return cached
        found = await self._platform.thing(thing)
        return None if found is None else cached_thing(found)

    async def _subject(self, post: str) -> Subject | None:
        """None where nothing is stored, or nothing that can be read: then nothing can be told."""
        found = await self._db.run(ExtractHash(post).get().attempt())
        if isinstance(found, UnresolvedAuditError):
            return _subject_of(found.audit)
        if found is None or isinstance(found, StoredDataError):
            return None
        if isinstance(found, KeywrightError):
            raise found
        return Subject(found.type, await self._person(found.actor), found.target, thing_of(found))

    async def _person(self, user: str) -> Account:
        """Whoever that is: where nobody may tell, the extract must not wait for it for ever."""
        try:
            return await self.account(user) or DELETED
        except PlatformRefusedError:
            return UNAVAILABLE


def _subject_of(audit: Audit) -> Subject:
    """No platform is asked: the name is there, and a purge must not wait for an upgrade."""
    target = audit.thing_id if audit.thing_id.startswith("t2_") else ""
    return Subject(audit.action, account_named(audit.actor), target, audit.thing_id)


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


def account_of(user: str, cached: AnyCached | None) -> Account | None:
    """An account by its cached copy; None when that is none."""
    if not isinstance(cached, CachedUser):
        return None
    return Account(user, cached.username, cached.is_admin, cached.is_app)


def cached_account(account: Account) -> CachedUser:
    return CachedUser("user", account.name, account.is_admin, account.is_app)
