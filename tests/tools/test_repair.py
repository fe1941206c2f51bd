"""A repair shows its plan, re-checks every step, leaves undecided findings, and can be undone."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
import redis
from hypothesis import given, settings
from hypothesis import strategies as st

import migrating
from audit_samples import SAMPLES
from audited import Sample, applied, audited, planned, repaired, undone
from keywright import (
    Id,
    Keyspace,
    Record,
    Set,
    SortedSet,
    Upgrade,
    Value,
    connect,
    expires_at,
    refers,
)
from keywright.errors import ServerRefusedError
from keywright.testing import RedisServer, as_user
from keywright.testing.damage import plant
from keywright.tools.model import Model
from keywright.tools.repair import read_plan
from keywright.tools.repair.fingerprints import fingerprint

TOWN = SAMPLES["town"]()
restless = Keyspace("restless", "Values that are never up to date.")


class Restless(
    Value[str],
    key="restless:<name>",
    space=restless,
    upgrades=[Upgrade("ever", lambda _: True, lambda stored, _: stored.decode())],
):
    """A value whose upgrade applies to its own result, as if somebody always wrote in between."""

    name: Id


class Terms(msgspec.Struct):
    words: str
    until: datetime


offers = Keyspace("offers", "What is cheap, and until when.")


class Offer(Record[Terms], key="offer:<name>", space=offers, expiry=expires_at(lambda terms: terms.until)):
    """An offer, which expires when it ends."""

    name: Id


charts = Keyspace("charts", "Who likes what.")


class Ranking(SortedSet[Id, int], key="ranking", space=charts):
    """Songs by their votes."""


class Likes(Set[Id], key="likes:<person>", space=charts):
    """Songs that a person likes; each is ranked."""

    person: Id


refers(Likes, Ranking, lambda _, songs: [((), song) for song in songs], name="song", required=True)
CHARTS = Sample(Model("charts", (charts,)), (), lambda _: None, {})
OFFERS = Sample(Model("offers", (offers,)), (), lambda _: None, {})
RESTLESS = Sample(Model("restless", (restless,)), (), lambda _: None, {})
SHOP = SAMPLES["bookshop"]()


@pytest.fixture
def client(redis_url: str) -> Iterator[Any]:
    with redis.Redis.from_url(redis_url) as found:
        yield found


def test_a_plan_changes_nothing_and_can_be_read_again(redis_url: str, client: Any, tmp_path: Path) -> None:
    _damaged(redis_url, TOWN)
    before = _stored(client)
    plan = planned(redis_url, TOWN, tmp_path / "plan")
    assert _stored(client) == before
    again = read_plan(tmp_path / "plan")
    assert again == plan
    assert len(list(again.steps_in_order())) == plan.steps > 100
    assert (tmp_path / "plan").stat().st_mode & 0o077 == 0


def test_a_saved_plan_can_be_applied_and_applied_again_without_effect(
    redis_url: str, client: Any, tmp_path: Path
) -> None:
    _damaged(redis_url, TOWN)
    planned(redis_url, TOWN, tmp_path / "plan")
    first = applied(redis_url, TOWN, tmp_path)
    assert first.steps > 100
    after = _stored(client)
    second = applied(redis_url, TOWN, tmp_path)
    assert second.steps == 0
    assert _stored(client) == after


def test_a_step_that_was_overtaken_changes_nothing(redis_url: str, client: Any, tmp_path: Path) -> None:
    client.set("nobodys", "x")
    client.set("person:ann:home", "h1")
    client.sadd("housed", "ann", "ben")
    planned(redis_url, TOWN, tmp_path / "plan")
    client.set("nobodys", "something else by now")
    client.set("person:ann:home", "h2")
    client.set("person:ben:home", "h1")
    done = applied(redis_url, TOWN, tmp_path)
    assert done.steps == 0
    assert done.overtaken == 3
    assert client.get("nobodys") == b"something else by now"
    assert client.sismember("housed", "ben")
    assert not client.exists("house:h1:residents")


def test_removed_data_is_restored_with_its_ttl(redis_url: str, client: Any, tmp_path: Path) -> None:
    _damaged(redis_url, SHOP)
    client.set("shop:strange:1", "x", ex=500)
    before, codes = _contents(client), audited(redis_url, SHOP)[0].counts
    repaired(redis_url, SHOP, tmp_path / "undo")
    assert _contents(client) != before
    undone(redis_url, SHOP, tmp_path / "undo")
    back = audited(redis_url, SHOP)[0].counts
    # What was sealed or upgraded stays so: nothing of it was removed.
    for counts in (codes, back):
        for code in ("KW103", "KW204", "KW202"):
            counts.pop(code, None)
    assert back == codes
    assert 400 < client.ttl("shop:strange:1") <= 500
    sealed = {name for name in before if name.startswith(b"shop:session:")}
    after = _contents(client)
    unlike = {name for name in before if before[name] != after.get(name)}
    assert unlike <= sealed | {b"shop:hours"}


def test_undo_never_overwrites_keys_that_exist_again(redis_url: str, client: Any, tmp_path: Path) -> None:
    client.set("nobodys", "x")
    repaired(redis_url, TOWN, tmp_path / "undo")
    client.set("nobodys", "somebody's")
    assert undone(redis_url, TOWN, tmp_path / "undo") == (0, 1)
    assert client.get("nobodys") == b"somebody's"


def test_nothing_is_removed_without_consent(redis_url: str, client: Any, tmp_path: Path) -> None:
    client.set("nobodys", "x")
    client.lpush("person:ann", "a list")
    client.sadd("people", b"\xff")
    done = repaired(redis_url, TOWN, tmp_path / "undo", frozenset())
    assert done.left == {"KW101": 1, "KW201": 1, "KW202": 1}
    assert done.steps == 0
    assert {*client.keys()} == {b"nobodys", b"person:ann", b"people"}


def test_a_desk_that_two_people_claim_is_left_to_a_person(
    redis_url: str, client: Any, tmp_path: Path
) -> None:
    client.mset({"person:ann:desk": "d1", "person:ben:desk": "d1", "desk:d1:occupant": "ann"})
    client.sadd("seated", "ann", "ben")
    client.sadd("desks_taken", "d1")
    done = repaired(redis_url, TOWN, tmp_path / "undo")
    assert [template for template, _ in done.failed] == ["person:<person>:desk"]
    assert "only one can have it" in done.failed[0][1]
    assert "--remove missing-inverse deletes" in done.failed[0][1]
    assert client.get("desk:d1:occupant") == b"ann"
    assert client.get("person:ben:desk") == b"d1"


def test_a_claim_on_a_desk_that_is_another_persons_is_deleted_on_request_and_can_be_restored(
    redis_url: str, client: Any, tmp_path: Path
) -> None:
    client.mset({"person:ann:desk": "d1", "person:ben:desk": "d1", "person:cid:desk": "d1"})
    client.mset({"person:dan:desk": "d2", "desk:d1:occupant": "ann"})
    client.sadd("seated", "ann", "ben", "cid", "dan")
    client.sadd("desks_taken", "d1", "d2")
    done = repaired(redis_url, TOWN, tmp_path / "undo", frozenset({"KW402"}))
    assert done.failed == []
    assert client.mget("person:ann:desk", "desk:d1:occupant", "person:dan:desk", "desk:d2:occupant") == [
        b"d1",
        b"ann",
        b"d2",
        b"dan",
    ]
    assert not client.exists("person:ben:desk", "person:cid:desk")
    assert client.smembers("seated") == {b"ann", b"dan"}
    assert audited(redis_url, TOWN)[1] == []
    undone(redis_url, TOWN, tmp_path / "undo")
    assert client.mget("person:ben:desk", "person:cid:desk") == [b"d1", b"d1"]


def test_a_key_in_an_older_place_is_moved(redis_url: str, client: Any, tmp_path: Path) -> None:
    client.hset("shop:customer:7", mapping={"first_name": "Ben Nevis", "last_name": ""})
    done = repaired(redis_url, SHOP, tmp_path / "undo", frozenset())
    assert done.done == {"move": 1}
    assert client.hget("shop:reader:7", "last_name") == b"Nevis"
    assert not client.exists("shop:customer:7")


def test_a_key_under_a_former_name_is_moved_whatever_its_kind(
    redis_url: str, client: Any, tmp_path: Path
) -> None:
    library = Sample(Model("library", (migrating.now,)), (), lambda _: None, {})
    client.sadd("loans:ann", "b1")
    client.set("tag:b1", "good", ex=100)
    client.sadd("loans:ben", "older")
    client.sadd("reader:ben:loans", "newer")
    done = repaired(redis_url, library, tmp_path / "undo", frozenset())
    assert done.done == {"move": 2}
    assert client.smembers("reader:ann:loans") == {b"b1"}
    assert client.get("tag:{b1}") == b"good"
    assert [template for template, _ in done.failed] == ["loans:<reader>"]
    assert client.smembers("loans:ben") == {b"older"}


def test_a_key_whose_repair_keeps_losing_does_not_stop_the_others(
    redis_url: str, client: Any, tmp_path: Path
) -> None:
    client.mset({"restless:a": "1", "restless:b": "2"})
    done = repaired(redis_url, RESTLESS, tmp_path / "undo", frozenset())
    assert len(done.failed) == 2
    assert "lost to other writers" in done.failed[0][1]


def test_a_record_gets_the_expiry_that_follows_from_its_value(
    redis_url: str, client: Any, tmp_path: Path
) -> None:
    with connect(redis_url) as db:
        db.run(Offer("a").put(Terms("half price", datetime.now(UTC) + timedelta(hours=1))))
    client.persist("offer:a")
    assert repaired(redis_url, OFFERS, tmp_path / "undo").done == {"expire": 1}
    assert 3000 < client.ttl("offer:a") <= 3600
    assert undone(redis_url, OFFERS, tmp_path / "undo") == (1, 0)
    assert client.ttl("offer:a") == -1


def test_plaintext_is_sealed_and_not_written_to_the_undo_file(
    redis_url: str, client: Any, tmp_path: Path
) -> None:
    client.set("shop:session:7", "token", ex=100)
    done = repaired(redis_url, SHOP, tmp_path / "undo", frozenset())
    assert done.done == {"seal": 1}
    assert client.get("shop:session:7").startswith(b"kw2")
    assert client.ttl("shop:session:7") > 50
    assert not (tmp_path / "undo").exists()


def test_a_plan_whose_audit_fails_leaves_no_file_open(redis_url: str, client: Any, tmp_path: Path) -> None:
    client.set("person:ann", "Ann")
    client.execute_command("ACL", "SETUSER", "looker", "reset", "on", "nopass", "~*", "+@all", "-mget")
    try:
        with pytest.raises(ServerRefusedError):
            planned(as_user(redis_url, "looker", "x"), TOWN, tmp_path / "plan")
    finally:
        client.execute_command("ACL", "DELUSER", "looker")
    gc.collect()  # a file that is still open is a warning then, and a warning fails the test


def test_the_forward_side_decides(redis_url: str, client: Any, tmp_path: Path) -> None:
    client.set("person:ann:home", "h1")
    client.sadd("house:h2:residents", "ann")
    client.sadd("housed", "ann", "ghost")
    repaired(redis_url, TOWN, tmp_path / "undo", frozenset())
    assert client.smembers("house:h1:residents") == {b"ann"}
    assert not client.exists("house:h2:residents")
    assert client.smembers("housed") == {b"ann"}


@settings(max_examples=60, deadline=None)
@given(
    st.sets(st.one_of(st.binary(max_size=90), st.integers(-(2**40), 2**40).map(lambda n: str(n).encode())))
)
def test_a_fingerprint_does_not_depend_on_the_order_of_a_set(
    keywright_server: RedisServer, members: set[bytes]
) -> None:
    members |= {b"not a number", b"x" * 300}
    with redis.Redis.from_url(keywright_server.url) as client:
        client.delete("one", "other")
        client.sadd("one", *members)
        client.sadd("other", *[f"{n}" for n in range(700)], *members)
        client.srem("other", *({f"{n}".encode() for n in range(700)} - members))
        one, other = client.dump("one"), client.dump("other")
        assert isinstance(one, bytes)
        assert isinstance(other, bytes)
        if one[0] == other[0]:
            assert fingerprint(one) == fingerprint(other)
        client.sadd("one", b"one more than before")
        more = client.dump("one")
        assert isinstance(more, bytes)
        assert fingerprint(more) != fingerprint(one)


def _damaged(url: str, sample: Sample) -> None:
    with sample.open(url) as db:
        sample.fill(db)
        plant(db, sample.model.spaces, each=3, older=sample.older)


def _contents(client: Any) -> dict[bytes, Any]:
    reads = {
        b"string": client.get,
        b"hash": client.hgetall,
        b"set": client.smembers,
        b"zset": lambda name: client.zrange(name, 0, -1, withscores=True),
        b"list": lambda name: client.lrange(name, 0, -1),
        b"stream": client.xrange,
    }
    return {name: reads[client.type(name)](name) for name in client.scan_iter()}


def _stored(client: Any) -> dict[bytes, str]:
    return {name: fingerprint(client.dump(name)) for name in client.scan_iter()}


def test_an_entry_that_refers_to_no_member_of_a_sorted_set_is_removed(
    redis_url: str, client: Any, tmp_path: Path
) -> None:
    client.zadd("ranking", {"hit": 0})
    client.sadd("likes:ann", "hit", "gone")
    done = repaired(redis_url, CHARTS, tmp_path / "undo")
    assert client.smembers("likes:ann") == {b"hit"}
    assert (done.done, done.failed, done.left) == ({"remove-entry": 1}, [], {})
    assert undone(redis_url, CHARTS, tmp_path / "undo").restored == 1
    assert client.smembers("likes:ann") == {b"hit", b"gone"}
