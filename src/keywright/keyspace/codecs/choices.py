"""Values chosen from a few: booleans, enums, literals, flags. All are table lookups."""

from __future__ import annotations

import enum
from typing import TypeVar

from keywright.keyspace.codecs.contract import Codec, CodecError
from keywright.keyspace.misuse import explained_constructor

__all__ = ["Boolean", "EnumOf", "Flag", "LiteralOf"]

E = TypeVar("E", bound=enum.Enum)


@explained_constructor
class Boolean(Codec[bool]):
    """`1` and `0`, or the two spellings given; nothing else is read."""

    python_type = bool
    samples = (True, False)

    def __init__(self, true: str = "1", false: str = "0") -> None:
        if true == false:
            raise TypeError(f"Boolean needs two spellings, not {true!r} twice")
        self.expected = f"{true or 'nothing'} or {false or 'nothing'}"
        self.true, self.false = true, false
        self._true = true.encode()
        self._false = false.encode()

    def encode(self, value: bool) -> bytes:
        if value is True:
            return self._true
        if value is False:
            return self._false
        raise self.refusal(value)

    def decode(self, data: bytes) -> bool:
        if data == self._true:
            return True
        if data == self._false:
            return False
        raise self.refusal(data)


@explained_constructor
class Flag(Codec[bool]):
    """A word that is present or absent: true is the word, false is absence."""

    python_type = bool
    samples = (True,)
    absent_when_false = True

    def __init__(self, word: str) -> None:
        if not word:
            raise TypeError("a Flag needs a word: the empty value already means false")
        self.expected = f"{word!r} or nothing"
        self.word = word
        self._word = word.encode()

    def encode(self, value: bool) -> bytes:
        if value is True:
            return self._word
        if value is False:
            raise CodecError(self.expected, "False, which is written by leaving the member out")
        raise self.refusal(value)

    def decode(self, data: bytes) -> bool:
        if data == self._word:
            return True
        if data == b"":
            return False
        raise self.refusal(data)


class EnumOf(Codec[E]):
    """A member of an enum of strings or integers, by its value."""

    def __init__(self, members: type[E]) -> None:
        if not (isinstance(members, type) and issubclass(members, enum.Enum)) or issubclass(
            members, enum.Flag
        ):
            raise TypeError(f"EnumOf needs an Enum class, not {members!r}; store a Flag as int")
        self.expected = f"a {members.__name__}: {_listing([str(member.value) for member in members])}"
        self.python_type = members
        self.samples = tuple(members)
        self._members = members
        self._written = {member.value: _written(member) for member in members}
        self._member_of = {self._written[member.value]: member for member in members}
        if len(self._member_of) != len(self.samples):
            raise TypeError(
                f"two members of {members.__name__} are written alike: use values that differ as text"
            )

    def encode(self, value: E) -> bytes:
        # By the plain value: Enum.__hash__ is a Python function, str's and int's are not.
        if value.__class__ is self._members:
            return self._written[value._value_]
        raise self.refusal(value)

    def decode(self, data: bytes) -> E:
        try:
            return self._member_of[data]
        except KeyError as exc:
            raise self.refusal(data) from exc


class LiteralOf(Codec[str]):
    """One of the strings given."""

    python_type = str

    def __init__(self, *words: str) -> None:
        if not words or not all(type(word) is str for word in words):
            raise TypeError(f"LiteralOf needs strings, not {words!r}; use an IntEnum for numbers")
        self.expected = f"one of {_listing([repr(word) for word in words])}"
        self.samples = words
        self._written = {word: word.encode() for word in words}
        self._word_of = {data: word for word, data in self._written.items()}

    def encode(self, value: str) -> bytes:
        try:
            return self._written[value]
        except (KeyError, TypeError) as exc:
            raise self.refusal(value) from exc

    def decode(self, data: bytes) -> str:
        try:
            return self._word_of[data]
        except KeyError as exc:
            raise self.refusal(data) from exc


def _written(member: enum.Enum) -> bytes:
    value = member.value
    if isinstance(value, (str, int)) and not isinstance(value, bool):
        return str(value).encode()
    raise TypeError(f"{member!s} is neither a string nor an integer, so EnumOf cannot write it")


def _listing(words: list[str], most: int = 6) -> str:
    return ", ".join(words[:most]) + (", …" if len(words) > most else "")
