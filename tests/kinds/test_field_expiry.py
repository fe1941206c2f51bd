"""The declared expiry of single fields: of the entries of a Map, and of members of a Record."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import msgspec
import pytest

from keywright import (
    Effect,
    Id,
    Key,
    Keyring,
    Keyspace,
    Map,
    OtherFields,
    Record,
    Sealed,
    connect,
    expires_at,
    expires_in,
    may_expire,
    preview,
    raw,
)
from keywright.engine import Database
from keywright.errors import CapabilityError, DeclarationError, ValueRefusedError
from keywright.keyspace import Upgrade
from keywright.keyspace.versions.rotation import resealed
from keywright.operations import absent, commit
from keywright.testing import RedisServer
from new_valkey import new_binary

MINUTE, FIVE = timedelta(minutes=1), timedelta(minutes=5)
logins = Keyspace("logins", "Codes and sessions.", prefix="f")


class Codes(Map[Id, int], key="codes:<user>", space=logins, field_expiry=expires_in(FIVE)):
    """Codes, each for five minutes."""

    user: Id


class Tries(
    Map[Id, int],
    key="tries:<user>",
    space=logins,
    field_expiry=expires_in(FIVE, since="first write"),
    expiry=expires_in(timedelta(hours=1)),
):
    """Attempts within five minutes of the first, of a user that was active within an hour."""

    user: Id


class Windows(
    Map[Id, int],
    key="windows:<minutes>",
    space=logins,
    field_expiry=expires_in(lambda key: timedelta(minutes=key.minutes)),
):
    """Counts in windows of some minutes."""

    minutes: int


class Marks(Map[Id, str], key="marks", space=logins, field_expiry=may_expire(within=FIVE)):
    """Marks, of which some expire."""


class Passes(
    Map[Id, str], key="passes", space=logins, field_expiry=expires_at(datetime(2100, 1, 1, tzinfo=UTC))
):
    """Passes until the end of the century."""


class Account(msgspec.Struct):
    name: str
    code: str | None = None
    tries: int = 0
    devices: Annotated[dict[Id, str], OtherFields] = {}


class AccountOf(
    Record[Account],
    key="account:<user>",
    space=logins,
    field_expiry={"code": expires_in(FIVE), "devices": expires_in(MINUTE)},
):
    """An account, whose code and devices expire."""

    user: Id


class Token(msgspec.Struct):
    owner: str
    secret: Annotated[str, Sealed] | None = None


class TokenOf(Record[Token], key="token:<user>", space=logins, field_expiry={"secret": expires_in(FIVE)}):
    """A token, whose secret expires."""

    user: Id


def _older(stored: dict[bytes, bytes]) -> bool:
    return b"label" in stored


def _converted(stored: dict[bytes, bytes], _: Key) -> Account:
    return Account(stored[b"label"].decode(), stored[b"code"].decode(), devices={"new": "phone"})


class OlderAccount(
    Record[Account],
    key="older:<user>",
    space=logins,
    upgrades=[Upgrade("labels", _older, _converted)],
    field_expiry={"code": expires_in(FIVE), "devices": expires_in(MINUTE)},
):
    """An account that may have an older shape."""

    user: Id


@pytest.fixture(scope="module")
def new_server() -> Iterator[RedisServer]:
    with RedisServer(binary=new_binary()) as server:
        yield server


@pytest.fixture
def db(new_server: RedisServer) -> Iterator[Database]:
    new_server.call("FLUSHALL")
    with connect(new_server.url, logins.bind(keyring=Keyring("a", {"a": bytes(range(32))}))) as db:
        yield db


def _near(found: timedelta | None, expected: timedelta) -> bool:
    return found is not None and expected - timedelta(seconds=30) < found <= expected


def test_every_write_of_an_entry_gives_it_the_declared_expiry(db: Database) -> None:
    codes = Codes("ann")
    db.run(codes.put("a", 1))
    db.run(codes.put_many({"b": 2, "c": 3}))
    db.run(codes.put_if_absent("d", 4))
    db.run(codes.add("e"))
    assert all(_near(left, FIVE) for left in db.run(codes.field_ttls(*"abcde")).values())
    db.run(codes.replace({"z": 9}))
    assert db.run(codes.all()) == {"z": 9}
    assert _near(db.run(codes.field_ttls("z", "a"))["z"], FIVE)
    assert db.run(codes.field_ttls("a")) == {"a": None}


def test_each_write_renews_an_expiry_since_the_last_write(db: Database) -> None:
    codes = Codes("ann")
    for write in (codes.put("a", 1), codes.add("a"), codes.put_many({"a": 2})):
        db.run(write)
        db.run(codes.expire_field("a", MINUTE))
        db.run(write)
        assert _near(db.run(codes.field_ttls("a"))["a"], FIVE), write


def test_additions_leave_an_expiry_since_the_first_write(db: Database) -> None:
    tries = Tries("ann")
    db.run(tries.add("a"))
    db.run(tries.expire_field("a", MINUTE))
    db.run(tries.add("a"))
    assert _near(db.run(tries.field_ttls("a"))["a"], MINUTE)
    assert _near(db.run(tries.ttl()), timedelta(hours=1))
    db.run(tries.put("a", 7))
    assert _near(db.run(tries.field_ttls("a"))["a"], FIVE)


def test_a_put_that_finds_the_entry_leaves_its_expiry(db: Database) -> None:
    codes = Codes("ann")
    db.run(codes.put("a", 1))
    db.run(codes.expire_field("a", MINUTE))
    assert not db.run(codes.put_if_absent("a", 2))
    assert _near(db.run(codes.field_ttls("a"))["a"], MINUTE)


def test_an_expiry_may_follow_from_the_key_be_a_moment_or_be_left_to_writers(db: Database) -> None:
    db.run(Windows(1).add("a"))
    assert _near(db.run(Windows(1).field_ttls("a"))["a"], MINUTE)
    db.run(Passes().put("a", "x"))
    left = db.run(Passes().field_ttls("a"))["a"]
    assert left is not None
    assert (datetime.now(UTC) + left).year in (2099, 2100)
    db.run(Marks().put_many({"a": "x", "b": "y"}))
    assert db.run(Marks().expire_field("a", MINUTE))
    assert db.run(Marks().field_ttls("b")) == {"b": None}
    assert db.run(Marks().persist_field("a"))
    assert not db.run(Marks().persist_field("a"))


def test_every_write_of_a_member_gives_it_the_declared_expiry(db: Database) -> None:
    account = AccountOf("ann")
    value = Account("Ann", "1", 3, {"phone": "x"})
    writes = (
        account.put(value),
        account.write(value),
        account.update(code="2", devices={"phone": "y"}),
    )
    for write in writes:
        db.run(write)
        found = db.run(account.member_ttls("name", "code", "tries"))
        assert (found["name"], found["tries"]) == (None, None)
        assert _near(found["code"], FIVE)
        (device,) = db.run(_ttl(account, b"phone"))
        assert 30_000 < device <= 60_000
        assert db.run(account.expire_member("code", MINUTE))
    db.run(account.delete())
    assert db.run(account.create(value))
    assert _near(db.run(account.member_ttls("code"))["code"], FIVE)
    db.run(account.expire_member("code", MINUTE))
    db.run(account.update(tries=4))
    assert _near(db.run(account.member_ttls("code"))["code"], MINUTE)
    assert db.run(account.persist_member("code"))
    assert db.run(account.member_ttls("code")) == {"code": None}


def _ttl(key: Key, field: bytes) -> Any:
    return raw(b"HPTTL", key, b"FIELDS", b"1", field, as_type=list[int], effect=Effect.READ)


def test_an_upgrade_and_a_new_seal_keep_the_expiries_of_fields(db: Database, new_server: RedisServer) -> None:
    new_server.call("HSET", "f:older:ann", "label", "Ann", "code", "1")
    new_server.call("HPEXPIRE", "f:older:ann", 60_000, "FIELDS", 1, "code")
    assert db.run(OlderAccount("ann").get()) == Account("Ann", "1", devices={"new": "phone"})
    assert _near(db.run(OlderAccount("ann").member_ttls("code"))["code"], MINUTE)
    (new,) = db.run(_ttl(OlderAccount("ann"), b"new"))
    assert 30_000 < new <= 60_000

    db.run(TokenOf("ann").put(Token("ann", "s3cret")))
    db.run(TokenOf("ann").expire_member("secret", MINUTE))
    later = Keyring("b", {"a": bytes(range(32)), "b": bytes(range(32, 64))})
    with connect(new_server.url, logins.bind(keyring=later)) as other:
        assert other.run(resealed(TokenOf("ann")))
        assert other.run(TokenOf("ann").get()) == Token("ann", "s3cret")
        assert _near(other.run(TokenOf("ann").member_ttls("secret"))["secret"], MINUTE)


def test_a_commit_of_thousands_of_entries_gives_each_its_expiry(db: Database) -> None:
    entries = {str(number): number for number in range(2500)}
    assert db.run(commit("fill", [absent(Codes("ann"))], [Codes("ann").put_many(entries)]))
    assert all(_near(left, FIVE) for left in db.run(Codes("ann").field_ttls(*entries)).values())


WRITES = (
    Codes("ann").put("a", 1),
    Codes("ann").put_many({"a": 1}),
    Codes("ann").put_if_absent("a", 1),
    Codes("ann").add("a"),
    Codes("ann").replace({"a": 1}),
    AccountOf("ann").put(Account("Ann", "1")),
    AccountOf("ann").write(Account("Ann", "1")),
    AccountOf("ann").create(Account("Ann", "1")),
)


@pytest.mark.parametrize("known", [True, False], ids=["asked", "cluster-not-asked"])
def test_a_server_without_the_feature_refuses_before_anything_is_written(
    known: bool, redis_url: str, keywright_server: RedisServer
) -> None:
    with connect(redis_url) as db:
        if db.server().can("field expiry"):
            pytest.skip("this server has it")
        for write in WRITES:
            if not known:
                db.context.field_expiry = None  # as on a cluster that the URL names
            with pytest.raises(CapabilityError, match=r"Redis 7\.4 or Valkey 9"):
                db.run(write)
        keywright_server.call("HSET", "f:account:ann", "name", "Ann")
        db.context.field_expiry = False if known else None
        with pytest.raises(CapabilityError, match=r"Redis 7\.4 or Valkey 9"):
            db.run(AccountOf("ann").update(name="Ben", code="1"))
        with pytest.raises(CapabilityError, match=r"Redis 7\.4 or Valkey 9"):
            db.run(Codes("ann").field_ttls("a"))
        assert db.run(AccountOf("ann").get()) == Account("Ann")
        assert not db.run(Codes("ann").exists())
        db.run(AccountOf("ben").put(Account("Ben")))  # nothing in it expires


@pytest.mark.cluster
def test_fields_on_a_cluster_without_the_feature_are_refused(cluster_url: str) -> None:
    with connect(cluster_url) as db:
        if db.server().can("field expiry"):
            pytest.skip("this server has it")
        for write in WRITES:
            with pytest.raises(CapabilityError, match=r"Redis 7\.4 or Valkey 9"):
                db.run(write)
        assert not db.run(Codes("ann").exists())
        assert not db.run(AccountOf("ann").exists())


def test_a_write_and_its_expiries_are_one_transaction() -> None:
    (wire,) = preview(Tries("ann").add("a"))
    assert [command[0] for command in wire.arguments] == [b"HINCRBY", b"HPEXPIRE", b"PEXPIRE"]


def test_an_expiry_that_a_field_cannot_have_is_refused() -> None:
    space = Keyspace("refused", "Nothing.")
    with pytest.raises(DeclarationError, match="since the last use"):

        class Sliding(Map[Id, int], key="a", space=space, field_expiry=expires_in(FIVE, since="last use")):
            """Not possible."""

    with pytest.raises(DeclarationError, match="cannot follow from a value"):

        class ByValue(Map[Id, int], key="b", space=space, field_expiry=expires_at(lambda _: None)):
            """Not possible."""

    with pytest.raises(DeclarationError, match="every record must have it"):

        class Needed(Record[Account], key="c", space=space, field_expiry={"name": expires_in(FIVE)}):
            """Not possible."""

    with pytest.raises(DeclarationError, match="not a member"):

        class Unknown(Record[Account], key="d", space=space, field_expiry={"nmae": expires_in(FIVE)}):
            """Not possible."""

    with pytest.raises(ValueRefusedError, match="required"):
        AccountOf("ann").expire_member("name", FIVE)
