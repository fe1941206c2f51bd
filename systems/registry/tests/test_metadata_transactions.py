"""Transactions of the metadata database that fail half-way, are cancelled twice, or meet each other."""

from __future__ import annotations

import asyncio
import gc
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import psycopg
import pytest

from keywright.errors import UsageError
from keywright_registry.errors import MetadataError, RepositoryPathError
from keywright_registry.metadata import Metadata, MetadataTransaction, sqlite
from keywright_registry.repository import Repository

from .registry_databases import create, opened
from .registry_doubles import until

pytestmark = pytest.mark.anyio


async def found_in(metadata: Metadata, path: str) -> Repository:
    found = await metadata.find(path)
    assert found is not None
    return found


async def test_uncommitted_changes_are_not_visible(metadata: Metadata) -> None:
    async def fail() -> None:
        async with metadata.transaction() as transaction:
            await transaction.create_or_find("acme")
            assert await transaction.find("acme") is not None
            assert await metadata.find("acme") is None, "others do not see it yet"
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()
    assert await metadata.find("acme") is None


async def test_a_cancelled_transaction_is_rolled_back_and_the_next_one_works(metadata: Metadata) -> None:
    inside = asyncio.Event()

    async def stall() -> None:
        async with metadata.transaction() as transaction:
            await transaction.create_or_find("acme")
            inside.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(stall())
    await inside.wait()
    task.cancel()
    await asyncio.wait([task])
    assert await metadata.find("acme") is None
    await create(metadata, "acme")
    assert await metadata.find("acme") is not None


async def test_a_transaction_cannot_be_used_after_its_block(metadata: Metadata) -> None:
    async with metadata.transaction() as transaction:
        pass
    with pytest.raises(UsageError, match="is over"):
        await transaction.find("acme")


async def test_a_failure_that_is_swallowed_inside_is_raised_at_the_end_and_nothing_is_committed(
    metadata: Metadata,
) -> None:
    """PostgreSQL answers such a COMMIT with ROLLBACK and reports success."""
    await create(metadata, "acme")
    refused = msgspec.structs.replace(await found_in(metadata, "acme"), size=-1)

    async def swallow() -> None:
        async with metadata.transaction() as transaction:
            await transaction.create_or_find("acme/web")
            with pytest.raises(UsageError, match="cannot store a value"):
                await transaction.update(refused)

    with pytest.raises(MetadataError, match=r"rolled back.*begin again\.$"):
        await swallow()
    assert await metadata.find("acme/web") is None
    await create(metadata, "acme/web")


async def test_an_operation_that_was_given_up_inside_is_not_committed_by_halves(metadata: Metadata) -> None:
    async def give_up() -> None:
        async with metadata.transaction() as transaction:
            with suppress(TimeoutError):
                async with asyncio.timeout(0):
                    await transaction.create_or_find("acme/web")

    with pytest.raises(MetadataError, match="rolled back"):
        await give_up()
    assert await metadata.find_many(["acme", "acme/web"]) == {}


async def test_a_refusal_that_changed_nothing_may_be_swallowed(metadata: Metadata) -> None:
    await create(metadata, "acme/web")
    async with metadata.transaction() as transaction:
        for refused in (transaction.rename("none", "other"), transaction.delete("acme")):
            with pytest.raises(RepositoryPathError):
                await refused
        await transaction.create_or_find("acme/api")
    assert await metadata.find("acme/api") is not None


@pytest.mark.parametrize("error", [OverflowError, sqlite3.DatabaseError])
async def test_an_error_of_the_caller_is_not_translated(metadata: Metadata, error: type[Exception]) -> None:
    async def fail() -> None:
        async with metadata.transaction() as transaction:
            await transaction.create_or_find("acme")
            raise error("of the caller")

    with pytest.raises(error, match=r"^of the caller$"):
        await fail()
    assert await metadata.find("acme") is None


async def test_an_update_does_not_restore_a_deleted_repository(metadata: Metadata) -> None:
    await create(metadata, "acme/web")
    outdated = msgspec.structs.replace(await found_in(metadata, "acme/web"), size=5)
    async with metadata.transaction() as transaction:
        await transaction.delete("acme/web")
        await transaction.delete("acme")
    with pytest.raises(RepositoryPathError, match=f"no row with id {outdated.id}"):
        async with metadata.transaction() as transaction:
            await transaction.update(outdated)
    assert await metadata.find("acme/web") is None


@pytest.mark.parametrize("times", [1, 2, 3])
async def test_a_transaction_that_is_cancelled_again_while_it_waits_leaves_nothing_locked(
    tmp_path: Path, times: int
) -> None:
    path = tmp_path / "registry.db"
    async with opened(f"sqlite:///{path}") as metadata:
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        waiting = asyncio.create_task(create(metadata, "acme"))
        for _ in range(times):
            await asyncio.sleep(0.02)  # likely it waits for SQLite now, then for what undoes that
            waiting.cancel()
        await asyncio.sleep(0)
        other.execute("ROLLBACK")
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await create(metadata, "acme/web")
        other.execute("BEGIN IMMEDIATE")
        other.execute("ROLLBACK")
        other.close()


async def test_a_statement_that_fails_after_its_caller_was_cancelled_is_not_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "BUSY_SECONDS", 0.1)
    path = tmp_path / "registry.db"
    async with opened(f"sqlite:///{path}") as metadata:
        troubles: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, trouble: troubles.append(trouble))
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        waiting = asyncio.create_task(create(metadata, "acme"))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        other.execute("ROLLBACK")
        other.close()
        await create(metadata, "acme")
        gc.collect()
        assert troubles == []


Change = Callable[[MetadataTransaction], Awaitable[object]]


@pytest.mark.parametrize(
    "change",
    [lambda transaction: transaction.delete("home"), lambda transaction: transaction.rename("home", "moved")],
    ids=["deleted", "renamed"],
)
async def test_a_rename_into_a_parent_that_goes_away_meanwhile_makes_another(
    postgres_url: str, change: Change
) -> None:
    async with opened(postgres_url) as metadata:
        await create(metadata, "home", "web")

        async def rename() -> None:
            async with metadata.transaction() as transaction:
                await transaction.rename("web", "home/web")

        async with metadata.transaction() as transaction:
            await change(transaction)
            renaming = asyncio.create_task(rename())
            await until(lambda: _waits_for_a_lock(postgres_url))
        await renaming
        child, parent = await found_in(metadata, "home/web"), await found_in(metadata, "home")
        assert child.parent_id == parent.id


async def test_a_rename_checks_repositories_that_were_added_while_it_waited(postgres_url: str) -> None:
    async with opened(postgres_url) as metadata:
        await create(metadata, "web")

        async def rename() -> None:
            async with metadata.transaction() as transaction:
                await transaction.rename("web", "n" * 100)

        async with metadata.transaction() as transaction:
            await transaction.create_or_find(f"web/{'a' * 200}")
            renaming = asyncio.create_task(rename())
            await until(lambda: _waits_for_a_lock(postgres_url))
        with pytest.raises(RepositoryPathError, match="has 301 characters"):
            await renaming


async def _waits_for_a_lock(url: str) -> bool:
    async with await psycopg.AsyncConnection.connect(url) as connection:
        cursor = await connection.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
        row = await cursor.fetchone()
    return bool(row and row[0])
