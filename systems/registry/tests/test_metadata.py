"""The contract of the metadata database, once on PostgreSQL and once on SQLite."""

from __future__ import annotations

import asyncio
import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from keywright.errors import UsageError
from keywright.testing import ManualClock
from keywright_registry.errors import MetadataError, RepositoryPathError
from keywright_registry.metadata import Metadata, MetadataTransaction
from keywright_registry.metadata.sql import BATCH_MEMORY
from keywright_registry.repository import Counts, Repository

from .registry_databases import create, opened

pytestmark = pytest.mark.anyio

MOST = 2**63 - 1


async def test_a_path_that_is_not_there_is_none(metadata: Metadata) -> None:
    assert await metadata.find("a/b") is None
    assert await metadata.find_many(["a", "b"]) == {}
    assert await metadata.find_many([]) == {}
    assert await metadata.find("a'; DROP TABLE repositories; --") is None


async def test_creating_makes_the_missing_parents_in_one_namespace(
    metadata: Metadata, manual_clock: ManualClock
) -> None:
    async with metadata.transaction() as transaction:
        made = await transaction.create_or_find("acme/web/api")
    found = await metadata.find_many(["acme", "acme/web", "acme/web/api", "other"])
    assert sorted(found) == ["acme", "acme/web", "acme/web/api"]
    assert found["acme/web/api"] == made == await metadata.find("acme/web/api")
    assert (made.name, made.parent_id) == ("api", found["acme/web"].id)
    assert found["acme/web"].parent_id == found["acme"].id
    assert found["acme"].parent_id is None
    assert {each.namespace_id for each in found.values()} == {made.namespace_id}
    assert (made.created_at, made.updated_at, made.size) == (manual_clock(), None, None)
    assert made.created_at.tzinfo is UTC


async def test_creating_an_existing_repository_finds_it(metadata: Metadata) -> None:
    await create(metadata, "acme/web")
    before = await metadata.find("acme/web")
    async with metadata.transaction() as transaction:
        assert await transaction.create_or_find("acme/web") == before


async def test_many_that_create_at_once_get_the_same_rows(database_url: str) -> None:
    async def one(number: int) -> Repository:
        # A database of its own each, as processes have; the deeper ones share their parents.
        async with opened(database_url, migrate=False) as metadata, metadata.transaction() as transaction:
            return await transaction.create_or_find(
                ["acme/web", "acme/web/api", "acme/web/api/v1"][number % 3]
            )

    async with opened(database_url):
        made = await asyncio.gather(*map(one, range(12)))
        assert len({(each.path, each.id) for each in made}) == 3
        assert len({each.namespace_id for each in made}) == 1
        parents = {each.path: each.parent_id for each in made}
        ids = {each.path: each.id for each in made}
        assert parents["acme/web/api/v1"] == ids["acme/web/api"]
        assert parents["acme/web/api"] == ids["acme/web"]


async def test_an_update_writes_size_and_times_exactly(metadata: Metadata, manual_clock: ManualClock) -> None:
    published = datetime(2038, 1, 19, 3, 14, 8, 123_457, UTC)
    async with metadata.transaction() as transaction:
        made = await transaction.create_or_find("acme")
        wanted = msgspec.structs.replace(made, size=MOST, last_published_at=published)
        updated = await transaction.update(wanted)
    assert updated == msgspec.structs.replace(wanted, updated_at=manual_clock())
    assert await metadata.find("acme") == updated
    async with metadata.transaction() as transaction:
        assert (await transaction.update(msgspec.structs.replace(made, size=0))).size == 0


async def test_times_before_1970_and_in_other_zones_keep_their_moment(metadata: Metadata) -> None:
    early = datetime.fromisoformat("1901-02-03T04:05:06.000007+05:30")
    async with metadata.transaction() as transaction:
        made = await transaction.create_or_find("acme")
        await transaction.update(msgspec.structs.replace(made, last_published_at=early))
    found = await metadata.find("acme")
    assert found
    assert found.last_published_at == early
    assert found.last_published_at.tzinfo is UTC


async def test_an_update_of_a_row_that_is_not_there_is_refused(metadata: Metadata) -> None:
    missing = Repository(id=MOST, namespace_id=1, name="a", path="a", created_at=datetime.now(UTC))
    with pytest.raises(RepositoryPathError, match=f"no row with id {MOST}"):
        async with metadata.transaction() as transaction:
            await transaction.update(missing)


@pytest.mark.parametrize("size", [2**63, -1])
async def test_an_invalid_size_is_a_usage_error(metadata: Metadata, size: int) -> None:
    await create(metadata, "acme")
    found = await metadata.find("acme")
    assert found
    with pytest.raises(UsageError, match="cannot store a value"):
        async with metadata.transaction() as transaction:
            await transaction.update(msgspec.structs.replace(found, size=size))
    assert await metadata.find("acme") == found


