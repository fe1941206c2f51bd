"""Value: one value under one name, as the server really holds it."""

from __future__ import annotations

import enum
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal

import msgspec
import pydantic
import pytest

from keywright import (
    U64,
    Call,
    EpochMs,
    EpochSeconds,
    Id,
    Keyspace,
    MessagePack,
    Sealed,
    Secret,
    SnowflakeId,
    Value,
    Zstd,
    expires_in,
    preview,
)
from keywright.errors import StoredDataError, UsageError, ValueRefusedError, VariableError, WrongTypeError
from keywright.testing.runs import Raw, Run

space = Keyspace("letters", "Values of every codec.")

ABOVE_DOUBLES = 2**53 + 1
NOON = datetime(2024, 5, 1, 12, 0, tzinfo=UTC)


class Weight(enum.Enum):
    LIGHT = "light"
    HEAVY = "heavy"


class Stamp(msgspec.Struct):
    country: str
    cents: int


class Parcel(pydantic.BaseModel):
    grams: int
    sent: datetime | None = None


class Enclosed(Value[Parcel], key="enclosed:<letter>", space=space):
    """What came with a letter, as a model of Pydantic."""

    letter: Id


class Subject(Value[str], key="subject:<letter>", space=space):
    """The subject line of a letter."""

    letter: Id


class Sender(Value[SnowflakeId], key="sender:<letter>", space=space):
    """Who sent a letter."""

    letter: SnowflakeId


class Photo(Value[bytes], key="photo:<letter>", space=space):
    """A picture in a letter."""

    letter: Id


class Numbered(Value[int], key="numbered:<box>:<place>", space=space):
    """A number in a box."""

    box: Id
    place: U64


class Draft(Value[str], key="draft:<letter>", space=space, expiry=expires_in(timedelta(hours=1))):
    """A letter that is not sent yet."""

    letter: Id


class Balance(Value[int], key="balance", space=space):
    """Signed 64 bits."""


class Postmark(Value[U64], key="postmark", space=space):
    """Unsigned 64 bits."""


class Registered(Value[bool], key="registered", space=space):
    """Whether the letter is registered."""


class Grams(Value[float], key="grams", space=space):
    """What it weighs."""


class SentAt(Value[datetime], key="sent_at", space=space):
    """When it was sent."""


class SentMs(Value[Annotated[datetime, EpochMs]], key="sent_ms", space=space):
    """The same in milliseconds."""


class SentSeconds(Value[Annotated[datetime, EpochSeconds]], key="sent_seconds", space=space):
    """The same in seconds."""


class WeightClass(Value[Weight], key="weight_class", space=space):
    """How heavy it is."""


class Route(Value[Literal["air", "sea"]], key="route", space=space):
    """How it travels."""


class Postage(Value[Stamp], key="postage", space=space):
    """The stamp, as JSON."""


class PackedPostage(Value[Annotated[Stamp, MessagePack]], key="packed_postage", space=space):
    """The stamp, as MessagePack."""


class Body(Value[Annotated[str, Zstd]], key="body", space=space):
    """The text, compressed."""


class Archive(Value[Annotated[bytes, Sealed]], key="archive", space=space):
    """Bytes, sealed."""


class Passphrase(Value[Secret[str]], key="passphrase", space=space):
    """What opens the letterbox."""


def test_a_value_is_written_and_read_as_text(run: Run, raw: Raw) -> None:
    assert run(Subject("a").set("naïve ☕")) is True
    assert raw("GET", "subject:a") == "naïve ☕".encode()
    assert run(Subject("a").get()) == "naïve ☕"


def test_a_missing_value_reads_as_none(run: Run) -> None:
    assert run(Subject("a").get()) is None


CODED: list[tuple[Call[Any], Call[Any], bytes, object]] = [
    (Balance().set(-(2**63)), Balance().get(), b"-9223372036854775808", -(2**63)),
    (Postmark().set(2**64 - 1), Postmark().get(), b"18446744073709551615", 2**64 - 1),
    (Registered().set(True), Registered().get(), b"1", True),
    (Grams().set(0.1), Grams().get(), b"0.1", 0.1),
    (SentAt().set(NOON), SentAt().get(), b"2024-05-01T12:00:00+00:00", NOON),
    (SentMs().set(NOON), SentMs().get(), b"1714564800000", NOON),
    (SentSeconds().set(NOON), SentSeconds().get(), b"1714564800", NOON),
    (WeightClass().set(Weight.HEAVY), WeightClass().get(), b"heavy", Weight.HEAVY),
    (Route().set("air"), Route().get(), b"air", "air"),
    (Postage().set(Stamp("CH", 110)), Postage().get(), b'{"country":"CH","cents":110}', Stamp("CH", 110)),
    (
        PackedPostage().set(Stamp("CH", 110)),
        PackedPostage().get(),
        b"\x82\xa7country\xa2CH\xa5centsn",
        Stamp("CH", 110),
    ),
    (Photo("p").set(b"\x00\xff\r\n"), Photo("p").get(), b"\x00\xff\r\n", b"\x00\xff\r\n"),
    (Passphrase().set(Secret("open")), Passphrase().get(), b"open", Secret("open")),
]


