"""Undoing a repair: only its own changes, never over later writes, from a file that survives a crash."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import redis

from audit_samples import SAMPLES
from audited import applied, planned, repaired, undone
from keywright.errors import UsageError
from keywright.tools.repair.undo import Back

TOWN = SAMPLES["town"]()
SHOP = SAMPLES["bookshop"]()


@pytest.fixture
def client(redis_url: str) -> Iterator[Any]:
    with redis.Redis.from_url(redis_url) as found:
        yield found


def test_an_overtaken_step_leaves_nothing_to_take_back(redis_url: str, client: Any, tmp_path: Path) -> None:
    client.mset({"person:ann:home": "h1", "person:ann:desk": "d1"})
    client.sadd("housed", "ann")
    client.sadd("seated", "ann")
    client.sadd("desks_taken", "d1")
    planned(redis_url, TOWN, tmp_path / "plan")
    client.sadd("house:h1:residents", "ann")  # by programs, before the plan is applied
    client.set("desk:d1:occupant", "ann")
    assert applied(redis_url, TOWN, tmp_path).steps == 0
    assert not (tmp_path / "undo").exists()


def test_later_changes_of_a_relation_are_not_undone(redis_url: str, client: Any, tmp_path: Path) -> None:
    client.mset({"person:ann:desk": "d1", "person:ben:desk": "d2", "desk:d2:occupant": "ghost"})
    client.sadd("seated", "ann", "ben")
    client.sadd("desks_taken", "d1", "d2")
    repaired(redis_url, TOWN, tmp_path / "undo")
    assert (client.get("desk:d1:occupant"), client.get("desk:d2:occupant")) == (b"ann", b"ben")
    client.mset({"desk:d1:occupant": "eve", "desk:d2:occupant": "fay"})
    assert undone(redis_url, TOWN, tmp_path / "undo").left >= 2
    assert (client.get("desk:d1:occupant"), client.get("desk:d2:occupant")) == (b"eve", b"fay")


def test_a_relation_is_restored_if_nobody_wrote_since(redis_url: str, client: Any, tmp_path: Path) -> None:
    client.mset({"person:ann:desk": "d1", "person:ben:desk": "d2", "desk:d2:occupant": "ghost"})
    client.sadd("seated", "ann", "ben")
    client.sadd("desks_taken", "d1", "d2")
    repaired(redis_url, TOWN, tmp_path / "undo")
    assert undone(redis_url, TOWN, tmp_path / "undo").left == 0
    assert (client.get("desk:d1:occupant"), client.get("desk:d2:occupant")) == (None, b"ghost")


def test_an_inverse_that_was_withdrawn_is_not_put_over_a_newer_one(
    redis_url: str, client: Any, tmp_path: Path
) -> None:
    client.set("desk:d1:occupant", "ghost")
    client.sadd("desks_taken", "d1")
    repaired(redis_url, TOWN, tmp_path / "undo")
    assert not client.exists("desk:d1:occupant")
    client.set("desk:d1:occupant", "eve")
    undone(redis_url, TOWN, tmp_path / "undo")
    assert client.get("desk:d1:occupant") == b"eve"


def test_entries_that_exist_again_keep_their_later_content(
    redis_url: str, client: Any, tmp_path: Path
) -> None:
    client.hset("shop:book:b_1:prices", mapping={"eur": "no number"})
    client.zadd("shop:arrivals", {"no book of ours": 5})
    repaired(redis_url, SHOP, tmp_path / "undo")
    assert not client.exists("shop:book:b_1:prices")
    assert not client.exists("shop:arrivals")
    client.hset("shop:book:b_1:prices", mapping={"eur": 1200})
    client.zadd("shop:arrivals", {"no book of ours": 9})
    undone(redis_url, SHOP, tmp_path / "undo")
    assert client.hget("shop:book:b_1:prices", "eur") == b"1200"
    assert client.zscore("shop:arrivals", "no book of ours") == 9


def test_an_upgraded_value_that_was_written_since_is_not_put_back(
    redis_url: str, client: Any, tmp_path: Path
) -> None:
    client.set("shop:hours", "9-18")
    repaired(redis_url, SHOP, tmp_path / "undo", frozenset())
    assert client.get("shop:hours") != b"9-18"
    client.set("shop:hours", "something newer")
    undone(redis_url, SHOP, tmp_path / "undo")
    assert client.get("shop:hours") == b"something newer"


def test_a_plan_that_is_applied_twice_seals_and_upgrades_once(
    redis_url: str, client: Any, tmp_path: Path
) -> None:
    client.set("shop:session:7", "token", ex=100)
    client.set("shop:hours", "9-18")
    planned(redis_url, SHOP, tmp_path / "plan")
    assert applied(redis_url, SHOP, tmp_path).done == {"seal": 1, "upgrade": 1}
    sealed = client.get("shop:session:7")
    again = applied(redis_url, SHOP, tmp_path)
    assert (again.done, again.overtaken) == ({}, 2)
    assert client.get("shop:session:7") == sealed


def test_an_entry_of_a_list_is_removed_once_and_comes_back_wherever_it_was(
    redis_url: str, client: Any, tmp_path: Path
) -> None:
    client.rpush("shop:reader:7:viewed", "no book", "b_1", "no book")
    planned(redis_url, SHOP, tmp_path / "plan")
    assert applied(redis_url, SHOP, tmp_path).done["remove-entry"] == 1
    assert "remove-entry" not in applied(redis_url, SHOP, tmp_path).done
    undone(redis_url, SHOP, tmp_path / "undo")
    assert client.lrange("shop:reader:7:viewed", 0, -1) == [b"no book", b"b_1", b"no book"]


def test_a_key_in_an_older_place_and_in_its_own_is_not_said_to_be_moved(
    redis_url: str, client: Any, tmp_path: Path
) -> None:
    client.hset("shop:customer:7", mapping={"first_name": "Ben Nevis", "last_name": ""})
    repaired(redis_url, SHOP, tmp_path / "undo", frozenset())
    client.hset("shop:customer:7", mapping={"first_name": "Ben Lomond", "last_name": ""})
    done = repaired(redis_url, SHOP, tmp_path / "again", frozenset())
    assert done.done == {}
    assert done.rounds == 1
    assert client.hget("shop:customer:7", "first_name") == b"Ben Lomond"
    assert client.hget("shop:reader:7", "last_name") == b"Nevis"


def test_a_line_that_was_cut_off_in_the_middle_does_not_spoil_the_others(
    redis_url: str, client: Any, tmp_path: Path
) -> None:
    path = tmp_path / "undo"
    client.mset({"nobodys": "x", "strangers": "y"})
    repaired(redis_url, TOWN, path)
    with path.open("ab") as file:
        file.write(path.read_bytes().splitlines()[0][:20])  # the process died while it wrote
    client.set("another", "z")
    repaired(redis_url, TOWN, path)
    assert undone(redis_url, TOWN, path) == (3, 0)
    assert {*client.keys()} == {b"nobodys", b"strangers", b"another"}


def test_a_malformed_undo_file_is_refused(redis_url: str, client: Any, tmp_path: Path) -> None:
    (tmp_path / "undo").write_text("something else\n")
    with pytest.raises(UsageError, match="is not an undo file"):
        undone(redis_url, TOWN, tmp_path / "undo")


def _line(*command: str, name: str | None = None, **more: Any) -> bytes:
    words = [word.encode() for word in command]
    stated = command[1].encode() if name is None else name.encode()
    return msgspec.json.encode(Back(words, stated, "KW101", **more)) + b"\n"


@pytest.mark.parametrize(
    "line",
    [
        _line("CONFIG", "SET", "maxmemory-policy", "allkeys-random", name=""),
        _line("FLUSHDB", name=""),
        _line("EVAL", "return redis.call('SET', 'person:x:home', 'h1')", "0", name=""),
        _line("SET", "person:ann:home", "h9"),
        _line("RESTORE", "person:ann:home", "0", "x", "REPLACE"),
        _line("SET", "person:ann:home", "h9", name="person:ben:home", wrote=b"h1"),
        _line("GETDEL", "person:ann:home", wrote=b"h1"),
        _line("DEL", "person:ann:home", ttl_ms=0),
        _line("HSET", "keywright:intents:x", "a", "b", wrote=b"x"),
        _line("UNLINK", "session:of:another:model", wrote=b"x"),
    ],
)
def test_an_undo_file_with_a_line_that_no_repair_writes_restores_nothing(
    redis_url: str, client: Any, tmp_path: Path, line: bytes
) -> None:
    client.set("person:ann:home", "h1")
    good = _line("PERSIST", "person:ann:home")
    client.expire("person:ann:home", 1000)
    path = tmp_path / "undo"
    path.write_bytes(good + line + good)
    path.chmod(0o600)
    with pytest.raises(UsageError, match="Nothing was restored"):
        undone(redis_url, TOWN, path)
    assert client.get("person:ann:home") == b"h1"
    assert client.ttl("person:ann:home") > 0


def test_an_undo_file_of_another_prefix_restores_nothing(redis_url: str, client: Any, tmp_path: Path) -> None:
    client.set("shop:nonsense", "x")
    repaired(redis_url, SHOP, tmp_path / "undo", frozenset({"KW101"}))
    other = SHOP._replace(bindings=tuple(binding.space.bind(prefix="elsewhere") for binding in SHOP.bindings))
    with pytest.raises(UsageError, match="another model or prefix"):
        undone(redis_url, other, tmp_path / "undo")
    assert undone(redis_url, SHOP, tmp_path / "undo").restored == 1
