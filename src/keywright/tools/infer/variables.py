"""The alphabet of a variable, from the texts that were seen."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import date
from typing import NamedTuple

from keywright.keyspace import (
    Alphabet,
    Base64Url,
    Bytes,
    Choice,
    Day,
    Email,
    Hex,
    Instant,
    Plain,
    Segment,
    Ulid,
    Uuid,
)
from keywright.keyspace.alphabets import Signed64, Snowflake, Unsigned64
from keywright.tools.infer.structs import quoted
from keywright.tools.infer.vocabulary import is_program_text

__all__ = ["MOST_CHOICES", "Variable", "alphabets_of"]

ENOUGH = 3
MOST_CHOICES = 12
"""So many words in one place, at most, are an enumeration."""
_SNOWFLAKE = re.compile(r"[1-9][0-9]{16,18}").fullmatch
_DAY = re.compile(r"20[0-9]{6}").fullmatch
_EXTRA = ".@+/=,~!$*()#&;'% |^`?"
_HEX_LENGTHS = frozenset((8, 10, 12, 16, 20, 24, 28, 32, 40, 48, 56, 64, 96, 128))


class Variable(NamedTuple):
    """An alphabet, the hint that declares it, the names that the hint needs, and how wide it is."""

    alphabet: Alphabet[object]
    hint: str
    names: tuple[str, ...]
    breadth: int
    word: str
    """A name for the variable, if nothing beside it gives one."""
    doubt: str = ""


def alphabets_of(
    values: Sequence[bytes], following: str, *, tagged: bool, last: bool, recurring: bool = False
) -> Iterator[Variable]:
    """Yield alphabets that have all these texts, the narrowest first.

    `following` is the text after the variable. A `tagged` name has a hash tag, so braces cannot be data.
    Where the texts are `recurring`, after other variables, a few words of programs are an enumeration.
    """
    try:
        texts = [value.decode() for value in values]
    except UnicodeDecodeError:
        until = b"" if last else following[:1].encode("ascii", "ignore")
        yield Variable(
            Bytes(until), f"Annotated[bytes, Bytes({_bytes_literal(until)})]", ("Bytes",), 6, "name"
        )
        return
    if recurring and 1 < len(texts) <= MOST_CHOICES and all(map(is_program_text, texts)):
        yield _enumeration(sorted(texts))
    for make in _TYPED:
        found = make(texts)
        if found is not None and _has(found.alphabet, texts):
            yield found
    used = set("".join(texts))
    extra = "".join(
        sorted(char for char in used if not (char.isascii() and char.isalnum()) and char not in "_-")
    )
    if not extra:
        yield Variable(Plain(), "Id", ("Id",), 3, "id_")
    elif all(char in _EXTRA for char in extra) and " " not in extra and len(extra) <= 6:
        hint = f"Annotated[str, Plain(extra={quoted(extra)})]"
        yield Variable(Plain(extra), hint, ("Plain",), 4, "name")
    for separator in dict.fromkeys((":", following[:1], "")):
        but = f"{separator}{{}}" if tagged else separator
        if not (used & set(but)) and (last or not following or following[0] in but):
            hint = f"Annotated[str, Segment({quoted(but)})]"
            alphabet = Segment(but)
            if _has(alphabet, texts):
                yield Variable(alphabet, hint, ("Segment",), 5 + (":" not in but), "name")


def _has(alphabet: Alphabet[object], texts: Sequence[str]) -> bool:
    try:
        for text in texts:
            alphabet.parse(text)
    except ValueError:
        return False
    return True


def _enumeration(texts: list[str]) -> Variable:
    hint = f"Literal[{', '.join(map(quoted, texts))}]"
    return Variable(Choice(*texts), hint, (), 1, "word", f"one of these {len(texts)} words")


def _integers(texts: Sequence[str]) -> Variable | None:
    if not all(re.fullmatch("-?[0-9]{1,20}", text) for text in texts):
        return None
    if all(map(_SNOWFLAKE, texts)):
        return Variable(Snowflake(), "SnowflakeId", ("SnowflakeId",), 1, "snowflake")
    if len(set(texts)) >= ENOUGH and all(map(_is_day, texts)):
        doubt = "these numbers are dates"
        return Variable(Day(""), 'Annotated[date, Day("")]', ("Day",), 1, "day", doubt)
    if any(len(text) >= 19 and int(text) > 2**63 - 1 for text in texts):
        return Variable(Unsigned64(), "U64", ("U64",), 1, "number")
    return Variable(Signed64(), "int", (), 1, "number")


def _is_day(text: str) -> bool:
    try:
        return _DAY(text) is not None and date.fromisoformat(f"{text[:4]}-{text[4:6]}-{text[6:]}").year < 2100
    except ValueError:
        return False


def _uuids(texts: Sequence[str]) -> Variable | None:
    if len(texts[0]) != 36:
        return None
    if any(text != text.lower() for text in texts):
        return Variable(Uuid(upper=True), "Annotated[UUID, Uuid(upper=True)]", ("Uuid",), 1, "uuid")
    return Variable(Uuid(), "UUID", (), 1, "uuid")


def _days(texts: Sequence[str]) -> Variable | None:
    return Variable(Day(), "date", (), 1, "day") if len(texts[0]) == 10 and "-" in texts[0] else None


def _instants(texts: Sequence[str]) -> Variable | None:
    return Variable(Instant(), "datetime", (), 1, "moment") if texts[0].endswith("Z") else None


def _ulids(texts: Sequence[str]) -> Variable | None:
    return Variable(Ulid(), "Annotated[str, Ulid()]", ("Ulid",), 1, "ulid") if len(texts[0]) == 26 else None


def _emails(texts: Sequence[str]) -> Variable | None:
    return Variable(Email(), "Annotated[str, Email()]", ("Email",), 2, "email") if "@" in texts[0] else None


def _digests(texts: Sequence[str]) -> Variable | None:
    lengths = set(map(len, texts))
    length = len(texts[0])
    if len(lengths) > 1 or length not in _HEX_LENGTHS or (len(set(texts)) < ENOUGH and length < 32):
        return None
    if not any(char.isalpha() for text in texts for char in text):
        return None
    if any(char.isupper() for text in texts for char in text):
        return Variable(
            Hex(length, upper=True), f"Annotated[str, Hex({length}, upper=True)]", ("Hex",), 1, "hex"
        )
    return Variable(Hex(length), f"Annotated[str, Hex({length})]", ("Hex",), 1, "digest")


def _tokens(texts: Sequence[str]) -> Variable | None:
    length = len(texts[0])
    mixed = any(map(str.isupper, "".join(texts))) and any(map(str.isdigit, "".join(texts)))
    if len(set(map(len, texts))) > 1 or length < 16 or len(set(texts)) < ENOUGH or not mixed:
        return None
    return Variable(Base64Url(length), f"Annotated[str, Base64Url({length})]", ("Base64Url",), 2, "token")


_TYPED: tuple[Callable[[Sequence[str]], Variable | None], ...] = (
    _integers,
    _uuids,
    _days,
    _instants,
    _ulids,
    _digests,
    _tokens,
    _emails,
)


def _bytes_literal(value: bytes) -> str:
    return f"b{quoted(value.decode('ascii'))}"
