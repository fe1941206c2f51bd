"""Sealed and secret values: unreadable in Redis and in messages, opened with the key."""

from __future__ import annotations

import secrets
from typing import Annotated

import msgspec
import pytest

from keywright import (
    Id,
    Keyring,
    Keyspace,
    List,
    Map,
    Record,
    Sealed,
    SealedIfBound,
    Secret,
    Set,
    SortedSet,
    Stream,
    Value,
)
from keywright.errors import DeclarationError, SealError, ValueRefusedError
from keywright.keyspace.codecs import Text
from keywright.testing.runs import OpenRun, Raw

space = Keyspace("vault", "What must not be read.")

Pin = Annotated[Secret[str], Sealed]
HIDDEN = "1234-swordfish"


class Guest(msgspec.Struct):
    name: str
    pin: Pin
    spare: Pin | None = None


class Code(Value[Pin], key="code:<door>", space=space):
    """The code of a door."""

    door: Id


class Other(Value[Pin], key="other:<door>", space=space):
    """Another kind of code."""

    door: Id


class GuestOf(Record[Guest], key="guest:<door>", space=space):
    """A guest, whose pin is sealed and whose name is not."""

    door: Id


class Codes(Map[Id, Pin], key="codes", space=space):
    """Codes by door."""


class History(List[Pin], key="history", space=space):
    """Codes that were."""


class Uses(Stream[Guest], key="uses", space=space):
    """Who came in."""


class Hint(Value[Annotated[str, SealedIfBound(Text())]], key="hint:<door>", space=space):
    """Sealed where there is a keyring."""

    door: Id


OLD = secrets.token_bytes(32)
NEW = secrets.token_bytes(32)
FIRST = Keyring("k1", {"k1": OLD})
ROTATED = Keyring("k2", {"k2": NEW, "k1": OLD})
LATER = Keyring("k2", {"k2": NEW})


def test_a_sealed_value_is_unreadable_in_redis_and_opens_again(
    open_run: OpenRun, redis_url: str, raw: Raw
) -> None:
    run = open_run(redis_url, space.bind(keyring=FIRST))
    run(Code("a").set(Secret(HIDDEN)))
    stored = raw("GET", "code:a")
    assert stored.startswith(b"kw2\x02k1")
    assert HIDDEN.encode() not in stored
    found = run(Code("a").get())
    assert found is not None
    assert found.reveal() == HIDDEN
    assert HIDDEN not in repr(found)
    assert HIDDEN not in repr(Code("a").set(Secret(HIDDEN)))


def test_a_value_is_sealed_differently_each_time(open_run: OpenRun, redis_url: str, raw: Raw) -> None:
    run = open_run(redis_url, space.bind(keyring=FIRST))
    run(Code.set_many([("a", Secret(HIDDEN)), ("b", Secret(HIDDEN))]))
    assert raw("GET", "code:a") != raw("GET", "code:b")
    assert run(Code.get_many(["a", "b", "c"])) == [Secret(HIDDEN), Secret(HIDDEN), None]
    assert run(Code("a").swap(Secret("new"))) == Secret(HIDDEN)
    assert run(Code("a").take()) == Secret("new")


def test_only_sealed_members_of_a_record_are_hidden(open_run: OpenRun, redis_url: str, raw: Raw) -> None:
    run = open_run(redis_url, space.bind(keyring=FIRST))
    guest = Guest("Ann", Secret(HIDDEN))
    run(GuestOf("a").put(guest))
    stored = raw("HGETALL", "guest:a")
    assert stored[b"name"] == b"Ann"
    assert stored[b"pin"].startswith(b"kw2")
    assert run(GuestOf("a").get()) == guest
    assert run(GuestOf("a").update(spare=Secret("0000"))) is True
    assert run(GuestOf("a").pick("name", "spare")) == {"name": "Ann", "spare": Secret("0000")}
    assert run(GuestOf("b").create(guest)) is True
    assert HIDDEN.encode() not in raw("HGET", "guest:b", "pin")


def test_sealed_values_stand_in_every_kind(open_run: OpenRun, redis_url: str, raw: Raw) -> None:
    run = open_run(redis_url, space.bind(keyring=FIRST))
    run(Codes().put_many({"a": Secret(HIDDEN)}))
    run(History().push(Secret(HIDDEN)))
    run(Uses().add(Guest("Ann", Secret(HIDDEN)), entry_id="1-0"))
    assert raw("HGET", "codes", "a").startswith(b"kw2")
    assert raw("LINDEX", "history", 0).startswith(b"kw2")
    assert raw("XRANGE", "uses", "-", "+")[0][1][b"pin"].startswith(b"kw2")
    assert run(Codes().all()) == {"a": Secret(HIDDEN)}
    assert run(Codes().get_many(["a"])) == {"a": Secret(HIDDEN)}
    assert run(History().range()) == [Secret(HIDDEN)]
    assert [entry.value.pin for entry in run(Uses().range())] == [Secret(HIDDEN)]


