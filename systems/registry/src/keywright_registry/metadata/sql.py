"""The repositories and their counts as tables: every statement once, in the SQL of PostgreSQL.

SQLite runs the same statements and migrations; `sqlite.py` translates the few constructs that it lacks
(docs/decisions/0012-registry-metadata.md).
"""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta
from importlib.resources import files
from typing import Any, Concatenate, ParamSpec, Protocol, TypeAlias, TypeVar

from keywright import Clock
from keywright.errors import ConflictError, UsageError
from keywright_registry.batches import batched
from keywright_registry.errors import MetadataError, RepositoryPathError
from keywright_registry.paths import (
    ancestry,
    check_length,
    check_path,
    is_storable,
    name_of,
    namespace_of,
    parent_of,
)
from keywright_registry.repository import Counts, Repository

__all__ = ["BATCH_MEMORY", "Connections", "Execute", "Row", "SqlMetadata", "SqlTransaction", "migrations"]

T = TypeVar("T")
P = ParamSpec("P")

BATCH_MEMORY = timedelta(days=30)
"""How long the id of a batch of counts is kept; the same batch added later would count twice."""

_ATTEMPTS = 10
_MIGRATION_LOCK = 0x6B77_7265_6769  # "kwregi": any number that no other program locks

_COLUMNS = (
    "id, namespace_id, name, path, parent_id, created_at, updated_at, deleted_at, size, last_published_at"
)
_FIELDS = tuple(_COLUMNS.split(", "))
_LIVING = f"SELECT {_COLUMNS} FROM repositories WHERE deleted_at IS NULL AND path"
# '0' is the character after '/'. LIKE would take _ in a path as a wildcard.
_SUBTREE = "(path = %(top)s OR (path >= %(low)s AND path < %(high)s))"

Row: TypeAlias = tuple[Any, ...]  # drivers return untyped rows


class Execute(Protocol):
    """Run one statement with `%(name)s` for values; return its rows. Errors of the driver are translated."""

    async def __call__(self, statement: str, values: Mapping[str, object] | None = None) -> list[Row]: ...


class Connections(Protocol):
    """The open connections to one database."""

    @property
    def shown(self) -> str:
        """Its location without user and password, for messages."""
        ...

    async def read(self, statement: str, values: Mapping[str, object] | None = None) -> list[Row]:
        """Run one statement that only reads, outside a transaction."""
        ...

    def transaction(self) -> AbstractAsyncContextManager[Execute]:
        """Commit when the block ends without an error, else roll back."""
        ...

    async def close(self) -> None: ...


def migrations() -> dict[str, list[str]]:
    """Return the statements of each migration by its name, oldest first. Released ones are not edited."""
    sources = [each for each in files(__package__).joinpath("migrations").iterdir() if each.is_file()]
    return {
        source.name.removesuffix(".sql"): [
            stripped for part in source.read_text("utf-8").split(";") if (stripped := part.strip())
        ]
        for source in sorted(sources, key=lambda each: each.name)
    }


