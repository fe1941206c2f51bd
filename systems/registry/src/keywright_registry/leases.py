"""Leases of a rename: who may take a path, and what nobody may write to meanwhile.

The registry looks first and writes then, so two may win, and it deletes what may be another's. Here one
script decides, and compares before it extends or releases. Leases and repositories live in different slots:
a lease cannot be part of a transaction on the repository.
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

    Whoever it is granted to is the token: the same one may take it again, which makes it last longer.
    """

    def __init__(self, new_path: str) -> None:
        self.path = new_path
        self.key = RepositoryLease.of(new_path)

    def acquire(self, granted_to: str, hold: timedelta = RENAME_HOLD) -> Call[bool]:
        """Take the path, or keep it for longer; False when it is granted to another."""
        return acquire(self.key, self._stamp(granted_to), hold)

    def extend(self, granted_to: str, hold: timedelta = RENAME_HOLD) -> Call[bool]:
        """Keep the path for longer; False when it ran out or is granted to another: stop then."""
        return extend(self.key, self._stamp(granted_to), hold)

    def release(self, granted_to: str) -> Call[bool]:
        """Give the path up; False when it was not granted to this one (any more)."""
        return release(self.key, self._stamp(granted_to))

    def holder(self) -> Call[str | None]:
        """Whom the path is granted to."""
        return self.key.get().map(_grantee)

    def remaining(self, granted_to: str) -> Call[timedelta]:
        """How long the grant of this one still lasts: nothing when it has none. One transaction."""
        return atomic(self.holder(), self.key.ttl()).map(
            lambda found: found[1] or timedelta(0) if found[0] == granted_to else timedelta(0)
        )

    def _stamp(self, granted_to: str) -> bytes:
        return self.key.declaration.encode(RenameGrant(granted_to, self.path))


def project(path: str) -> ProjectLease:
    """The lease that stops writes to a path and everything below; hold it with a token, for seconds only.

    The registry stores the path in it and looks only for whether it is there.
    """
    return ProjectLease.of(path)


def blocked(path: str) -> Call[bool]:
    """Whether a path, or one above it, is being renamed. The registry lets write when Redis is not there."""
    return gather_list(ProjectLease.of(each).exists() for each in ancestry(path)).map(any)


def _grantee(grant: RenameGrant | None) -> str | None:
    return None if grant is None else grant.granted_to
