"""OtherFields: members with fixed names and fields that vary, in one record or entry of a stream."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated, Literal

import msgspec
import pytest

from audited import Sample, audited
from exploring import exploring, key_path
from keywright import (
    Database,
    Id,
    Keyspace,
    OtherFields,
    Record,
    Sealed,
    Secret,
    Stream,
    check,
    connect,
)
from keywright.errors import DeclarationError, StoredDataError, ValueRefusedError
from keywright.testing.damage import plant
from keywright.testing.runs import Raw, Run
from keywright.tools.describe.inspection import inspect
from keywright.tools.describe.plain import inspected
from keywright.tools.diff import Severity, diff
from keywright.tools.docs.formats import Format, written
from keywright.tools.model import Model, ModelDescription

space = Keyspace("jobs", "Jobs with results by step.", prefix="jobs")
SAMPLE = Sample(Model("jobs", (space,)), (), lambda _: None, {})


class JobState(msgspec.Struct):
    status: str
    tries: int = 0
    steps: Annotated[dict[Id, int], OtherFields] = {}
    """How long each step took."""


class Job(Record[JobState], key="job:<job>", space=space):
    """A job and its steps."""

    job: Id


@dataclass
class Reading:
    values: Annotated[dict[str, float], OtherFields] = field(default_factory=dict)


class Readings(Stream[Reading], key="readings:<sensor>", space=space):
    """What a sensor measured; each entry has the quantities that it could measure."""

    sensor: Id


class Opened(msgspec.Struct):
    event: Literal["opened"]
    more: Annotated[dict[str, str], OtherFields] = {}


class Closed(msgspec.Struct):
    event: Literal["closed"]


class Door(Record[Opened | Closed], key="door:<door>", space=space):
    """One shape has other fields, one has none."""

    door: Id


@pytest.fixture
def db(redis_url: str) -> Iterator[Database]:
    with connect(redis_url) as opened:
        yield opened


def test_a_record_has_members_and_other_fields(run: Run, raw: Raw) -> None:
    state = JobState("running", 1, {"fetch": 12, "parse": 3})
    run(Job("a").put(state))
    stored = raw("HGETALL", "jobs:job:a")
    assert stored == {b"status": b"running", b"tries": b"1", b"fetch": b"12", b"parse": b"3"}
    assert run(Job("a").get()) == state
    run(Job("a").put(JobState("done")))
    assert run(Job("a").get()) == JobState("done", 0, {})


def test_some_other_fields_are_changed_and_removed_in_one_script(run: Run, raw: Raw) -> None:
    run(Job("a").put(JobState("running", 1, {"fetch": 12, "parse": 3})))
    assert run(Job("a").update(status="done", steps={"parse": None, "store": 9})) is True
    assert run(Job("a").get()) == JobState("done", 1, {"fetch": 12, "store": 9})
    assert run(Job("none").update(steps={"store": 9})) is False
    assert raw("EXISTS", "jobs:job:none") == 0


def test_entries_of_a_stream_have_fields_of_their_own(run: Run, raw: Raw) -> None:
    run(Readings("a").add(Reading({"celsius": 20.5})))
    run(Readings("a").add(Reading({"humidity": 0.4, "celsius": 21.0})))
    assert [entry.value.values for entry in run(Readings("a").range())] == [
        {"celsius": 20.5},
        {"humidity": 0.4, "celsius": 21.0},
    ]
    assert raw("XLEN", "jobs:readings:a") == 2


def test_an_arm_of_a_union_has_other_fields(run: Run) -> None:
    run(Door("a").put(Opened("opened", {"by": "ann"})))
    assert run(Door("a").get()) == Opened("opened", {"by": "ann"})
    assert run(Door("a").update(more={"by": "ben"})) is True
    assert run(Door("a").get()) == Opened("opened", {"by": "ben"})


@pytest.mark.parametrize("steps", [{"status": 1}, {"a b": 1}, {"fetch": "x"}, None, [1]])
def test_other_fields_that_cannot_be_stored_are_not_sent(steps: dict[str, int]) -> None:
    with pytest.raises(ValueRefusedError, match="steps"):
        Job("a").put(JobState("running", 1, steps))


@pytest.mark.parametrize("steps", [{"status": None}, {"status": 1}, 5])
def test_an_update_of_other_fields_cannot_change_a_member(steps: object) -> None:
    with pytest.raises(ValueRefusedError, match="steps"):
        Job("a").update(steps=steps)


def test_an_other_field_that_does_not_decode_is_named(run: Run, raw: Raw) -> None:
    raw("HSET", "jobs:job:a", "status", "running", "fetch", "long")
    with pytest.raises(StoredDataError, match="as member 'fetch'"):
        run(Job("a").get())


def _declared(hint: object) -> None:
    shape = msgspec.defstruct("Shape", [("name", str), ("more", hint)])

    class Wrong(Record[shape], key="wrong", space=Keyspace("w", "Wrong.")):  # type: ignore[valid-type]  # the same
        """Wrong."""


@pytest.mark.parametrize(
    "hint",
    [
        Annotated[list[str], OtherFields],
        Annotated[dict[str, Annotated[str, Sealed]], OtherFields],
        Annotated[dict[Secret[str], str], OtherFields],
    ],
)
def test_other_fields_that_cannot_be_kept_are_a_declaration_error(hint: object) -> None:
    with pytest.raises(DeclarationError):
        _declared(hint)


def _fill(db: Database) -> None:
    for number in range(15):
        db.run(Job(f"j{number}").put(JobState("running", 1, {"fetch": number})))
        db.run(Readings(f"s{number}").add(Reading({"celsius": 20.5})))
        db.run(Door(f"d{number}").put(Closed("closed") if number % 2 else Opened("opened", {"by": "x"})))


def test_an_audit_finds_nothing_in_other_fields_and_all_damage(db: Database, redis_url: str) -> None:
    _fill(db)
    assert audited(redis_url, SAMPLE)[1] == []
    planted = {(fault.code, fault.name) for fault in plant(db, [space], each=3)}
    assert {code for code, name in planted if b":readings:" in name} == {"KW201", "KW202"}
    assert {(finding.code, finding.name) for finding in audited(redis_url, SAMPLE)[1]} == planted


def test_an_audit_names_a_malformed_other_field(db: Database, raw: Raw, redis_url: str) -> None:
    raw("HSET", "jobs:job:a", "status", "running", "fetch", "long", "parse", "3")
    raw("HSET", "jobs:door:a", "event", "closed", "by", "ann")
    found = {(each.code, each.name, each.member) for each in audited(redis_url, SAMPLE)[1]}
    assert found == {("KW202", b"jobs:job:a", b"fetch"), ("KW206", b"jobs:door:a", b"by")}


def test_other_fields_are_shown_beside_the_members(db: Database, redis_url: str) -> None:
    db.run(Job("a").put(JobState("running", 1, {"fetch": 12})))
    found = db.run(inspect(Job("a")))
    assert found is not None
    assert inspected(found) == {"status": "running", "tries": 1, "fetch": 12}
    with exploring(redis_url, [space]) as explored:
        page = explored.surveyed().get(key_path("jobs:job:a"))
    assert "fetch" in page.text


def test_other_fields_are_proved_and_documented() -> None:
    assert [finding for finding in check(space) if finding.severity == "error"] == []
    page = written(SAMPLE.model.described(), Format.MARKDOWN)
    assert "How long each step took." in page
    assert "`*`" in page


def test_another_type_of_other_fields_is_a_breaking_change() -> None:
    def described(hint: type) -> ModelDescription:
        other = Keyspace("other", "Other.")
        shape = msgspec.defstruct("Shape", [("more", Annotated[dict[str, hint], OtherFields])])  # type: ignore[valid-type]  # at run time

        class Thing(Record[shape], key="thing", space=other):  # type: ignore[valid-type]  # the same
            """A thing."""

        return Model("other", (other,)).described()

    assert diff(described(int), described(int)).changes == ()
    (change,) = diff(described(int), described(str)).changes
    assert change.severity is Severity.BREAKING


def test_other_fields_are_written_on_a_cluster(cluster_run: Run, raw_cluster: Raw) -> None:
    cluster_run(Job("a").put(JobState("running", 1, {"fetch": 12})))
    assert cluster_run(Job("a").update(steps={"fetch": None, "parse": 3})) is True
    assert raw_cluster("HGET", "jobs:job:a", "parse") == b"3"
    assert cluster_run(Job("a").get()) == JobState("running", 1, {"parse": 3})