class SqlMetadata:
    """The `Metadata` of one database."""

    def __init__(self, connections: Connections, clock: Clock) -> None:
        self._connections = connections
        self._clock = clock

    async def migrate(self) -> list[str]:
        async with self._connections.transaction() as execute:
            await execute(f"SELECT pg_advisory_xact_lock({_MIGRATION_LOCK})")
            await execute(
                "CREATE TABLE IF NOT EXISTS schema_migrations "
                "(name text PRIMARY KEY, applied_at timestamptz NOT NULL)"
            )
            applied = {name for (name,) in await execute("SELECT name FROM schema_migrations")}
            missing = {name: steps for name, steps in migrations().items() if name not in applied}
            for name, statements in missing.items():
                for statement in statements:
                    await execute(statement)
                await execute(
                    "INSERT INTO schema_migrations (name, applied_at) VALUES (%(name)s, %(now)s)",
                    {"name": name, "now": self._clock()},
                )
            return list(missing)

    async def find(self, path: str) -> Repository | None:
        return await _find(self._connections.read, path)

    async def find_many(self, paths: Sequence[str]) -> dict[str, Repository]:
        found: dict[str, Repository] = {}
        for some in batched([path for path in dict.fromkeys(paths) if is_storable(path)]):
            values = {f"p{number}": path for number, path in enumerate(some)}
            listed = ", ".join(f"%({name})s" for name in values)
            rows = await self._connections.read(f"{_LIVING} IN ({listed})", values)
            found |= {each.path: each for each in map(_repository, rows)}
        return found

    async def page(self, after: str, limit: int) -> list[Repository]:
        if not is_storable(after):
            return []
        rows = await self._connections.read(
            f"{_LIVING} > %(after)s ORDER BY path LIMIT %(limit)s", {"after": after, "limit": limit}
        )
        return [_repository(row) for row in rows]

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[SqlTransaction]:
        async with self._connections.transaction() as execute:
            transaction = SqlTransaction(execute, self._clock)
            try:
                yield transaction
                if transaction.failed:
                    raise MetadataError(
                        self._connections.shown,
                        "an operation of this transaction failed, so all of it was rolled back",
                        "Let its error leave the block, then begin again.",
                    )
            finally:
                transaction.over = True

    async def add_counts(self, batch: str, counts: Sequence[Counts]) -> bool:
        async with self._connections.transaction() as execute:
            now = self._clock()
            added = await execute(
                "INSERT INTO count_batches (batch, added_at) VALUES (%(batch)s, %(now)s) "
                "ON CONFLICT (batch) DO NOTHING RETURNING batch",
                {"batch": batch, "now": now},
            )
            if added:
                await _add_counts(execute, counts)
                await execute(
                    "DELETE FROM count_batches WHERE added_at < %(oldest)s", {"oldest": now - BATCH_MEMORY}
                )
            return bool(added)

    async def counts(self, path: str) -> Counts:
        if not is_storable(path):
            return Counts(path)
        rows = await self._connections.read(
            "SELECT pulls, pushes FROM repository_counts WHERE path = %(path)s", {"path": path}
        )
        return Counts(path, *rows[0]) if rows else Counts(path)

    async def counts_with(self, path: str, batch: str) -> tuple[Counts, bool]:
        if not is_storable(path):
            return Counts(path), False
        # One statement, so that no batch is added between two.
        rows = await self._connections.read(
            "SELECT (SELECT pulls FROM repository_counts WHERE path = %(path)s), "
            "(SELECT pushes FROM repository_counts WHERE path = %(path)s), "
            "EXISTS (SELECT 1 FROM count_batches WHERE batch = %(batch)s)",
            {"path": path, "batch": batch},
        )
        pulls, pushes, added = rows[0]
        return Counts(path, pulls or 0, pushes or 0), bool(added)

    async def close(self) -> None:
        await self._connections.close()

    def __repr__(self) -> str:
        return f"<SqlMetadata {self._connections.shown}>"


Method = Callable[Concatenate["SqlTransaction", P], Coroutine[Any, Any, T]]


def _operation(method: Method[P, T]) -> Method[P, T]:
    """Refuse an operation after the end of its transaction, and record that it failed half-way.

    PostgreSQL answers the COMMIT of a failed transaction with ROLLBACK and reports success, and SQLite would
    commit the statements before the failure.
    """

    @functools.wraps(method)
    async def run(self: SqlTransaction, /, *args: P.args, **kwargs: P.kwargs) -> T:
        if self.over:
            raise UsageError("this transaction is over. Use it inside the block that opened it.")
        try:
            return await method(self, *args, **kwargs)
        except RepositoryPathError:  # raised before anything is changed
            raise
        except BaseException:
            self.failed = True
            raise

    return run


