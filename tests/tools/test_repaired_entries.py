"""A repair removes the bad entry and nothing else: for every kind and every finding code, with undo."""

from __future__ import annotations

import inspect
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

import keywright
from audited import REMOVABLE, audited, repaired, undone
from fault_table import (
    BED,
    CELLS,
    TABLE,
    Cell,
    Impossible,
    InPlace,
    OneEntry,
    Untouched,
    WholeKey,
    read,
    stock,
    write,
)
from garden import SAMPLE
from keywright import Database, Key
from keywright.tools.audit.findings import CODES
from keywright.tools.repair.fingerprints import fingerprint

TTL_MS = 9_000_000
SIZES = (0, 3, BED)
ON_CLUSTER = [cell for cell in CELLS if cell[1] in ("KW202", "KW203", "KW205", "KW401", "KW403", "KW404")]


def _name_of(value: object) -> str | None:
    return value.replace(" ", "-") if isinstance(value, str) else ""


@pytest.fixture
def client(redis_url: str) -> Iterator[Any]:
    with redis.Redis.from_url(redis_url) as found:
        yield found


@pytest.fixture
def cluster_client(cluster_url: str) -> Iterator[Any]:
    with redis.RedisCluster.from_url(cluster_url) as found:
        yield found


def test_the_table_has_every_kind_and_every_code() -> None:
    exported = [getattr(keywright, name) for name in keywright.__all__]
    kinds = {each.__name__ for each in exported if inspect.isclass(each) and issubclass(each, Key)}
    assert kinds <= set(TABLE)
    assert {kind: set(CODES) ^ set(row) for kind, row in TABLE.items()} == {kind: set() for kind in TABLE}


def test_a_garden_without_faults_has_no_findings(redis_url: str, client: Any) -> None:
    with SAMPLE.open(redis_url) as db:
        stock(db, client)
    assert audited(redis_url, SAMPLE)[1] == []


@pytest.mark.parametrize(("kind", "code", "cell"), CELLS, ids=_name_of)
def test_a_repair_touches_nothing_but_the_bad_entry(
    kind: str, code: str, cell: Cell, redis_url: str, client: Any, tmp_path: Path
) -> None:
    for size in SIZES:
        client.flushdb()
        _exercise(redis_url, client, tmp_path / f"undo-{size}", (kind, code, cell), size)


@pytest.mark.cluster
@pytest.mark.parametrize(("kind", "code", "cell"), ON_CLUSTER, ids=_name_of)
def test_a_repair_on_a_cluster_touches_nothing_but_the_bad_entry(
    kind: str, code: str, cell: Cell, cluster_url: str, cluster_client: Any, tmp_path: Path
) -> None:
    _exercise(cluster_url, cluster_client, tmp_path / "undo", (kind, code, cell), 12)


@pytest.mark.parametrize(
    ("kind", "code", "cell"),
    [cell for cell in CELLS if isinstance(cell[2], OneEntry) and cell[1] in ("KW202", "KW401")],
    ids=_name_of,
)
def test_a_bad_entry_of_a_key_of_several_pages_is_the_only_one_removed(
    kind: str, code: str, cell: Cell, redis_url: str, client: Any, tmp_path: Path
) -> None:
    _exercise(redis_url, client, tmp_path / "undo", (kind, code, cell), 1300)


