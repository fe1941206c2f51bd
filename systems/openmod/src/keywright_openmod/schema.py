"""Every key of the Open Mod data model, in the order of its document, and how v1 becomes v1.1.

Keys have no hash tags: on a single server what belongs together is written by one script, on a
cluster through the journal. A prefix with a hash tag (`bind(prefix="{openmod}")`) makes it one again.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from datetime import datetime, timedelta
from typing import Annotated, Any

from keywright import (
    Binding,
    Call,
    Claim,
    CodecError,
    DueQueue,
    Keyspace,
    Plain,
    Record,
    SortedSet,
    Upgrade,
    expires_in,
)
from keywright.errors import StoredDataError
from keywright_openmod.accounts import special_named
from keywright_openmod.shapes import (
    AnyExtract,
    Audit,
    BanExtract,
    CachedComment,
    CachedPost,
    CachedUser,
    CommentExtract,
    LinkExtract,
    MuteExtract,
    PostId,
    ThingId,
    UserId,
    extract_of,
    prefix_of,
)

__all__ = [
    "Audits",
    "Cache",
    "ComplianceList",
    "EventMarker",
    "Extract",
    "ModActions",
    "TrackingSet",
    "UnresolvedAuditError",
    "audit_of",
    "bind",
    "converted",
    "is_audit",
    "openmod",
    "openmod_v1",
]

openmod = Keyspace("openmod", "What Open Mod knows of moderated and observed submissions, version 1.1.")
openmod_v1 = Keyspace("openmod-v1", "The shape of Open Mod's data that version 1.1 replaced.")

CACHED_FOR = timedelta(days=28)
MARKED_FOR = timedelta(days=14)
EventId = Annotated[str, Plain(":")]


def bind(prefix: str | None = None) -> list[Binding]:
    """Both versions under one prefix; the document has none."""
    return [openmod.bind(prefix=prefix), openmod_v1.bind(prefix=prefix)]


class TrackingSet(SortedSet[ThingId, datetime], key="user:<user>", space=openmod):
    """What is known of a person: observed submissions by time of creation, and the person once banned.

    In v1 only what was moderated, by time of the action. The way to all that a deleted account leaves.
    """

    user: UserId


class ModActions(SortedSet[PostId, datetime], key="mod-actions:<thing>", space=openmod):
    """The public extract posts about a post, a comment or a person, by time of creation."""

    thing: ThingId


class Audits(Record[Audit], key="audit:<post>", space=openmod_v1):
    """v1: the data used to construct an extract."""

    post: PostId


class ComplianceList(DueQueue[UserId], key="cdpComplianceUserList", space=openmod):
    """Everyone about whom anything is known, by when to check next whether the account still exists."""


class EventMarker(Claim, key="event:<event>", space=openmod, expiry=expires_in(MARKED_FOR)):
    """An event that was processed, and when; while one is at it, who. A `delete:` one bars late writers."""

    event: EventId


class UnresolvedAuditError(StoredDataError):
    """A v1 audit that names people Redis knows no ids of; it was left as it is."""

    def __init__(self, key: bytes, audit: Audit) -> None:
        self.audit = audit
        super().__init__(key, "audit:<post>", "a v1.1 extract", "a v1 audit of people without known ids")

    @property
    def remedy(self) -> str:
        return "Read it with extracts.read_extract(), or sweep with upgrade_all(): both ask the platform."


def is_audit(members: Mapping[bytes, bytes]) -> bool:
    """The document: an earlier version is "identified by the presence of the `thingId` member"."""
    return b"thingId" in members


def _from_audit(members: Mapping[bytes, bytes], key: Extract) -> Generator[Call[Any], Any, AnyExtract]:
    """The extract of an audit whose people can be told from Redis alone."""
    audit = audit_of(members, key)
    actor = special_named(audit.actor)
    target: str | None = audit.thing_id
    if not audit.thing_id.startswith("t2_"):
        cached = yield Cache(audit.thing_id).get()
        target = None if cached is None else cached.author
    if actor is None or target is None:
        raise UnresolvedAuditError(bytes(key), audit)
    return converted(audit, actor.id, target)


def audit_of(members: Mapping[bytes, bytes], key: Extract) -> Audit:
    """A v1 audit from its stored members."""
    try:
        audit: Audit = Audits.declaration.decode_members(Audits(key.post), members)
    except CodecError as error:
        raise StoredDataError(bytes(key), "audit:<post>", error.expected, error.found) from error
    prefix = prefix_of(audit.action)
    if not audit.thing_id.startswith(prefix):
        expected = f"a {prefix} id as the thingId of {audit.type!r}"
        raise StoredDataError(bytes(key), "audit:<post>", expected, repr(audit.thing_id))
    return audit


def converted(audit: Audit, actor: str, target: str) -> AnyExtract:
    """A v1 audit as v1.1 has it, given the ids of the moderator and of the person concerned."""
    return extract_of(audit.action, actor, target, audit.thing_id)


class Extract(
    Record[LinkExtract | CommentExtract | BanExtract | MuteExtract],
    key="audit:<post>",
    space=openmod,
    upgrades=[Upgrade("v1", is_audit, _from_audit)],
):
    """The data used to construct an extract; `type` tells the shape. A v1 audit is upgraded when read."""

    post: PostId


class Cache(
    Record[CachedComment | CachedPost | CachedUser],
    key="cache:<thing>",
    space=openmod,
    expiry=expires_in(CACHED_FOR, sliding=True),
    shape_by=("thing", {"t1_": CachedComment, "t3_": CachedPost, "t2_": CachedUser}),
):
    """A copy of a comment, post or account; forgotten 28 days after it was last used."""

    thing: ThingId
