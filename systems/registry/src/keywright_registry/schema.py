"""Every key of the container registry, beside its "Redis Development Guidelines".

> All keys are prefixed with `registry:` […] a second prefix is added to denote the application component […]
> one of `api`, `db`, `gc`, or `storage`.

The first prefix is that of the keyspace, so a database may be opened with another one; no `gc` key is known.
A hash tag holds the subject of a key: the top-level namespace in plain text, so that a hash collision never
leaks data across namespaces, and the SHA-256 of the whole path. Suffixes follow the closing brace. Make the
keys of a repository with `of(path)`.

The keys of the guidelines come first, then those that only the registry's code names, then our additions.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any, Literal

import msgspec

from keywright import (
    Counter,
    Derived,
    Flag,
    FreeText,
    Id,
    Key,
    Keyspace,
    Lease,
    MessagePack,
    OneOf,
    Plain,
    Prefixed,
    Record,
    Set,
    Sha256,
    Value,
    before_first,
    expires_in,
    refers,
    sha256_hex,
)
from keywright_registry.go_encoding import GoInt64, GoRepository, LogPosition
from keywright_registry.repository import Repository

registry = Keyspace(
    "registry",
    "The Redis data of the container registry: cached repositories, counters, leases, rate limits, URLs.",
    prefix="registry",
)
legacy = Keyspace("registry-blobs", "The registry's older cache of blob descriptors, outside its prefix.")
notifications = Keyspace(
    "registry-notifications", "The state of the service that counts notifications.", prefix="registry"
)

Namespace = Annotated[FreeText, Derived("path", before_first("/"))]
PathHash = Annotated[Sha256, Derived("path", sha256_hex)]
Base64 = Annotated[str, Plain(extra="+/=")]
Digest = Annotated[str, OneOf(Prefixed("sha256:", "hex", 64), Prefixed("sha512:", "hex", 128))]

OBJECT_EXPIRY = expires_in(timedelta(hours=6), jitter=0.1)
SIZE_EXPIRY = expires_in(timedelta(minutes=5), jitter=0.1)
SIZE_TIMEOUT_EXPIRY = expires_in(timedelta(hours=24))
LSN_EXPIRY = expires_in(timedelta(hours=1))
ABSENT_EXPIRY = expires_in(timedelta(seconds=30), jitter=0.1)
# The registry sends an event again until it is acknowledged, even after an outage.
EVENT_EXPIRY = expires_in(timedelta(hours=6))


class PullCount(Counter, key="api:{repository:<namespace>:<path_hash>}:pull", space=registry):
    """The pulls of a repository that have not been moved to the database yet."""

    namespace: Namespace
    path_hash: PathHash


class PushCount(Counter, key="api:{repository:<namespace>:<path_hash>}:push", space=registry):
    """The pushes to a repository that have not been moved to the database yet."""

    namespace: Namespace
    path_hash: PathHash


class CachedRepository(
    Value[Annotated[Repository, GoRepository()]],
    key="db:{repository:<namespace>:<path_hash>}",
    space=registry,
    expiry=OBJECT_EXPIRY,
):
    """A repository of the metadata database. Compare its path with the requested one: hashes may collide."""

    namespace: Namespace
    path_hash: PathHash


class SizeWithDescendants(
    Value[Annotated[int, GoInt64()]],
    key="db:{repository:<namespace>:<path_hash>}:swd",
    space=registry,
    expiry=SIZE_EXPIRY,
):
    """The size in bytes of a top-level repository and all repositories below it."""

    namespace: Namespace
    path_hash: PathHash


class SizeTimeout(
    Value[Annotated[bool, Flag("true")]],
    key="db:{repository:<namespace>:<path_hash>}:swd-timeout",
    space=registry,
    expiry=SIZE_TIMEOUT_EXPIRY,
):
    """Present after the query for the size with descendants timed out: use an estimate meanwhile."""

    namespace: Namespace
    path_hash: PathHash


class RepositoryLsn(
    Value[Annotated[int, LogPosition()]],
    key="db:{repository:<namespace>:<path_hash>}:lsn",
    space=registry,
    expiry=LSN_EXPIRY,
):
    """The log position that a database replica must have reached to see the last write to a repository."""

    namespace: Namespace
    path_hash: PathHash


class RenameGrant(msgspec.Struct, frozen=True, rename="pascal"):
    """The content of a repository lease, in the field order of the Go struct."""

    granted_to: str
    """The path that may be renamed; it identifies the holder."""
    path: str
    """The new path."""
    type: str = "rename_lease"
    """The purpose of the lease; the registry has only this one."""


class RepositoryLease(
    Value[Annotated[RenameGrant, MessagePack]],
    key="api:{repository-lease:<namespace>:<path_hash>}",
    space=registry,
):
    """The right to rename a repository to this path, the new one. Held for a minute."""

    namespace: Namespace
    path_hash: PathHash


class ProjectLease(Lease, key="api:{project-lease:<namespace>:<path_hash>}", space=registry):
    """Held while a path and everything below it is renamed: writes there are refused."""

    namespace: Namespace
    path_hash: PathHash


class TokenBucket(msgspec.Struct, frozen=True):
    """A token bucket: its content at one moment, from which the present content follows."""

    tokens: float
    """The tokens that were left at that moment."""
    last_refill: float
    """That moment, in seconds since 1970."""


class RateLimit(Record[TokenBucket], key="api:{rate-limit:ip:<address>}", space=registry):
    """The token bucket of one client address, in base64. It expires when it is full again."""

    address: Base64


class MetricsLock(Lease, key="db:{metrics}:<gauge>", space=registry):
    """Held by the one instance that collects a gauge from the database."""

    gauge: Literal["row_count_lock", "bbm_progress_lock"]


class SignedUrl(msgspec.Struct, frozen=True, rename={"url": "URL"}):
    """The content of a cached URL."""

    url: str
    """A pre-signed URL of the storage backend."""


class CachedUrl(Value[Annotated[SignedUrl, MessagePack]], key="storage:urlcache:<request>", space=registry):
    """A pre-signed URL, by the hash of its path and options. It expires ten minutes before the URL does."""

    request: Sha256


class CountedPath(Value[str], key="api:{repository:<namespace>:<path_hash>}:counted", space=registry):
    """The path of a repository with pending counts, which cannot be recovered from its hash."""

    namespace: Namespace
    path_hash: PathHash


class BatchedCounts(msgspec.Struct, frozen=True):
    """Counts that were taken out of the counters together."""

    id: str
    """A random token; the database adds a batch only once by it."""
    path: str
    """The path whose counts these are."""
    pulls: int
    """The pulls in this batch."""
    pushes: int
    """The pushes in this batch."""


class CountBatch(Record[BatchedCounts], key="api:{repository:<namespace>:<path_hash>}:batch", space=registry):
    """The counts that are being moved to the database, until it has them."""

    namespace: Namespace
    path_hash: PathHash


class AbsentRepository(
    Value[Annotated[bool, Flag("true")]],
    key="db:{repository:<namespace>:<path_hash>}:absent",
    space=registry,
    expiry=ABSENT_EXPIRY,
):
    """Present while a path is known to have no repository, where absence is cached."""

    namespace: Namespace
    path_hash: PathHash


class FillLease(Lease, key="db:{repository:<namespace>:<path_hash>}:filling", space=registry):
    """Held while a repository is read from the database to fill the cache; every other write ends it."""

    namespace: Namespace
    path_hash: PathHash


class NamedRateLimit(Record[TokenBucket], key="api:{rate-limit:ip:<address>}:<limiter>", space=registry):
    """The token bucket of one client address in a further limiter, so that two limiters do not share one."""

    address: Base64
    limiter: Id


class BlobDescriptor(msgspec.Struct, frozen=True):
    """The descriptor of a blob."""

    digest: str
    """The digest of the content."""
    size: int
    """The size in bytes."""
    mediatype: str
    """The media type."""


class Blob(Record[BlobDescriptor], key="blobs::<digest>", space=legacy):
    """A blob of any repository. The registry sets no expiry: let the server evict (`allkeys-lru`)."""

    digest: Digest


class RepositoryBlobs(Set[Digest], key="repository::<repository>::blobs", space=legacy):
    """The blobs of a repository."""

    repository: FreeText


# A cache may have lost anything, so none of these references is required.
refers(RepositoryBlobs, Blob, lambda _, digests: digests, name="blobs", required=False)


class MediaTypeOverride(msgspec.Struct, frozen=True):
    """The fields of a blob that may differ between repositories."""

    mediatype: str
    """The media type in this repository."""


class RepositoryBlob(
    Record[MediaTypeOverride], key="repository::<repository>::blobs::<digest>", space=legacy
):
    """The media type of a blob in one repository."""

    repository: FreeText
    digest: Digest


refers(RepositoryBlob, Blob, lambda key, _: [key.digest], name="blob", required=False)
refers(
    RepositoryBlob,
    RepositoryBlobs,
    lambda key, _: [(key.repository, key.digest)],
    name="listed among the blobs",
    required=False,
)


class CountedEvent(
    Value[str],
    key="api:{repository:<namespace>:<path_hash>}:event:<event>",
    space=notifications,
    expiry=EVENT_EXPIRY,
):
    """The action of an event that was counted, in the slot of the counters, so that both are one commit."""

    namespace: Namespace
    path_hash: PathHash
    event: FreeText


class FlushLease(Lease, key="api:{flush}:turn", space=notifications):
    """Held by the process that moves counts to the database."""


REPOSITORY_KEYS: tuple[type[Any], ...] = (
    *(PullCount, PushCount, CountedPath, CountBatch),
    *(CachedRepository, SizeWithDescendants, SizeTimeout, RepositoryLsn, AbsentRepository, FillLease),
)
"""All keys of one repository: they have one hash tag, so they live in one slot."""


def keys_of(path: str) -> list[Key]:
    """Return every key of a repository."""
    return [kind.of(path) for kind in REPOSITORY_KEYS]
