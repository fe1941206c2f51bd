"""The registry's older cache of blob descriptors: what a blob is, and which repositories have it.

Its keys have no hash tag, so on a cluster the steps of one call are taken apart. They are in an order in
which a reader in between misses a blob, but never finds one that its repository does not have.
"""

from __future__ import annotations

from keywright import Call, gather, gather_list
from keywright.operations import Steps, procedure
from keywright_registry.schema import (
    Blob,
    BlobDescriptor,
    MediaTypeOverride,
    RepositoryBlob,
    RepositoryBlobs,
)

__all__ = ["forget", "remember", "stat", "stat_in"]


def stat(digest: str) -> Call[BlobDescriptor | None]:
    """A blob, whichever repository has it."""
    return Blob(digest).get()


def stat_in(repository: str, digest: str) -> Call[BlobDescriptor | None]:
    """A blob as a repository has it, with its own media type; None unless it is known to have it."""
    asked = gather(
        RepositoryBlobs(repository).has(digest),
        Blob(digest).get(),
        RepositoryBlob(repository, digest).get(),
    )
    return asked.map(lambda found: _as_there(*found))


@procedure
def remember(repository: str, descriptor: BlobDescriptor) -> Steps[None]:
    """Say that a repository has a blob; the repository comes last, so it never names an unknown one."""
    override = RepositoryBlob(repository, descriptor.digest).put(MediaTypeOverride(descriptor.mediatype))
    yield gather(Blob(descriptor.digest).put(descriptor), override)
    yield RepositoryBlobs(repository).add(descriptor.digest)


@procedure
def forget(digest: str, *repositories: str) -> Steps[None]:
    """Forget a deleted blob, and first that these repositories had it.

    The registry's own cache only drops the fields and leaves the blob in the sets: pushed again, it counts
    as there. Its garbage collector does not clean the cache at all; call this from yours.
    """
    yield gather_list(RepositoryBlobs(repository).remove(digest) for repository in repositories)
    overrides = [RepositoryBlob(repository, digest).delete() for repository in repositories]
    yield gather_list([*overrides, Blob(digest).delete()])


def _as_there(
    has: bool, descriptor: BlobDescriptor | None, override: MediaTypeOverride | None
) -> BlobDescriptor | None:
    if not has or descriptor is None or override is None:
        return descriptor if has else None
    return BlobDescriptor(descriptor.digest, descriptor.size, override.mediatype)
