"""A seal is bound to its place: it opens where it was written, and nowhere else."""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import Callable
from typing import Annotated, Any

import msgspec
import pytest

from keywright import (
    Call,
    Id,
    Keyring,
    Keyspace,
    List,
    Map,
    Record,
    Sealed,
    Secret,
    Stream,
    Upgrade,
    Value,
    aconnect,
)
from keywright.errors import SealError
from keywright.testing.runs import OpenRun, Raw, Run
from keywright.tools.migrate import SweepOptions, SweepResult, sweep

space = Keyspace("vault", "What must not be read.")
before = Keyspace("before", "The same, as it was.")

Pin = Annotated[Secret[str], Sealed]
OLD, NEW = secrets.token_bytes(32), secrets.token_bytes(32)
RING = Keyring("k1", {"k1": OLD})
ROTATED = Keyring("k2", {"k2": NEW, "k1": OLD})
AFTERWARDS = Keyring("k2", {"k2": NEW})


class Member(msgspec.Struct):
    name: str
    photo: bytes
    pin: Pin
    spare: Pin


class Account(Record[Member], key="account:<user>", space=space):
    """Two clear members and two sealed ones."""

    user: Id


class OtherAccount(Record[Member], key="elsewhere:<user>", space=space):
    """The same members under another template."""

    user: Id


class Code(Value[Pin], key="code:<door>", space=space):
    """The code of a door."""

    door: Id


class Codes(Map[Id, Pin], key="codes:<house>", space=space):
    """Codes by door."""

    house: Id


class History(List[Pin], key="history:<house>", space=space):
    """Codes that were."""

    house: Id


class Visits(Stream[Member], key="visits:<house>", space=space):
    """Who came in."""

    house: Id


def member(name: str) -> Member:
    return Member(name, b"", Secret(f"{name}-pin"), Secret(f"{name}-spare"))


def seal_of_older_form(template: str, text: str) -> bytes:
    """Return a seal that is bound to its template only, as earlier versions wrote it."""
    cipher, nonce = RING.cipher("k1"), os.urandom(12)
    assert cipher is not None
    return b"kw1\x02k1" + nonce + cipher.encrypt(nonce, text.encode(), template.encode())


@pytest.fixture
def run(open_run: OpenRun, redis_url: str) -> Run:
    return open_run(redis_url, space.bind(keyring=RING))


@pytest.mark.parametrize("older", [False, True])
@pytest.mark.parametrize("clear", ["name", "photo"])
def test_a_seal_that_is_copied_to_a_clear_member_stays_closed(
    run: Run, raw: Raw, clear: str, *, older: bool
) -> None:
    run(Account("alice").put(member("alice")))
    run(Account("mallory").put(member("mallory")))
    seal = raw("HGET", "account:alice", "pin")
    if older:
        seal = seal_of_older_form("account:<user>", "alice-pin")
    raw("HSET", "account:mallory", clear, seal)
    for read in (Account("mallory").get(), Account("mallory").pick(clear), Account.get_many(["mallory"])):
        # As text it is refused, since a nonce is rarely UTF-8.
        assert "alice-pin" not in repr(run(read.attempt()))
    if clear == "photo":
        assert type(run(Account("mallory").pick("photo"))["photo"]) is bytes