@pytest.mark.parametrize(("write", "read", "stored", "value"), CODED)
def test_each_codec_leaves_its_bytes(
    run: Run, raw: Raw, write: Call[Any], read: Call[Any], stored: bytes, value: object
) -> None:
    run(write)
    (name,) = raw.names()
    assert raw("GET", name) == stored
    assert run(read) == value


def test_a_long_text_is_stored_compressed(run: Run, raw: Raw) -> None:
    run(Body().set("dear reader " * 100))
    assert raw("GET", "body").startswith(b"\x28\xb5\x2f\xfd")
    assert raw("STRLEN", "body") < 100
    assert run(Body().get()) == "dear reader " * 100


def test_ids_above_two_to_the_53_stay_exact(run: Run, raw: Raw) -> None:
    run(Sender(ABOVE_DOUBLES).set(ABOVE_DOUBLES + 1))
    assert raw("GET", "sender:9007199254740993") == b"9007199254740994"
    assert run(Sender(ABOVE_DOUBLES).get()) == ABOVE_DOUBLES + 1


def test_set_when_absent_keeps_a_stored_value(run: Run, raw: Raw) -> None:
    assert run(Subject("a").set("first", when="absent")) is True
    assert run(Subject("a").set("second", when="absent")) is False
    assert raw("GET", "subject:a") == b"first"


def test_set_when_present_makes_nothing_new(run: Run, raw: Raw) -> None:
    assert run(Subject("a").set("first", when="present")) is False
    assert raw("EXISTS", "subject:a") == 0
    run(Subject("a").set("first"))
    assert run(Subject("a").set("second", when="present")) is True
    assert raw("GET", "subject:a") == b"second"


def test_swap_returns_the_value_before(run: Run, raw: Raw) -> None:
    assert run(Subject("a").swap("new")) is None
    assert run(Subject("a").swap("newer")) == "new"
    assert raw("GET", "subject:a") == b"newer"


def test_take_leaves_no_key(run: Run, raw: Raw) -> None:
    run(Subject("a").set("once"))
    assert run(Subject("a").take()) == "once"
    assert run(Subject("a").take()) is None
    assert raw("EXISTS", "subject:a") == 0


def test_length_counts_stored_bytes(run: Run) -> None:
    run(Subject("a").set("ü"))
    assert run(Subject("a").length()) == 2
    assert run(Subject("none").length()) == 0


def test_append_adds_to_the_end(run: Run, raw: Raw) -> None:
    assert run(Subject("a").append("Dear ")) == 5
    assert run(Subject("a").append("Ada")) == 8
    assert raw("GET", "subject:a") == b"Dear Ada"
    assert run(Photo("a").append(b"\xff")) == 1


def test_slice_reads_a_part(run: Run) -> None:
    run(Photo("a").set(b"0123456789"))
    assert run(Photo("a").slice(2, 4)) == b"234"
    assert run(Photo("a").slice(-2, -1)) == b"89"


def test_a_value_other_than_plain_text_or_bytes_has_no_parts() -> None:
    for part in (
        lambda: Body().append("more"),
        lambda: Archive().append(b"x"),
        lambda: Archive().slice(0, 1),
    ):
        with pytest.raises(UsageError, match="Read and write it whole"):
            part()


def test_get_many_keeps_the_order_and_returns_none_for_missing_keys(run: Run) -> None:
    run(Subject("a").set("A"))
    run(Subject("c").set("C"))
    assert run(Subject.get_many(["c", "b", Subject("a")])) == ["C", None, "A"]


def test_get_many_takes_tuples_for_several_variables(run: Run) -> None:
    run(Numbered("x", ABOVE_DOUBLES).set(1))
    assert run(Numbered.get_many([("x", ABOVE_DOUBLES), ("y", 0)])) == [1, None]


