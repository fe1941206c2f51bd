"""Every alphabet writes each value in one way, reads it back, and refuses the rest."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from typing import Annotated, Literal, NewType
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keywright import (
    I64,
    U64,
    Alphabet,
    Base64Url,
    Bytes,
    Choice,
    Day,
    Derived,
    Email,
    Except,
    FreeText,
    Hex,
    Id,
    Instant,
    OneOf,
    Pattern,
    Plain,
    PlainDecimal,
    Prefixed,
    Rest,
    RestOfName,
    Segment,
    Sha256,
    SnowflakeId,
    SnowflakeStr,
    SnowflakeText,
    Truth,
    Ulid,
    Uuid,
    UuidText,
    before_first,
    sha256_hex,
)
from keywright.errors import UsageError
from keywright.keyspace.alphabets import Signed64, Snowflake, Text, Unsigned64, alphabet_of
from keywright.keyspace.languages.automaton import accepts, bytes_used


class Status(Enum):
    ONLINE = "online"
    IDLE = "idle"


class Weekday(IntEnum):
    MONDAY = 1
    TUESDAY = 2


class Colour(StrEnum):
    RED = "red"


EventId = NewType("EventId", str)
GuildId = NewType("GuildId", SnowflakeId)

ALPHABETS: list[Alphabet[object]] = [
    Unsigned64(),
    Signed64(),
    Snowflake(),
    SnowflakeText(),
    Plain(),
    Plain(extra=".:é]^\\"),
    Plain(max_length=3),
    Plain(max_length=300),
    Text(),
    Text(allow_empty=True),
    Rest(),
    Choice("online", "idle", "on:line", "*"),
    Choice(Status),
    Choice(Weekday),
    Choice(Colour),
    Prefixed("t3_"),
    Prefixed("sha256:", body="hex", max_length=4),
    Hex(1),
    Hex(64),
    OneOf(Prefixed("t1_"), Prefixed("t2_"), Choice("all")),
    OneOf(SnowflakeText(), Hex(4)),
    Hex(8, upper=True),
    Base64Url(22),
    Ulid(),
    Email(),
    Uuid(),
    Uuid(upper=True, dashes=False),
    UuidText(),
    Day(),
    Day(separator=""),
    Instant(),
    PlainDecimal(),
    Truth(),
    Truth("1", "0"),
    Pattern("[a-z]{2}-\\d+"),
    Pattern("(?:eu|us)_[^:{}\\x00-\\x1f\\x7f]{1,3}|x[0-9]*?"),
    Except(Plain(), "wait", "meta"),
    Except(Plain(), Unsigned64()),
    Except(Unsigned64(), "0", "42"),
]
UNSAFE: list[Alphabet[object]] = [Segment(), Segment(""), Segment(" /"), Bytes(), Bytes(b"")]
each_alphabet = pytest.mark.parametrize("alphabet", [*ALPHABETS, *UNSAFE], ids=repr)

tricky = st.text(alphabet="ab09-_:{}% \n\x7f\x85\u00a0éß\u1680\u2028\u3000日👍\ud800AF\\]^", max_size=5)
texts = st.one_of(tricky, st.text(max_size=5), st.integers(-(2**65), 2**65).map(str))


def rendered(alphabet: Alphabet[object], value: object) -> str | None:
    try:
        return alphabet.render(value)
    except ValueError:
        return None


def parsed(alphabet: Alphabet[object], text: str) -> object | None:
    try:
        return alphabet.parse(text)
    except ValueError:
        return None


def passes_inline(alphabet: Alphabet[object], value: object) -> bool | None:
    source = alphabet.inline("value", "match")
    return None if source is None else bool(eval(source, {"match": alphabet.matcher, "value": value}))


@each_alphabet
def test_samples_round_trip(alphabet: Alphabet[object]) -> None:
    assert alphabet.samples
    for sample in alphabet.samples:
        text = alphabet.render(sample)
        assert alphabet.parse(text) == sample
        assert type(alphabet.parse(text)) is alphabet.python_type
        assert accepts(alphabet.language, text.encode("utf-8", "surrogateescape"))
        assert passes_inline(alphabet, sample) in (True, None)


@each_alphabet
@settings(max_examples=15, deadline=None)
@given(text=texts)
def test_a_text_that_parses_is_the_one_its_value_renders_to(alphabet: Alphabet[object], text: str) -> None:
    value = parsed(alphabet, text)
    if value is not None:
        assert alphabet.render(value) == text


@each_alphabet
@settings(max_examples=15, deadline=None)
@given(value=st.one_of(texts, st.integers(-(2**65), 2**65), st.booleans(), st.none(), st.binary(max_size=2)))
def test_a_value_that_renders_parses_back(alphabet: Alphabet[object], value: object) -> None:
    text = rendered(alphabet, value)
    assert passes_inline(alphabet, value) in (text is not None, None)
    if text is not None:
        assert alphabet.parse(text) == value
        assert type(alphabet.parse(text)) is type(value)
        if passes_inline(alphabet, value):
            assert text == f"{value}"


@each_alphabet
@settings(max_examples=15, deadline=None)
@given(
    text=st.one_of(texts, tricky.map(lambda text: Text(allow_empty=True).render(text.replace("\ud800", ""))))
)
def test_pattern_and_language_are_the_same_set(alphabet: Alphabet[object], text: str) -> None:
    matches = alphabet.matcher(text) is not None
    if "\ud800" in text:
        assert not matches or isinstance(alphabet, Bytes)
        return
    accepted = accepts(alphabet.language, text.encode())
    if isinstance(alphabet, Except):
        assert accepted <= matches
        assert accepted >= (parsed(alphabet, text) is not None)
    else:
        assert accepted is matches
    if alphabet.pattern_decides:
        assert (parsed(alphabet, text) is not None) is matches


@pytest.mark.parametrize("alphabet", ALPHABETS, ids=repr)
def test_no_alphabet_writes_braces_or_control_characters(alphabet: Alphabet[object]) -> None:
    controls = sum(1 << byte for byte in [*range(0x20), 0x7F, *b"{}"])
    assert bytes_used(alphabet.language) & controls == 0


@each_alphabet
def test_patterns_capture_nothing(alphabet: Alphabet[object]) -> None:
    assert re.compile(alphabet.pattern).groups == 0


@pytest.mark.parametrize("alphabet", [each for each in ALPHABETS if not isinstance(each, Truth)], ids=repr)
def test_a_boolean_is_never_a_number(alphabet: Alphabet[object]) -> None:
    with pytest.raises(ValueError, match="expected"):
        alphabet.render(True)


@pytest.mark.parametrize("text", ["00", "-0", "+1", "1_0", " 1", "1\n", "٣", "", "18446744073709551616"])
@pytest.mark.parametrize("alphabet", [Unsigned64(), Signed64(), Snowflake(), SnowflakeText()], ids=repr)
def test_numbers_have_one_spelling(alphabet: Alphabet[object], text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        alphabet.parse(text)


def test_a_snowflake_above_2_to_the_53_keeps_its_last_digit() -> None:
    assert Snowflake().parse("9007199254740993") == 9007199254740993


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a:b", "a%3Ab"),
        ("100% {x}", "100%25%20%7Bx%7D"),
        ("Zürich 日本", "Zürich%20日本"),
        ("a\u3000b", "a%E3%80%80b"),
        ("👍", "%F0%9F%91%8D"),
    ],
)
def test_text_escapes_what_would_break_a_name_and_keeps_letters(value: str, text: str) -> None:
    assert Text().render(value) == text
    assert Text().parse(text) == value


@pytest.mark.parametrize("text", ["%41", "%3a", "%C3%BC", "%FF", "%E3%80", "%", "%ED%A0%80", "%C0%80", ""])
def test_text_has_no_second_spelling(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        Text().parse(text)


def test_text_keeps_no_kind_of_space_and_reads_back_every_character() -> None:
    text = Text()
    for char in map(chr, [*range(0x3100), *range(0x3100, 0xD800, 97), *range(0xE000, 0x110000, 997)]):
        assert text.parse(text.render(char)) == char
        assert text.render(char).startswith("%") or not char.isspace()


def test_text_is_empty_only_where_that_is_allowed() -> None:
    assert Text(allow_empty=True).parse("") == ""
    with pytest.raises(ValueError, match="non-empty"):
        Text().render("")


def test_an_enum_is_written_as_its_value_and_read_as_its_member() -> None:
    assert Choice(Weekday).render(Weekday.TUESDAY) == "2"
    assert Choice(Weekday).parse("2") is Weekday.TUESDAY
    with pytest.raises(ValueError, match="expected one of"):
        Choice(Colour).render("red")


@pytest.mark.parametrize(
    "make",
    [
        lambda: Plain(extra="{"),
        lambda: Plain(extra=" "),
        lambda: Plain(max_length=0),
        lambda: Prefixed("a}"),
        lambda: Prefixed(""),
        lambda: Choice("a b"),
        lambda: Choice("a", "a"),
        lambda: Choice(""),
        Choice,
        lambda: Hex(0),
        OneOf,
        lambda: Except(Plain()),
        lambda: Except(Choice("a"), "a"),
        lambda: Except(Rest(), "a"),
        lambda: Truth("1", "1"),
        lambda: Day(separator="1"),
        lambda: Bytes("ü".encode()),
        lambda: Pattern("^a"),
        lambda: Pattern("a(?=b)"),
        lambda: Pattern("(a)\\1"),
        lambda: Pattern("("),
        lambda: Pattern("(?i)a"),
        lambda: Pattern("[^\\W]"),
        lambda: Pattern("a" * 2000),
    ],
)
def test_an_alphabet_that_could_not_be_kept_is_refused(make: object) -> None:
    assert callable(make)
    with pytest.raises(
        UsageError,
        match=r"braces|needs|leaves|left|Rest|separate|ASCII|whole text|proved|regular|flags|class|limit",
    ):
        make()


@pytest.mark.parametrize("alphabet", [Text(), Rest(), Unsigned64(), Choice(Status)], ids=repr)
def test_one_of_takes_only_text_that_is_written_as_it_is(alphabet: Alphabet[object]) -> None:
    with pytest.raises(UsageError, match="as it is"):
        OneOf(Plain(), alphabet)


def test_alphabets_are_equal_by_their_parameters() -> None:
    assert Plain(extra=".") == Plain(extra=".") != Plain()
    assert len({Hex(4), Hex(4), Choice("a"), Choice("a"), Snowflake(), Unsigned64()}) == 4


@pytest.mark.parametrize(
    ("hint", "alphabet"),
    [
        (int, Signed64()),
        (str, Plain()),
        (EventId, Plain()),
        (GuildId, Snowflake()),
        (Annotated[EventId, Plain(extra=".")], Plain(extra=".")),
        (Annotated[Annotated[str, Hex(4)], "a note", Hex(8)], Hex(8)),
        (Annotated[GuildId, Unsigned64()], Unsigned64()),
        (Status, Choice(Status)),
        (Literal["a", "b"], Choice("a", "b")),
        (Annotated[Literal["a"], "a note"], Choice("a")),
        (U64, Unsigned64()),
        (I64, Signed64()),
        (SnowflakeStr, SnowflakeText()),
        (Id, Plain()),
        (FreeText, Text()),
        (RestOfName, Rest()),
        (Sha256, Hex(64)),
        (UUID, Uuid()),
        (date, Day()),
        (datetime, Instant()),
        (Decimal, PlainDecimal()),
        (bool, Truth()),
        (bytes, Bytes()),
    ],
)
def test_a_hint_names_its_alphabet(hint: object, alphabet: Alphabet[object]) -> None:
    assert alphabet_of(hint) == (alphabet, None)


@pytest.mark.parametrize("hint", [float, None, int | str, list[str], Literal[1], object()])
def test_a_hint_that_is_not_a_key_variable_is_refused_with_advice(hint: object) -> None:
    with pytest.raises(TypeError, match=r"Use int, str, UUID, date, an Enum class"):
        alphabet_of(hint)


def test_a_hint_and_its_alphabet_must_agree_about_the_type() -> None:
    with pytest.raises(TypeError, match=r"Write Annotated\[int, …\]"):
        alphabet_of(Annotated[str, Snowflake()])


def test_an_alphabet_class_in_place_of_an_alphabet_is_pointed_out() -> None:
    with pytest.raises(TypeError, match=r"Write Plain\(\)"):
        alphabet_of(Annotated[str, Plain])


def test_a_derived_variable_says_from_what_and_how() -> None:
    derived = Derived("path", sha256_hex)
    assert alphabet_of(Annotated[str, Hex(64), derived]) == (Hex(64), derived)
    assert alphabet_of(Annotated[Annotated[str, derived], Hex(64)]) == (Hex(64), derived)


def test_ready_derivations_compute_what_they_say() -> None:
    assert sha256_hex("").startswith("e3b0c442")
    assert Hex(64).render(sha256_hex("gitlab-org/gitlab"))
    assert before_first("/")("gitlab-org/a/b") == "gitlab-org"
    assert before_first("/")("gitlab-org") == "gitlab-org"
    assert before_first("/").__name__ == "before_first('/')"


@pytest.mark.parametrize(
    ("alphabet", "value", "text"),
    [
        (Uuid(), UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (Uuid(upper=True, dashes=False), UUID(int=10), "0000000000000000000000000000000A"),
        (Day(), date(2024, 2, 29), "2024-02-29"),
        (Day(""), date(2024, 2, 29), "20240229"),
        (Instant(), datetime(2024, 2, 29, 13, tzinfo=timezone(timedelta(hours=1))), "2024-02-29T12:00:00Z"),
        (Instant(), datetime(2024, 2, 29, 12, 0, 0, 500_000, UTC), "2024-02-29T12:00:00.500000Z"),
        (PlainDecimal(), Decimal("1E+2"), "100"),
        (PlainDecimal(), Decimal("-0.50"), "-0.50"),
        (Truth("1", "0"), False, "0"),
        (Bytes(), b"\xff\x00", "\udcff\x00"),
        (Segment(), "{a b}\x06", "{a b}\x06"),
    ],
)
def test_a_value_has_its_text(alphabet: Alphabet[object], value: object, text: str) -> None:
    assert alphabet.render(value) == text
    assert alphabet.parse(text) == value


@pytest.mark.parametrize(
    ("alphabet", "value"),
    [
        (Day(), datetime(2024, 1, 1, tzinfo=UTC)),
        (Instant(), datetime(2024, 1, 1)),  # a naive one is the point
        (Instant(), datetime.max.replace(tzinfo=timezone(timedelta(hours=-1)))),
        (PlainDecimal(), Decimal("NaN")),
        (PlainDecimal(), Decimal("-0")),
        (PlainDecimal(), Decimal("1E+999999")),
        (PlainDecimal(), Decimal("1E-999999")),
        (PlainDecimal(), 1.5),
        (Uuid(), str(UUID(int=1))),
        (Truth(), 1),
        (Bytes(), b""),
        (Bytes(), b"a:b"),
        (Except(Plain(), "wait"), "wait"),
        (Except(Plain(), Unsigned64()), "17"),
    ],
)
def test_a_value_outside_of_the_alphabet_is_refused(alphabet: Alphabet[object], value: object) -> None:
    with pytest.raises(ValueError, match="expected"):
        alphabet.render(value)


@pytest.mark.parametrize(
    ("alphabet", "text"),
    [
        (Day(), "2023-02-29"),
        (Instant(), "2024-02-30T00:00:00Z"),
        (Instant(), "2024-02-29T00:00:00.000000Z"),
        (PlainDecimal(), "-0.0"),
        (PlainDecimal(), "01"),
        (Uuid(), "0000000000000000000000000000000a"),
        (Except(Plain(), "wait"), "wait"),
        (Except(Unsigned64(), Hex(2)), "17"),
    ],
)
def test_a_text_outside_of_the_alphabet_is_refused(alphabet: Alphabet[object], text: str) -> None:
    with pytest.raises(ValueError, match=r"expected|day"):
        alphabet.parse(text)
