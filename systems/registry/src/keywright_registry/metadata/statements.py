"""Every statement on the registry's tables, as operations that any of the databases can run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from keywright import Clock
from keywright.errors import ConflictError
from keywright_registry.batches import portions
from keywright_registry.errors import RepositoryPathError
from keywright_registry.metadata.dialect import Dialect, Operation, Row
from keywright_registry.metadata.migrations import steps
from keywright_registry.metadata.paths import (
    ancestry,
    check_length,
    check_path,
    is_storable,
    name_of,
    namespace_of,
    parent_of,
)
from keywright_registry.repository import Counts, Repository

__all__ = ["BATCH_MEMORY", "Statements"]

BATCH_MEMORY = timedelta(days=30)
"""How long a batch of counts is remembered; one that is added again later would count twice."""

_ATTEMPTS = 10

_COLUMNS = (
    "id, namespace_id, name, path, parent_id, created_at, updated_at, deleted_at, size, last_published_at"
)
_LIVING = f"SELECT {_COLUMNS} FROM repositories WHERE deleted_at IS NULL AND path"
# Everything below a path: '0' is the character after '/'. LIKE would take _ for any character.
_SUBTREE = "(path = :old OR (path >= :low AND path < :high))"


class Statements:
    """Operations on one database. Those that write want a transaction around them."""

    def __init__(self, dialect: Dialect, clock: Clock) -> None:
        self._dialect = dialect
        self._clock = clock

    def migrate(self) -> Operation[list[str]]:
        if self._dialect.queue:
            yield self._dialect.queue, {}
        yield (
            (
                "CREATE TABLE IF NOT EXISTS schema_migrations "
                f"(name text PRIMARY KEY, applied_at {self._dialect.time_type} NOT NULL)"
            ),
            {},
        )
        rows = yield "SELECT name FROM schema_migrations", {}
        applied = {name for (name,) in rows}
        missing = [step for step in steps(self._dialect.name) if step.name not in applied]
        for step in missing:
            for statement in step.statements:
                yield statement, {}
            record = "INSERT INTO schema_migrations (name, applied_at) VALUES (:name, :now)"
            yield record, {"name": step.name, "now": self._now()}
        return [step.name for step in missing]

    def find(self, path: str) -> Operation[Repository | None]:
        if not is_storable(path):
            return None
        rows = yield f"{_LIVING} = :path", {"path": path}
        return self._repository(rows[0]) if rows else None

    def find_many(self, paths: Sequence[str]) -> Operation[dict[str, Repository]]:
        found: dict[str, Repository] = {}
        for chunk in portions([path for path in dict.fromkeys(paths) if is_storable(path)]):
            values = {f"p{number}": path for number, path in enumerate(chunk)}
            rows = yield f"{_LIVING} IN ({', '.join(f':{name}' for name in values)})", values
            found |= {each.path: each for each in map(self._repository, rows)}
        return found

    def create_or_find(self, path: str) -> Operation[Repository]:
        check_path(path)
        if found := (yield from self.find(path)):
            return found
        return (yield from self._create_or_keep(path))

    def update(self, repository: Repository) -> Operation[Repository]:
        rows = yield (
            (
                "UPDATE repositories SET size = :size, updated_at = :now, "
                "last_published_at = :last_published_at "
                f"WHERE id = :id AND deleted_at IS NULL RETURNING {_COLUMNS}"
            ),
            {
                "id": repository.id,
                "size": repository.size,
                "last_published_at": self._dialect.write_time(repository.last_published_at),
                "now": self._now(),
            },
        )
        if not rows:
            raise RepositoryPathError(
                repository.path, f"has no row with id {repository.id}", "Find it again, then update that."
            )
        return self._repository(rows[0])

    def delete(self, path: str) -> Operation[bool]:
        if not is_storable(path):
            return False
        rows = yield f"{_LIVING} = :path{self._dialect.lock}", {"path": path}
        if not rows:
            return False
        found = self._repository(rows[0])
        below = yield (
            "SELECT path FROM repositories WHERE parent_id = :id AND deleted_at IS NULL LIMIT 1",
            {"id": found.id},
        )
        if below:
            raise RepositoryPathError(path, f"has {below[0][0]!r} below it", "Delete what is below it first.")
        yield (
            "UPDATE repositories SET deleted_at = :now, updated_at = :now WHERE id = :id",
            {"id": found.id, "now": self._now()},
        )
        return True

    def rename(self, old: str, new: str) -> Operation[list[tuple[str, Repository]]]:
        check_path(new)
        if not is_storable(old):
            raise RepositoryPathError(old, "does not exist", "Name one that does.")
        if new == old or new.startswith(f"{old}/"):
            raise RepositoryPathError(new, f"is {old!r} or below it", "Choose another new name.")
        yield from self._lock_subtree(old, new)
        yield from self._require_free(new)
        parent_path = parent_of(new)
        parent = (yield from self._create_or_keep(parent_path)) if parent_path else None
        rows = yield (
            (
                "UPDATE repositories SET path = :new || substr(path, :cut), updated_at = :now, "
                "namespace_id = :namespace, "
                "name = CASE WHEN path = :old THEN :name ELSE name END, "
                "parent_id = CASE WHEN path = :old THEN :parent ELSE parent_id END "
                f"WHERE deleted_at IS NULL AND {_SUBTREE} RETURNING {_COLUMNS}"
            ),
            {
                **_below(old),
                "new": new,
                "cut": len(old) + 1,
                "now": self._now(),
                "namespace": (yield from self._namespace(namespace_of(new))),
                "name": name_of(new),
                "parent": parent.id if parent else None,
            },
        )
        yield from self._move_counts(old, new)
        moved = sorted(map(self._repository, rows), key=lambda each: each.path)
        return [(old + each.path[len(new) :], each) for each in moved]

    def add_counts(self, batch: str, counts: Sequence[Counts]) -> Operation[bool]:
        now = self._clock()
        added = yield (
            (
                "INSERT INTO count_batches (batch, added_at) VALUES (:batch, :now) "
                "ON CONFLICT (batch) DO NOTHING RETURNING batch"
            ),
            {"batch": batch, "now": self._dialect.write_time(now)},
        )
        if not added:
            return False
        yield from self._add(counts)
        forgotten = self._dialect.write_time(now - BATCH_MEMORY)
        yield "DELETE FROM count_batches WHERE added_at < :forgotten", {"forgotten": forgotten}
        return True

    def counts(self, path: str) -> Operation[Counts]:
        if not is_storable(path):
            return Counts(path)
        rows = yield "SELECT pulls, pushes FROM repository_counts WHERE path = :path", {"path": path}
        return Counts(path, *rows[0]) if rows else Counts(path)

    def counts_with(self, path: str, batch: str) -> Operation[tuple[Counts, bool]]:
        if not is_storable(path):
            return Counts(path), False
        # One statement, so that a batch is not added between two of them.
        rows = yield (
            (
                "SELECT (SELECT pulls FROM repository_counts WHERE path = :path), "
                "(SELECT pushes FROM repository_counts WHERE path = :path), "
                "EXISTS (SELECT 1 FROM count_batches WHERE batch = :batch)"
            ),
            {"path": path, "batch": batch},
        )
        pulls, pushes, added = rows[0]
        return Counts(path, pulls or 0, pushes or 0), bool(added)

    def _namespace(self, name: str) -> Operation[int]:
        values = {"name": name, "now": self._now()}
        yield (
            "INSERT INTO namespaces (name, created_at) VALUES (:name, :now) ON CONFLICT (name) DO NOTHING",
            values,
        )
        rows = yield "SELECT id FROM namespaces WHERE name = :name", {"name": name}
        return int(rows[0][0])

    def _create_or_keep(self, path: str) -> Operation[Repository]:
        """The living rows of a path and its parents, which stay what they are until the transaction ends."""
        namespace = yield from self._namespace(namespace_of(path))
        made: Repository | None = None
        for each in ancestry(path):
            made = yield from self._insert_or_keep(each, namespace, made.id if made else None)
        assert made is not None  # a path has at least one part
        return made

    def _insert_or_keep(self, path: str, namespace: int, parent: int | None) -> Operation[Repository]:
        """The living row of a path, kept from being removed or renamed until the transaction ends."""
        values = {
            "namespace": namespace,
            "name": name_of(path),
            "path": path,
            "parent": parent,
            "now": self._now(),
        }
        # The row may come or go between the two statements; each of them is sure of what it returns.
        for _ in range(_ATTEMPTS):
            if rows := (yield f"{_LIVING} = :path{self._dialect.keep}", {"path": path}):
                return self._repository(rows[0])
            rows = yield (
                (
                    "INSERT INTO repositories (namespace_id, name, path, parent_id, created_at) "
                    "VALUES (:namespace, :name, :path, :parent, :now) "
                    f"ON CONFLICT (path) WHERE deleted_at IS NULL DO NOTHING RETURNING {_COLUMNS}"
                ),
                values,
            )
            if rows:
                return self._repository(rows[0])
        raise ConflictError(f"create {path!r}", _ATTEMPTS)

    def _lock_subtree(self, old: str, new: str) -> Operation[None]:
        # Whoever adds a repository keeps its parent: until no new ones show up, waiting brought some in.
        locked: list[str] | None = None
        while True:
            rows = yield (
                (
                    f"SELECT path FROM repositories WHERE deleted_at IS NULL AND {_SUBTREE} "
                    f"ORDER BY path{self._dialect.lock}"
                ),
                _below(old),
            )
            found = [path for (path,) in rows]
            if found == locked:
                break
            locked = found
        if old not in found:
            raise RepositoryPathError(old, "does not exist", "Name one that does.")
        for path in found:
            check_length(new + path[len(old) :])

    def _require_free(self, new: str) -> Operation[None]:
        rows = yield (
            f"SELECT path FROM repositories WHERE deleted_at IS NULL AND {_SUBTREE} LIMIT 1",
            _below(new),
        )
        if rows:
            raise RepositoryPathError(new, f"is taken by {rows[0][0]!r}", "Choose another new name.")

    def _move_counts(self, old: str, new: str) -> Operation[None]:
        rows = yield (
            f"DELETE FROM repository_counts WHERE {_SUBTREE} RETURNING path, pulls, pushes",
            _below(old),
        )
        yield from self._add([Counts(new + path[len(old) :], *numbers) for path, *numbers in rows])

    def _add(self, counts: Iterable[Counts]) -> Operation[None]:
        sums: dict[str, tuple[int, int]] = {}
        for each in counts:
            if not is_storable(each.path):
                raise RepositoryPathError(each.path, "is no text that can be stored", "Leave it out.")
            pulls, pushes = sums.get(each.path, (0, 0))
            sums[each.path] = pulls + each.pulls, pushes + each.pushes
        # In order, so that two batches that share repositories wait for each other instead of locking up.
        for chunk in portions(sorted(sums)):
            values: dict[str, object] = {}
            for number, path in enumerate(chunk):
                pulls, pushes = sums[path]
                values |= {f"p{number}": path, f"l{number}": pulls, f"s{number}": pushes}
            rows = ", ".join(f"(:p{number}, :l{number}, :s{number})" for number in range(len(chunk)))
            yield (
                (
                    f"INSERT INTO repository_counts (path, pulls, pushes) VALUES {rows} "
                    "ON CONFLICT (path) DO UPDATE SET pulls = repository_counts.pulls + excluded.pulls, "
                    "pushes = repository_counts.pushes + excluded.pushes"
                ),
                values,
            )

    def _repository(self, row: Row) -> Repository:
        identity, (created, updated, deleted), (size, published) = row[:5], row[5:8], row[8:]
        return Repository(
            **dict(zip(_IDENTITY, identity, strict=True)),
            created_at=self._time(created),
            updated_at=self._dialect.read_time(updated),
            deleted_at=self._dialect.read_time(deleted),
            size=size,
            last_published_at=self._dialect.read_time(published),
        )

    def _time(self, stored: Any) -> datetime:
        time = self._dialect.read_time(stored)
        assert time is not None  # the column is NOT NULL
        return time

    def _now(self) -> object:
        return self._dialect.write_time(self._clock())


_IDENTITY = ("id", "namespace_id", "name", "path", "parent_id")


def _below(path: str) -> dict[str, object]:
    return {"old": path, "low": f"{path}/", "high": f"{path}0"}