MOVES: dict[str, tuple[Callable[[Raw], Any], Call[Any]]] = {
    "another member": (
        lambda raw: raw("HSET", "account:alice", "spare", raw("HGET", "account:alice", "pin")),
        Account("alice").get(),
    ),
    "another member, picked": (
        lambda raw: raw("HSET", "account:alice", "spare", raw("HGET", "account:alice", "pin")),
        Account("alice").pick("spare"),
    ),
    "another key": (
        lambda raw: raw("HSET", "account:mallory", "pin", raw("HGET", "account:alice", "pin")),
        Account("mallory").get(),
    ),
    "another template": (
        lambda raw: raw("COPY", "account:alice", "elsewhere:alice"),
        OtherAccount("alice").get(),
    ),
    "another value": (lambda raw: raw("COPY", "code:a", "code:b"), Code("b").get()),
    "another value, of many": (lambda raw: raw("COPY", "code:a", "code:b"), Code.get_many(["a", "b"])),
    "a value from a record": (
        lambda raw: raw("SET", "code:b", raw("HGET", "account:alice", "pin")),
        Code("b").get(),
    ),
    "another field": (
        lambda raw: raw("HSET", "codes:x", "b", raw("HGET", "codes:x", "a")),
        Codes("x").get("b"),
    ),
    "another field, of all": (
        lambda raw: raw("HSET", "codes:x", "b", raw("HGET", "codes:x", "a")),
        Codes("x").all(),
    ),
    "another field, of some": (
        lambda raw: raw("HSET", "codes:x", "b", raw("HGET", "codes:x", "a")),
        Codes("x").get_many(["b"]),
    ),
    "another map": (lambda raw: raw("COPY", "codes:x", "codes:y"), Codes("y").values()),
    "another list": (lambda raw: raw("COPY", "history:x", "history:y"), History("y").range()),
    "a list from a value": (lambda raw: raw("RPUSH", "history:y", raw("GET", "code:a")), History("y").pop()),
    "another stream": (lambda raw: raw("COPY", "visits:x", "visits:y"), Visits("y").range()),
}


@pytest.mark.parametrize("move", MOVES)
def test_a_seal_that_is_moved_does_not_open(run: Run, raw: Raw, move: str) -> None:
    for user in ("alice", "mallory"):
        run(Account(user).put(member(user)))
    run(Code("a").set(Secret("code")))
    run(Codes("x").put_many({"a": Secret("one"), "b": Secret("two")}))
    run(History("x").push(Secret("past")))
    run(Visits("x").add(member("alice")))
    attack, read = MOVES[move]
    attack(raw)
    with pytest.raises(SealError, match="does not open"):
        run(read)


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ({"prefix": "staging"}, {"prefix": "live"}),
        ({"version": "v1"}, {"version": "v2"}),
        # One name, made of other parts.
        ({"prefix": "a", "version": "b"}, {"prefix": "a:b", "version": ""}),
    ],
)
def test_a_seal_does_not_open_under_another_prefix_or_version(
    open_run: OpenRun, redis_url: str, raw: Raw, source: dict[str, Any], target: dict[str, Any]
) -> None:
    writer = open_run(redis_url, space.bind(keyring=RING, **source))
    reader = open_run(redis_url, space.bind(keyring=RING, **target))
    writer(Code("a").set(Secret("code")))
    names = writer.context.name(Code("a")), reader.context.name(Code("a"))
    if names[0] != names[1]:
        raw("RENAME", *names)
    with pytest.raises(SealError, match="does not open"):
        reader(Code("a").get())


def test_items_of_a_list_and_entries_of_a_stream_open_in_any_order(run: Run, raw: Raw) -> None:
    run(History("x").push(Secret("a"), Secret("b")))
    raw("LMOVE", "history:x", "history:x", "LEFT", "RIGHT")
    assert run(History("x").range()) == [Secret("b"), Secret("a")]


def test_an_item_that_moves_to_another_list_is_sealed_for_it(run: Run, raw: Raw) -> None:
    run(History("a").push(Secret("first"), Secret("last")))
    assert run(History("a").move(History("b"))) == Secret("first")
    assert run(History("a").move(History("b"), take="right", put="left")) == Secret("last")
    assert run(History("a").move(History("b"))) is None
    assert run(History("b").range()) == [Secret("last"), Secret("first")]
    assert raw.names() == {b"history:b"}


def test_a_map_of_seals_is_read_and_written_by_every_operation(run: Run, raw: Raw) -> None:
    codes = Codes("x")
    assert run(codes.put("a", Secret("one"))) is True
    assert run(codes.put_if_absent("b", Secret("two"))) is True
    assert b"one" not in raw("HGET", "codes:x", "a")
    run(codes.put_many({"c": Secret("three")}))
    assert run(codes.get("a")) == Secret("one")
    assert run(codes.get_many(["b", "d"])) == {"b": Secret("two")}
    assert {value.reveal() for value in run(codes.values())} == {"one", "two", "three"}
    assert run(codes.scan()) == (0, run(codes.all()))


# Seals of the older form, and of an older key.