def _exercise(url: str, client: Any, undo: Path, tested: tuple[str, str, Cell], size: int) -> None:
    """Plant one bad entry among good ones, audit, repair and undo, and compare everything that is stored."""
    kind, code, cell = tested
    assert not isinstance(cell, Impossible)
    chance = random.Random(f"{kind} {code} {size}")
    with SAMPLE.open(url) as db:
        stock(db, client, max(BED, size))
        name = cell.key if isinstance(cell.key, bytes) else db.context.name(cell.key)
        # A union has at least its tag, else it is another finding.
        bad = _planted(db, client, name, cell, max(size, kind == "Record of a union"), chance)
    before = _contents(client) if isinstance(cell, InPlace) else {}
    planted, ttl = read(client, name), client.pttl(name)
    dumps = _dumps(client, but=name)
    findings = audited(url, SAMPLE)[1]
    assert {(each.code, each.name) for each in findings} == {(code, name)}

    done = repaired(url, SAMPLE, undo, REMOVABLE)
    if isinstance(cell, OneEntry):
        assert {each.member for each in findings} == _names(planted, bad)
        assert (done.failed, done.left) == ([], {})
        assert read(client, name) == _without(planted, bad)
        assert _dumps(client, but=name) == dumps
    elif isinstance(cell, WholeKey):
        assert read(client, name) is None
        assert _dumps(client, but=name) == dumps
    elif isinstance(cell, Untouched):
        assert done.left or done.failed
    else:
        assert audited(url, SAMPLE)[1] == []
        _assert_kept(before, _contents(client), corrected=None if cell.undone else name)

    if done.undo is not None:
        undone(url, SAMPLE, done.undo)
    if not isinstance(cell, InPlace) or cell.undone:
        assert read(client, name) == planted
        assert ttl - 60_000 < client.pttl(name) <= ttl
        assert _dumps(client, but=name) == dumps


def _planted(db: Database, client: Any, name: bytes, cell: Any, size: int, chance: random.Random) -> Any:
    """Store good entries and the bad one among them. Return the bad one."""
    redis_type = getattr(cell, "redis_type", None) or cell.key.redis_type
    bad = None if cell.bad is None else cell.bad(db)
    entries = [cell.good(db, cell.key, n) for n in range(max(size, bad is None))]
    for _ in range(0 if bad is None else chance.randint(1, 3) if redis_type == "list" else 1):
        entries.insert(len(entries) if redis_type == "string" else chance.randint(0, len(entries)), bad)
    write(client, redis_type, name, entries)
    expires = isinstance(cell.key, Key) and cell.key.declaration.expiry is not None
    if not expires and chance.random() < 0.7:
        client.pexpire(name, TTL_MS)
    if isinstance(cell, InPlace) and cell.then:
        client.execute_command(*cell.then)
    return bad


def _names(planted: Any, bad: Any) -> set[bytes]:
    """Return the names that findings give the bad entry: its id in a stream, its field, or its content."""
    if isinstance(bad, dict):
        return {identity for identity, members in planted if members == bad}
    return {bad[0] if isinstance(bad, tuple) else bad}


def _without(planted: Any, bad: Any) -> Any:
    """Return the entries of a key without the bad one, as `read` returns them; None if no other is left."""
    names = _names(planted, bad)
    if isinstance(bad, dict):
        return [each for each in planted if each[0] not in names]  # a stream stays, without entries
    if isinstance(planted, dict):
        return {field: value for field, value in planted.items() if field not in names} or None
    if isinstance(planted, set):
        return (planted - names) or None
    return [each for each in planted if (each[0] if isinstance(each, tuple) else each) not in names] or None


def _assert_kept(before: dict[bytes, Any], after: dict[bytes, Any], corrected: bytes | None) -> None:
    for name, entries in before.items():
        if isinstance(entries, set):
            assert entries <= after[name]
        elif name != corrected:
            assert entries == after[name]


def _contents(client: Any) -> dict[bytes, Any]:
    return {name: read(client, name) for name in client.scan_iter(count=1000)}


def _dumps(client: Any, but: bytes) -> dict[bytes, str]:
    """Return the serialisation of all other keys. Sets and hashes are compared without their order."""
    names = sorted(name for name in client.scan_iter(count=1000) if name != but)
    with client.pipeline(transaction=False) as pipe:
        for name in names:
            pipe.dump(name)
        return dict(zip(names, map(fingerprint, pipe.execute()), strict=True))
