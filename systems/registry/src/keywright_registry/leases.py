"""Leases of a rename: who may take a path, and which paths must not be written meanwhile.

The registry reads a lease and then writes it, so two may win, and it deletes a lease of any holder
(docs/resolutions.md#mistake-7). Here one script decides, and extending and releasing compare the holder.
Leases and repositories live in different slots, so a lease cannot be part of a transaction on the repository.
"""

from __future__ import annotations

from datetime import timedelta

from keywright import Call, atomic, gather_list
from keywright.operations import acquire, extend, release
from keywright_registry.paths import ancestry
from keywright_registry.schema import ProjectLease, RenameGrant, RepositoryLease

__all__ = ["RENAME_HOLD", "RenameLease", "blocked", "project"]

RENAME_HOLD = timedelta(seconds=60)


class RenameLease:
    """The right to give a path to one repository: `RenameLease("group/new").acquire("group/old")`.

    The grantee is the token: the same grantee may acquire the lease again, which renews it.
    """

    def __init__(self, new_path: str) -> None:
        self.path = new_path
        self.key = RepositoryLease.of(new_path)

    def acquire(self, granted_to: str, hold: timedelta = RENAME_HOLD) -> Call[bool]:
        """Take the path or renew the lease; return False if it is granted to another."""
        return acquire(self.key, self._grant(granted_to), hold)

    def extend(self, granted_to: str, hold: timedelta = RENAME_HOLD) -> Call[bool]:
        """Renew the lease; return False if it expired or is granted to another: stop then."""
        return extend(self.key, self._grant(granted_to), hold)

    def release(self, granted_to: str) -> Call[bool]:
        """Give the path up; return False if it is not granted to this one (any more)."""
        return release(self.key, self._grant(granted_to))

    def holder(self) -> Call[str | None]:
        """Return the grantee of the path, if there is one."""
        return self.key.get().map(lambda grant: None if grant is None else grant.granted_to)

    def remaining(self, granted_to: str) -> Call[timedelta]:
        """Return the remaining time of this grantee, zero if it has no lease. One transaction."""
        return atomic(self.holder(), self.key.ttl()).map(
            lambda found: found[1] or timedelta(0) if found[0] == granted_to else timedelta(0)
        )

    def _grant(self, granted_to: str) -> bytes:
        return self.key.declaration.encode(RenameGrant(granted_to, self.path))


def project(path: str) -> ProjectLease:
    """Return the lease that stops writes to a path and everything below it. Hold it for seconds only.

    The registry stores the path as its value and checks only whether the key exists.
    """
    return ProjectLease.of(path)


def blocked(path: str) -> Call[bool]:
    """Return whether a path, or one above it, is being renamed. The registry allows writes if Redis fails."""
    return gather_list(ProjectLease.of(each).exists() for each in ancestry(path)).map(any)
