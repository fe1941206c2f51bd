"""From a type hint to the alphabet of a key variable, and short names for the common hints."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from typing import Annotated, Literal, NewType, get_args, get_origin
from uuid import UUID

from keywright.keyspace.alphabets.alphabet import Alphabet
from keywright.keyspace.alphabets.choices import Choice
from keywright.keyspace.alphabets.identifiers import Hex, Plain
from keywright.keyspace.alphabets.numbers import Signed64, Snowflake, SnowflakeText, Unsigned64
from keywright.keyspace.alphabets.text import Bytes, Rest, Text
from keywright.keyspace.alphabets.typed import Day, Instant, PlainDecimal, Truth, Uuid
from keywright.keyspace.misuse import explained

__all__ = [
    "I64",
    "U64",
    "Derived",
    "FreeText",
    "Id",
    "RestOfName",
    "Sha256",
    "SnowflakeId",
    "SnowflakeStr",
    "alphabet_of",
    "before_first",
    "sha256_hex",
]

U64 = Annotated[int, Unsigned64()]
"""An integer of 64 bits without a sign."""
I64 = Annotated[int, Signed64()]
"""An integer of 64 bits with a sign; `int` means the same."""
SnowflakeId = Annotated[int, Snowflake()]
"""A Discord id as an integer."""
SnowflakeStr = Annotated[str, SnowflakeText()]
"""A Discord id as text."""
Id = Annotated[str, Plain()]
"""A text of letters, digits, `_` and `-`; `str` means the same."""
FreeText = Annotated[str, Text()]
"""Any text; colons, braces and other symbols are escaped as `%XX`."""
RestOfName = Annotated[str, Rest()]
"""All text up to the end of the name."""
Sha256 = Annotated[str, Hex(64)]
"""A SHA-256 digest as 64 hexadecimal digits."""


@dataclass(frozen=True)
class Derived:
    """Marks a variable computed from another: ``Annotated[str, Hex(64), Derived("path", sha256_hex)]``."""

    source: str
    by: Callable[[str], str]


@explained
def sha256_hex(text: str) -> str:
    """Return the SHA-256 of ``text`` in UTF-8, as 64 lower-case hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()


@explained
def before_first(separator: str) -> Callable[[str], str]:
    """Return a function that gives the text before the first ``separator``, or all of it."""

    def before(text: str) -> str:
        return text.partition(separator)[0]

    before.__qualname__ = before.__name__ = f"before_first({separator!r})"
    before.__doc__ = f"The text before the first {separator!r}, or all of it when there is none."
    return before


def alphabet_of(hint: object) -> tuple[Alphabet[object], Derived | None]:
    """Return the alphabet of a hint, and how the variable is derived, if it is.

    Of several alphabets in nested ``Annotated`` the outermost counts. Without any, ``int`` is Signed64,
    ``str`` is Plain, an Enum class or a ``Literal`` of strings is a Choice, and UUID, date, datetime, Decimal
    and bool have their own. TypeError for anything else.
    """
    base, marks = _unwrapped(hint)
    derived = next((mark for mark in marks if isinstance(mark, Derived)), None)
    alphabet = next((mark for mark in marks if isinstance(mark, Alphabet)), None)
    if alphabet is None:
        return _default(base), derived
    if isinstance(base, type) and not issubclass(alphabet.python_type, base):
        raise TypeError(
            f"its values are {alphabet.python_type.__name__} ({alphabet.expected}), but the hint says "
            f"{base.__name__}. Write Annotated[{alphabet.python_type.__name__}, …]."
        )
    return alphabet, derived


def _unwrapped(hint: object) -> tuple[object, list[object]]:
    """Return a hint without its wrappers, and their marks, outermost first."""
    marks: list[object] = []
    while True:
        if get_origin(hint) is Annotated:
            hint, *found = get_args(hint)
            marks += _instances(reversed(found))
        elif isinstance(hint, NewType):
            hint = hint.__supertype__
        elif type(hint).__name__ == "TypeAliasType":  # `type X = ...`, new in Python 3.12
            hint = hint.__value__  # type: ignore[attr-defined]  # no such type in 3.11
        else:
            return hint, marks


def _instances(marks: Iterator[object]) -> Iterator[object]:
    for mark in marks:
        if isinstance(mark, type) and issubclass(mark, Alphabet):
            raise TypeError(f"{mark.__name__} is a class. Write {mark.__name__}() inside Annotated.")
        yield mark


_TYPED: dict[object, Callable[[], Alphabet[object]]] = {
    UUID: Uuid,
    date: Day,
    datetime: Instant,
    Decimal: PlainDecimal,
    bool: Truth,
    bytes: Bytes,
}


def _default(base: object) -> Alphabet[object]:
    if base is int:
        return Signed64()
    if base is str:
        return Plain()
    if base in _TYPED:
        return _TYPED[base]()
    if isinstance(base, type) and issubclass(base, Enum):
        return Choice(base)
    if get_origin(base) is Literal:
        texts = [value for value in get_args(base) if type(value) is str]
        if len(texts) == len(get_args(base)):
            return Choice(*texts)
    name = base.__name__ if isinstance(base, type) else repr(base)
    raise TypeError(
        f"{name} is not a type of a key variable. Use int, str, UUID, date, an Enum class, a Literal of "
        f"strings, SnowflakeId, FreeText, or Annotated[…] with an alphabet such as Plain() or Hex(64)."
    )
