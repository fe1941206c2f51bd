"""What the keys of the registry mention. A cache may forget any of it, so nothing is required."""

from __future__ import annotations

from keywright import refers
from keywright_registry import schema

refers(schema.RepositoryBlobs, schema.Blob, lambda _, digests: digests, name="blobs", required=False)
refers(schema.RepositoryBlob, schema.Blob, lambda key, _: [key.digest], name="blob", required=False)
refers(
    schema.RepositoryBlob,
    schema.RepositoryBlobs,
    lambda key, _: [(key.repository, key.digest)],
    name="listed among the blobs",
    required=False,
)
