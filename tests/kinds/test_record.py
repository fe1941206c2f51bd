"""Record: fixed members in one hash, optional ones left out, unions distinguished."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal

import msgspec
import pytest

from keywright import (
    EpochMs,
    Flag,
    Id,
    Keyspace,
    OneOf,
    Prefixed,
    Record,
    SnowflakeId,
    Upgrade,
    expires_at,
    preview,
)
from keywright.errors import DeclarationError, StoredDataError, ValueRefusedError, WrongTypeError
from keywright.operations import commit, record_equals
from keywright.testing.runs import Raw, Run

space = Keyspace("garage", "What a garage knows of vehicles and bills.")

ABOVE_DOUBLES = 2**53 + 1
NOON = datetime(2024, 5, 1, 12, 0, tzinfo=UTC)
TOMORROW = datetime.now(UTC) + timedelta(days=1)


class Car(msgspec.Struct, kw_only=True):
    owner: SnowflakeId
    plate: str = msgspec.field(name="licence")
    built: Annotated[datetime, EpochMs]
    kilometres: int = 0
    colour: str | None = None
    electric: Annotated[bool, Flag("yes")] = False


@dataclass
class Wheel:
    inches: int
    marks: list[str] = field(default_factory=list)


class Card(msgspec.Struct):
    method: Literal["card"]
    digits: str


class Cash(msgspec.Struct):
    method: Literal["cash", "coins"]
    given: int


class Bus(msgspec.Struct):
    seats: int


class Truck(msgspec.Struct):
    tons: float


class Permit(msgspec.Struct):
    until: datetime | None
    holder: str


class Wish(msgspec.Struct):
    colour: str | None = None


class Switch(msgspec.Struct):
    name: str
    on: Annotated[bool, Flag("on")]


class SwitchOf(Record[Switch], key="switch:<switch>", space=space):
    """A switch."""

    switch: Id


class CarOf(Record[Car], key="car:<car>", space=space):
    """A car."""

    car: Id


class WheelOf(Record[Wheel], key="wheel:<wheel>", space=space):
    """A wheel, as a dataclass."""

    wheel: Id


class Payment(Record[Card | Cash], key="payment:<bill>", space=space):
    """How a bill was paid: the method determines the shape."""

    bill: Id


class Vehicle(
    Record[Bus | Truck],
    key="vehicle:<vehicle>",
    space=space,
    shape_by=("vehicle", {"b_": Bus, "t_": Truck}),
):
    """A large vehicle: its id determines the shape."""

    vehicle: Annotated[str, OneOf(Prefixed("b_"), Prefixed("t_"))]


class PermitOf(Record[Permit], key="permit:<car>", space=space, expiry=expires_at(lambda p: p.until)):
    """A parking permit, which expires when it says."""

    car: Id


class WishOf(Record[Wish], key="wish:<car>", space=space):
    """What the owner would like, perhaps nothing."""

    car: Id


BEETLE = Car(owner=ABOVE_DOUBLES, plate="ZH 1", built=NOON)
RED = Car(owner=1, plate="ZH 2", built=NOON, kilometres=5, colour="red", electric=True)


def test_optional_members_are_left_out(run: Run, raw: Raw) -> None:
    run(CarOf("a").put(BEETLE))
    assert raw("HGETALL", "car:a") == {
        b"owner": b"9007199254740993",
        b"licence": b"ZH 1",
        b"built": b"1714564800000",
        b"kilometres": b"0",
    }
    assert run(CarOf("a").get()) == BEETLE


def test_optional_members_are_stored_when_given(run: Run, raw: Raw) -> None:
    run(CarOf("a").put(RED))
    assert raw("HMGET", "car:a", "colour", "electric") == [b"red", b"yes"]
    assert run(CarOf("a").get()) == RED


def test_put_leaves_nothing_of_the_record_before(run: Run, raw: Raw) -> None:
    run(CarOf("a").put(RED))
    raw("HSET", "car:a", "stray", "x")
    run(CarOf("a").put(BEETLE))
    assert set(raw("HKEYS", "car:a")) == {b"owner", b"licence", b"built", b"kilometres"}


def test_write_keeps_other_fields_of_the_hash(run: Run, raw: Raw) -> None:
    raw("HSET", "wheel:w", "inches", "15", "painted", "red")
    assert run(WheelOf("w").write(Wheel(17, ["new"]))) == 1
    assert raw("HGET", "wheel:w", "painted") == b"red"
    assert run(WheelOf("w").get()) == Wheel(17, ["new"])


def test_a_read_may_bring_upgrades_of_its_own(run: Run, raw: Raw) -> None:
    raw("HSET", "wheel:w", "centimetres", "43")
    metric = Upgrade("metric", lambda members: b"centimetres" in members, lambda _stored, _key: Wheel(17))
    with pytest.raises(StoredDataError):
        run(WheelOf("w").get_upgraded())
    assert run(WheelOf("w").get_upgraded(metric)) == Wheel(17)
    assert run(WheelOf("w").get()) == Wheel(17)


def test_a_missing_record_reads_as_none(run: Run) -> None:
    assert run(CarOf("none").get()) is None


def test_unknown_members_are_ignored_by_reads_and_kept_by_update(run: Run, raw: Raw) -> None:
    run(CarOf("a").put(BEETLE))
    raw("HSET", "car:a", "stray", "x")
    assert run(CarOf("a").get()) == BEETLE
    assert run(CarOf("a").update(plate="BE 3")) is True
    assert raw("HMGET", "car:a", "licence", "stray") == [b"BE 3", b"x"]


def test_absent_members_take_their_defaults(run: Run, raw: Raw) -> None:
    raw("HSET", "car:a", "owner", "1", "licence", "ZH 1", "built", "1714564800000")
    car = run(CarOf("a").get())
    assert car is not None
    assert (car.kilometres, car.colour, car.electric) == (0, None, False)


def test_create_writes_once(run: Run, raw: Raw) -> None:
    assert run(CarOf("a").create(BEETLE)) is True
    assert run(CarOf("a").create(RED)) is False
    assert raw("HGET", "car:a", "licence") == b"ZH 1"


def test_update_changes_and_removes_members(run: Run, raw: Raw) -> None:
    run(CarOf("a").put(RED))
    assert run(CarOf("a").update(kilometres=9, colour=None, electric=False)) is True
    assert raw("HMGET", "car:a", "kilometres", "colour", "electric") == [b"9", None, None]


def test_changes_are_applied_by_a_commit_whose_checks_hold(run: Run, raw: Raw) -> None:
    run(CarOf("a").put(RED))
    changes = CarOf("a").changes(kilometres=9, colour=None)
    assert not run(commit("repaint", [record_equals(CarOf("a"), BEETLE)], changes))
    assert run(commit("repaint", [record_equals(CarOf("a"), RED)], changes))
    assert raw("HMGET", "car:a", "kilometres", "colour") == [b"9", None]


def test_update_makes_no_record(run: Run, raw: Raw) -> None:
    assert run(CarOf("none").update(kilometres=9)) is False
    assert raw("EXISTS", "car:none") == 0


def test_update_refuses_unknown_members_and_wrong_values() -> None:
    with pytest.raises(ValueRefusedError, match="wings"):
        CarOf("a").update(wings=2)
    with pytest.raises(ValueRefusedError) as refused:
        CarOf("a").update(kilometres="far")
    assert refused.value.expected == "a signed 64-bit integer as 'kilometres'"
    with pytest.raises(ValueRefusedError):
        CarOf("a").update(owner=None)


def test_pick_reads_only_the_named_members(run: Run) -> None:
    run(CarOf("a").put(BEETLE))
    assert run(CarOf("a").pick("plate", "owner", "colour")) == {"plate": "ZH 1", "owner": ABOVE_DOUBLES}
    assert run(CarOf("none").pick("plate")) == {}
    (wire,) = preview(CarOf("a").pick("plate"))
    assert wire.arguments == (b"HMGET", b"car:a", b"licence")


def test_pick_without_members_sends_nothing(run: Run) -> None:
    assert preview(CarOf("a").pick()) == []
    assert run(CarOf("a").pick()) == {}


def test_add_counts_in_a_member(run: Run, raw: Raw) -> None:
    run(CarOf("a").put(BEETLE))
    assert run(CarOf("a").add("kilometres", ABOVE_DOUBLES)) == ABOVE_DOUBLES
    assert run(CarOf("a").add("kilometres")) == ABOVE_DOUBLES + 1
    assert raw("HGET", "car:a", "kilometres") == b"9007199254740994"


def test_get_many_keeps_the_order(run: Run) -> None:
    run(CarOf("a").put(BEETLE))
    run(CarOf("b").put(RED))
    assert run(CarOf.get_many(["b", "none", CarOf("a")])) == [RED, None, BEETLE]
    assert len(preview(CarOf.get_many(["a", "b"]))) == 2
    assert preview(CarOf.get_many([])) == []
    assert run(CarOf.get_many([])) == []


def test_a_dataclass_is_a_record_too(run: Run, raw: Raw) -> None:
    run(WheelOf("w").put(Wheel(17, ["worn", "left"])))
    assert raw("HGETALL", "wheel:w") == {b"inches": b"17", b"marks": b'["worn","left"]'}
    assert run(WheelOf("w").get()) == Wheel(17, ["worn", "left"])
    raw("HDEL", "wheel:w", "marks")
    assert run(WheelOf("w").get()) == Wheel(17)


def test_a_member_distinguishes_the_arms_of_a_union(run: Run, raw: Raw) -> None:
    run(Payment("1").put(Card("card", "0042")))
    run(Payment("2").put(Cash("coins", 20)))
    assert raw("HGETALL", "payment:2") == {b"method": b"coins", b"given": b"20"}
    assert run(Payment.get_many(["1", "2"])) == [Card("card", "0042"), Cash("coins", 20)]
    assert [shape.type for shape in Payment.shapes()] == [Card, Cash]


def test_an_unknown_arm_names_the_ones_there_are(run: Run, raw: Raw) -> None:
    raw("HSET", "payment:1", "method", "shells", "given", "3")
    with pytest.raises(StoredDataError) as wrong:
        run(Payment("1").get())
    assert wrong.value.key == b"payment:1"
    assert wrong.value.expected == "one of card, cash, coins as member 'method'"
    assert wrong.value.found == "b'shells'"


def test_a_union_without_a_discriminator_is_refused() -> None:
    with pytest.raises(DeclarationError, match="nothing tells the shapes of its union apart"):

        class Either(Record[Bus | Truck], key="either", space=Keyspace("x", "y")):
            """A bus or a truck, who knows."""


def test_the_prefix_of_an_id_determines_the_shape(run: Run, raw: Raw) -> None:
    run(Vehicle("b_1").put(Bus(50)))
    run(Vehicle("t_1").put(Truck(7.5)))
    assert raw("HGETALL", "vehicle:b_1") == {b"seats": b"50"}
    assert raw("HGETALL", "vehicle:t_1") == {b"tons": b"7.5"}
    assert run(Vehicle.get_many(["b_1", "t_1"])) == [Bus(50), Truck(7.5)]
    assert [shape.type for shape in Vehicle.shapes()] == [Bus, Truck]


def test_the_other_shape_is_refused_by_put_update_and_pick() -> None:
    for wrong in (
        lambda: Vehicle("b_1").put(Truck(7.5)),
        lambda: Vehicle("b_1").update(tons=7.5),
        lambda: Vehicle("b_1").pick("tons"),
    ):
        with pytest.raises(ValueRefusedError):
            wrong()


def test_a_record_lives_until_the_moment_it_names(run: Run, raw: Raw) -> None:
    run(PermitOf("a").put(Permit(TOMORROW, "Ann")))
    assert raw.expires_at("permit:a") == pytest.approx(TOMORROW.timestamp(), abs=1)
    run(PermitOf("b").create(Permit(TOMORROW, "Ann")))
    assert raw.expires_at("permit:b") == pytest.approx(TOMORROW.timestamp(), abs=1)
    run(PermitOf("a").update(holder="Bob"))
    assert raw.expires_at("permit:a") == pytest.approx(TOMORROW.timestamp(), abs=1)
    run(PermitOf("a").put(Permit(None, "Ann")))
    assert raw("PTTL", "permit:a") == -1


def test_a_record_of_nothing_is_not_sent() -> None:
    for write in (WishOf("a").put, WishOf("a").create):
        with pytest.raises(ValueRefusedError) as refused:
            write(Wish())
        assert refused.value.expected == "at least one member"


def test_a_flag_is_absent_when_false_even_without_a_default(run: Run, raw: Raw) -> None:
    run(SwitchOf("a").put(Switch("lamp", on=False)))
    assert raw("HGETALL", "switch:a") == {b"name": b"lamp"}
    assert run(SwitchOf("a").get()) == Switch("lamp", on=False)
    assert run(SwitchOf("a").update(on=True)) is True
    assert raw("HGET", "switch:a", "on") == b"on"


def test_a_value_of_another_type_is_not_sent() -> None:
    with pytest.raises(ValueRefusedError) as refused:
        CarOf("a").put(Bus(5))  # type: ignore[arg-type]  # what the checker refuses, we refuse too
    assert (refused.value.expected, refused.value.found) == ("a Car", "a Bus")


def test_a_missing_member_names_itself_and_the_key(run: Run, raw: Raw) -> None:
    raw("HSET", "car:a", "licence", "ZH 1")
    with pytest.raises(StoredDataError) as wrong:
        run(CarOf("a").get())
    assert wrong.value.key == b"car:a"
    assert wrong.value.template == "car:<car>"
    assert wrong.value.expected == "the member 'owner'"
    assert wrong.value.found == "only 'licence'"


def test_an_undecodable_member_names_itself_and_the_key(run: Run, raw: Raw) -> None:
    run(CarOf("a").put(BEETLE))
    raw("HSET", "car:a", "kilometres", "far")
    with pytest.raises(StoredDataError) as wrong:
        run(CarOf("a").get())
    assert wrong.value.key == b"car:a"
    assert wrong.value.expected == "a signed 64-bit integer as member 'kilometres'"
    assert wrong.value.found == "b'far'"


def test_a_string_under_the_name_is_named(run: Run, raw: Raw) -> None:
    raw("SET", "car:a", "x")
    with pytest.raises(WrongTypeError) as wrong:
        run(CarOf("a").get())
    assert wrong.value.expected == "a record (hash)"


def test_records_are_created_updated_and_gathered_on_a_cluster(cluster_run: Run, raw_cluster: Raw) -> None:
    cars = [str(number) for number in range(20)]
    for car in cars:
        assert cluster_run(CarOf(car).create(BEETLE)) is True
        assert cluster_run(CarOf(car).update(kilometres=int(car))) is True
    found = cluster_run(CarOf.get_many(cars))
    assert [car.kilometres for car in found if car is not None] == list(range(20))
    assert raw_cluster("HGET", "car:7", "kilometres") == b"7"
