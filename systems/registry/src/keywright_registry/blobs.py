"""The registry's older cache of blob descriptors: blobs, and which repositories have them.

Its keys have no hash tag, so on a cluster the steps of one call are separate. Their order is such that a
reader in between may miss a blob, but never finds one that its repository does not have.
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
    """Return the descriptor of a blob of any repository."""
    return Blob(digest).get()


def stat_in(repository: str, digest: str) -> Call[BlobDescriptor | None]:
    """Return the descriptor of a blob with its media type in a repository; None unless that has the blob."""

    def in_repository(
        found: tuple[bool, BlobDescriptor | None, MediaTypeOverride | None],
    ) -> BlobDescriptor | None:
        has, descriptor, override = found
        if not has or descriptor is None or override is None:
            return descriptor if has else None
        return BlobDescriptor(descriptor.digest, descriptor.size, override.mediatype)

    asked = gather(
        RepositoryBlobs(repository).has(digest),
        Blob(digest).get(),
        RepositoryBlob(repository, digest).get(),
    )
    return asked.map(in_repository)


@procedure
def remember(repository: str, descriptor: BlobDescriptor) -> Steps[None]:
    """Cache that a repository has a blob. The set comes last, so it never lists an unknown blob."""
    override = RepositoryBlob(repository, descriptor.digest).put(MediaTypeOverride(descriptor.mediatype))
    yield gather(Blob(descriptor.digest).put(descriptor), override)
    yield RepositoryBlobs(repository).add(descriptor.digest)


@procedure
def forget(digest: str, *repositories: str) -> Steps[None]:
    """Delete a blob, after removing it from these repositories.

    The registry's own cache deletes the fields and leaves the blob in the sets, so that it counts as present
    when it is pushed again, and its garbage collector does not clean the cache at all
    (docs/resolutions.md#mistake-10). Call this from yours.
    """
    yield gather_list(RepositoryBlobs(repository).remove(digest) for repository in repositories)
    overrides = [RepositoryBlob(repository, digest).delete() for repository in repositories]
    yield gather_list([*overrides, Blob(digest).delete()])