async def test_a_deleted_repository_makes_room_for_another(metadata: Metadata) -> None:
    await create(metadata, "acme/web")
    first = await metadata.find("acme/web")
    async with metadata.transaction() as transaction:
        assert await transaction.delete("acme/web")
        assert not await transaction.delete("acme/web")
    assert await metadata.find("acme/web") is None
    await create(metadata, "acme/web")
    second = await metadata.find("acme/web")
    assert first
    assert second
    assert second.id > first.id


async def test_a_repository_with_others_below_it_is_not_deleted(metadata: Metadata) -> None:
    await create(metadata, "acme/web", "acme/web-2")
    with pytest.raises(RepositoryPathError, match=r"'acme/web(-2)?' below it"):
        async with metadata.transaction() as transaction:
            await transaction.delete("acme")
    async with metadata.transaction() as transaction:
        for path in ("acme/web", "acme/web-2", "acme"):
            assert await transaction.delete(path)


async def test_deleting_a_parent_and_adding_a_child_at_once_never_leaves_an_orphan(
    metadata: Metadata,
) -> None:
    async def add() -> None:
        await create(metadata, "acme/web")

    async def remove() -> None:
        async with metadata.transaction() as transaction:
            await transaction.delete("acme")

    for _ in range(20):
        await create(metadata, "acme")
        await asyncio.gather(add(), remove(), return_exceptions=True)
        child = await metadata.find("acme/web")
        parent = await metadata.find("acme")
        assert child is None or (parent and child.parent_id == parent.id)
        async with metadata.transaction() as transaction:
            await transaction.delete("acme/web")
            await transaction.delete("acme")


DEEP = "/".join(f"l{depth}" for depth in range(60))


async def test_a_rename_moves_everything_below_and_nothing_beside(metadata: Metadata) -> None:
    beside = ["old-other", "old.b", "old0", "ol", "x/old/c"]
    await create(metadata, f"old/{DEEP}", "old/b", *beside)
    before = await metadata.find_many(["old", "old/b", f"old/{DEEP}", *beside])
    async with metadata.transaction() as transaction:
        moved = await transaction.rename("old", "new/home")
    assert len(moved) == 62
    assert moved[0][0] == "old"
    assert {old: repository.path for old, repository in moved}[f"old/{DEEP}"] == f"new/home/{DEEP}"
    after = await metadata.find_many(["new", "new/home", "new/home/b", f"new/home/{DEEP}", *beside])
    assert await metadata.find_many(["old", "old/b", f"old/{DEEP}"]) == {}
    assert [after[path] for path in beside] == [before[path] for path in beside]
    assert after["new/home/b"].id == before["old/b"].id
    assert after["new/home/b"].parent_id == after["new/home"].id == before["old"].id
    assert (after["new/home"].name, after["new/home"].parent_id) == ("home", after["new"].id)
    assert {each.namespace_id for path, each in after.items() if path.startswith("new")} == {
        after["new"].namespace_id
    }
    assert after["new"].namespace_id != before["old"].namespace_id
    assert dict(moved)["old/b"] == after["new/home/b"]


async def test_a_repository_can_move_up_into_its_own_parents_place(metadata: Metadata) -> None:
    await create(metadata, "a/b/c")
    async with metadata.transaction() as transaction:
        await transaction.rename("a/b", "b")
    moved = await metadata.find_many(["a", "a/b", "b", "b/c"])
    assert sorted(moved) == ["a", "b", "b/c"]
    assert moved["b"].parent_id is None


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("acme", "taken", "is taken by 'taken'"),
        ("acme", "acme", "is 'acme' or below it"),
        ("acme", "acme/x", "is 'acme' or below it"),
        ("nothing", "x", "does not exist"),
        ("acme", "Upper", "has 'U' in it"),
        ("acme", f"{'n' * 250}", "has 258 characters"),
    ],
)
async def test_an_invalid_rename_is_refused_and_changes_nothing(
    metadata: Metadata, old: str, new: str, reason: str
) -> None:
    await create(metadata, "acme/web/api", "taken")
    before = await metadata.find_many(["acme", "acme/web", "acme/web/api", "taken"])
    with pytest.raises(RepositoryPathError, match=reason):
        async with metadata.transaction() as transaction:
            await transaction.rename(old, new)
    assert await metadata.find_many([*before, "x", new]) == before


