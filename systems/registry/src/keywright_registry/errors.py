"""Errors of the registry.

KeywrightError
├── UsageError
│   └── RepositoryPathError a repository path that is malformed, taken, missing or in use
└── MetadataError           a metadata database refused
    └── MetadataUnreachableError  no connection to it, or it was lost
"""

from __future__ import annotations

from keywright.errors import KeywrightError, UsageError, excerpt

__all__ = ["MetadataError", "MetadataUnreachableError", "RepositoryPathError"]


class RepositoryPathError(UsageError):
    """A repository path that is malformed, taken, missing or in use; nothing was changed."""

    def __init__(self, path: str, reason: str, remedy: str) -> None:
        self.path = path
        self.reason = reason
        self.remedy = remedy
        super().__init__(f"the repository {excerpt(path)} {reason}. {remedy}")


class MetadataError(KeywrightError):
    """The metadata database refused an operation; the transaction was rolled back."""

    exit_code = 3

    def __init__(self, database: str, reason: str, remedy: str) -> None:
        self.database = database
        self.reason = reason
        self.remedy = remedy
        super().__init__(f"the metadata database {database}: {reason}. {remedy}")


class MetadataUnreachableError(MetadataError):
    """No connection, or a lost one: a commit under way may have been applied."""

    def __init__(self, database: str, reason: str) -> None:
        super().__init__(database, reason, "Check that it runs, then call again.")