def test_a_rotated_keyring_opens_the_old_and_seals_with_the_new(
    open_run: OpenRun, redis_url: str, raw: Raw
) -> None:
    open_run(redis_url, space.bind(keyring=FIRST))(Code("a").set(Secret(HIDDEN)))
    run = open_run(redis_url, space.bind(keyring=ROTATED))
    assert ROTATED.needs_resealing(raw("GET", "code:a"))
    found = run(Code("a").get())
    assert found == Secret(HIDDEN)
    run(Code("a").set(Secret(HIDDEN)))
    assert not ROTATED.needs_resealing(raw("GET", "code:a"))
    assert open_run(redis_url, space.bind(keyring=LATER))(Code("a").get()) == Secret(HIDDEN)


def test_a_dropped_key_is_named(open_run: OpenRun, redis_url: str) -> None:
    open_run(redis_url, space.bind(keyring=FIRST))(Code("a").set(Secret(HIDDEN)))
    run = open_run(redis_url, space.bind(keyring=LATER))
    for read in (Code("a").get(), Code.get_many(["a"])):
        with pytest.raises(SealError) as refused:
            run(read)
        assert refused.value.key == b"code:a"
        assert refused.value.template == "code:<door>"
        assert "'k1'" in refused.value.found


def test_plaintext_where_a_seal_is_declared_is_refused_and_not_shown(
    open_run: OpenRun, redis_url: str, raw: Raw
) -> None:
    raw("SET", "code:a", HIDDEN)
    run = open_run(redis_url, space.bind(keyring=FIRST))
    for read in (Code("a").get(), Code.get_many(["a"])):
        with pytest.raises(SealError, match=r"formerly=") as refused:
            run(read)
        assert HIDDEN not in str(refused.value)


LOOKS_SEALED = "kw2 " + "x" * 64
"""A text, but also a key id of 32 characters, a nonce and a ciphertext."""


def test_a_text_beside_a_seal_may_look_like_one(open_run: OpenRun, redis_url: str) -> None:
    run = open_run(redis_url, space.bind(keyring=FIRST))
    guest = Guest(LOOKS_SEALED, Secret(HIDDEN))
    run(GuestOf("a").put(guest))
    run(Uses().add(guest, entry_id="1-0"))
    assert run(GuestOf("a").get()) == guest
    assert run(GuestOf("a").pick("name")) == {"name": LOOKS_SEALED}
    assert [entry.value for entry in run(Uses().range())] == [guest]


def test_a_fake_seal_in_a_sealed_member_does_not_open(open_run: OpenRun, redis_url: str, raw: Raw) -> None:
    run = open_run(redis_url, space.bind(keyring=FIRST))
    run(GuestOf("a").put(Guest("Ann", Secret(HIDDEN))))
    raw("HSET", "guest:a", "pin", LOOKS_SEALED)
    with pytest.raises(SealError, match="unknown key"):
        run(GuestOf("a").get())


def test_plaintext_that_looks_like_a_seal_is_refused_without_a_keyring(
    open_run: OpenRun, redis_url: str, raw: Raw
) -> None:
    run = open_run(redis_url)
    with pytest.raises(ValueRefusedError, match="look like a seal"):
        run(Hint("a").set(LOOKS_SEALED))
    assert raw.names() == set()
    sealing = open_run(redis_url, space.bind(keyring=FIRST))
    sealing(Hint("a").set(LOOKS_SEALED))
    assert sealing(Hint("a").get()) == LOOKS_SEALED


def test_a_seal_copied_under_another_template_does_not_open(
    open_run: OpenRun, redis_url: str, raw: Raw
) -> None:
    run = open_run(redis_url, space.bind(keyring=FIRST))
    run(Code("a").set(Secret(HIDDEN)))
    raw("COPY", "code:a", "other:a")
    with pytest.raises(SealError):
        run(Other("a").get())


def test_members_that_the_server_compares_cannot_be_sealed() -> None:
    other = Keyspace("x", "y")
    with pytest.raises(DeclarationError, match="never equals itself"):

        class Tokens(Set[Pin], key="tokens", space=other):
            """A set of seals, each of them different."""

    with pytest.raises(DeclarationError, match="never equals itself"):

        class Ranked(SortedSet[Pin, int], key="ranked", space=other):
            """Scores of seals."""

    with pytest.raises(DeclarationError, match="never equals itself"):

        class ByToken(Map[Pin, str], key="by_token", space=other):
            """Fields that nobody finds again."""


def test_without_a_keyring_nothing_is_written(open_run: OpenRun, redis_url: str, raw: Raw) -> None:
    run = open_run(redis_url)
    with pytest.raises(DeclarationError, match="no keyring is bound"):
        run(Code("a").set(Secret(HIDDEN)))
    assert raw.names() == set()
