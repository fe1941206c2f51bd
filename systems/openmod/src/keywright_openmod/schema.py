"""Every key of the Open Mod data model, in the order of its document, and the upgrade from v1 to v1.1.

Keys have no hash tags. On a single server related keys are written together by one script; on a cluster they
are written through the journal. A prefix with a hash tag (`bind(prefix="{openmod}")`) puts all of them into
one slot, where one script is enough again.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal

import msgspec

from keywright import (
    Binding,
    Call,
    Choice,
    Claim,
    CodecError,
    DueQueue,
    EpochMs,
    Flag,
    FreeText,
    Keyspace,
    OneOf,
    Plain,
    Prefixed,
    Record,
    Sha256,
    SortedSet,
    Upgrade,
    Value,
    expires_in,
    refers,
)
from keywright.errors import StoredDataError
from keywright_openmod.accounts import is_nobody, special_named
from keywright_openmod.actions import (
    ACTIONS,
    BanAction,
    CommentAction,
    LinkAction,
    ModActionType,
    MuteAction,
    prefix_of,
)

__all__ = [
    "ActionLog",
    "ActionName",
    "AnyCached",
    "AnyExtract",
    "AuditHash",
    "AuditRecord",
    "BanExtract",
    "CacheHash",
    "CachedComment",
    "CachedPost",
    "CachedUser",
    "CommentExtract",
    "CommentId",
    "EnforcementSet",
    "EventMarker",
    "ExtractHash",
    "LinkExtract",
    "Log",
    "LogAccount",
    "LogEntry",
    "LogHash",
    "LogName",
    "LoggedAccount",
    "ModActionSet",
    "ModeratorLog",
    "MuteExtract",
    "PostId",
    "SubredditLog",
    "ThingId",
    "TrackingSet",
    "UnresolvedAuditError",
    "UserId",
    "UserLog",
    "audit_of",
    "bind",
    "extract_of",
    "is_audit",
    "openmod",
    "openmod_v1",
    "thing_of",
]

openmod = Keyspace("openmod", "Moderated and observed submissions, their extracts and authors, version 1.1.")
openmod_v1 = Keyspace("openmod-v1", "The records of Open Mod that version 1.1 replaced.", replaced_by=openmod)

CACHED_FOR = timedelta(days=28)
MARKED_FOR = timedelta(days=14)

CommentId = Annotated[str, Prefixed("t1_")]
UserId = Annotated[str, Prefixed("t2_")]
PostId = Annotated[str, Prefixed("t3_")]
ThingId = Annotated[str, OneOf(Prefixed("t1_"), Prefixed("t2_"), Prefixed("t3_"))]
EventId = Annotated[str, Plain(":")]
ActionName = Annotated[str, Choice(*ACTIONS)]


def bind(prefix: str | None = None) -> list[Binding]:
    """Bind both versions to one prefix; the document has none."""
    return [openmod.bind(prefix=prefix), openmod_v1.bind(prefix=prefix)]


class TrackingSet(SortedSet[ThingId, datetime], key="user:<user>", space=openmod):
    """Everything stored about a user: submissions by time of creation, and the user once banned or muted.

    v1 tracks only moderated things, by time of the action. When the account is deleted, this set leads to
    all data that must be deleted with it.
    """

    user: UserId


class ModActionSet(SortedSet[PostId, datetime], key="mod-actions:<thing>", space=openmod):
    """The public extract posts about a post, a comment or a user, by time of creation."""

    thing: ThingId


refers(
    TrackingSet,
    ModActionSet,
    lambda _, things: ((thing, None) for thing, _ in things),
    name="actions",
    required=False,  # most tracked submissions were never moderated
)


class AuditRecord(msgspec.Struct, frozen=True, rename={"thing_id": "thingId", "created_at": "createdAt"}):
    """The v1 record of an extract. Later versions have no `thingId`."""

    type: ActionName
    """The mod action taken."""
    actor: str
    """Username of the moderator."""
    thing_id: ThingId
    """The identifier of the moderated thing."""
    permalink: str = ""
    """If a comment or post, the permalink; empty or absent for actions on users."""
    created_at: str | None = None
    """Timestamp of audit creation: upstream writes milliseconds. Text, because nothing depends on it."""

    @property
    def action(self) -> ModActionType:
        return ACTIONS[self.type]


class AuditHash(Record[AuditRecord], key="audit:<post>", space=openmod_v1):
    """The data used to construct an extract, in v1."""

    post: PostId


class EnforcementSet(DueQueue[UserId], key="cdpComplianceUserList", space=openmod):
    """All users with stored data, by the time of the next check whether the account still exists."""


class EventMarker(Claim, key="event:<event>", space=openmod, expiry=expires_in(MARKED_FOR)):
    """The time of an event in ms since the epoch, or the claim of the process that is handling it.

    Any value except a claim means that the event is a duplicate.

    The marker `delete:<thing>` also keeps late writers from storing a deleted submission again.
    """

    event: EventId


class LinkExtract(msgspec.Struct, frozen=True):
    """An action on a post."""

    type: LinkAction
    """The mod action taken."""
    actor: UserId
    """The `t2` of the moderator."""
    target: UserId
    """The `t2` of the content author."""
    link: PostId
    """The `t3` of the link."""


class CommentExtract(msgspec.Struct, frozen=True):
    """An action on a comment."""

    type: CommentAction
    """The mod action taken."""
    actor: UserId
    """The `t2` of the moderator."""
    target: UserId
    """The `t2` of the content author."""
    comment: CommentId
    """The `t1` of the comment."""


class BanExtract(msgspec.Struct, frozen=True):
    """A ban or unban. Upstream also writes an empty `length`, which is ignored."""

    type: BanAction
    """The mod action taken."""
    actor: UserId
    """The `t2` of the moderator."""
    target: UserId
    """The `t2` of the user."""


class MuteExtract(msgspec.Struct, frozen=True):
    """A mute or unmute. Upstream also writes an empty `length`, which is ignored."""

    type: MuteAction
    """The mod action taken."""
    actor: UserId
    """The `t2` of the moderator."""
    target: UserId
    """The `t2` of the user."""


AnyExtract = LinkExtract | CommentExtract | BanExtract | MuteExtract


def extract_of(action: ModActionType, actor: str, target: str, thing: str) -> AnyExtract:
    """Return the extract of an action on a thing; for a ban or mute the thing is the user."""
    if isinstance(action, LinkAction):
        return LinkExtract(action, actor, target, thing)
    if isinstance(action, CommentAction):
        return CommentExtract(action, actor, target, thing)
    if isinstance(action, BanAction):
        return BanExtract(action, actor, thing)
    return MuteExtract(action, actor, thing)


def thing_of(extract: AnyExtract) -> str:
    """Return the id of the moderated post, comment or user."""
    if isinstance(extract, LinkExtract):
        return extract.link
    return extract.comment if isinstance(extract, CommentExtract) else extract.target


class UnresolvedAuditError(StoredDataError):
    """A v1 audit names people whose ids are not stored. It was not changed."""

    def __init__(self, key: bytes, audit: AuditRecord) -> None:
        self.audit = audit
        super().__init__(key, "audit:<post>", "a v1.1 extract", "a v1 audit of people without known ids")

    @property
    def remedy(self) -> str:
        return "Read it with extracts.read_extract(), or run upgrade_all(): both ask the platform."


def is_audit(members: Mapping[bytes, bytes]) -> bool:
    """Return whether a hash is v1: "identified by the presence of the `thingId` member" (the document)."""
    return b"thingId" in members


def audit_of(members: Mapping[bytes, bytes], key: ExtractHash) -> AuditRecord:
    """Return the v1 audit of these members. Raise StoredDataError if they are malformed."""
    try:
        audit: AuditRecord = AuditHash.declaration.decode_members(AuditHash(key.post), members)
    except CodecError as error:
        raise StoredDataError(bytes(key), "audit:<post>", error.expected, error.found) from error
    prefix = prefix_of(audit.action)
    if not audit.thing_id.startswith(prefix):
        expected = f"a {prefix} id as the thingId of {audit.type!r}"
        raise StoredDataError(bytes(key), "audit:<post>", expected, repr(audit.thing_id))
    return audit


def _upgraded(members: Mapping[bytes, bytes], key: ExtractHash) -> Generator[Call[Any], Any, AnyExtract]:
    """The ids of special accounts are known, and those of authors if the submission is cached; for others
    the platform must be asked.
    """
    audit = audit_of(members, key)
    actor = special_named(audit.actor)
    target: str | None = audit.thing_id
    if not audit.thing_id.startswith("t2_"):
        cached = yield CacheHash(audit.thing_id).get()
        target = None if cached is None else cached.author
    if actor is None or target is None:
        raise UnresolvedAuditError(bytes(key), audit)
    return extract_of(audit.action, actor.id, target, audit.thing_id)


class ExtractHash(
    Record[LinkExtract | CommentExtract | BanExtract | MuteExtract],
    key="audit:<post>",
    space=openmod,
    upgrades=[Upgrade("v1", is_audit, _upgraded)],
):
    """The data used to construct an extract. `type` decides the shape. A v1 audit is upgraded when read."""

    post: PostId


refers(
    ModActionSet,
    ExtractHash,
    lambda _, posts: (post for post, _ in posts),
    name="extracts",
    required=False,
)
refers(
    ExtractHash,
    TrackingSet,
    lambda _, extract: [(extract.target, None)],
    name="target user",
    required=False,
)


class CachedComment(msgspec.Struct, frozen=True):
    """The document lacks `author`, but every version writes it and the upgrade to v1.1 needs it."""

    type: Literal["comment"]
    """The cache type."""
    body: str
    """The comment body."""
    permalink: str
    """The comment permalink."""
    author: UserId | None = None
    """The `t2` of the author."""


class CachedPost(msgspec.Struct, frozen=True, kw_only=True):
    """The document lacks `author`, but every version writes it and the upgrade to v1.1 needs it."""

    type: Literal["post"]
    """The cache type."""
    title: str
    """The post title."""
    url: str
    """The post url."""
    body: str | None = None
    """The post body, if set."""
    permalink: str
    """The post permalink."""
    author: UserId | None = None
    """The `t2` of the author."""


class CachedUser(msgspec.Struct, frozen=True, rename={"is_admin": "isAdmin", "is_app": "isApp"}):
    """Upstream never writes `isApp`; it is read, and written for app accounts."""

    type: Literal["user"]
    """The cache type."""
    username: str
    """The username."""
    is_admin: Annotated[bool, Flag("admin")] = False
    """`admin` if the user is an admin, otherwise undefined."""
    is_app: Annotated[bool, Flag("app")] = False
    """`app` if the user is an app account, otherwise undefined."""


AnyCached = CachedComment | CachedPost | CachedUser


class CacheHash(
    Record[CachedComment | CachedPost | CachedUser],
    key="cache:<thing>",
    space=openmod,
    expiry=expires_in(CACHED_FOR, since="last use"),
    shape_by=("thing", {"t1_": CachedComment, "t3_": CachedPost, "t2_": CachedUser}),
):
    """A cached copy of a comment, post, or account, which expires 28 days after its last use."""

    thing: ThingId


# Cached copies expire, so nothing requires that they exist.
refers(
    TrackingSet,
    CacheHash,
    lambda _, things: (thing for thing, _ in things),
    name="cached copies",
    required=False,
)
refers(
    ExtractHash,
    CacheHash,
    lambda _, extract: [thing_of(extract)],
    name="moderated thing",
    required=False,
)


# Additions: ours. The index of the public log. No program of Open Mod's document reads or needs it.


class LogEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of the public log. It has ids only, so that forgetting a name changes one place."""

    at: Annotated[datetime, EpochMs]
    """The time of the action; if an earlier version recorded it, the time of the record."""
    subreddit: str
    """The subreddit of the action."""
    type: ActionName
    """The mod action taken."""
    actor: UserId
    """The `t2` of the moderator."""
    target: UserId
    """The `t2` of the content author, or of the user who was banned or muted."""
    thing: ThingId
    """The moderated post, comment or user."""
    parent: PostId | None = None
    """The post of a moderated comment, if it is known."""
    reference: Sha256 | None = None
    """The hash of the event, by which its post is found; unknown if an earlier version recorded it."""

    @property
    def action(self) -> ModActionType:
        return ACTIONS[self.type]