class SqlTransaction:
    """The `MetadataTransaction` of one database."""

    def __init__(self, execute: Execute, clock: Clock) -> None:
        self.failed = False
        self.over = False
        self._execute = execute
        self._clock = clock

    @_operation
    async def find(self, path: str) -> Repository | None:
        return await _find(self._execute, path)

    @_operation
    async def create_or_find(self, path: str) -> Repository:
        check_path(path)
        return await _find(self._execute, path) or await self._create_or_keep(path)

    @_operation
    async def update(self, repository: Repository) -> Repository:
        rows = await self._execute(
            "UPDATE repositories SET size = %(size)s, updated_at = %(now)s, "
            "last_published_at = %(last_published_at)s "
            f"WHERE id = %(id)s AND deleted_at IS NULL RETURNING {_COLUMNS}",
            {
                "id": repository.id,
                "size": repository.size,
                "last_published_at": repository.last_published_at,
                "now": self._clock(),
            },
        )
        if not rows:
            raise RepositoryPathError(
                repository.path, f"has no row with id {repository.id}", "Find it again, then update that."
            )
        return _repository(rows[0])

    @_operation
    async def delete(self, path: str) -> bool:
        if not is_storable(path):
            return False
        rows = await self._execute(f"{_LIVING} = %(path)s FOR UPDATE", {"path": path})
        if not rows:
            return False
        found = _repository(rows[0])
        below = await self._execute(
            "SELECT path FROM repositories WHERE parent_id = %(id)s AND deleted_at IS NULL LIMIT 1",
            {"id": found.id},
        )
        if below:
            raise RepositoryPathError(path, f"has {below[0][0]!r} below it", "Delete what is below it first.")
        await self._execute(
            "UPDATE repositories SET deleted_at = %(now)s, updated_at = %(now)s WHERE id = %(id)s",
            {"id": found.id, "now": self._clock()},
        )
        return True

    @_operation
    async def rename(self, old: str, new: str) -> list[tuple[str, Repository]]:
        check_path(new)
        if not is_storable(old):
            raise RepositoryPathError(old, "does not exist", "Name an existing one.")
        if new == old or new.startswith(f"{old}/"):
            raise RepositoryPathError(new, f"is {old!r} or below it", "Choose another new name.")
        await self._lock_subtree(old, new)
        await self._require_free(new)
        parent_path = parent_of(new)
        parent = await self._create_or_keep(parent_path) if parent_path else None
        namespace = await self._namespace(namespace_of(new))
        rows = await self._execute(
            "UPDATE repositories SET path = %(new)s || substr(path, %(cut)s), updated_at = %(now)s, "
            "namespace_id = %(namespace)s, "
            "name = CASE WHEN path = %(top)s THEN %(name)s ELSE name END, "
            "parent_id = CASE WHEN path = %(top)s THEN %(parent)s ELSE parent_id END "
            f"WHERE deleted_at IS NULL AND {_SUBTREE} RETURNING {_COLUMNS}",
            {
                **_bounds(old),
                "new": new,
                "cut": len(old) + 1,
                "now": self._clock(),
                "namespace": namespace,
                "name": name_of(new),
                "parent": parent.id if parent else None,
            },
        )
        await self._move_counts(old, new)
        moved = sorted(map(_repository, rows), key=lambda each: each.path)
        return [(old + each.path[len(new) :], each) for each in moved]

    async def _namespace(self, name: str) -> int:
        await self._execute(
            "INSERT INTO namespaces (name, created_at) VALUES (%(name)s, %(now)s) "
            "ON CONFLICT (name) DO NOTHING",
            {"name": name, "now": self._clock()},
        )
        rows = await self._execute("SELECT id FROM namespaces WHERE name = %(name)s", {"name": name})
        return int(rows[0][0])

    async def _create_or_keep(self, path: str) -> Repository:
        """Return the row of a path; it and its parents cannot be removed or renamed until the commit."""
        namespace = await self._namespace(namespace_of(path))
        made: Repository | None = None
        for each in ancestry(path):
            made = await self._insert_or_keep(each, namespace, made.id if made else None)
        assert made is not None  # a path has at least one part
        return made

    async def _insert_or_keep(self, path: str, namespace: int, parent: int | None) -> Repository:
        # The row may come or go between the two statements; each of them is sure of what it returns.
        for _ in range(_ATTEMPTS):
            rows = await self._execute(f"{_LIVING} = %(path)s FOR KEY SHARE", {"path": path})
            if not rows:
                rows = await self._execute(
                    "INSERT INTO repositories (namespace_id, name, path, parent_id, created_at) "
                    "VALUES (%(namespace)s, %(name)s, %(path)s, %(parent)s, %(now)s) "
                    f"ON CONFLICT (path) WHERE deleted_at IS NULL DO NOTHING RETURNING {_COLUMNS}",
                    {
                        "namespace": namespace,
                        "name": name_of(path),
                        "path": path,
                        "parent": parent,
                        "now": self._clock(),
                    },
                )
            if rows:
                return _repository(rows[0])
        raise ConflictError(f"create {path!r}", _ATTEMPTS)

    async def _lock_subtree(self, old: str, new: str) -> None:
        # A writer that adds a repository keeps its parent, so waiting for the locks may bring in new rows.
        locked: list[str] | None = None
        while True:
            rows = await self._execute(
                f"SELECT path FROM repositories WHERE deleted_at IS NULL AND {_SUBTREE} "
                "ORDER BY path FOR UPDATE",
                _bounds(old),
            )
            found = [path for (path,) in rows]
            if found == locked:
                break
            locked = found
        if old not in found:
            raise RepositoryPathError(old, "does not exist", "Name an existing one.")
        for path in found:
            check_length(new + path[len(old) :])

    async def _require_free(self, new: str) -> None:
        rows = await self._execute(
            f"SELECT path FROM repositories WHERE deleted_at IS NULL AND {_SUBTREE} LIMIT 1", _bounds(new)
        )
        if rows:
            raise RepositoryPathError(new, f"is taken by {rows[0][0]!r}", "Choose another new name.")

    async def _move_counts(self, old: str, new: str) -> None:
        rows = await self._execute(
            f"DELETE FROM repository_counts WHERE {_SUBTREE} RETURNING path, pulls, pushes", _bounds(old)
        )
        moved = [Counts(new + path[len(old) :], *numbers) for path, *numbers in rows]
        await _add_counts(self._execute, moved)


