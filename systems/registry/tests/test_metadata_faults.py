"""A metadata database that goes away, is locked or was never there, and the errors for it."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from keywright.errors import UsageError
from keywright_registry.errors import MetadataError, MetadataUnreachableError
from keywright_registry.metadata import Metadata, open_metadata, postgres, sqlite
from keywright_registry.repository import Counts
from keywright_registry.testing.postgres import PostgresServer

from .registry_databases import create, opened

pytestmark = pytest.mark.anyio

SECRET = "hunter2-top"


@pytest.fixture
def server(keywright_postgres: PostgresServer) -> Iterator[PostgresServer]:
    yield keywright_postgres
    keywright_postgres.start()


async def test_a_killed_server_is_an_error_and_after_its_restart_all_works(
    postgres_url: str, server: PostgresServer
) -> None:
    async with opened(postgres_url) as metadata:
        await create(metadata, "acme")
        server.kill()
        with pytest.raises(MetadataUnreachableError, match="Check that it runs"):
            await metadata.find("acme")
        server.start()
        await create(metadata, "acme/web")
        assert await metadata.find("acme/web") is not None


async def test_a_restart_of_the_server_is_not_noticed(postgres_url: str, server: PostgresServer) -> None:
    async with opened(postgres_url) as metadata:
        # Several connections are pooled; each of them is stale afterwards.
        await asyncio.gather(*(metadata.find("acme") for _ in range(8)))
        server.restart()
        await asyncio.gather(*(metadata.find("acme") for _ in range(8)))


async def test_a_server_that_dies_in_a_transaction_rolls_it_back(
    postgres_url: str, server: PostgresServer
) -> None:
    async with opened(postgres_url) as metadata:

        async def fail() -> None:
            async with metadata.transaction() as transaction:
                await transaction.create_or_find("acme")
                server.kill()
                await transaction.find("acme")

        with pytest.raises(MetadataUnreachableError):
            await fail()
        server.start()
        assert await metadata.find("acme") is None
        assert await metadata.add_counts("b1", [Counts("acme", 1)])


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://me:{SECRET}@127.0.0.1:1/registry",
        f"postgresql://me:{SECRET}@127.0.0.1:none/registry",
        f"postgresql://me:{SECRET}@[::1/registry",
        f"postgresql://127.0.0.1:1/registry?password={SECRET}&nonsense={SECRET}",
        f"mysql://me:{SECRET}@host/registry",
        f"sqlite://me:{SECRET}@host",
        f"{SECRET}",
    ],
)
async def test_a_password_is_never_shown(url: str) -> None:
    with pytest.raises((MetadataError, UsageError)) as caught:
        await open_metadata(url)
    chain: BaseException | None = caught.value
    while chain is not None:
        assert SECRET not in f"{chain} {chain!r}"
        chain = chain.__cause__


async def test_the_representation_has_no_password(postgres_url: str) -> None:
    async with opened(postgres_url.replace("keywright@", f"keywright:{SECRET}@")) as metadata:
        assert SECRET not in repr(metadata)


async def test_a_file_that_cannot_be_opened_is_unreachable(tmp_path: Path) -> None:
    with pytest.raises(MetadataUnreachableError, match="unable to open"):
        await open_metadata(f"sqlite:///{tmp_path}/none/registry.db")


async def test_a_file_that_is_not_a_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("not a database, " * 100)
    with pytest.raises(MetadataError, match="not a database"):
        await open_metadata(f"sqlite:///{tmp_path}/notes.txt")


async def test_a_relative_sqlite_url_is_a_file_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    async with opened("sqlite:///here%20it%20is.db") as metadata:
        await create(metadata, "acme")
    assert (tmp_path / "here it is.db").exists()


async def test_another_process_that_writes_for_too_long_is_reported_as_busy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "BUSY_SECONDS", 0.05)
    path = tmp_path / "registry.db"
    async with opened(f"sqlite:///{path}") as metadata:
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(MetadataError, match=r"call again\.$"):
            await create(metadata, "acme")
        assert await metadata.find("acme") is None, "readers do not wait for it"
        other.execute("ROLLBACK")
        other.close()
        await create(metadata, "acme")


async def test_a_deadlock_ends_for_one_of_the_two(postgres_url: str) -> None:
    async with opened(postgres_url) as metadata:
        await create(metadata, "a", "b")
        both = asyncio.Barrier(2)

        async def delete(first: str, second: str) -> None:
            async with metadata.transaction() as transaction:
                await transaction.delete(first)
                await both.wait()
                await transaction.delete(second)

        ends = await asyncio.gather(delete("a", "b"), delete("b", "a"), return_exceptions=True)
        failed = [end for end in ends if end is not None]
        assert len(failed) == 1
        assert isinstance(failed[0], MetadataError)
        assert str(failed[0]).endswith("call again.")


GITLAB_MIGRATIONS = "CREATE TABLE schema_migrations (id text PRIMARY KEY, applied_at timestamp)"


async def test_the_database_of_a_gitlab_registry_is_refused_unchanged(
    postgres_url: str, tmp_path: Path
) -> None:
    with psycopg.connect(postgres_url) as connection:
        connection.execute(GITLAB_MIGRATIONS)
    with sqlite3.connect(tmp_path / "registry.db") as file:
        file.execute(GITLAB_MIGRATIONS)
    file.close()
    for url in (postgres_url, f"sqlite:///{tmp_path}/registry.db"):
        async with opened(url, migrate=False) as metadata:
            with pytest.raises(MetadataError, match=r"a database of its own\.$"):
                await metadata.migrate()
            with pytest.raises(MetadataError, match="tables are missing"):
                await metadata.find("acme")


async def test_ids_of_64_bits_are_exact(postgres_url: str, tmp_path: Path) -> None:
    largest = 2**63 - 1
    row = (
        "INSERT INTO repositories (id, namespace_id, name, path, created_at) "
        f"VALUES ({largest}, {largest - 1}, 'café', 'café', {{now}})"
    )
    namespace = f"INSERT INTO namespaces (id, name, created_at) VALUES ({largest - 1}, 'café', {{now}})"

    async def find_and_rename(metadata: Metadata) -> None:
        found = await metadata.find("café")
        assert found
        assert (found.id, found.namespace_id) == (largest, largest - 1)
        async with metadata.transaction() as transaction:
            moved = await transaction.rename("café", "cafe")
        assert [(old, new.id) for old, new in moved] == [("café", largest)]

    async with opened(postgres_url) as metadata:
        with psycopg.connect(postgres_url) as connection:
            for statement in (namespace, row):
                connection.execute(statement.format(now="now()").encode())
        await find_and_rename(metadata)

    async with opened(f"sqlite:///{tmp_path}/registry.db") as metadata:
        with sqlite3.connect(tmp_path / "registry.db") as file:
            for statement in (namespace, row):
                file.execute(statement.format(now="0"))
        file.close()
        await find_and_rename(metadata)


@pytest.mark.parametrize(
    ("error", "expected", "words"),
    [
        (psycopg.OperationalError("server closed the connection"), MetadataUnreachableError, "Check that"),
        (psycopg.errors.AdminShutdown("terminating"), MetadataUnreachableError, "Check that"),
        (psycopg.errors.InvalidPassword("no"), MetadataUnreachableError, "Check that"),
        (psycopg.errors.TooManyConnections("no"), MetadataUnreachableError, "Check that"),
        (psycopg.errors.DeadlockDetected("deadlock"), MetadataError, "call again"),
        (psycopg.errors.UniqueViolation("duplicate"), MetadataError, "call again"),
        (psycopg.errors.QueryCanceled("timeout"), MetadataError, "holds its locks"),
        (psycopg.errors.UndefinedTable("no table"), MetadataError, "migrate"),
        (psycopg.errors.NumericValueOutOfRange("large"), UsageError, "Change the value"),
        (psycopg.errors.SyntaxError("odd"), MetadataError, "documentation"),
        (psycopg.InterfaceError("closed"), MetadataUnreachableError, "Check that"),
    ],
)
def test_each_error_of_postgresql_becomes_one_of_ours(
    error: psycopg.Error, expected: type[Exception], words: str
) -> None:
    found = postgres.translated(error, "here")
    assert type(found) is expected
    assert words in str(found)


async def test_a_closed_database_is_unreachable(database_url: str) -> None:
    async with opened(database_url) as metadata:
        pass
    with pytest.raises(MetadataUnreachableError):
        await metadata.find("acme")


@pytest.mark.parametrize(
    "url", ["postgresql://u:S3cr3t/x@h/x", "postgresql://u:123/S3cr3t@h/x", "postgresql://u:S3cr3t#x@h/x"]
)
async def test_a_password_that_is_not_encoded_is_refused_without_being_shown(url: str) -> None:
    with pytest.raises(UsageError, match="percent-encoded") as caught:
        await open_metadata(url)
    assert "S3cr3t" not in str(caught.value)
