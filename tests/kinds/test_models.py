"""Pydantic models, classes of attrs and dataclasses, as JSON values and as records."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Annotated, Literal

import attrs
import msgspec
import pytest
from pydantic import BaseModel, ConfigDict, Field, model_validator

from audited import Sample, audited
from keywright import EmptyAsNone, EpochMs, Id, Keyspace, MessagePack, Record, Stream, Value, check
from keywright.errors import StoredDataError
from keywright.testing.runs import Raw, Run
from keywright.tools.describe.description import describe
from keywright.tools.model import Model

space = Keyspace("clinic", "Animals and their visits.")
NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)


class Owner(BaseModel):
    name: str


class Animal(BaseModel):
    model_config = ConfigDict(populate_by_name=True)

    name: str = Field(max_length=20, description="As its owner calls it.")
    born: Annotated[date | None, Field(alias="birthDay")] = None
    seen: Annotated[datetime, EpochMs]
    cured: Annotated[date | None, EmptyAsNone]
    owners: list[Owner] = Field(default_factory=list)
    sort: Literal["cat", "dog"] = "cat"

    @model_validator(mode="after")
    def _is_born_before_it_is_seen(self) -> Animal:
        if self.born is not None and self.born > self.seen.date():
            raise ValueError("seen before it was born")
        return self


@attrs.define
class Visit:
    room: int = attrs.field(validator=attrs.validators.gt(0))
    _note: str = "none"
    tags: list[str] = attrs.field(factory=list)
    ended: Annotated[datetime, EpochMs] | None = None


@attrs.frozen
class Bill:
    euros: int
    lines: list[str] = attrs.Factory(list)


@dataclass
class Dose:
    drug: str
    times: list[int] = field(default_factory=list)


class AnimalRecord(Record[Animal], key="animal:<animal>", space=space):
    """An animal, a member for each field."""

    animal: Id


class AnimalJson(Value[Animal], key="json:<animal>", space=space):
    """An animal as JSON."""

    animal: Id


class AnimalPacked(Value[Annotated[Animal, MessagePack]], key="packed:<animal>", space=space):
    """An animal as MessagePack."""

    animal: Id


class VisitRecord(Record[Visit], key="visit:<visit>", space=space):
    """A visit, a member for each attribute."""

    visit: Id


class Visits(Stream[Visit], key="visits", space=space):
    """All visits."""


class BillJson(Value[Bill], key="bill:<bill>", space=space):
    """A bill as JSON."""

    bill: Id


class DoseRecord(Record[Dose], key="dose:<dose>", space=space):
    """A dose."""

    dose: Id


CAT = Animal(name="Tom", born=date(2024, 2, 29), seen=NOON, cured=None, owners=[Owner(name="Ann")])
CLINIC = Sample(Model("clinic", (space,)), (), lambda _: None, {})


def test_a_pydantic_model_is_a_record_with_its_aliases(run: Run, raw: Raw) -> None:
    run(AnimalRecord("a").put(CAT))
    assert raw("HGETALL", "animal:a") == {
        b"name": b"Tom",
        b"birthDay": b"2024-02-29",
        b"seen": b"1794830400000",
        b"cured": b"",
        b"owners": b'[{"name":"Ann"}]',
        b"sort": b"cat",
    }
    assert run(AnimalRecord("a").get()) == CAT
    run(AnimalRecord("a").update(born=None, sort="dog"))
    assert run(AnimalRecord("a").get()) == CAT.model_copy(update={"born": None, "sort": "dog"})


def test_defaults_of_a_model_stand_in_for_absent_members(run: Run, raw: Raw) -> None:
    raw("HSET", "animal:a", "name", "Tom", "seen", "0", "cured", "")
    found = run(AnimalRecord("a").get())
    assert found is not None
    assert (found.born, found.owners, found.sort) == (None, [], "cat")


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        (("name", "x" * 21), "name: String should have at most 20 characters"),
        (("birthDay", "2099-01-01"), "seen before it was born"),
    ],
)
def test_what_a_model_refuses_is_a_stored_data_error(
    run: Run, raw: Raw, members: tuple[str, str], reason: str
) -> None:
    run(AnimalRecord("a").put(CAT))
    raw("HSET", "animal:a", *members)
    with pytest.raises(StoredDataError, match=reason):
        run(AnimalRecord("a").get())


def test_a_pydantic_model_is_a_value_in_json_and_messagepack(run: Run, raw: Raw) -> None:
    run(AnimalJson("a").set(CAT))
    run(AnimalPacked("a").set(CAT))
    assert msgspec.json.decode(raw("GET", "json:a")) == CAT.model_dump(mode="json", by_alias=True)
    assert run(AnimalJson("a").get()) == run(AnimalPacked("a").get()) == CAT


def test_a_class_of_attrs_is_a_record_and_an_entry_of_a_stream(run: Run, raw: Raw) -> None:
    visit = Visit(3, "quiet", ended=NOON)
    run(VisitRecord("a").put(visit))
    run(Visits().add(visit))
    assert raw("HGETALL", "visit:a") == {
        b"room": b"3",
        b"_note": b"quiet",
        b"tags": b"[]",
        b"ended": b"1794830400000",
    }
    assert run(VisitRecord("a").get()) == visit
    assert [entry.value for entry in run(Visits().range())] == [visit]
    raw("HSET", "visit:a", "room", "0")
    with pytest.raises(StoredDataError, match="'room' must be > 0"):
        run(VisitRecord("a").get())


def test_a_class_of_attrs_is_a_value_in_json(run: Run, raw: Raw) -> None:
    run(BillJson("a").set(Bill(5, ["tea"])))
    assert msgspec.json.decode(raw("GET", "bill:a")) == {"euros": 5, "lines": ["tea"]}
    assert run(BillJson("a").get()) == Bill(5, ["tea"])


def test_a_dataclass_is_a_record(run: Run) -> None:
    run(DoseRecord("a").put(Dose("tea", [1, 2])))
    assert run(DoseRecord("a").get()) == Dose("tea", [1, 2])


def test_the_proof_and_the_description_know_models() -> None:
    assert check(space) == []
    described = {each.name: each for each in describe(space).keys}
    for name in ("AnimalRecord", "AnimalJson"):
        shape = (described[name].shapes or described[name].value.shapes)[0]  # type: ignore[union-attr]
        members = {each.name: each for each in shape.members}
        assert members["name"].doc == "As its owner calls it."
        assert members["name"].required
        assert not members["birthDay"].required
        assert members["sort"].default == "cat"


def test_the_audit_reports_what_a_class_refuses_and_members_it_does_not_have(
    raw: Raw, redis_url: str
) -> None:
    raw("HSET", "animal:a", "name", "Tom", "seen", "0", "cured", "", "birthDay", "2099-01-01")
    raw("HSET", "visit:a", "room", "-1", "_note", "x", "tags", "[]")
    raw("SET", "json:a", b'{"name":"a","seen":"2026-11-16T12:00:00Z","cured":null,"password":"x"}')
    raw("SET", "bill:a", b'{"euros":5}')
    _, findings = audited(redis_url, CLINIC)
    assert {(each.code, each.name) for each in findings} == {
        ("KW202", b"animal:a"),
        ("KW202", b"visit:a"),
        ("KW206", b"json:a"),
    }


def test_neither_pydantic_nor_attrs_is_imported_by_the_library() -> None:
    program = "import sys, keywright; sys.exit(bool({'pydantic', 'attr', 'attrs'} & sys.modules.keys()))"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
