"""Expiries that follow from the key, and classes of which some keys expire."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest

from audited import Sample, audited, repaired
from declaring import key_class
from keywright import (
    U64,
    Counter,
    Expiry,
    Id,
    Keyspace,
    List,
    Record,
    Set,
    Value,
    atomic,
    check,
    expires_in,
    gather,
    index,
    may_expire,
    one_to_one,
)
from keywright.errors import DeclarationError
from keywright.testing.damage import plant
from keywright.testing.runs import Raw, Run
from keywright.tools.describe.description import describe
from keywright.tools.model import Model

space = Keyspace("limits", "Rate limits, whose windows are in their names.")
SECONDS = {"minute": 60, "hour": 3600}
MINUTE = timedelta(minutes=1)


def window(key: Any) -> timedelta | None:
    """as many minutes or hours as the name says, after the first write"""
    return timedelta(seconds=key.count * SECONDS[key.unit]) if key.count else None


class Hits(
    Counter,
    key="limit:<user>:<count>:<unit>",
    space=space,
    expiry=expires_in(window, since="first write"),
):
    """The calls of a user in a window."""

    user: Id
    count: U64
    unit: Literal["minute", "hour"]


class Body(
    Value[str],
    key="body:<seconds>",
    space=space,
    expiry=expires_in(lambda key: timedelta(seconds=key.seconds)),
):
    """A cached body, for as long as its name says."""

    seconds: U64


class Seen(
    Set[str], key="seen:<seconds>", space=space, expiry=expires_in(lambda key: timedelta(seconds=key.seconds))
):
    """What was seen."""

    seconds: U64


class Lines(
    List[str],
    key="lines:<seconds>",
    space=space,
    expiry=expires_in(lambda key: timedelta(seconds=key.seconds)),
):
    """Lines."""

    seconds: U64


class Details(msgspec.Struct):
    name: str
    done: int = 0


class Job(Record[Details], key="job:<job>", space=space, expiry=may_expire(within=timedelta(hours=1))):
    """A job; those that ended expire."""

    job: Id


class Note(Value[str], key="note:<note>", space=space, expiry=may_expire()):
    """A note, which its writer may let expire."""

    note: Id


LIMITS = Sample(Model("limits", (space,)), (), lambda _: None, {})


def left(raw: Raw, name: str) -> int:
    ttl: int = raw("PTTL", name)
    return -1 if ttl == -1 else -(-ttl // 1000)


def test_a_window_is_as_long_as_its_name_says(run: Run, raw: Raw) -> None:
    run(Hits("ann", 2, "hour").add())
    run(Hits("ann", 30, "minute").add())
    run(Hits("ann", 0, "minute").add())
    assert left(raw, "limit:ann:2:hour") == 7200
    assert left(raw, "limit:ann:30:minute") == 1800
    assert left(raw, "limit:ann:0:minute") == -1


def test_a_window_counts_since_the_first_write(run: Run, raw: Raw) -> None:
    key = Hits("ann", 2, "hour")
    run(key.add())
    run(key.expire(MINUTE))
    run(key.add())
    assert left(raw, "limit:ann:2:hour") == 60


def test_every_way_to_write_gives_each_key_its_own_expiry(run: Run, raw: Raw) -> None:
    run(Body(10).set("a"))
    run(gather(Body(20).set("a"), Body(30).set("a")))
    run(Body.set_many([(40, "a"), (50, "b")]))
    run(atomic(Body(60).set("a"), Seen(60).add("a"), spread=True))
    run(Body(70).set("a", when="absent"))
    run(Seen(80).add("a"))
    run(Lines(90).push("a"))
    run(Lines(90).move(Lines(100)))
    found = {name: left(raw, name) for name in map(bytes.decode, raw("KEYS", "*"))}
    assert found == {
        **{f"body:{seconds}": seconds for seconds in (10, 20, 30, 40, 50, 60, 70)},
        "seen:60": 60,
        "seen:80": 80,
        "lines:100": 100,
    }


def test_a_write_may_have_an_expiry_of_its_own(run: Run, raw: Raw) -> None:
    run(Body(10).set("a", expiry=expires_in(MINUTE)))
    run(Note("a").set("a", expiry=expires_in(MINUTE)))
    run(Note("b").set("b", expiry=may_expire()))
    assert (left(raw, "body:10"), left(raw, "note:a"), left(raw, "note:b")) == (60, 60, -1)


def test_where_some_expire_writes_leave_the_expiry_as_it_is(run: Run, raw: Raw) -> None:
    run(Job("a").put(Details("a")))
    assert left(raw, "job:a") == -1
    run(Job("a").expire(MINUTE))
    run(Job("a").update(done=1))
    assert left(raw, "job:a") == 60
    run(gather(Note("a").set("a"), Note("b").set("b")))
    run(Note.set_many([("c", "c")]))
    assert [left(raw, f"note:{each}") for each in "abc"] == [-1, -1, -1]


def test_the_audit_knows_the_expiry_of_each_key(raw: Raw, redis_url: str) -> None:
    raw("SET", "limit:ann:2:hour", 1, "EX", 7200)
    raw("SET", "limit:ann:2:minute", 1, "EX", 7200)
    raw("SET", "limit:ann:3:minute", 1)
    raw("SET", "limit:ann:0:minute", 1)
    raw("SET", "note:a", 1)
    raw("SET", "note:b", 1, "EX", 10**7)
    for each in "abc":
        raw("HSET", f"job:{each}", "name", each, "done", 0)
    raw("EXPIRE", "job:b", 3000)
    raw("EXPIRE", "job:c", 30_000)
    _, findings = audited(redis_url, LIMITS)
    assert {(each.code, each.name) for each in findings} == {
        ("KW302", b"limit:ann:2:minute"),
        ("KW301", b"limit:ann:3:minute"),
        ("KW302", b"job:c"),
    }
    assert {each.reason for each in findings if each.name == b"limit:ann:3:minute"} == {
        "has no expiry, declared 180 s after the first write"
    }


def test_a_repair_gives_each_key_its_own_expiry(raw: Raw, redis_url: str, tmp_path: Path) -> None:
    raw("SET", "limit:ann:3:minute", 1)
    raw("SET", "limit:ann:2:hour", 1, "EX", 10**6)
    raw("HSET", "job:c", "name", "c", "done", 0)
    raw("EXPIRE", "job:c", 30_000)
    repaired(redis_url, LIMITS, tmp_path / "undo.jsonl")
    names = ("limit:ann:3:minute", "limit:ann:2:hour", "job:c")
    assert [left(raw, name) for name in names] == [180, 7200, 3600]
    assert audited(redis_url, LIMITS)[1] == []


def test_planted_faults_are_found(raw: Raw, redis_url: str) -> None:
    with LIMITS.open(redis_url) as db:
        for count in range(1, 9):
            db.run(Hits("ann", count, "hour").add())
            db.run(Job(f"j{count}").put(Details("a")))
            db.run(Job(f"j{count}").expire(MINUTE))
            db.run(Note(f"n{count}").set("a", expiry=expires_in(MINUTE)))
        planted = [fault for fault in plant(db, [space], each=2) if fault.code in ("KW301", "KW302")]
    assert {fault.name.split(b":")[0] + fault.code.encode() for fault in planted} == {
        b"limitKW301",
        b"limitKW302",
        b"jobKW302",
    }
    _, findings = audited(redis_url, LIMITS)
    found = {(each.code, each.name) for each in findings if each.code in ("KW301", "KW302")}
    assert found == {(fault.code, fault.name) for fault in planted}


def test_the_description_says_when_keys_expire() -> None:
    assert check(space) == []
    words = {each.name: each.expiry.words for each in describe(space).keys if each.expiry is not None}
    assert words["Hits"] == "as many minutes or hours as the name says, after the first write"
    assert words["Body"] == "a time that follows from the key, after the last write"
    assert words["Job"] == "some keys expire, within 1 hour"
    assert words["Note"] == "some keys expire"
    assert repr(may_expire(within=MINUTE)) == "Expiry(some expire, within 60 s)"
    assert may_expire() == may_expire() != may_expire(within=MINUTE)


@pytest.mark.parametrize("expiry", [may_expire(), expires_in(window)])
def test_the_proof_knows_that_listed_keys_may_expire(expiry: Expiry) -> None:
    shop = Keyspace("shop", "A relation and an index over keys that may expire.")
    left_side = key_class(shop, "left:<id>", {"id": Id}, base=Value[Id], name="Left", expiry=expiry)
    right_side = key_class(shop, "right:<id>", {"id": Id}, base=Value[Id], name="Right")
    listed = key_class(shop, "item:<id>", {"id": Id}, base=Value[str], name="Item", expiry=expiry)
    known = key_class(shop, "items", {}, base=Set[Id], name="Items")
    one_to_one(left_side, inverse=right_side)
    index(listed, by=known)
    assert {finding.code for finding in check(shop)} >= {"expiries-differ", "lists-expired-keys"}


def test_a_time_from_the_key_cannot_slide_and_must_be_a_time(run: Run) -> None:
    with pytest.raises(DeclarationError, match="last use"):
        expires_in(window, since="last use")
    with pytest.raises(DeclarationError, match="at least 1 ms"):
        run(Body(0).set("a"))
