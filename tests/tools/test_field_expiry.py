"""Fields that expire on their own (Redis 7.4, Valkey 9) are visible to the audit and the explorer."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest
import redis

from audited import Sample, audited, repaired, undone
from exploring import exploring, key_path
from keywright import Database, Id, Keyspace, Map, Record, connect, expires_in
from keywright.testing import Raw, RedisServer, as_user
from keywright.testing.damage import plant
from keywright.tools.acl import AclRole, AclServer, acl
from keywright.tools.diff import Severity, diff
from keywright.tools.docs.formats import Format, written
from keywright.tools.model import Model
from new_valkey import new_binary

post = Keyspace("post", "Parcels.")


class ParcelDetails(msgspec.Struct):
    sender: str
    note: str = ""


class Parcel(Record[ParcelDetails], key="parcel:<parcel>", space=post):
    """A parcel."""

    parcel: Id


class Weights(Map[Id, int], key="weights:<depot>", space=post):
    """The weights of parcels."""

    depot: Id


POST = Sample(Model("post", (post,)), (), lambda _: None, {})


@pytest.fixture(scope="module")
def new_server() -> Iterator[RedisServer]:
    with RedisServer(binary=new_binary()) as server:
        yield server


@pytest.fixture
def url(new_server: RedisServer) -> str:
    new_server.call("FLUSHALL")
    return new_server.url


@pytest.fixture
def client(url: str) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(url, protocol=2) as client:
        client.hset("parcel:1", mapping={"sender": "ann", "note": "soon"})
        client.hset("parcel:2", mapping={"sender": "ben"})
        client.hset("weights:1", mapping={"1": "7"})
        yield client


def _expire(client: redis.Redis, key: str, *fields: str) -> None:
    Raw(client)("HPEXPIRE", key, 100_000, "FIELDS", len(fields), *fields)


def test_a_required_member_that_expires_is_a_finding_and_an_optional_one_is_not(
    url: str, client: redis.Redis
) -> None:
    assert audited(url, POST)[1] == []
    _expire(client, "parcel:1", "note")
    _expire(client, "weights:1", "1")
    assert audited(url, POST)[1] == []
    _expire(client, "parcel:2", "sender")
    (finding,) = audited(url, POST)[1]
    assert (finding.code, finding.name) == ("KW303", b"parcel:2")
    assert finding.reason == "has required members that expire"
    assert finding.found.startswith("sender in ")


def test_a_server_without_field_expiry_is_not_asked(redis_url: str, keywright_server: RedisServer) -> None:
    keywright_server.call("HSET", "parcel:1", "sender", "ann")
    assert audited(redis_url, POST)[1] == []


def test_the_explorer_shows_the_fields_that_expire(url: str, client: redis.Redis) -> None:
    _expire(client, "parcel:1", "note")
    with exploring(url, [post]) as explored:
        page = explored.get(key_path("parcel:1")).text
        assert "Fields expire" in page
        assert '<code>note</code> <span data-ttl="' in page
        assert "Fields expire" not in explored.get(key_path("parcel:2")).text


FIVE = timedelta(minutes=5)
login = Keyspace("login", "Codes.", prefix="l")


class Codes(Map[Id, int], key="codes:<user>", space=login, field_expiry=expires_in(FIVE)):
    """Codes, each for five minutes."""

    user: Id


class Account(msgspec.Struct):
    name: str
    code: str | None = None
    note: str = ""


class AccountOf(Record[Account], key="account:<user>", space=login, field_expiry={"code": expires_in(FIVE)}):
    """An account, whose code expires."""

    user: Id


def _fill(db: Database) -> None:
    for number in range(3):
        db.run(Codes(f"u{number}").put_many({str(field): field for field in range(1200)}))
        db.run(AccountOf(f"u{number}").put(Account("Ann", "1", "new")))


LOGIN = Sample(Model("login", (login,)), (), _fill, {}, each=1)


@pytest.fixture
def logins(url: str) -> Iterator[redis.Redis]:
    with LOGIN.open(url) as db:
        _fill(db)
    with redis.Redis.from_url(url, protocol=2) as client:
        yield client


def test_fields_without_their_expiry_or_with_another_are_found_repaired_and_restored(
    url: str, logins: redis.Redis, tmp_path: Path
) -> None:
    assert audited(url, LOGIN)[1] == []
    send = Raw(logins)
    logins.hset("l:codes:u1", "1199", "7")  # HSET removes the expiry
    send("HPEXPIRE", "l:codes:u2", 900_000, "FIELDS", 1, "5")
    logins.hset("l:account:u1", "code", "2")
    send("HPEXPIRE", "l:account:u2", 900_000, "FIELDS", 1, "note")
    found = {(each.code, each.name, each.member) for each in audited(url, LOGIN)[1]}
    assert found == {
        ("KW304", b"l:codes:u1", b"1199"),
        ("KW304", b"l:codes:u2", b"5"),
        ("KW304", b"l:account:u1", b"code"),
        ("KW305", b"l:account:u2", b"note"),
    }
    undo = tmp_path / "undo"
    repaired(url, LOGIN, undo)
    assert [(each.code, each.name) for each in audited(url, LOGIN)[1]] == [("KW305", b"l:account:u2")]
    assert 0 < send("HPTTL", "l:codes:u1", "FIELDS", 1, "1199")[0] <= 300_000
    assert logins.hget("l:codes:u1", "1199") == b"7"
    undone(url, LOGIN, undo)
    assert {(each.code, each.name, each.member) for each in audited(url, LOGIN)[1]} == found
    assert send("HPTTL", "l:codes:u2", "FIELDS", 1, "5")[0] > 800_000


def test_planted_faults_of_fields_are_found(url: str, logins: redis.Redis) -> None:
    with LOGIN.open(url) as db:
        planted = plant(db, [login], each=1)
    codes = {fault.code for fault in planted}
    assert {"KW304", "KW305"} <= codes
    found = {(each.code, each.name) for each in audited(url, LOGIN)[1]}
    assert {(fault.code, fault.name) for fault in planted} <= found


def test_an_auditor_with_the_rules_of_the_model_sees_expiries_of_fields(
    url: str, logins: redis.Redis, new_server: RedisServer
) -> None:
    logins.hset("l:account:u1", "code", "2")
    rules = acl(LOGIN.model.described(), AclRole.AUDITOR, user="auditor", server=AclServer.REDIS_7_4)
    new_server.call("ACL", "SETUSER", "auditor", "on", ">pw", *rules.rules())
    found = audited(as_user(url, "auditor", "pw"), LOGIN)[1]
    assert [(each.code, each.name) for each in found] == [("KW304", b"l:account:u1")]
    writer = acl(LOGIN.model.described(), AclRole.WRITER, user="writer", server=AclServer.REDIS_7_4)
    new_server.call("ACL", "SETUSER", "writer", "on", ">pw", *writer.rules())
    with connect(as_user(url, "writer", "pw")) as db:
        db.run(AccountOf("u1").update(code="3"))
        assert db.run(Codes("u1").field_ttls("1"))["1"] is not None
    assert audited(url, LOGIN)[1] == []


def test_documents_and_diff_show_the_expiries_of_fields() -> None:
    text = written(LOGIN.model.described(), Format.MARKDOWN)
    assert "| Entries expire | 5 minutes after the last write |" in text
    assert "Expires: 5 minutes after the last write." in text

    former = Keyspace("login", "Codes.", prefix="l")
    _declare_without_expiry(former)
    changes = diff(Model("login", (former,)).described(), LOGIN.model.described()).changes
    assert [(change.severity, change.what) for change in changes] == [
        (
            Severity.COMPATIBLE,
            "its entries expire 5 minutes after the last write, no longer never; each from its next write",
        ),
        (
            Severity.COMPATIBLE,
            "the member code expires: 5 minutes after the last write; from its next write",
        ),
    ]


def _declare_without_expiry(space: Keyspace) -> None:
    class Codes(Map[Id, int], key="codes:<user>", space=space):
        """Codes, each for five minutes."""

        user: Id

    class AccountOf(Record[Account], key="account:<user>", space=space):
        """An account, whose code expires."""

        user: Id