class LogHash(Record[LogEntry], key="log-entry:<post>", space=openmod):
    """An extract in the public log; an addition to the document. It goes before its extract is redacted."""

    post: PostId


class Log(SortedSet[PostId, datetime], key="log", space=openmod):
    """The public log: all entries, by time of the action; an addition to the document."""


class SubredditLog(SortedSet[PostId, datetime], key="log:subreddit:<subreddit>", space=openmod):
    """The entries of a subreddit (in lower case), by time of the action; an addition to the document."""

    subreddit: FreeText


class ActionLog(SortedSet[PostId, datetime], key="log:action:<action>", space=openmod):
    """The entries of one moderation action, by time; an addition to the document."""

    action: ActionName


class ModeratorLog(SortedSet[PostId, datetime], key="log:moderator:<moderator>", space=openmod):
    """The entries of a moderator, by time of the action; an addition to the document.

    It leads to all extracts that name a moderator whose account was deleted.
    """

    moderator: UserId


class UserLog(SortedSet[PostId, datetime], key="log:user:<user>", space=openmod):
    """The entries about a user and their submissions, by time of the action; an addition to the document."""

    user: UserId


class LoggedAccount(msgspec.Struct, frozen=True, rename={"is_admin": "isAdmin"}):
    """The name of an account in the public log."""

    username: str
    """The username."""
    is_admin: Annotated[bool, Flag("admin")] = False
    """`admin` if the user is an admin, otherwise undefined."""