def plant_older_seals(raw: Raw) -> None:
    raw("SET", "code:a", seal_of_older_form("code:<door>", "code"), "EX", 1000)
    for name in ("pin", "spare"):
        raw("HSET", "account:alice", name, seal_of_older_form("account:<user>", f"alice-{name}"))
    raw("HSET", "account:alice", "name", "alice", "photo", "")
    for field in "abc":
        raw("HSET", "codes:x", field, seal_of_older_form("codes:<house>", field))
    repeated = seal_of_older_form("history:<house>", "twice")
    raw("RPUSH", "history:x", repeated, seal_of_older_form("history:<house>", "once"), repeated)


def assert_readable(run: Run) -> None:
    assert run(Code("a").get()) == Secret("code")
    assert run(Account("alice").get()) == member("alice")
    assert run(Codes("x").all()) == {field: Secret(field) for field in "abc"}
    assert run(History("x").range()) == [Secret("twice"), Secret("once"), Secret("twice")]


def swept(redis_url: str, binding: Any, *, apply: bool, from_version: str | None = None) -> SweepResult:
    async def sweeping() -> SweepResult:
        async with aconnect(redis_url, binding) as db:
            return await sweep(db, [space], SweepOptions(apply=apply, from_version=from_version))

    return asyncio.run(sweeping())


def test_seals_of_the_older_form_are_read_until_a_migration_renews_them(
    open_run: OpenRun, redis_url: str, raw: Raw
) -> None:
    plant_older_seals(raw)
    binding = space.bind(keyring=RING)
    run = open_run(redis_url, binding)
    assert_readable(run)
    assert RING.needs_resealing(raw("GET", "code:a"))
    assert swept(redis_url, binding, apply=False).done == 4
    result = swept(redis_url, binding, apply=True)
    assert (result.done, result.left) == (4, 0)
    assert_readable(run)
    assert swept(redis_url, binding, apply=False).done == 0
    stored = [raw("GET", "code:a"), *raw("HGETALL", "codes:x").values(), *raw("LRANGE", "history:x", 0, -1)]
    stored += [raw("HGET", "account:alice", name) for name in ("pin", "spare")]
    assert {seal[:3] for seal in stored} == {b"kw2"}
    assert raw("TTL", "code:a") > 900


def test_after_a_rotation_and_a_migration_the_old_key_is_not_needed(
    open_run: OpenRun, redis_url: str, raw: Raw
) -> None:
    plant_older_seals(raw)
    assert swept(redis_url, space.bind(keyring=ROTATED), apply=True).done == 4
    run = open_run(redis_url, space.bind(keyring=AFTERWARDS))
    assert_readable(run)
    raw("SET", "code:b", seal_of_older_form("code:<door>", "replayed"))
    with pytest.raises(SealError, match="unknown key 'k1'"):
        run(Code("b").get())


def test_a_seal_that_does_not_open_is_left_by_a_migration_and_the_others_are_renewed(
    redis_url: str, raw: Raw
) -> None:
    plant_older_seals(raw)
    broken = seal_of_older_form("another:<template>", "x")
    raw("HSET", "codes:x", "b", broken)
    result = swept(redis_url, space.bind(keyring=RING), apply=True)
    assert (result.done, result.left) == (3, 1)
    stored = raw("HGETALL", "codes:x")
    assert stored.pop(b"b") == broken
    assert {seal[:3] for seal in stored.values()} == {b"kw2"}


def test_values_in_clear_are_not_sealed_by_a_migration(redis_url: str, raw: Raw) -> None:
    raw("SET", "code:a", "planted")
    assert swept(redis_url, space.bind(keyring=RING), apply=True).done == 0
    assert raw("GET", "code:a") == b"planted"


@pytest.mark.parametrize("older", [False, True])
def test_keys_that_move_from_another_version_are_sealed_for_the_new_one(
    open_run: OpenRun, redis_url: str, raw: Raw, *, older: bool
) -> None:
    if older:
        plant_older_seals(raw)
        for name in raw.names():
            raw("RENAME", name, b"p:v1:" + name)
    else:
        writer = open_run(redis_url, space.bind(prefix="p", version="v1", keyring=RING))
        writer(Code("a").set(Secret("code")))
        writer(Account("alice").put(member("alice")))
        writer(Codes("x").put_many({field: Secret(field) for field in "abc"}))
        writer(History("x").push(Secret("twice"), Secret("once"), Secret("twice")))
        raw("EXPIRE", "p:v1:code:a", 1000)
    binding = space.bind(prefix="p", version="v2", keyring=RING)
    result = swept(redis_url, binding, apply=True, from_version="v1")
    assert (result.done, result.left) == (4, 0)
    assert_readable(open_run(redis_url, binding))
    assert all(name.startswith(b"p:v2:") for name in raw.names())
    assert raw("TTL", "p:v2:code:a") > 900


