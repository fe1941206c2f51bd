"""Invariants that a model declares: found by the audit by name, repaired by the model's rule, undone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
import redis

from audited import Sample, applied, audited, planned, repaired, undone
from keywright import (
    Fix,
    Id,
    Key,
    Keyspace,
    Map,
    RoundTrip,
    Set,
    SortedSet,
    Upgrade,
    Value,
    Violation,
    aconnect,
    check,
    expires_in,
    gather,
    invariant,
    one_to_one,
    refers,
)
from keywright.errors import DeclarationError
from keywright.operations import Steps, absent, equals, exists
from keywright.tools import Model, audit_database
from keywright.tools.audit.formats import FORMATS
from keywright.tools.changes import Severity
from keywright.tools.diff import diff
from keywright.tools.docs.formats import Format, written

office = Keyspace("office", "Desks, who sits at them, and what they share.")


class DeskOf(Value[Id], key="person:<person>:desk", space=office):
    """The desk of a person."""

    person: Id


class PersonAt(Value[Id], key="desk:<desk>:person", space=office):
    """The person at a desk."""

    desk: Id


class People(Set[Id], key="people", space=office):
    """The people who have a desk."""


class Lamp(Value[str], key="desk:<desk>:lamp", space=office):
    """The lamp of a desk that somebody sits at."""

    desk: Id


class Lost(Set[str], key="lost", space=office):
    """Lamps without a desk."""


class Rooms(Map[Id, int], key="rooms", space=office):
    """How many people a room has; none has fewer than one."""


class Ranks(SortedSet[Id, int], key="ranks", space=office):
    """Who comes first; ranks are above 0."""


class Greeting(
    Value[str],
    key="greeting:<desk>",
    space=office,
    upgrades=[
        Upgrade("old", lambda stored: stored.startswith(b"old "), lambda stored, _: stored[4:].decode())
    ],
):
    """The text on a desk."""

    desk: Id


class Mood(Value[str], key="desk:<desk>:mood", space=office):
    """Depends on the greeting."""

    desk: Id


seat = one_to_one(DeskOf, inverse=PersonAt, index=People)
lamp_desk = refers(Lamp, PersonAt, lambda key, _: [key.desk], name="person")

seats = invariant(
    "seats", "People and their desks are mutual; either side completes the other.", settles=[seat]
)
lamps = invariant("lamps", "A lamp without a person is lost, not thrown away.", settles=[lamp_desk])
positive = invariant("positive", "Rooms and ranks are above 0.", [Rooms, Ranks])
moods = invariant("moods", "A mood needs a greeting.", [Mood])
empty = invariant("empty-rooms", "A room has more than one person.", [Rooms], note=True)


@seats.check
def _seat(key: Key, value: Any) -> Steps[list[Violation]]:
    if isinstance(key, People):
        desks = yield DeskOf.get_many(value)
        gone = [person for person, desk in zip(value, desks, strict=True) if desk is None]
        return [
            Violation("no desk", Fix("forget the person", [key.remove(each)], [absent(DeskOf(each))]), each)
            for each in gone
        ]
    assert isinstance(key, DeskOf | PersonAt)
    person, desk = (key.person, value) if isinstance(key, DeskOf) else (value, key.desk)
    theirs, ours, listed = yield gather(DeskOf(person).get(), PersonAt(desk).get(), People().has(person))
    if (theirs, ours, listed) == (desk, person, True):
        return []
    checks = [seat.holds(person, theirs), seat.reversed().holds(desk, ours)]
    end = Fix("end the claim", [key.delete()], checks)
    if theirs in (None, desk) and ours in (None, person):
        join = Fix("complete it", seat.joined(person, desk), checks)
        return [Violation("half a seat", join, if_contested=end)]
    return [Violation("a taken seat", end, claims=seat.joined(person, desk))]


@lamps.check
def _lamp(key: Lamp, value: str) -> Steps[list[Violation]]:
    if (yield PersonAt(key.desk).exists()):
        return []
    writes = [key.delete(), Lost().add(value)]
    return [Violation("nobody there", Fix("keep it as lost", writes, [absent(PersonAt(key.desk))]))]


@positive.check
def _number(key: Key, value: Any) -> list[Violation]:
    """Needs no reads, so it is not a generator."""
    if isinstance(key, Rooms):
        wrong = [room for room, people in value.items() if people < 1]
        return [
            Violation("too few", Fix("set it to 1", [key.put(each, 1)], [exists(key)]), each)
            for each in wrong
        ]
    assert isinstance(key, Ranks)
    low = [member for member, rank in value if rank < 1]
    return [Violation("too low", Fix("remove it", [key.remove(each)], [exists(key)]), each) for each in low]


@moods.check
def _mood(key: Mood, value: str) -> Steps[list[Violation]]:
    greeting = yield Greeting(key.desk).get()
    return [Violation(f"no greeting for {len(value)} letters")] if greeting is None else []


@empty.check
def _alone(key: Rooms, value: dict[str, int]) -> list[Violation]:
    return [Violation("alone", member=room) for room, people in value.items() if people == 1]


OFFICE = Sample(Model("office", (office,)), (), lambda _: None, {})


@pytest.fixture
def client(redis_url: str) -> Iterator[Any]:
    with redis.Redis.from_url(redis_url, decode_responses=True) as found:
        yield found


def seated(client: Any, person: str, desk: str) -> None:
    client.mset({f"person:{person}:desk": desk, f"desk:{desk}:person": person})
    client.sadd("people", person)


def contents(client: Any) -> dict[str, Any]:
    reads = {
        "string": client.get,
        "set": client.smembers,
        "hash": client.hgetall,
        "zset": lambda name: client.zrange(name, 0, -1, withscores=True),
    }
    return {name: reads[client.type(name)](name) for name in client.scan_iter()}


def test_a_violation_is_a_finding_with_the_name_of_its_invariant(redis_url: str, client: Any) -> None:
    client.hset("rooms", mapping={"a": 3, "b": 0})
    client.zadd("ranks", {"ann": 1, "ben": 0})
    report, findings = audited(redis_url, OFFICE)
    assert {(each.code, each.name, each.member, each.invariant, each.reason) for each in findings} == {
        ("KW601", b"rooms", b"b", "positive", "positive: too few"),
        ("KW601", b"ranks", b"ben", "positive", "positive: too low"),
    }
    assert report.failed
    assert [each["invariant"] for each in report.as_data()["findings"]] == ["positive", "positive"]


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_names_the_invariant(form: str, redis_url: str, client: Any) -> None:
    client.hset("rooms", mapping={"b": 0})
    report, _ = audited(redis_url, OFFICE)
    printed = FORMATS[form](report)
    assert "positive: too few" in printed
    assert "KW601" in printed
    if form == "sarif":
        (result,) = json.loads(printed)["runs"][0]["results"]
        assert result["properties"] == {"invariant": "positive"}


def test_a_note_is_reported_and_does_not_fail_and_is_not_left(
    redis_url: str, client: Any, tmp_path: Path
) -> None:
    client.hset("rooms", mapping={"a": 1})
    report, findings = audited(redis_url, OFFICE)
    assert [(each.code, each.invariant) for each in findings] == [("KW602", "empty-rooms")]
    assert not report.failed
    done = repaired(redis_url, OFFICE, tmp_path / "undo")
    assert (done.steps, done.left) == (0, {})


def test_a_violation_without_a_fix_is_left_to_a_person(redis_url: str, client: Any, tmp_path: Path) -> None:
    client.set("desk:d1:mood", "good")
    done = repaired(redis_url, OFFICE, tmp_path / "undo")
    assert done.left == {"KW601": 1}
    assert planned(redis_url, OFFICE, tmp_path / "plan").reasons() == [
        ("KW601", 1, "the model has no repair for it, or a value that it depends on cannot be read")
    ]


@pytest.mark.parametrize("greeting", ["list", "old shape"])
def test_an_invariant_that_cannot_be_checked_is_a_note_and_nothing_is_written(
    greeting: str, redis_url: str, client: Any
) -> None:
    client.set("desk:d1:mood", "good")
    if greeting == "list":
        client.rpush("greeting:d1", "hello")
    else:
        client.set("greeting:d1", "old hello")
    report, findings = audited(redis_url, OFFICE)
    assert ("KW603", "moods") in {(each.code, each.invariant) for each in findings}
    assert client.get("greeting:d1") == "old hello" if greeting == "old shape" else True
    assert "KW601" not in report.counts


def test_either_side_of_a_relation_completes_the_other_where_the_invariant_says_so(
    redis_url: str, client: Any, tmp_path: Path
) -> None:
    client.set("desk:d1:person", "ann")
    _, findings = audited(redis_url, OFFICE)
    assert {each.code for each in findings} == {"KW403"}
    plan = planned(redis_url, OFFICE, tmp_path / "plan")
    assert [(step.action, step.link, step.does) for step in plan.steps_in_order()] == [
        ("fix", "seats", "complete it")
    ]
    assert repaired(redis_url, OFFICE, tmp_path / "undo", frozenset()).done == {"fix": 1}
    assert contents(client) == {"desk:d1:person": "ann", "person:ann:desk": "d1", "people": {"ann"}}
    assert undone(redis_url, OFFICE, tmp_path / "undo").left == 0
    assert contents(client) == {"desk:d1:person": "ann"}


@pytest.mark.parametrize("other", ["desk:d1:person", "person:ann:desk"])
def test_two_claims_that_contradict_each_other_both_end(
    other: str, redis_url: str, client: Any, tmp_path: Path
) -> None:
    planted = {"desk:d2:person": "ann", other: "d1" if other.endswith("desk") else "ann"}
    client.mset(planted)
    done = repaired(redis_url, OFFICE, tmp_path / "undo", frozenset())
    assert (done.left, done.failed) == ({}, [])
    assert contents(client) == {}
    assert undone(redis_url, OFFICE, tmp_path / "undo").left == 0
    assert {name: client.get(name) for name in planted} == planted


def test_a_claim_on_a_seat_that_is_taken_on_both_sides_ends_alone(
    redis_url: str, client: Any, tmp_path: Path
) -> None:
    seated(client, "ann", "d1")
    before = contents(client)
    client.set("desk:d2:person", "ann")
    repaired(redis_url, OFFICE, tmp_path / "undo", frozenset())
    assert contents(client) == before


def test_a_dangling_reference_is_repaired_by_the_rule_without_asking_for_removal(
    redis_url: str, client: Any, tmp_path: Path
) -> None:
    client.set("desk:d1:lamp", "green", ex=1000)
    done = repaired(redis_url, OFFICE, tmp_path / "undo", frozenset())
    assert (done.done, done.left) == ({"fix": 1}, {})
    assert contents(client) == {"lost": {"green"}}
    undone(redis_url, OFFICE, tmp_path / "undo")
    assert contents(client) == {"desk:d1:lamp": "green"}
    assert 900 < client.ttl("desk:d1:lamp") <= 1000


def test_nothing_is_removed_while_something_can_be_completed(
    redis_url: str, client: Any, tmp_path: Path
) -> None:
    """The lamp has no person until the half seat is completed; the plan knew of both."""
    client.set("person:ann:desk", "d1")
    client.set("desk:d1:lamp", "green")
    client.set("desk:d2:lamp", "red")
    plan = planned(redis_url, OFFICE, tmp_path / "plan")
    assert [step.removes for step in plan.steps_in_order()] == [False, True, True]
    done = applied(redis_url, OFFICE, tmp_path)
    assert (done.steps, done.waiting) == (1, 2)
    assert repaired(redis_url, OFFICE, tmp_path / "undo", frozenset()).waiting == 0
    assert client.get("desk:d1:lamp") == "green"
    assert client.smembers("lost") == {"red"}


def test_a_step_is_decided_again_when_it_is_applied(redis_url: str, client: Any, tmp_path: Path) -> None:
    client.set("desk:d1:lamp", "green")
    client.hset("rooms", mapping={"b": 0})
    planned(redis_url, OFFICE, tmp_path / "plan")
    seated(client, "ann", "d1")
    client.hset("rooms", "b", 7)
    done = applied(redis_url, OFFICE, tmp_path)
    assert (done.steps, done.overtaken) == (0, 2)
    assert client.get("desk:d1:lamp") == "green"
    assert client.hget("rooms", "b") == "7"


def test_a_step_that_was_planned_to_add_does_not_remove(redis_url: str, client: Any, tmp_path: Path) -> None:
    client.set("desk:d1:person", "ann")
    planned(redis_url, OFFICE, tmp_path / "plan")
    seated(client, "ann", "d2")
    assert applied(redis_url, OFFICE, tmp_path).overtaken == 1
    assert client.get("desk:d1:person") == "ann"


def test_the_fixes_of_maps_and_sorted_sets_are_undone(redis_url: str, client: Any, tmp_path: Path) -> None:
    client.hset("rooms", mapping={"a": 3, "b": 0})
    client.zadd("ranks", {"ann": 1, "ben": 0})
    before = contents(client)
    repaired(redis_url, OFFICE, tmp_path / "undo", frozenset())
    assert contents(client) == {"rooms": {"a": "3", "b": "1"}, "ranks": [("ann", 1.0)]}
    assert undone(redis_url, OFFICE, tmp_path / "undo") == (2, 0)
    assert contents(client) == before


def test_undoing_the_fix_of_a_field_keeps_a_later_value(redis_url: str, client: Any, tmp_path: Path) -> None:
    client.hset("rooms", mapping={"a": 0, "b": 0})
    repaired(redis_url, OFFICE, tmp_path / "undo", frozenset())
    client.hset("rooms", "a", 5)
    assert undone(redis_url, OFFICE, tmp_path / "undo") == (1, 1)
    assert contents(client) == {"rooms": {"a": "5", "b": "0"}}


@pytest.mark.cluster
def test_invariants_are_found_and_repaired_on_a_cluster(
    cluster_url: str, raw_cluster: Any, tmp_path: Path
) -> None:
    for number in range(20):
        raw_cluster("SET", f"desk:d{number}:person", f"p{number}")
        raw_cluster("SET", f"desk:x{number}:lamp", f"lamp {number}")
    _, findings = audited(cluster_url, OFFICE)
    assert {each.code for each in findings} == {"KW401", "KW403"}
    done = repaired(cluster_url, OFFICE, tmp_path / "undo", frozenset())
    assert (done.done, done.left) == ({"fix": 40}, {})
    assert len(raw_cluster("SMEMBERS", "lost")) == 20
    assert raw_cluster("GET", "person:p7:desk") == b"d7"
    assert undone(cluster_url, OFFICE, tmp_path / "undo").left == 0
    assert raw_cluster("GET", "desk:x3:lamp") == b"lamp 3"


@pytest.mark.anyio
async def test_the_keys_of_a_page_are_checked_side_by_side(redis_url: str, client: Any) -> None:
    for number in range(400):
        client.set(f"desk:d{number}:mood", "good")
        client.set(f"greeting:d{number}", "hello")
    trips: list[RoundTrip] = []

    def observe(trip: RoundTrip) -> None:
        trips.append(trip)

    async with aconnect(redis_url, observers=(observe,)) as db:
        assert not (await audit_database(db, OFFICE.model)).failed
    assert len(trips) < 40


def test_the_document_of_a_model_lists_its_invariants() -> None:
    printed = written(OFFICE.model.described(), Format.MARKDOWN)
    assert "## Invariants" in printed
    assert "| `lamps` | A lamp without a person is lost, not thrown away. |  | person of Lamp |" in printed


def test_an_invariant_that_comes_or_goes_asks_for_caution() -> None:
    now = OFFICE.model.described()
    before = msgspec.structs.replace(now, spaces=(msgspec.structs.replace(now.spaces[0], invariants=()),))
    assert {change.severity for change in diff(before, now).changes} == {Severity.CAUTION}
    assert [change.subject for change in diff(now, before).changes] == [
        each.name for each in office.invariants
    ]
    assert diff(now, now).changes == ()


def test_an_invariant_without_a_check_is_not_proved() -> None:
    space = Keyspace("half", "Half declared.")

    class Thing(Value[str], key="thing:<thing>", space=space):
        """A thing."""

        thing: Id

    declared = invariant("things", "Things are fine.", [Thing])
    assert [finding.code for finding in check(space)] == ["unchecked-invariant"]
    declared.check(lambda *_: [])
    assert check(space) == []


def test_a_wrong_declaration_is_refused() -> None:
    with pytest.raises(DeclarationError, match="lower-case words"):
        invariant("Seats!", "No.", [DeskOf])
    with pytest.raises(DeclarationError, match="declared twice"):
        invariant("seats", "Again.", [DeskOf])
    with pytest.raises(DeclarationError, match="'seats' settles already"):
        invariant("more-seats", "Again.", settles=[seat])
    with pytest.raises(DeclarationError, match="about no key"):
        invariant("nothing", "Of nothing.")
    with pytest.raises(DeclarationError, match="has a check already"):
        seats.check(lambda *_: [])
    assert [each.name for each in office.invariants] == ["seats", "lamps", "positive", "moods", "empty-rooms"]


def test_a_repair_that_cannot_be_taken_back_is_refused(redis_url: str, client: Any, tmp_path: Path) -> None:
    space = Keyspace("once", "What cannot be undone.")

    class Tally(Value[str], key="tally:<day>", space=space):
        """A tally."""

        day: Id

    declared = invariant("appended", "A tally is long.", [Tally])

    @declared.check
    def _short(key: Tally, value: str) -> list[Violation]:
        if len(value) > 3:
            return []
        return [Violation("short", Fix("make it longer", [key.append("x")], [equals(key, value)]))]

    client.set("tally:d", "|")
    done = repaired(redis_url, Sample(Model("once", (space,)), (), lambda _: None, {}), tmp_path / "undo")
    assert [why for _, why in done.failed] == ["its repair sends APPEND, which cannot be undone"]
    assert client.get("tally:d") == "|"


lobby = Keyspace("lobby", "Badges that last as long as they are looked at.")


class Badge(
    Value[int], key="badge:<guest>", space=lobby, expiry=expires_in(timedelta(hours=1), since="last use")
):
    """The number of a guest's badge; numbers are above 0."""

    guest: Id


badges = invariant("badges", "Numbers of badges are above 0.", [Badge])


@badges.check
def _badge(key: Key, value: Any) -> Steps[list[Violation]]:
    yield key.exists()
    return [] if value > 0 else [Violation("not above 0")]


def test_an_invariant_of_a_key_whose_expiry_slides_is_checked_without_renewing_it(
    redis_url: str, client: Any
) -> None:
    client.set("badge:ann", "-1", px=60_000)
    client.set("badge:bob", "1", px=60_000)
    _, findings = audited(redis_url, Sample(Model("lobby", (lobby,)), (), lambda _: None, {}))
    assert [(each.code, each.name) for each in findings] == [("KW601", b"badge:ann")]
    assert client.pttl("badge:ann") <= 60_000