async def test_adding_below_while_renaming_leaves_nothing_behind(metadata: Metadata) -> None:
    async def rename(number: int) -> None:
        async with metadata.transaction() as transaction:
            await transaction.rename(f"r{number}", f"m{number}")

    for number in range(10):
        await create(metadata, f"r{number}/a")
        adding = create(metadata, f"r{number}/a/b")
        await asyncio.gather(adding, rename(number))
        paths = [f"{top}{number}{below}" for top in "rm" for below in ("", "/a", "/a/b")]
        found = await metadata.find_many(paths)
        for path, each in found.items():
            parent = path.rpartition("/")[0]
            assert each.parent_id == (found[parent].id if parent else None)
        assert f"m{number}/a" in found


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("", "is empty"),
        ("/a", "empty part"),
        ("a//b", "empty part"),
        ("a/", "empty part"),
        ("A", "has 'A' in it"),
        ("a b", "has ' ' in it"),
        ("café/web", "has 'é' in it"),
        ("a/b\x00", "has '.*x00' in it"),
        ("a\n", "in it"),
        ("a..b", "wrong place"),
        ("-a", "wrong place"),
        ("a___b", "wrong place"),
        ("a" * 256, "has 256 characters"),
    ],
)
async def test_an_invalid_path_is_refused_with_the_reason(metadata: Metadata, path: str, reason: str) -> None:
    with pytest.raises(RepositoryPathError, match=reason):
        async with metadata.transaction() as transaction:
            await transaction.create_or_find(path)


@pytest.mark.parametrize("path", ["a", "a.b_c__d---e/0", "library/ubuntu", "a" * 255])
async def test_a_path_of_the_grammar_is_taken(metadata: Metadata, path: str) -> None:
    await create(metadata, path)
    assert await metadata.find(path) is not None


async def test_counts_of_any_text_are_kept_apart_by_their_exact_path(metadata: Metadata) -> None:
    # Unicode has two ways to write é; neither may find the other's counts.
    composed, combined = "caf\u00e9/web", "cafe\u0301/web"
    await metadata.add_counts("b1", [Counts(composed, 1, 2), Counts("\U0001f433", 3)])
    assert await metadata.counts(composed) == Counts(composed, 1, 2)
    assert await metadata.counts(combined) == Counts(combined)
    assert await metadata.counts("\U0001f433") == Counts("\U0001f433", 3, 0)


@pytest.mark.parametrize("path", ["a\0b", "a\ud800"])
async def test_a_path_that_a_database_cannot_store_is_never_found(metadata: Metadata, path: str) -> None:
    assert await metadata.find(path) is None
    assert await metadata.find_many([path]) == {}
    assert await metadata.counts(path) == Counts(path)
    assert await metadata.counts_with(path, "b1") == (Counts(path), False)
    async with metadata.transaction() as transaction:
        assert not await transaction.delete(path)
    with pytest.raises(RepositoryPathError, match="not text that a database can store"):
        await metadata.add_counts("b1", [Counts("fine", 1), Counts(path, 1)])
    assert await metadata.add_counts("b1", [Counts("fine", 1)]), "nothing of it was added"


async def test_a_batch_counts_once_however_often_it_is_added(metadata: Metadata) -> None:
    batch = [Counts("a", 2, 1), Counts("b", 1), Counts("a", 3)]
    assert await metadata.add_counts("b1", batch)
    assert not await metadata.add_counts("b1", batch)
    assert await metadata.add_counts("b2", [Counts("a", pushes=MOST - 1)])
    assert await metadata.counts("a") == Counts("a", 5, MOST)
    assert await metadata.counts("b") == Counts("b", 1, 0)
    assert await metadata.counts("c") == Counts("c")


async def test_counts_say_whether_they_include_a_batch(metadata: Metadata) -> None:
    assert await metadata.counts_with("a", "b1") == (Counts("a"), False)
    await metadata.add_counts("b1", [Counts("a", 2, 1)])
    assert await metadata.counts_with("a", "b1") == (Counts("a", 2, 1), True)
    assert await metadata.counts_with("a", "b2") == (Counts("a", 2, 1), False)


async def test_a_batch_that_many_add_at_once_counts_once(database_url: str) -> None:
    async def add(number: int) -> bool:
        counts = [Counts(f"r{each}", 1, 1) for each in range(50)]
        async with opened(database_url, migrate=False) as metadata:
            return await metadata.add_counts(f"b{number % 4}", counts if number % 2 else counts[::-1])

    async with opened(database_url) as metadata:
        assert sum(await asyncio.gather(*map(add, range(16)))) == 4
        assert await metadata.counts("r0") == Counts("r0", 4, 4)
        assert await metadata.counts("r49") == Counts("r49", 4, 4)


