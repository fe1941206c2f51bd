"""Every key of the container registry, beside its "Redis Development Guidelines".

> All keys are prefixed with `registry:` […] a second prefix is added to denote the application component […]
> one of `api`, `db`, `gc`, or `storage`.

The first prefix is the keyspace's, so a database may be opened with another one; no key of `gc` is known.
A hash tag holds what a key is about: the top-level namespace in plain text, so that no collision of hashes
leaks across namespaces, and the SHA-256 of the whole path. Sub-categories follow after the closing brace.
Make keys of a repository with `of(path)`.

What the guidelines do not name is from the registry's code; `:absent`, `:filling`, `:counted`, `:batch` and
the names of further rate limiters are ours.
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
    sha256_hex,
)
from keywright_registry.go_encoding import GoInt64, GoRepository, LogPosition
from keywright_registry.repository import Repository

registry = Keyspace(
    "registry",
    "What the container registry keeps in Redis: cached repositories, counters, leases, limits, URLs.",
    prefix="registry",
)
legacy = Keyspace("registry-blobs", "The registry's older cache of blob descriptors, outside its prefix.")

Namespace = Annotated[FreeText, Derived("path", before_first("/"))]
PathHash = Annotated[Sha256, Derived("path", sha256_hex)]
Base64 = Annotated[str, Plain(extra="+/=")]
Digest = Annotated[str, OneOf(Prefixed("sha256:", "hex", 64), Prefixed("sha512:", "hex", 128))]

OBJECT_EXPIRY = expires_in(timedelta(hours=6), jitter=0.1)
SIZE_EXPIRY = expires_in(timedelta(minutes=5), jitter=0.1)
TIMED_OUT_EXPIRY = expires_in(timedelta(hours=24))
LSN_EXPIRY = expires_in(timedelta(hours=1))
ABSENT_EXPIRY = expires_in(timedelta(seconds=30), jitter=0.1)


class PullCount(Counter, key="api:{repository:<namespace>:<path_hash>}:pull", space=registry):
    """How often a repository was pulled from since the count was last moved to the database."""

    namespace: Namespace
    path_hash: PathHash


class PushCount(Counter, key="api:{repository:<namespace>:<path_hash>}:push", space=registry):
    """How often a repository was pushed to since the count was last moved to the database."""

    namespace: Namespace
    path_hash: PathHash


class CachedRepository(
    Value[Annotated[Repository, GoRepository()]],
    key="db:{repository:<namespace>:<path_hash>}",
    space=registry,
    expiry=OBJECT_EXPIRY,
):
    """A repository of the metadata database. Its path must be compared with the one asked for."""

    namespace: Namespace
    path_hash: PathHash


class CountedPath(Value[str], key="api:{repository:<namespace>:<path_hash>}:counted", space=registry):
    """The path whose pulls and pushes are being counted: its hash does not tell."""

    namespace: Namespace
    path_hash: PathHash


class Batch(msgspec.Struct, frozen=True):
    id: str
    path: str
    pulls: int
    pushes: int


class CountBatch(Record[Batch], key="api:{repository:<namespace>:<path_hash>}:batch", space=registry):
    """Counts on their way to the database, which knows the batch by its id."""

    namespace: Namespace
    path_hash: PathHash


class SizeWithDescendants(
    Value[Annotated[int, GoInt64()]],
    key="db:{repository:<namespace>:<path_hash>}:swd",
    space=registry,
    expiry=SIZE_EXPIRY,
):
    """Bytes of a top-level repository and all below it."""

    namespace: Namespace
    path_hash: PathHash


class SizeTimedOut(
    Value[Annotated[bool, Flag("true")]],
    key="db:{repository:<namespace>:<path_hash>}:swd-timeout",
    space=registry,
    expiry=TIMED_OUT_EXPIRY,
):
    """There while measuring a repository with all below it is not worth trying: it took too long."""

    namespace: Namespace
    path_hash: PathHash


class RepositoryLsn(
    Value[Annotated[int, LogPosition()]],
    key="db:{repository:<namespace>:<path_hash>}:lsn",
    space=registry,
    expiry=LSN_EXPIRY,
):
    """How far a replica of the database must be to know the last write to a repository."""

    namespace: Namespace
    path_hash: PathHash


class KnownAbsent(
    Value[Annotated[bool, Flag("true")]],
    key="db:{repository:<namespace>:<path_hash>}:absent",
    space=registry,
    expiry=ABSENT_EXPIRY,
):
    """There while a path is known to have no repository, where absence is cached at all."""

    namespace: Namespace
    path_hash: PathHash


class Filling(Lease, key="db:{repository:<namespace>:<path_hash>}:filling", space=registry):
    """Held by whoever reads a repository from the database to cache it; every other write ends it."""

    namespace: Namespace
    path_hash: PathHash


class RenameGrant(msgspec.Struct, frozen=True, rename="pascal"):
    """What a repository lease says, in the order in which Go writes it."""

    granted_to: str
    path: str
    type: str = "rename_lease"


class RepositoryLease(
    Value[Annotated[RenameGrant, MessagePack]],
    key="api:{repository-lease:<namespace>:<path_hash>}",
    space=registry,
):
    """Who may rename a repository to a path, which is the new one. Held for a minute."""

    namespace: Namespace
    path_hash: PathHash


class ProjectLease(Lease, key="api:{project-lease:<namespace>:<path_hash>}", space=registry):
    """Held while a path and all below it are renamed: nothing is written there."""

    namespace: Namespace
    path_hash: PathHash


class Bucket(msgspec.Struct, frozen=True):
    """Tokens that were left when it was last filled up, which was so many seconds after 1970."""

    tokens: float
    last_refill: float


class RateLimit(Record[Bucket], key="api:{rate-limit:ip:<address>}", space=registry):
    """The token bucket of one client address, in base64. It expires when it is full again."""

    address: Base64


class NamedRateLimit(Record[Bucket], key="api:{rate-limit:ip:<address>}:<limiter>", space=registry):
    """The same for each further limiter: two limiters must not drain one bucket."""

    address: Base64
    limiter: Id


class MetricsLock(Lease, key="db:{metrics}:<gauge>", space=registry):
    """Held by the one instance that collects a gauge from the database."""

    gauge: Literal["row_count_lock", "bbm_progress_lock"]


class SignedUrl(msgspec.Struct, frozen=True, rename={"url": "URL"}):
    url: str


class CachedUrl(Value[Annotated[SignedUrl, MessagePack]], key="storage:urlcache:<request>", space=registry):
    """A pre-signed URL of the storage, by the hash of its path and options, while it is worth handing out."""

    request: Sha256


class BlobDescriptor(msgspec.Struct, frozen=True):
    digest: str
    size: int
    mediatype: str


class MediaTypeOverride(msgspec.Struct, frozen=True):
    mediatype: str


class Blob(Record[BlobDescriptor], key="blobs::<digest>", space=legacy):
    """A blob, whichever repository has it. The registry gives it no expiry: let the server evict."""

    digest: Digest


class RepositoryBlobs(Set[Digest], key="repository::<repository>::blobs", space=legacy):
    """The blobs that a repository has."""

    repository: FreeText


class RepositoryBlob(
    Record[MediaTypeOverride], key="repository::<repository>::blobs::<digest>", space=legacy
):
    """The media type of a blob in one repository, where it differs."""

    repository: FreeText
    digest: Digest


REPOSITORY_KEYS: tuple[type[Any], ...] = (
    *(PullCount, PushCount, CountedPath, CountBatch),
    *(CachedRepository, SizeWithDescendants, SizeTimedOut, RepositoryLsn, KnownAbsent, Filling),
)
"""All keys of one repository: they have one hash tag, so they live in one slot."""


def keys_of(path: str) -> list[Key]:
    """Every key of a repository."""
    return [kind.of(path) for kind in REPOSITORY_KEYS]