class LogAccount(Record[LoggedAccount], key="log-account:<user>", space=openmod):
    """An account that the public log may name; an addition to the document.

    Entries about users without it are not shown.
    """

    user: UserId


class LogName(Value[UserId], key="log-name:<name>", space=openmod):
    """The account with a name, in lower case, for searches by name; an addition to the document."""

    name: FreeText


for listing in (Log, SubredditLog, ActionLog, ModeratorLog, UserLog):
    refers(listing, LogHash, lambda _, posts: (post for post, _ in posts), name="entries")
refers(LogHash, ExtractHash, lambda key, _: [key.post], name="extract")
refers(LogHash, Log, lambda key, _: [((), key.post)], name="log")
refers(
    LogHash,
    SubredditLog,
    lambda key, entry: [(entry.subreddit.lower(), key.post)],
    name="log of the subreddit",
)
refers(LogHash, ActionLog, lambda key, entry: [(entry.type, key.post)], name="log of the action")
refers(
    LogHash,
    ModeratorLog,
    lambda key, entry: [] if is_nobody(entry.actor) else [(entry.actor, key.post)],
    name="log of the moderator",
)
refers(
    LogHash,
    UserLog,
    lambda key, entry: [] if is_nobody(entry.target) else [(entry.target, key.post)],
    name="log of the user",
)
refers(LogAccount, LogName, lambda _, account: [account.username.lower()], name="search by name")
refers(LogName, LogAccount, lambda _, user: [user], name="account")