async def test_a_batch_larger_than_a_statement_is_added_whole(metadata: Metadata) -> None:
    await metadata.add_counts("big", [Counts(f"r{each}", each) for each in range(1000)])
    assert (await metadata.counts("r999")).pulls == 999
    assert (await metadata.counts("r1")).pulls == 1


async def test_old_batches_are_forgotten(metadata: Metadata, manual_clock: ManualClock) -> None:
    await metadata.add_counts("b1", [Counts("a", 1)])
    manual_clock.advance(BATCH_MEMORY)
    await metadata.add_counts("b2", [])
    assert not await metadata.add_counts("b1", [Counts("a", 1)]), "remembered to the last moment"
    manual_clock.advance(timedelta(microseconds=1))
    await metadata.add_counts("b3", [])
    assert await metadata.add_counts("b1", [Counts("a", 1)])


async def test_counts_move_with_a_rename_and_join_those_of_the_new_name(metadata: Metadata) -> None:
    await create(metadata, "old/web")
    await metadata.add_counts("b1", [Counts("old", 1, 1), Counts("old/web", 2), Counts("new", 10)])
    async with metadata.transaction() as transaction:
        await transaction.rename("old", "new")
    assert await metadata.counts("new") == Counts("new", 11, 1)
    assert await metadata.counts("new/web") == Counts("new/web", 2)
    assert await metadata.counts("old") == Counts("old")


async def test_each_migration_is_applied_once_by_concurrent_processes(database_url: str) -> None:
    async def migrate() -> list[str]:
        async with opened(database_url, migrate=False) as metadata:
            return await metadata.migrate()

    applied = await asyncio.gather(*(migrate() for _ in range(4)))
    assert sorted(applied) == [[], [], [], ["v01_repositories", "v02_counts"]]


async def test_migrating_again_keeps_the_data(metadata: Metadata) -> None:
    await create(metadata, "acme")
    assert await metadata.migrate() == []
    assert await metadata.find("acme") is not None


async def test_without_tables_the_error_says_to_migrate(database_url: str) -> None:
    async with opened(database_url, migrate=False) as metadata:
        with pytest.raises(MetadataError, match="run `keywright registry migrate`"):
            await metadata.find("acme")


FORMER_SQLITE = """
CREATE TABLE schema_migrations (name text PRIMARY KEY, applied_at INTEGER NOT NULL);
INSERT INTO schema_migrations VALUES ('v01_repositories', 0), ('v02_counts', 0);
CREATE TABLE namespaces (
    id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL
);
CREATE TABLE repositories (
    id INTEGER PRIMARY KEY AUTOINCREMENT, namespace_id INTEGER NOT NULL REFERENCES namespaces (id),
    name TEXT NOT NULL, path TEXT NOT NULL CHECK (length(path) <= 255),
    parent_id INTEGER REFERENCES repositories (id), created_at INTEGER NOT NULL, updated_at INTEGER,
    deleted_at INTEGER, size INTEGER CHECK (size >= 0), last_published_at INTEGER
);
CREATE UNIQUE INDEX repositories_living_path ON repositories (path) WHERE deleted_at IS NULL;
CREATE INDEX repositories_parent ON repositories (parent_id) WHERE deleted_at IS NULL;
CREATE TABLE repository_counts (
    path TEXT PRIMARY KEY, pulls INTEGER NOT NULL DEFAULT 0, pushes INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE TABLE count_batches (batch TEXT PRIMARY KEY, added_at INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX count_batches_age ON count_batches (added_at);
INSERT INTO namespaces VALUES (5, 'acme', 1767323045678901);
INSERT INTO repositories VALUES (9, 5, 'acme', 'acme', NULL, 1767323045678901, NULL, NULL, 7, 0);
INSERT INTO repository_counts VALUES ('acme', 1, 2);
"""


async def test_a_file_that_an_earlier_version_created_is_used_as_it_is(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "registry.db") as file:
        file.executescript(FORMER_SQLITE)
    file.close()
    async with opened(f"sqlite:///{tmp_path}/registry.db") as metadata:
        assert await metadata.migrate() == []
        found = await metadata.find("acme")
        assert found == Repository(
            id=9,
            namespace_id=5,
            name="acme",
            path="acme",
            created_at=datetime(2026, 1, 2, 3, 4, 5, 678_901, UTC),
            size=7,
            last_published_at=datetime(1970, 1, 1, tzinfo=UTC),
        )
        await create(metadata, "acme/web")
        assert await metadata.add_counts("b1", [Counts("acme", 10, 20)])
        assert await metadata.counts("acme") == Counts("acme", 11, 22)


async def test_an_open_database_satisfies_the_protocols(metadata: Metadata) -> None:
    async with metadata.transaction() as opened_transaction:
        transaction: MetadataTransaction = opened_transaction
        assert await transaction.find("acme") is None
