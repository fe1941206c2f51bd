"""Public extracts: read in any version, rendered again after an update, redacted after a deletion.

The only write to Redis here is the upgrade of a v1 audit. `recorder` decides what is stored, `erasure` what
is deleted.
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
    CachedComment,
    CachedPost,
    CachedUser,
    CacheHash,
    EventMarker,
    ExtractHash,
    LogEntry,
    LogHash,
    ModActionSet,
    UnresolvedAuditError,
    audit_of,
    extract_of,
    is_audit,
    thing_of,
)
from keywright_service.errors import PlatformRefusedError

__all__ = [
    "PublicExtracts",
    "Subject",
    "account_of",
    "actor_of",
    "author_of",
    "cached_account",
    "cached_thing",
    "marker_of",
    "read_extract",
    "read_upgraded",
    "render_lock",
]

PAGE = 50


def render_lock(thing: str) -> EventMarker:
    """Return the claim to hold while public extracts about a thing are edited.

    Without it, an update that rendered an extract before a deletion could publish the deleted content after
    it was redacted, and no key would lead to that post any more.
    """
    return EventMarker(f"update:{thing}")


def marker_of(reference: str) -> str:
    """Return the text in a public post by which it is found, given the hash of its event."""
    return f"openmod-{reference}"


class Subject(NamedTuple):
    """The stored data of one extract in any version, with the moderator as an account."""

    action: ModActionType
    moderator: Account
    target: str
    """The t2 of the user concerned; empty if a v1 audit does not name them."""
    thing: str


async def read_extract(db: AsyncDatabase, platform: Platform, post: str) -> AnyExtract | None:
    """Return an extract, or None. Upgrade a v1 audit in place first, with ids from the platform.

    A moderator or author who no longer exists becomes `t2_deleted`, the author of a submission that no longer
    exists `t2_unavailable`. Two readers that upgrade an audit at once agree.
    """
    found = await db.run(ExtractHash(post).get().attempt())
    if isinstance(found, UnresolvedAuditError):
        audit = found.audit
        actor = await actor_of(platform, audit.actor)
        return await db.run(read_upgraded(post, actor, await author_of(platform, audit.thing_id)))
    if isinstance(found, KeywrightError):
        raise found
    return found


def read_upgraded(post: str, actor: str, target: str) -> Call[AnyExtract | None]:
    """Read an extract; upgrade a v1 audit with these ids first, by compare-and-set."""

    def upgraded(members: Mapping[bytes, bytes], key: ExtractHash) -> AnyExtract:
        audit = audit_of(members, key)
        return extract_of(audit.action, actor, target, audit.thing_id)

    return ExtractHash(post).get_upgraded(Upgrade("v1", is_audit, upgraded))


async def actor_of(platform: Platform, name: str) -> str:
    """Return the t2 of a moderator whom a v1 audit names."""
    account = special_named(name) or await platform.account_named(name)
    return (account or DELETED).id


async def author_of(platform: Platform, thing: str) -> str:
    """Return the t2 of the user whom a v1 audit of this thing concerns."""
    if thing.startswith("t2_"):
        return thing
    found = await platform.thing(thing)
    if found is None:
        return UNAVAILABLE.id
    return found.author or DELETED.id


class PublicExtracts:
    """The public extracts of one database, on one platform."""

    def __init__(self, db: AsyncDatabase, platform: Platform) -> None:
        self._db = db
        self._platform = platform

    async def render_again(
        self, thing: str, reason: ExtractUpdateReason, check_turn: Callable[[], Awaitable[None]]
    ) -> None:
        """Render every public extract about a thing again. `check_turn` may raise before each edit.

        The marker stays, so that the post is found after its record was lost, and no second one is made.

        The caller must hold `render_lock(thing)`. If an extract cannot be edited, the others are, and the
        refusal is raised at the end. An extract that cannot be read stays as it is.
        """
        count = 0
        refusal: PlatformRefusedError | None = None
        while page := await self._db.run(ModActionSet(thing).range(count, count + PAGE - 1)):
            for post, _ in page:
                try:
                    await self.render(post, reason, check_turn)
                except PlatformRefusedError as error:
                    refusal = refusal or error
                except StoredDataError:
                    continue
            count += len(page)
        if refusal is not None:
            raise refusal

    async def render(
        self, post: str, reason: ExtractUpdateReason, check_turn: Callable[[], Awaitable[None]]
    ) -> None:
        """Render one public extract again. The caller must hold the render lock of its thing."""
        extract = await read_extract(self._db, self._platform, post)
        if extract is None:
            return
        thing = thing_of(extract)
        disclosure = Disclosure(
            action=extract.type,
            moderator=await self._person(extract.actor),
            author=await self._person(extract.target),
            content=None if thing.startswith("t2_") else await self._content(thing),
        )
        entry = await self._db.run(LogHash(post).get().attempt())
        reference = entry.reference if isinstance(entry, LogEntry) else None
        marker = None if reference is None else marker_of(reference)
        await check_turn()
        await self._platform.edit(post, render_body(disclosure, reason, marker=marker))

    async def redact(self, post: str, reason: ExtractUpdateReason) -> Subject | None:
        """Remove deleted data from a public extract, and return what is stored about it.

        The marker goes, too: anybody who guesses the target could compute it, and so prove the guess.
        Stores nothing and may be repeated. A post that no longer exists needs no redaction.
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

    async def cached(self, thing: str) -> AnyCached | None:
        """Return a cached copy. Delete one that cannot be read: every read would renew its expiry."""
        found = await self._db.run(CacheHash(thing).get().attempt())
        if isinstance(found, StoredDataError):
            await self._db.run(CacheHash(thing).delete())
            return None
        if isinstance(found, KeywrightError):
            raise found
        return found

    async def _content(self, thing: str) -> CachedPost | CachedComment | None:
        """Return the cached copy, else the platform's; do not store it, as its account may be deleted."""
        cached = await self.cached(thing)
        if isinstance(cached, CachedPost | CachedComment):
            return cached
        found = await self._platform.thing(thing)
        return None if found is None else cached_thing(found)

    async def _subject(self, post: str) -> Subject | None:
        """Return the subject of an extract, or None if nothing, or nothing readable, is stored."""
        found = await self._db.run(ExtractHash(post).get().attempt())
        if isinstance(found, UnresolvedAuditError):
            # The audit has the moderator's name: a purge must not wait until the platform answers.
            audit = found.audit
            target = audit.thing_id if audit.thing_id.startswith("t2_") else ""
            return Subject(audit.action, account_named(audit.actor), target, audit.thing_id)
        if found is None or isinstance(found, StoredDataError):
            return None
        if isinstance(found, KeywrightError):
            raise found
        return Subject(found.type, await self._person(found.actor), found.target, thing_of(found))

    async def _person(self, user: str) -> Account:
        """Return an account by its id: special, cached, or from the platform.

        If the platform refuses to answer, return UNAVAILABLE: the extract must not wait forever.
        """
        special = special_account(user)
        if special is not None:
            return special
        cached = account_of(user, await self.cached(user))
        if cached is not None:
            return cached
        try:
            return await self._platform.account(user) or DELETED
        except PlatformRefusedError:
            return UNAVAILABLE


def cached_thing(thing: Thing) -> CachedPost | CachedComment:
    """Return the cached copy to store of a post or comment."""
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
    """Return the cached copy to store of an account."""
    return CachedUser("user", account.name, account.is_admin, account.is_app)


def account_of(user: str, cached: AnyCached | None) -> Account | None:
    """Return the account of a cached copy, or None if that is not the copy of a user."""
    if not isinstance(cached, CachedUser):
        return None
    return Account(user, cached.username, cached.is_admin, cached.is_app)