async def _find(execute: Execute, path: str) -> Repository | None:
    if not is_storable(path):
        return None
    rows = await execute(f"{_LIVING} = %(path)s", {"path": path})
    return _repository(rows[0]) if rows else None


async def _add_counts(execute: Execute, counts: Iterable[Counts]) -> None:
    sums: dict[str, tuple[int, int]] = {}
    for each in counts:
        if not is_storable(each.path):
            raise RepositoryPathError(each.path, "is not text that a database can store", "Leave it out.")
        pulls, pushes = sums.get(each.path, (0, 0))
        sums[each.path] = pulls + each.pulls, pushes + each.pushes
    # In order, so that two batches that share repositories wait for each other instead of a deadlock.
    for some in batched(sorted(sums)):
        values: dict[str, object] = {}
        for number, path in enumerate(some):
            pulls, pushes = sums[path]
            values |= {f"p{number}": path, f"l{number}": pulls, f"s{number}": pushes}
        rows = ", ".join(f"(%(p{number})s, %(l{number})s, %(s{number})s)" for number in range(len(some)))
        await execute(
            f"INSERT INTO repository_counts (path, pulls, pushes) VALUES {rows} "
            "ON CONFLICT (path) DO UPDATE SET pulls = repository_counts.pulls + excluded.pulls, "
            "pushes = repository_counts.pushes + excluded.pushes",
            values,
        )


def _repository(row: Row) -> Repository:
    return Repository(**dict(zip(_FIELDS, row, strict=True)))


def _bounds(path: str) -> dict[str, object]:
    return {"top": path, "low": f"{path}/", "high": f"{path}0"}
