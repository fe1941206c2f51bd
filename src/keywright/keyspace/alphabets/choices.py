"""One of a few: fixed values, or several alphabets; and all values of one alphabet except a few."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import TypeVar

from keywright.keyspace.alphabets.alphabet import Alphabet, Verbatim, refuse_unwritable
from keywright.keyspace.alphabets.text import Rest
from keywright.keyspace.languages.automaton import accepts, is_empty
from keywright.keyspace.languages.language import Language, alternation, difference, literal
from keywright.keyspace.misuse import explained_constructor

__all__ = ["Choice", "Except", "OneOf"]

T = TypeVar("T")


@explained_constructor
@dataclass(frozen=True, init=False)
class Choice(Alphabet[str | Enum]):
    """One of a few fixed values: ``Choice("online", "idle")``, or the members of an Enum class.

    A member is written as its value, which must be a str or an int.
    """

    values: tuple[str | Enum, ...]

    def __init__(self, *values: str | type[Enum]) -> None:
        members = tuple(_members(values))
        object.__setattr__(self, "values", members)
        for text in self._texts.values():
            refuse_unwritable(text)
        if not members or "" in self._values or len(self._values) != len(members):
            raise ValueError("Choice() needs values, each with a text of its own that is not empty")

    @property
    def expected(self) -> str:
        return f"one of {', '.join(map(repr, self.values))}"

    @property
    def python_type(self) -> type:
        return type(self.values[0])

    @property
    def language(self) -> Language:
        return alternation(literal(text.encode()) for text in self._values)

    @property
    def samples(self) -> tuple[str | Enum, ...]:
        return self.values

    def render(self, value: object) -> str:
        # The type too: a member of a str-based Enum equals its bare value, but only the member parses back.
        if type(value) is self.python_type and value in self._texts:
            return self._texts[value]
        raise self._refusal(value)

    def read(self, text: str) -> str | Enum:
        return self._values[text]

    def inline(self, var: str, const: str) -> str | None:
        return f"type({var}) is str and {const}({var}) is not None" if self.python_type is str else None

    @cached_property
    def _texts(self) -> dict[object, str]:
        return {value: str(value.value) if isinstance(value, Enum) else value for value in self.values}

    @cached_property
    def _values(self) -> dict[str, str | Enum]:
        return {self._texts[value]: value for value in self.values}


def _members(values: tuple[str | type[Enum], ...]) -> Iterable[str | Enum]:
    for value in values:
        if isinstance(value, str):
            yield value
        elif len(values) > 1:
            raise TypeError("Choice() takes strings, or a single Enum class")
        elif not all(_writable(member.value) for member in value):
            raise TypeError(f"{value.__name__} has a member that is neither a str nor an int")
        else:
            yield from value


def _writable(value: object) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)


@explained_constructor
@dataclass(frozen=True, init=False)
class OneOf(Verbatim):
    """A str of any of several alphabets, as a thing id that is ``t1_…``, ``t2_…`` or ``t3_…``."""

    alphabets: tuple[Alphabet[object], ...]

    def __init__(self, *alphabets: Alphabet[object]) -> None:
        object.__setattr__(self, "alphabets", alphabets)
        if not alphabets:
            raise ValueError("OneOf() needs alphabets")
        for alphabet in alphabets:
            if (
                isinstance(alphabet, Rest)
                or alphabet.python_type is not str
                or alphabet.inline("v", "m") is None
            ):
                raise TypeError(f"OneOf() takes alphabets of str that is written as it is, not {alphabet!r}")

    @property
    def pattern_decides(self) -> bool:
        return all(alphabet.pattern_decides for alphabet in self.alphabets)

    @property
    def expected(self) -> str:
        return ", or ".join(alphabet.expected for alphabet in self.alphabets)

    @property
    def language(self) -> Language:
        return alternation(alphabet.language for alphabet in self.alphabets)

    @property
    def samples(self) -> tuple[str, ...]:
        return tuple(str(sample) for alphabet in self.alphabets for sample in alphabet.samples)

    def read(self, text: str) -> str:
        if self.pattern_decides or any(_belongs(text, alphabet) for alphabet in self.alphabets):
            return text
        raise self._refusal(text)

    def inline(self, var: str, const: str) -> str | None:
        return super().inline(var, const) if self.pattern_decides else None


@explained_constructor
@dataclass(frozen=True, init=False)
class Except(Alphabet[T]):
    """The values of an alphabet except those with certain texts: ``Except(Plain(), "wait", "meta")``.

    An alphabet among the exceptions excludes all its texts: ``Except(Plain(), Unsigned64())``.
    """

    base: Alphabet[T]
    exceptions: tuple[str | Alphabet[object], ...]

    def __init__(self, base: Alphabet[T], *exceptions: str | Alphabet[object]) -> None:
        object.__setattr__(self, "base", base)
        object.__setattr__(self, "exceptions", exceptions)
        if not exceptions:
            raise ValueError("Except() needs exceptions")
        if isinstance(base, Rest):
            raise TypeError("Except() cannot take Rest(); use Segment('')")
        if is_empty(self.language):
            raise ValueError(f"nothing is left of {base.expected}")

    @property
    def expected(self) -> str:
        shown = (repr(each) if isinstance(each, str) else each.expected for each in self.exceptions)
        return f"{self.base.expected}, but not {', '.join(shown)}"

    @property
    def python_type(self) -> type:
        return self.base.python_type

    @property
    def is_text(self) -> bool:
        return self.base.is_text

    @property
    def pattern_decides(self) -> bool:
        return False

    @property
    def language(self) -> Language:
        return difference(self.base.language, self._excluded)

    @property
    def samples(self) -> tuple[T, ...]:
        return tuple(each for each in self.base.samples if not self._excludes(self.base.render(each)))

    def render(self, value: object) -> str:
        text = self.base.render(value)
        if self._excludes(text):
            raise self._refusal(value)
        return text

    def read(self, text: str) -> T:
        if self._excludes(text):
            raise self._refusal(text)
        return self.base.read(text)

    @cached_property
    def _excluded(self) -> Language:
        return alternation(
            literal(each.encode()) if isinstance(each, str) else each.language for each in self.exceptions
        )

    @cached_property
    def _words(self) -> frozenset[str]:
        return frozenset(each for each in self.exceptions if isinstance(each, str))

    @cached_property
    def _alphabets(self) -> tuple[Alphabet[object], ...]:
        return tuple(each for each in self.exceptions if not isinstance(each, str))

    def _excludes(self, text: str) -> bool:
        return text in self._words or any(accepts(each.language, text.encode()) for each in self._alphabets)


def _belongs(text: str, alphabet: Alphabet[object]) -> bool:
    try:
        alphabet.parse(text)
    except ValueError:
        return False
    return True
