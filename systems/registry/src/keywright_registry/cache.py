"""The repository cache as calls: read, write, invalidate, rename, and fill after a miss.

A fill is the write of a reader after its query, so it may be outdated by then. Readers therefore take the
fill lease of the repository before they query, every other write ends that lease, and a fill is written only
while its token still holds it: a value that was read before a commit never overwrites one written after it.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from datetime import timedelta
from functools import lru_cache
from typing import Any

import msgspec

from keywright import Call, CodecError, atomic, gather, gather_list
from keywright.errors import StoredDataError
from keywright.operations import (
    Command,
    Effect,
    Operation,
    Steps,
    as_is,
    commit,
    nothing,
    procedure,
    stored_equals,
)
from keywright_registry.repository import Repository
from keywright_registry.schema import (
    AbsentRepository,
    CachedRepository,
    FillLease,
    SizeTimeout,
    SizeWithDescendants,
)
from keywright_registry.transactions import OutsideTransaction

__all__ = ["Miss", "RepositoryCache", "read_all"]

GET = Operation("get", b"GET", Effect.READ)

ATTEMPTS = 3
REMEMBERED_KEYS = 16_384


class Miss(enum.Enum):
    """The reason for a cache miss."""

    ABSENT = "nothing is cached"
    KNOWN_ABSENT = "it is cached that the path has no repository"
    MISMATCH = "a repository of another path is cached"


# Keys are immutable, and hashing a path costs more than finding its key here.
_key = lru_cache(REMEMBERED_KEYS)(CachedRepository.of)


class RepositoryCache:
    """Repositories by path. A repository of another path under the same key is never returned.

    Calls that write raise UsageError when they are run inside a database transaction. All keys of a
    repository live in one slot, so each call is atomic for one repository, on a cluster too; a call for
    several repositories is atomic for each of them. With `absence` the cache also remembers, for half a
    minute, that a path has no repository.
    """

    def __init__(self, *, absence: bool = False) -> None:
        self.absence = absence

    def get(self, path: str) -> Call[Repository | None]:
        """Return the cached repository or None. Raise StoredDataError if it does not decode."""
        return _key(path).get().map(lambda found: None if found is None or found.path != path else found)

    def get_many(self, paths: Iterable[str]) -> Call[dict[str, Repository]]:
        """Return the cached repositories by path, in one round trip, without those that do not decode."""
        asked = list(paths)
        return read_all([_key(path) for path in asked]).map(
            lambda found: {
                path: each
                for path, each in zip(asked, found, strict=True)
                if each is not None and each.path == path
            }
        )

    def look(self, path: str) -> Call[Repository | Miss]:
        """Return the cached repository, or why there is none. Raise StoredDataError if it does not decode."""
        if not self.absence:
            return _key(path).get().map(lambda found: _looked(path, found))
        asked = gather(_key(path).get(), AbsentRepository.of(path).exists())
        return asked.map(lambda both: _looked(path, both[0], known_absent=both[1]))

    def remaining(self, path: str) -> Call[timedelta | None]:
        """Return the time until the cached repository expires."""
        return _key(path).ttl()

    def set(self, repository: Repository) -> Call[None]:
        """Cache a committed repository."""
        path = repository.path
        write = _ending_fill(path, AbsentRepository.of(path).delete(), _key(path).set(repository))
        return OutsideTransaction(write)

    def delete(self, *paths: str) -> Call[None]:
        """Delete repositories from the cache, with their cached sizes."""
        return OutsideTransaction(gather_list(_delete(path) for path in paths).map(nothing))

    def appeared(self, path: str) -> Call[None]:
        """Drop the cached absence of a path; a cached repository stays."""
        return OutsideTransaction(_ending_fill(path, AbsentRepository.of(path).delete()))

    def rename(self, moved: Sequence[tuple[str, Repository]]) -> Call[None]:
        """Delete every old path and cache the renamed repository, for the path and all paths below it.

        `MetadataTransaction.rename` returns these pairs.
        """
        return gather(self.delete(*(old for old, _ in moved)), *(self.set(new) for _, new in moved)).map(
            nothing
        )

    def invalidate_size(self, path: str) -> Call[bool]:
        """Drop the size in a cached repository and keep its expiry; return whether there was one.

        A compare-and-set, so nothing newer is overwritten and nothing expired is restored. If other writers
        win every attempt, the repository is deleted instead.
        """
        return OutsideTransaction(self._without_size(path))

    def begin_fill(self, path: str, token: str, hold: timedelta) -> Call[bool]:
        """Take the fill lease; return False if another process has it."""
        return FillLease.of(path).acquire(token, hold)

    def fill(self, path: str, found: Repository | None, token: str) -> Call[bool]:
        """Cache the result of a query; write nothing and return False if the token lost the fill lease."""
        lease = FillLease.of(path)
        writes: list[Call[Any]] = [_key(path).delete() if found is None else _key(path).set(found)]
        if found is None and self.absence:
            writes.append(AbsentRepository.of(path).set(value=True))
        return commit("fill", [lease.held_by(token)], [*writes, lease.delete()], subject=path).map(bool)

    def abandon_fill(self, path: str, token: str) -> Call[bool]:
        """Release the fill lease."""
        return FillLease.of(path).release(token)

    @procedure
    def _without_size(self, path: str) -> Steps[bool]:
        key = _key(path)
        for _ in range(ATTEMPTS):
            try:
                _, stored = yield gather(FillLease.of(path).delete(), Command(GET, key, (), as_is))
                if stored is None:
                    return False
                found: Repository = key.declaration.decode(stored)
            except (StoredDataError, CodecError):
                break
            if found.size is None:
                return False
            smaller = key.set(msgspec.structs.replace(found, size=None), keep_ttl=True)
            if (
                yield commit("invalidate the size of", [stored_equals(key, stored)], [smaller], subject=path)
            ):
                return True
        yield _delete(path)
        return True


@procedure
def read_all(keys: Sequence[CachedRepository]) -> Steps[list[Repository | None]]:
    """Return the repository of each key, in one round trip; None where it does not decode."""
    try:
        found = yield CachedRepository.get_many(keys)
    except StoredDataError:
        found = yield gather_list(key.get().attempt() for key in keys)
    return [each if isinstance(each, Repository) else None for each in found]


def _looked(path: str, found: Repository | None, *, known_absent: bool = False) -> Repository | Miss:
    if found is not None:
        return found if found.path == path else Miss.MISMATCH
    return Miss.KNOWN_ABSENT if known_absent else Miss.ABSENT


def _delete(path: str) -> Call[None]:
    others = [kind.of(path).delete() for kind in (AbsentRepository, SizeWithDescendants, SizeTimeout)]
    return _ending_fill(path, _key(path).delete(), *others)


def _ending_fill(path: str, *writes: Call[bool]) -> Call[None]:
    return atomic(FillLease.of(path).delete(), *writes).map(nothing)
