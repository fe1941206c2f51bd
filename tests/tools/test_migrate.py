"""A sweep upgrades every old key, on a server and on a cluster, and loses no concurrent write."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pytest

from failing_walks import left_of
from keywright import AsyncDatabase, Binding, Key, Keyring, aconnect
from keywright.errors import UsageError
from keywright.keyspace.codecs import is_sealed
from keywright.testing.runs import Raw
from keywright.tools.describe.inspection import inspect
from keywright.tools.jobs import JobPlan
from keywright.tools.migrate import (
    Bookmark,
    Contract,
    MigrationProgress,
    SweepOptions,
    SweepResult,
    contract,
    sweep,
)
from keywright.tools.model import Model
from keywright.tools.pace import Pace
from migrating import (
    Book,
    BookOf,
    Card,
    CardOf,
    Loans,
    OldBookOf,
    OldCard,
    OldCardOf,
    OldReview,
    OldToken,
    Review,
    Sheet,
    Shelf,
    Tag,
    Token,
    Visits,
    now,
    then,
    vault,
)

T = TypeVar("T")

MINUTE_MS = 60_000
KEYS = 60
LONG = "a very long review of a book that nobody has read yet " * 4
APPLY = SweepOptions(apply=True)
MODEL = Model("library", (now,))


class Place(NamedTuple):
    url: str
    raw: Raw

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run(work)


@pytest.fixture(params=["server", "cluster"])
def place(request: pytest.FixtureRequest) -> Place:
    kind = request.param
    url = request.getfixturevalue("redis_url" if kind == "server" else "cluster_url")
    return Place(url, request.getfixturevalue("raw" if kind == "server" else "raw_cluster"))


async def _swept(url: str, options: SweepOptions = APPLY, *bindings: Binding, **more: Any) -> SweepResult:
    async with aconnect(url, *bindings) as db:
        return await sweep(db, [now], options, **more)


async def _fill(db: AsyncDatabase) -> None:
    """Write the data of older programs."""
    await db.run(OldBookOf.set_many((f"b{n}", Book(f"title {n}", n)) for n in range(KEYS)))
    await db.run(OldReview.set_many((f"b{n}", LONG) for n in range(KEYS)))
    for n in range(KEYS):
        await db.run(OldCardOf(f"r{n}").put(OldCard(f"reader {n}", [f"note {n}"])))


def _fill_by_hand(raw: Raw) -> None:
    for n in range(KEYS):
        raw("HSET", f"sheet:s{n}", "line", f"title {n}/{n}")
        raw("SADD", f"loans:r{n}", f"b{n}", "all")
        raw("HSET", f"shelf:room{n % 5}:{n}", f"b{n}", n)
        raw("SET", f"tag:b{n}", f"tag {n}", "PX", MINUTE_MS)
    raw("PEXPIRE", "sheet:s1", MINUTE_MS)
    raw("PEXPIRE", "book:b1", MINUTE_MS)


async def _filled(place: Place) -> None:
    async with aconnect(place.url, then.bind()) as db:
        await _fill(db)
    _fill_by_hand(place.raw)


OLD: dict[type[Key], str] = {
    BookOf: "upgraded",
    Review: "upgraded",
    CardOf: "upgraded",
    Sheet: "upgraded",
    Loans: "moved",
    Shelf: "moved",
    Tag: "moved",
}


def _all(count: int) -> dict[str, tuple[str, int]]:
    return {kind._template.source: (what, count) for kind, what in OLD.items()}


def _counts_of(result: SweepResult) -> dict[str, tuple[str, int]]:
    return {
        template: ("moved", counts.moved) if counts.moved else ("upgraded", counts.upgraded)
        for template, counts in result.counts.items()
    }


def test_a_dry_run_counts_old_keys_and_changes_nothing(place: Place) -> None:
    place.run(_filled(place))
    before = {name: place.raw("DUMP", name) for name in place.raw.names()}
    result = place.run(_swept(place.url, SweepOptions()))
    assert _counts_of(result) == _all(KEYS)
    assert (result.done, result.left) == (7 * KEYS, 0)
    assert {name: place.raw("DUMP", name) for name in place.raw.names()} == before


def test_several_jobs_upgrade_what_one_upgrades(place: Place) -> None:
    place.run(_filled(place))
    jobs = JobPlan(2, "migrating:now", place.url)
    counted = place.run(_swept(place.url, SweepOptions(), now.bind(), plan=jobs))
    assert _counts_of(counted) == _all(KEYS)
    done = place.run(_swept(place.url, APPLY, now.bind(), plan=jobs))
    assert (_counts_of(done), done.left) == (_all(KEYS), 0)
    assert place.run(_swept(place.url, SweepOptions())).done == 0


def test_a_plan_ends_after_the_most_names(redis_url: str, raw: Raw) -> None:
    place = Place(redis_url, raw)
    place.run(_filled(place))
    result = place.run(_swept(redis_url, SweepOptions(most=100, pace=Pace(1000))))
    assert result.seen < result.total == 7 * KEYS


def test_a_sweep_brings_everything_up_to_date(place: Place) -> None:
    place.run(_filled(place))
    assert _counts_of(place.run(_swept(place.url))) == _all(KEYS)

    async def read() -> None:
        async with aconnect(place.url) as db:
            for n in range(KEYS):
                assert (await db.run(inspect(BookOf(f"b{n}"))))[1] == Book(f"title {n}", n)  # type: ignore[index]
                assert await db.run(Review(f"b{n}").get()) == LONG
                assert await db.run(CardOf(f"r{n}").get()) == Card(f"reader {n}", [f"note {n}"])
                assert await db.run(Sheet(f"s{n}").get()) == Book(f"title {n}", n)
                assert await db.run(Loans(f"r{n}").members()) == {f"b{n}", "all"}
                assert await db.run(Shelf(f"room{n % 5}", str(n)).all()) == {f"b{n}": n}
                assert await db.run(Tag(f"b{n}").get()) == f"tag {n}"
            again = await sweep(db, [now], APPLY)
            assert (again.done, again.left) == (0, 0)

    assert place.raw("GET", "review:b1")[:4] == b"\x28\xb5\x2f\xfd"
    assert place.raw("GET", "book:b1")[:1] != b"{"
    assert place.raw("HGET", "card:r1", "notes") == b"\x91\xa6note 1"
    place.run(read())


def test_a_sweep_keeps_every_expiry(place: Place) -> None:
    place.run(_filled(place))
    place.run(_swept(place.url))
    for name in ("sheet:s1", "book:b1", "tag:{b7}"):
        assert 0 < place.raw("PTTL", name) <= MINUTE_MS
    for name in ("sheet:s2", "book:b2", "reader:r2:loans"):
        assert place.raw("PTTL", name) == -1


def test_tokens_in_clear_are_sealed(redis_url: str, raw: Raw) -> None:
    binding = vault.bind(keyring=Keyring.generate("first"))

    async def run() -> None:
        async with aconnect(redis_url, binding) as db:
            await db.run(OldToken("ann").set("secret"))
            assert (await sweep(db, [vault], APPLY)).done == 1
            assert is_sealed(raw("GET", "token:ann"))
            assert await db.run(Token("ann").get()) == "secret"
            await db.run(OldToken("ben").set("other"))
            assert await db.run(Token("ben").get()) == "other"
            assert is_sealed(raw("GET", "token:ben"))

    asyncio.run(run())


def test_a_sweep_without_the_keyring_says_what_is_missing(redis_url: str) -> None:
    async def run() -> str:
        async with aconnect(redis_url) as db:
            await db.run(OldToken("ann").set("secret"))
            (refusal,) = (await sweep(db, [vault], APPLY)).refusals
            return refusal.reason

    assert "keyring" in asyncio.run(run())


def test_keys_that_cannot_be_upgraded_are_left_and_reported(redis_url: str, raw: Raw) -> None:
    raw("HSET", "sheet:a", "line", "no number")
    raw("HSET", "sheet:b", "line", "Waves/12")
    raw("SADD", "loans:ann", "older")
    raw("SADD", "reader:ann:loans", "newer")
    result = asyncio.run(_swept(redis_url))
    assert result.counts["sheet:<sheet>"].upgraded == 1
    assert (result.counts["sheet:<sheet>"].refused, result.counts["reader:<reader>:loans"].both) == (1, 1)
    assert result.left == 2
    assert {refusal.name for refusal in result.refusals} == {b"sheet:a", b"reader:ann:loans"}
    assert raw("SMEMBERS", "loans:ann") == {b"older"}
    asyncio.run(_swept(redis_url, SweepOptions(apply=True, discard=True)))
    assert not raw("EXISTS", "loans:ann")


def test_writers_beside_a_sweep_lose_nothing(place: Place) -> None:
    """Members added, counted and rewritten while the same keys are moved and recoded."""
    place.run(_filled(place))
    for n in range(KEYS):
        place.raw("SET", f"visits:r{n}", "100")

    async def write(db: AsyncDatabase, turn: int) -> None:
        for n in range(KEYS):
            await db.run(Loans(f"r{n}").add(f"new {turn}"))
            await db.run(Visits(f"r{n}").add())
            await db.run(Shelf(f"room{n % 5}", str(n)).put(f"new {turn}", turn))
            if turn == 0:
                await db.run(BookOf(f"b{n}").set(Book("rewritten", n)))

    async def beside() -> None:
        async with aconnect(place.url) as db, aconnect(place.url) as other:
            await asyncio.gather(sweep(db, [now], APPLY), *(write(other, turn) for turn in range(3)))
            assert (await sweep(db, [now], APPLY)).left == 0
            for n in range(KEYS):
                assert await db.run(Loans(f"r{n}").members()) == {f"b{n}", "all", "new 0", "new 1", "new 2"}
                assert await db.run(Visits(f"r{n}").get()) == 103
                assert (await db.run(Shelf(f"room{n % 5}", str(n)).size())) == 4
                assert await db.run(BookOf(f"b{n}").get()) == Book("rewritten", n)

    place.run(beside())


def test_a_contract_is_refused_while_anything_old_is_left(place: Place) -> None:
    place.run(_filled(place))

    async def contracted() -> Any:
        async with aconnect(place.url) as db:
            return await contract(db, MODEL)

    early = place.run(contracted())
    assert not early.ready
    assert sum(early.old.values()) == 7 * KEYS
    assert early.droppable == []
    place.run(_swept(place.url))
    late = place.run(contracted())
    assert late.ready
    assert "Loans: moved_from 'loans:<reader>'" in late.droppable
    assert "Sheet: the upgrade from 'one line'" in late.droppable


def test_a_contract_is_refused_while_a_value_is_too_large_to_be_looked_at(redis_url: str) -> None:
    async def contracted() -> Contract:
        async with aconnect(redis_url) as db:
            await db.run(OldBookOf("b1").set(Book("x" * (2 << 20), 1)))
            return await contract(db, MODEL)

    found = asyncio.run(contracted())
    assert not found.ready
    assert list(found.unknown) == ["book:<book>"]
    assert found.droppable == []


def test_names_of_others_count_for_the_rate_of_a_sweep(redis_url: str, raw: Raw) -> None:
    for n in range(500):
        raw("SET", f"others:{n}", "x")
    result = asyncio.run(_swept(redis_url, SweepOptions(pace=Pace(2000)), now.bind(prefix="lib")))
    assert result.seen == 0
    assert result.seconds > 0.2


def test_a_node_that_fails_ends_the_sweep_of_the_others(cluster_url: str, raw_cluster: Raw) -> None:
    for n in range(300):
        raw_cluster("SADD", f"loans:r{n}", "b")

    options = SweepOptions(apply=True, pace=Pace(200))
    assert left_of(cluster_url, lambda db, fail: sweep(db, [now], options, on_progress=fail)) == []


def test_a_stopped_sweep_goes_on_from_its_bookmark(redis_url: str, raw: Raw, tmp_path: Path) -> None:
    class StoppedError(Exception):
        pass

    def stop(progress: MigrationProgress) -> None:
        if progress.seen:
            raise StoppedError

    place, path = Place(redis_url, raw), tmp_path / "bookmark"
    place.run(_filled(place))
    slowly = SweepOptions(apply=True, pace=Pace(1000))
    with pytest.raises(StoppedError):
        place.run(_swept(redis_url, slowly, bookmark=Bookmark.at(path, "x"), on_progress=stop))
    assert path.exists()
    whole = place.run(_swept(redis_url, APPLY, bookmark=Bookmark.at(path, "x")))
    assert _counts_of(whole) == _all(KEYS)
    assert not path.exists()


def test_a_bookmark_of_another_migration_is_refused(tmp_path: Path) -> None:
    bookmark = Bookmark.at(tmp_path / "one", "one")
    bookmark.save()
    with pytest.raises(UsageError, match="of 'one', not of 'two'"):
        Bookmark.at(tmp_path / "one", "two")
    (tmp_path / "none").write_text("nonsense")
    with pytest.raises(UsageError, match="is not a bookmark"):
        Bookmark.at(tmp_path / "none", "two")


def test_progress_has_the_rate_and_the_time_left(redis_url: str, raw: Raw) -> None:
    place = Place(redis_url, raw)
    place.run(_filled(place))
    reported: list[MigrationProgress] = []
    place.run(_swept(redis_url, on_progress=reported.append))
    assert reported[-1].seen == reported[-1].total >= 7 * KEYS
    assert reported[-1].done == 7 * KEYS
    assert reported[-1].rate > 0
    assert reported[-1].seconds_left == 0


def test_names_of_another_version_are_moved_when_it_is_named(place: Place) -> None:
    """The version of a keyspace is in its names, so on a cluster most of them change their slot."""
    for n in range(KEYS):
        place.raw("SADD", f"lib:v1:reader:r{n}:loans", f"b{n}")
    binding = now.bind(prefix="lib", version="v2")
    assert place.run(_swept(place.url, APPLY, binding)).done == 0
    other = place.run(_swept(place.url, SweepOptions(apply=True, from_version="v0"), binding))
    assert other.done == 0
    assert place.run(_swept(place.url, SweepOptions(apply=True, from_version="v1"), binding)).done == KEYS
    assert place.raw("SMEMBERS", "lib:v2:reader:r7:loans") == {b"b7"}
    assert len(place.raw.names()) == KEYS


def test_keys_that_an_upgrade_moves_keep_their_expiry_and_are_swept(place: Place) -> None:
    place.raw("HSET", "leaf:a", "title", "Waves", "pages", "2")
    place.raw("PEXPIRE", "leaf:a", MINUTE_MS)
    place.raw("HSET", "leaf:b", "title", "older")
    place.raw("HSET", "page:{b}", "title", "newer")
    result = place.run(_swept(place.url))
    counts = result.counts["page:{<leaf>}"]
    assert (counts.moved, counts.both) == (1, 1)
    assert place.raw("HGETALL", "page:{a}") == {b"title": b"WAVES", b"pages": b"2"}
    assert 0 < place.raw("PTTL", "page:{a}") <= MINUTE_MS
    assert place.raw("HGETALL", "leaf:b") == {b"title": b"older"}
