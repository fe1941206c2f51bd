"""The cached repositories as calls: read, write, invalidate, rename, and fill after a miss.

A fill is what a reader writes after asking the database, so it may be old by then. Readers therefore take the
repository's `:filling` lease before they ask, every other write ends that lease, and a fill is written only
while its token still has it: what was committed last is never overwritten by what was read before.
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
from keywright_registry.transactions import Outside

__all__ = ["Miss", "RepositoryCache", "read_all"]

GET = Operation("get", b"GET", Effect.READ)

ATTEMPTS = 3
REMEMBERED_KEYS = 16_384


class Miss(enum.Enum):
    """Why there is no repository in the cache."""

    ABSENT = "nothing is cached"
    KNOWN_ABSENT = "it is cached that there is none"
    MISMATCH = "a repository of another path is cached"


# Keys are immutable, and hashing a path costs more than finding it here.
_key = lru_cache(REMEMBERED_KEYS)(CachedRepository.of)


class RepositoryCache:
    """Repositories by path. A repository of another path under the same key is never returned.

    Calls that write raise UsageError when they are run inside a database transaction. All keys of a
    repository live in one slot, so each call is atomic for one repository, on a cluster too; a call for
    several is so for each of them. `absence` also caches, for half a minute, that there is none.
    """

    def __init__(self, *, absence: bool = False) -> None:
        self.absence = absence

    def get(self, path: str) -> Call[Repository | None]:
        """The cached repository, or None. StoredDataError if it does not decode."""
        return _key(path).get().map(lambda found: None if found is None or found.path != path else found)

    def get_many(self, paths: Iterable[str]) -> Call[dict[str, Repository]]:
        """Those that are cached, in one round trip. What does not decode is left out."""
        asked = list(paths)
        return read_all([_key(path) for path in asked]).map(
            lambda found: {
                path: each
                for path, each in zip(asked, found, strict=True)
                if each is not None and each.path == path
            }
        )

    def look(self, path: str) -> Call[Repository | Miss]:
        """The same as `get`, telling why there is none; known absence too, where it is cached."""
        if not self.absence:
            return _key(path).get().map(lambda found: _looked(path, found))
        asked = gather(_key(path).get(), AbsentRepository.of(path).exists())
        return asked.map(lambda both: _looked(path, both[0], known_absent=both[1]))

    def remaining(self, path: str) -> Call[timedelta | None]:
        """How long the cached repository still lives."""
        return _key(path).ttl()

    def set(self, repository: Repository) -> Call[None]:
        """Cache a repository as it was committed."""
        path = repository.path
        return Outside(_ending_fill(path, AbsentRepository.of(path).delete(), _key(path).set(repository)))

    def delete(self, *paths: str) -> Call[None]:
        """Forget repositories, and what is known of their sizes."""
        return Outside(gather_list(_forget(path) for path in paths).map(nothing))

    def appeared(self, path: str) -> Call[None]:
        """Forget that there is no repository of this path; what else is cached stays."""
        return Outside(_ending_fill(path, AbsentRepository.of(path).delete()))

    def rename(self, moved: Sequence[tuple[str, Repository]]) -> Call[None]:
        """Forget every old path and cache what it became: the path renamed, and all that was below it.

        Which those are the database knows: `Transaction.rename` returns them.
        """
        return gather(self.delete(*(old for old, _ in moved)), *(self.set(new) for _, new in moved)).map(
            nothing
        )

    def invalidate_size(self, path: str) -> Call[bool]:
        """Forget the size in a cached repository, whose expiry stays as it is; whether there was one.

        Compared and written in one step, so nothing newer is overwritten and nothing that expired comes back.
        Where others keep writing, the repository is forgotten instead.
        """
        return Outside(self._without_size(path))

    def begin_fill(self, path: str, token: str, hold: timedelta) -> Call[bool]:
        """Be the one who asks the database; False when another is at it."""
        return FillLease.of(path).acquire(token, hold)

    def fill(self, path: str, found: Repository | None, token: str) -> Call[bool]:
        """Cache what the database said; False, and nothing is written, when the token's fill was ended."""
        filling = FillLease.of(path)
        writes: list[Call[Any]] = [_key(path).delete() if found is None else _key(path).set(found)]
        if found is None and self.absence:
            writes.append(AbsentRepository.of(path).set(value=True))
        return commit(f"fill {path!r}", [filling.held_by(token)], [*writes, filling.delete()]).map(bool)

    def abandon_fill(self, path: str, token: str) -> Call[bool]:
        """Let another ask the database."""
        return FillLease.of(path).release(token)

    @procedure
    def _without_size(self, path: str) -> Steps[bool]:
        key = _key(path)
        for _ in range(ATTEMPTS):
            try:
                _, stored = yield gather(FillLease.of(path).delete(), Command(GET, key, (), as_is))
                if stored is None:
                    return False
                found = key.declaration.decode(stored)
            except (StoredDataError, CodecError):
                break
            if found.size is None:
                return False
            smaller = key.set(_sizeless(found), keep_ttl=True)
            if (yield commit(f"invalidate {path!r}", [stored_equals(key, stored)], [smaller])):
                return True
        yield _forget(path)
        return True


@procedure
def read_all(keys: Sequence[CachedRepository]) -> Steps[list[Repository | None]]:
    """What is cached under each key, in one round trip; nothing where it does not decode."""
    try:
        found = yield CachedRepository.get_many(keys)
    except StoredDataError:
        found = yield gather_list(key.get().attempt() for key in keys)
    return [each if isinstance(each, Repository) else None for each in found]


def _looked(path: str, found: Repository | None, *, known_absent: bool = False) -> Repository | Miss:
    if found is not None:
        return found if found.path == path else Miss.MISMATCH
    return Miss.KNOWN_ABSENT if known_absent else Miss.ABSENT


def _forget(path: str) -> Call[None]:
    gone = [kind.of(path).delete() for kind in (AbsentRepository, SizeWithDescendants, SizeTimeout)]
    return _ending_fill(path, _key(path).delete(), *gone)


def _ending_fill(path: str, *writes: Call[bool]) -> Call[None]:
    return atomic(FillLease.of(path).delete(), *writes).map(nothing)


def _sizeless(repository: Repository) -> Repository:
    return msgspec.structs.replace(repository, size=None)
