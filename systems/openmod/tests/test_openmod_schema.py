"""The schema against the document, row by row: every key, every member, of both versions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import msgspec
import pytest

from keywright import Claim, ClaimState, DueQueue, Key, check, new_token
from keywright.errors import StoredDataError, VariableError
from keywright.testing import OpenRun, Raw
from keywright_openmod.accounts import special_named
from keywright_openmod.actions import BanAction, CommentAction, LinkAction, MuteAction
from keywright_openmod.schema import (
    ActionLog,
    AuditHash,
    AuditRecord,
    BanExtract,
    CachedComment,
    CachedPost,
    CachedUser,
    CacheHash,
    CommentExtract,
    EnforcementSet,
    EventMarker,
    ExtractHash,
    LinkExtract,
    Log,
    LogAccount,
    LogHash,
    LogName,
    ModActionSet,
    ModeratorLog,
    MuteExtract,
    SubredditLog,
    TrackingSet,
    UserLog,
    bind,
    openmod,
    openmod_v1,
)

CREATED = datetime(2024, 1, 2, 3, 4, 5, 678000, tzinfo=UTC)
CREATED_MS = 1704164645678


class Row(NamedTuple):
    """A key of the document."""

    title: str
    name: str
    redis_type: str
    expiry: timedelta | None = None


# The keys of the document in its order; {t1|t2|t3} is a row for each. The document has no expiries: they
# are those of docs/resolutions.md#expiries.
V1 = (
    Row("Tracking Set", "user:{t2}", "zset"),
    Row("Moderation Action Set", "mod-actions:{t1}", "zset"),
    Row("Moderation Action Set", "mod-actions:{t2}", "zset"),
    Row("Moderation Action Set", "mod-actions:{t3}", "zset"),
    Row("Audit Hash", "audit:{t3}", "hash"),
    Row("Content Delivery Policy (CDP) Enforcement Set", "cdpComplianceUserList", "zset"),
    Row("Event Marker", "event:{some_id}", "string", timedelta(days=14)),
)
V1_1 = (
    Row("Extract Hashes", "audit:{t3}", "hash"),
    Row("Cache Hashes: Comment", "cache:{t1}", "hash", timedelta(days=28)),
    Row("Cache Hashes: Post", "cache:{t3}", "hash", timedelta(days=28)),
    Row("Cache Hashes: User", "cache:{t2}", "hash", timedelta(days=28)),
)
VALUES = {"t1": "t1_k0", "t2": "t2_u1", "t3": "t3_9z", "some_id": "mod:0a"}
KINDS: dict[str, type[Key]] = {
    "user": TrackingSet,
    "mod-actions": ModActionSet,
    "cdpComplianceUserList": EnforcementSet,
    "event": EventMarker,
    "cache": CacheHash,
}


def kind_of(row: Row) -> type[Key]:
    if row.title == "Audit Hash":
        return AuditHash
    return KINDS.get(row.name.split(":")[0], ExtractHash)


def name_of(row: Row) -> str:
    name = row.name
    for variable, value in VALUES.items():
        name = name.replace("{" + variable + "}", value)
    return name


@pytest.mark.parametrize("row", [*V1, *V1_1], ids=lambda row: row.name)
def test_a_key_has_the_name_the_type_and_the_expiry_of_the_document(row: Row) -> None:
    kind = kind_of(row)
    key = kind.parse(name_of(row).encode())
    assert key is not None
    assert bytes(key).decode() == name_of(row)
    assert kind.redis_type == row.redis_type
    expected = None if row.expiry is None else row.expiry // timedelta(milliseconds=1)
    expiry = kind.declaration.expiry
    assert (expiry.ttl_ms if expiry else None) == expected


def test_the_schema_has_no_other_keys_than_the_document_and_the_public_log() -> None:
    additions = {Log, SubredditLog, ActionLog, ModeratorLog, UserLog, LogHash, LogAccount, LogName}
    assert {*openmod, *openmod_v1} == {kind_of(row) for row in (*V1, *V1_1)} | additions
    undocumented = [kind for kind in additions if "an addition to the document" not in (kind.__doc__ or "")]
    assert undocumented == []


def test_the_schema_passes_its_checks() -> None:
    assert check(openmod) == []
    assert check(openmod_v1) == []


def test_the_expiry_of_a_cached_copy_slides() -> None:
    expiry = CacheHash.declaration.expiry
    assert expiry is not None
    assert expiry.sliding


def test_the_enforcement_set_is_a_due_queue_and_the_marker_a_claim() -> None:
    assert issubclass(EnforcementSet, DueQueue)
    assert issubclass(EventMarker, Claim)


class Table(NamedTuple):
    """A table of the document: its members with sample values, and the value that they decode to."""

    title: str
    key: Key
    members: dict[str, str]
    value: msgspec.Struct


POST = CachedPost(
    type="post",
    title="T",
    url="https://example.org",
    body="B",
    permalink="/r/cats/comments/9z/",
    author="t2_u1",
)

TABLES = (
    *(
        Table(
            f"Audit Hash: {action}",
            AuditHash("t3_9z"),
            {
                "type": action,
                "actor": "Mod",
                "thingId": thing,
                "permalink": permalink,
                "createdAt": str(CREATED_MS),
            },
            AuditRecord(action, "Mod", thing, permalink, str(CREATED_MS)),
        )
        for action, thing, permalink in (
            ("removelink", "t3_1", "/r/cats/comments/1/"),
            ("spamlink", "t3_1", "/r/cats/comments/1/"),
            ("approvelink", "t3_1", "/r/cats/comments/1/"),
            ("removecomment", "t1_1", "/r/cats/comments/1/_/1/"),
            ("spamcomment", "t1_1", "/r/cats/comments/1/_/1/"),
            ("approvecomment", "t1_1", "/r/cats/comments/1/_/1/"),
            ("banuser", "t2_1", ""),
            ("unbanuser", "t2_1", ""),
            ("muteuser", "t2_1", ""),
            ("unmuteuser", "t2_1", ""),
        )
    ),
    *(
        Table(
            f"Link Extract: {word}",
            ExtractHash("t3_9z"),
            {"type": word, "actor": "t2_m", "target": "t2_u1", "link": "t3_1"},
            LinkExtract(LinkAction(word), "t2_m", "t2_u1", "t3_1"),
        )
        for word in ("removelink", "spamlink", "approvelink")
    ),
    *(
        Table(
            f"Comment Extract: {word}",
            ExtractHash("t3_9z"),
            {"type": word, "actor": "t2_m", "target": "t2_u1", "comment": "t1_1"},
            CommentExtract(CommentAction(word), "t2_m", "t2_u1", "t1_1"),
        )
        for word in ("removecomment", "spamcomment", "approvecomment")
    ),
    *(
        Table(
            f"Ban Extract: {word}",
            ExtractHash("t3_9z"),
            {"type": word, "actor": "t2_m", "target": "t2_u1"},
            BanExtract(BanAction(word), "t2_m", "t2_u1"),
        )
        for word in ("banuser", "unbanuser")
    ),
    *(
        Table(
            f"Mute Extract: {word}",
            ExtractHash("t3_9z"),
            {"type": word, "actor": "t2_m", "target": "t2_u1"},
            MuteExtract(MuteAction(word), "t2_m", "t2_u1"),
        )
        for word in ("muteuser", "unmuteuser")
    ),
    Table(
        "Comment",
        CacheHash("t1_1"),
        {"type": "comment", "body": "B", "permalink": "/p", "author": "t2_u1"},
        CachedComment("comment", "B", "/p", "t2_u1"),
    ),
    Table(
        "Post",
        CacheHash("t3_1"),
        {
            "type": "post",
            "title": "T",
            "url": "https://example.org",
            "body": "B",
            "permalink": "/r/cats/comments/9z/",
            "author": "t2_u1",
        },
        POST,
    ),
    Table(
        "Post without a body",
        CacheHash("t3_1"),
        {
            "type": "post",
            "title": "T",
            "url": "https://example.org",
            "permalink": "/r/cats/comments/9z/",
            "author": "t2_u1",
        },
        msgspec.structs.replace(POST, body=None),
    ),
    Table("User", CacheHash("t2_1"), {"type": "user", "username": "Ann"}, CachedUser("user", "Ann")),
    Table(
        "User: admin",
        CacheHash("t2_1"),
        {"type": "user", "username": "Ann", "isAdmin": "admin"},
        CachedUser("user", "Ann", is_admin=True),
    ),
    Table(
        "User: app",
        CacheHash("t2_1"),
        {"type": "user", "username": "Ann", "isApp": "app"},
        CachedUser("user", "Ann", is_app=True),
    ),
)


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.title)
def test_a_hash_has_the_members_of_the_document(
    table: Table, open_run: OpenRun, redis_url: str, raw: Raw
) -> None:
    """Members that another program stores are read, and the same members are written."""
    run = open_run(redis_url, *bind())
    name = bytes(table.key)
    raw("HSET", name, *(word for pair in table.members.items() for word in pair))
    key: Any = table.key
    assert run(key.get()) == table.value
    raw("DEL", name)
    run(key.put(table.value))
    stored = raw("HGETALL", name)
    pairs = stored.items() if isinstance(stored, dict) else zip(stored[::2], stored[1::2], strict=True)
    assert {field.decode(): value.decode() for field, value in pairs} == table.members


def test_scores_are_milliseconds_since_the_epoch(run: Any, raw: Raw) -> None:
    run(TrackingSet("t2_u1").add("t1_1", CREATED))
    run(ModActionSet("t1_1").add("t3_1", CREATED))
    run(EnforcementSet().schedule("t2_u1", CREATED))
    for name, member in (
        ("user:t2_u1", "t1_1"),
        ("mod-actions:t1_1", "t3_1"),
        ("cdpComplianceUserList", "t2_u1"),
    ):
        assert int(raw("ZSCORE", name, member)) == CREATED_MS


@pytest.mark.parametrize(
    "event", ["t3_1", "removelink1704164645678", "submit:t3_1", "delete:t1_1", f"mod:{'0a' * 32}"]
)
def test_a_marker_of_any_version_means_that_the_event_was_processed(run: Any, raw: Raw, event: str) -> None:
    raw("SET", f"event:{event}", str(CREATED_MS))
    assert run(EventMarker(event).state()) is ClaimState.DONE
    assert not run(EventMarker(event).begin(new_token(), timedelta(minutes=1)))


def test_an_empty_flag_is_false(run: Any, raw: Raw) -> None:
    raw("HSET", "cache:t2_1", "type", "user", "username", "Ann", "isAdmin", "", "isApp", "")
    assert run(CacheHash("t2_1").get()) == CachedUser("user", "Ann")


@pytest.mark.parametrize("word", ["banuser", "muteuser"])
def test_the_empty_length_that_upstream_writes_is_ignored(run: Any, raw: Raw, word: str) -> None:
    raw("HSET", "audit:t3_1", "type", word, "actor", "t2_m", "target", "t2_u1", "length", "")
    assert run(ExtractHash("t3_1").get()).target == "t2_u1"


@pytest.mark.parametrize(
    ("key", "members"),
    [
        (ExtractHash("t3_1"), {"type": "lock", "actor": "t2_m", "target": "t2_u1"}),
        (ExtractHash("t3_1"), {"type": "removelink", "actor": "Mod", "target": "t2_u1", "link": "t3_1"}),
        (ExtractHash("t3_1"), {"type": "removelink", "actor": "t2_m", "target": "t2_u1", "comment": "t1_1"}),
        (CacheHash("t1_1"), {"type": "post", "body": "B", "permalink": "/p"}),
        (CacheHash("t2_1"), {"type": "user", "username": "Ann", "isAdmin": "yes"}),
    ],
    ids=["unknown type", "a name for an id", "a comment for a link", "a post under t1", "another flag"],
)
def test_a_hash_that_the_document_does_not_allow_is_an_error(
    run: Any, raw: Raw, key: Any, members: dict[str, str]
) -> None:
    raw("HSET", bytes(key), *(word for pair in members.items() for word in pair))
    with pytest.raises(StoredDataError):
        run(key.get())


@pytest.mark.parametrize("wrong", ["t1_1", "t2_", "t2_A", "ann"])
def test_a_tracking_set_is_named_by_a_t2(wrong: str) -> None:
    with pytest.raises(VariableError):
        TrackingSet(wrong)


@pytest.mark.parametrize(
    ("name", "user"),
    [
        ("reddit", "t2_reddit"),
        ("Reddit Legal", "t2_redditlegal"),
        ("Anti-Evil Operations", "t2_antieviloperations"),
        ("[ redacted ]", "t2_redacted"),
        ("[ deleted ]", "t2_deleted"),
        ("[ unavailable ]", "t2_unavailable"),
    ],
)
def test_special_accounts_have_ids_that_fit_the_schema(name: str, user: str) -> None:
    account = special_named(name)
    assert account is not None
    assert account.id == user
    assert TrackingSet(user).user == user


def test_the_keys_may_share_a_slot_by_their_prefix(open_run: OpenRun, redis_url: str, raw: Raw) -> None:
    run = open_run(redis_url, *bind("{om}"))
    run(CacheHash("t2_1").put(CachedUser("user", "Ann")))
    assert raw.names() == {b"{om}:cache:t2_1"}