def test_get_many_is_one_command() -> None:
    (wire,) = preview(Subject.get_many(["a", "b"]))
    assert wire.arguments == (b"MGET", b"subject:a", b"subject:b")


def test_set_many_writes_every_value(run: Run, raw: Raw) -> None:
    run(Subject.set_many([("a", "A"), (Subject("b"), "B")]))
    assert raw("MGET", "subject:a", "subject:b") == [b"A", b"B"]


def test_set_many_without_an_expiry_is_one_command() -> None:
    (wire,) = preview(Subject.set_many([("a", "A"), ("b", "B")]))
    assert wire.arguments == (b"MSET", b"subject:a", b"A", b"subject:b", b"B")


def test_set_many_gives_each_its_expiry(run: Run, raw: Raw) -> None:
    run(Draft.set_many([("a", "A"), ("b", "B")]))
    assert raw("PTTL", "draft:a") > 0
    assert raw("PTTL", "draft:b") > 0


def test_set_along_is_set_many_of_keys_that_differ_in_the_last_variable(run: Run, raw: Raw) -> None:
    run(Numbered.set_along(("x",), [1, 2], [10, 20]))
    assert run(Numbered.get_many([("x", 1), ("x", 2)])) == [10, 20]
    run(Draft.set_along((), ["a", "b"], ["A", "B"]))
    assert raw("MGET", "draft:a", "draft:b") == [b"A", b"B"]
    assert raw("PTTL", "draft:b") > 0


def test_bulk_calls_without_ids_send_nothing(run: Run) -> None:
    assert preview(Subject.get_many([])) == []
    assert preview(Subject.set_many([])) == []
    assert run(Subject.get_many([])) == []
    run(Subject.set_many([]))


def test_more_values_than_one_command_takes_come_back_in_order(run: Run) -> None:
    many = list(range(5000))
    run(Numbered.set_many([(("x", place), place) for place in many]))
    assert run(Numbered.get_many([("x", place) for place in many])) == many


def test_a_value_of_another_type_is_refused_before_it_is_sent() -> None:
    with pytest.raises(ValueRefusedError) as refused:
        Balance().set(2**63)
    assert refused.value.template == "balance"
    assert refused.value.expected == "a signed 64-bit integer"
    assert refused.value.found == "9223372036854775808"


def test_a_variable_outside_its_alphabet_makes_no_key() -> None:
    with pytest.raises(VariableError) as refused:
        Subject("a:b")
    assert refused.value.variable == "letter"
    assert refused.value.found == "a:b"


def test_a_stored_value_that_does_not_decode_names_the_key(run: Run, raw: Raw) -> None:
    raw("SET", "numbered:x:1", "many")
    with pytest.raises(StoredDataError) as wrong:
        run(Numbered("x", 1).get())
    assert wrong.value.key == b"numbered:x:1"
    assert wrong.value.template == "numbered:<box>:<place>"
    assert wrong.value.expected == "a signed 64-bit integer"
    assert wrong.value.found == "b'many'"
    assert raw("GET", "numbered:x:1") == b"many"


def test_get_many_names_the_one_key_that_does_not_decode(run: Run, raw: Raw) -> None:
    raw("MSET", "numbered:x:1", "1", "numbered:x:2", "two")
    with pytest.raises(StoredDataError) as wrong:
        run(Numbered.get_many([("x", 1), ("x", 2)]))
    assert wrong.value.key == b"numbered:x:2"
    assert wrong.value.found == "b'two'"


def test_a_key_of_another_redis_type_is_named(run: Run, raw: Raw) -> None:
    raw("SADD", "subject:a", "x")
    with pytest.raises(WrongTypeError) as wrong:
        run(Subject("a").get())
    assert wrong.value.key == b"subject:a"
    assert wrong.value.template == "subject:<letter>"
    assert wrong.value.expected == "a value (string)"
    assert wrong.value.found == "another Redis type"


def test_a_pydantic_model_is_stored_as_json(run: Run, raw: Raw) -> None:
    parcel = Parcel(grams=2**53 + 1, sent=NOON)
    assert run(Enclosed("a").set(parcel))
    assert raw("GET", "enclosed:a") == b'{"grams":9007199254740993,"sent":"2024-05-01T12:00:00Z"}'
    assert run(Enclosed("a").get()) == parcel
    assert run(Enclosed.get_many(["b", "a"])) == [None, parcel]