def test_a_key_of_another_version_is_not_moved_over_a_present_one(open_run: OpenRun, redis_url: str) -> None:
    present = space.bind(version="v2", keyring=RING)
    open_run(redis_url, space.bind(version="v1", keyring=RING))(Code("a").set(Secret("former")))
    run = open_run(redis_url, present)
    run(Code("a").set(Secret("present")))
    result = swept(redis_url, present, apply=True, from_version="v1")
    assert (result.done, result.left) == (0, 1)
    assert run(Code("a").get()) == Secret("present")


def test_a_stream_of_sealed_members_is_left_in_its_version(
    open_run: OpenRun, redis_url: str, raw: Raw
) -> None:
    open_run(redis_url, space.bind(version="v1", keyring=RING))(Visits("x").add(member("alice")))
    result = swept(redis_url, space.bind(version="v2", keyring=RING), apply=True, from_version="v1")
    (refusal,) = result.refusals
    assert refusal.reason.startswith("'visits:<house>' is a stream with sealed members, which cannot be")
    assert raw.names() == {b"v1:visits:x"}


# Upgrades.


class FormerCard(Value[Pin], key="card:<user>", space=before):
    """A pin."""

    user: Id


class Card(msgspec.Struct):
    holder: str
    code: Pin


def _renamed(stored: Any, key: Any) -> Card:
    return Card(stored[b"holder"].decode(), Secret(stored[b"pin"].decode()))


class CardOf(
    Record[Card],
    key="card_of:<user>",
    space=space,
    upgrades=[
        Upgrade("pin", lambda stored: b"pin" in stored, _renamed),
        Upgrade(
            "value",
            lambda _: True,
            lambda stored, key: Card(key.user, Secret(stored.decode())),
            moved_from=lambda key: FormerCard(key.user),
        ),
    ],
):
    """A card, whose code was a value of its own, then a member with another name."""

    user: Id


class FormerCardRecord(msgspec.Struct):
    holder: str
    pin: Pin


class FormerCardOf(Record[FormerCardRecord], key="card_of:<user>", space=before):
    """With the former name of the member."""

    user: Id


def test_an_upgrade_reads_a_sealed_member_that_was_renamed(
    open_run: OpenRun, redis_url: str, raw: Raw
) -> None:
    run = open_run(redis_url, space.bind(keyring=RING), before.bind(keyring=RING))
    run(FormerCardOf("ann").put(FormerCardRecord("Ann", Secret("code"))))
    assert run(CardOf("ann").get()) == Card("Ann", Secret("code"))
    assert set(raw("HGETALL", "card_of:ann")) == {b"holder", b"code"}
    assert run(CardOf("ann").get()) == Card("Ann", Secret("code"))


def test_an_upgrade_that_moves_a_sealed_value_seals_it_for_its_new_name(
    open_run: OpenRun, redis_url: str, raw: Raw
) -> None:
    run = open_run(redis_url, space.bind(keyring=RING), before.bind(keyring=RING))
    run(FormerCard("ann").set(Secret("code")))
    assert run(CardOf("ann").get()) == Card("ann", Secret("code"))
    assert raw.names() == {b"card_of:ann"}
    assert run(CardOf("ann").get()) == Card("ann", Secret("code"))


def test_an_upgrade_does_not_open_a_seal_in_a_clear_member(
    open_run: OpenRun, redis_url: str, raw: Raw
) -> None:
    run = open_run(redis_url, space.bind(keyring=RING), before.bind(keyring=RING))
    run(FormerCardOf("ann").put(FormerCardRecord("Ann", Secret("1234-swordfish"))))
    raw("HSET", "card_of:ann", "holder", raw("HGET", "card_of:ann", "pin"))
    assert "1234-swordfish" not in repr(run(CardOf("ann").get().attempt()))
