"""Compare-and-set on one value: no write is lost, and none overwrites a value it did not read."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Annotated

import msgspec
import pytest

from keywright import (
    Database,
    Id,
    Int64,
    Keyring,
    Keyspace,
    Sealed,
    Upgrade,
    Value,
    connect,
    expires_in,
    modify,
    replace_if,
)
from keywright.errors import ConflictError, DeclarationError, OutcomeUnknownError, StoredDataError
from keywright.testing import Proxy
from racing import race

space = Keyspace("ledger", "Balances that many change.")
DAY = timedelta(days=1)


class Account(msgspec.Struct):
    balance: int
    closed: bool = False


class Balance(Value[int], key="balance:<name>", space=space):
    """A number."""

    name: Id


class Note(Value[str], key="note:<name>", space=space, expiry=expires_in(DAY)):
    """A text for a day."""

    name: Id


class Ledger(Value[Account], key="ledger:<name>", space=space):
    """An account."""

    name: Id


class Hidden(Value[Annotated[int, Sealed(Int64())]], key="hidden:<name>", space=space):
    """A number nobody may read."""

    name: Id


def _from_words(stored: bytes, key: object) -> str:
    return stored.decode().removeprefix("v1 ")


class Versioned(
    Value[str],
    key="versioned:<name>",
    space=space,
    upgrades=[Upgrade("v1", lambda stored: stored.startswith(b"v1 "), _from_words)],
):
    """A text whose older form has a prefix."""

    name: Id


class Older(Value[str], key="versioned:<name>", space=Keyspace("old", "What the program before wrote.")):
    """The older form."""

    name: Id


@pytest.fixture
def sealed_db(url: str) -> Iterator[Database]:
    with connect(url, space.bind(keyring=Keyring("k1", {"k1": os.urandom(32)}))) as database:
        yield database


def test_a_value_is_replaced_only_if_it_is_the_expected_one(db: Database) -> None:
    key = Balance("a")
    assert not db.run(replace_if(key, 1, 2))
    assert db.run(replace_if(key, None, 1))
    assert not db.run(replace_if(key, None, 5))
    assert db.run(replace_if(key, 1, 2))
    assert not db.run(replace_if(key, 1, 9))
    assert db.run(key.get()) == 2


def test_none_deletes(db: Database) -> None:
    db.run(Balance("a").set(1))
    assert not db.run(replace_if(Balance("a"), 2, None))
    assert db.run(replace_if(Balance("a"), 1, None))
    assert db.run(replace_if(Balance("a"), None, None))
    assert not db.run(Balance("a").exists())


def test_of_sixteen_that_replace_the_same_value_one_does(db: Database) -> None:
    db.run(Balance("a").set(0))
    assert race(16, lambda number: db.run(replace_if(Balance("a"), 0, number + 1))).count(True) == 1


def test_writes_give_the_declared_expiry(db: Database) -> None:
    for write in (replace_if(Note("a"), None, "x"), modify(Note("a"), lambda old: f"{old}y")):
        assert db.run(write)
        assert timedelta(hours=23) < (db.run(Note("a").ttl()) or timedelta()) <= DAY
        db.run(Note("a").expire(timedelta(hours=1)))
    assert db.run(Note("a").get()) == "xy"


def test_a_sealed_value_cannot_be_replaced_by_comparison() -> None:
    with pytest.raises(DeclarationError, match="modify"):
        replace_if(Hidden("a"), 1, 2)


def test_modify_returns_the_written_value(db: Database) -> None:
    assert db.run(modify(Balance("a"), lambda old: (old or 0) + 5)) == 5
    assert db.run(modify(Balance("a"), lambda old: (old or 0) + 5)) == 10
    assert db.run(modify(Balance("a"), lambda _: None)) is None
    assert not db.run(Balance("a").exists())
    assert db.run(modify(Balance("a"), lambda old: old)) is None


def test_modify_loses_no_increment(db: Database) -> None:
    def add(number: int) -> None:
        for _ in range(25):
            db.run(modify(Balance("a"), lambda old: (old or 0) + 1, attempts=1000))

    race(16, add)
    assert db.run(Balance("a").get()) == 16 * 25


def test_modify_loses_no_increment_of_a_sealed_value(sealed_db: Database) -> None:
    def add(number: int) -> None:
        for _ in range(10):
            sealed_db.run(modify(Hidden("a"), lambda old: (old or 0) + 1, attempts=1000))

    race(8, add)
    assert sealed_db.run(Hidden("a").get()) == 80


def test_modify_does_not_mind_how_another_program_wrote_the_value(db: Database) -> None:
    class Loose(Value[str], key="ledger:<name>", space=Keyspace("loose", "Another program's JSON.")):
        """The account with spaces."""

        name: Id

    db.run(Loose("a").set('{ "balance" : 1 }'))
    assert not db.run(replace_if(Ledger("a"), Account(1), Account(2)))
    assert db.run(modify(Ledger("a"), _deposited)) == Account(2)


def _deposited(account: Account | None) -> Account:
    return Account((account.balance if account else 0) + 1)


def test_modify_sees_the_present_shape_of_an_older_value(db: Database) -> None:
    db.run(Older("a").set("v1 words"))
    assert db.run(modify(Versioned("a"), lambda old: f"{old}!")) == "words!"


def test_modify_gives_up_after_its_attempts(db: Database) -> None:
    def outrun(old: int | None) -> int:
        db.run(Balance("a").set((old or 0) + 1))
        return -1

    with pytest.raises(ConflictError, match="3 times"):
        db.run(modify(Balance("a"), outrun, attempts=3))
    assert db.run(Balance("a").get()) == 3


def test_an_error_in_the_change_writes_nothing(db: Database) -> None:
    db.run(Balance("a").set(1))
    with pytest.raises(ZeroDivisionError):
        db.run(modify(Balance("a"), lambda _: 1 // 0))
    assert db.run(Balance("a").get()) == 1


def test_a_value_that_does_not_decode_is_left_alone(db: Database) -> None:
    class Words(Value[str], key="balance:<name>", space=Keyspace("words", "Not numbers.")):
        """A stray text."""

        name: Id

    db.run(Words("a").set("many"))
    with pytest.raises(StoredDataError):
        db.run(modify(Balance("a"), lambda _: 0))
    assert db.run(Words("a").get()) == "many"


def test_modify_does_not_count_twice_where_a_reply_is_lost(
    redis_url: str, make_proxy: Callable[[str], Proxy]
) -> None:
    proxy = make_proxy(redis_url)
    with connect(proxy.url) as db:
        db.run(modify(Balance("warm"), lambda _: 1))
        proxy.cut_before_reply(2)  # the read, then the write
        with pytest.raises(OutcomeUnknownError):
            db.run(modify(Balance("a"), lambda old: (old or 0) + 1))
        assert db.run(Balance("a").get()) == 1
