"""The base of alphabets: values, their texts, and a language for proofs."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Generic, TypeVar

from keywright.keyspace.languages.language import Language, regex

__all__ = ["Alphabet", "Verbatim", "refuse_unwritable"]

T_co = TypeVar("T_co", covariant=True)


class Alphabet(ABC, Generic[T_co]):
    """The values of a key variable and their one text each.

    ``parse(render(value)) == value`` and ``render(parse(text)) == text``. A text that may hold braces cannot
    be part of a hash tag. Instances are immutable, and equal by their parameters.
    """

    @property
    @abstractmethod
    def expected(self) -> str:
        """The valid values, in words that follow "must be"."""

    @property
    @abstractmethod
    def python_type(self) -> type:
        """The type of the values."""

    @property
    @abstractmethod
    def language(self) -> Language:
        """The texts, for proofs. Never fewer than there are; more only where ``pattern_decides`` is false."""

    @property
    @abstractmethod
    def samples(self) -> tuple[T_co, ...]:
        """A few valid values, extremes among them."""

    @property
    def pattern_decides(self) -> bool:
        """False when a text may match ``pattern`` and still be refused, as a number beyond 64 bits is."""
        return True

    @property
    def is_text(self) -> bool:
        """False when texts may hold surrogates, which stand for bytes that are not UTF-8."""
        return True

    @abstractmethod
    def render(self, value: object) -> str:
        """Return the text of ``value``. Raise ValueError if it is outside the alphabet."""

    @abstractmethod
    def read(self, text: str) -> T_co:
        """Return the value of a text that matches ``pattern``. Raise ValueError if it is still invalid."""

    def parse(self, text: str) -> T_co:
        """Return the value of ``text``. Raise ValueError unless ``render`` gives that text for the value."""
        if self.matcher(text) is None:
            raise self._refusal(text)
        return self.read(text)

    def render_all(self, values: Sequence[object]) -> list[bytes]:
        """Return the encoded texts of many values. Raise ValueError if one is outside the alphabet."""
        render = self.render
        return [render(value).encode() for value in values]

    def read_all(self, texts: Sequence[bytes]) -> list[T_co]:
        """Return the values of many encoded texts. Raise ValueError if one is outside the alphabet."""
        parse = self.parse
        return [parse(text.decode()) for text in texts]

    def inline(self, var: str, const: str) -> str | None:
        """Return the source of an expression that is true if ``var`` is valid and ``f"{var}"`` is its text.

        ``const`` is the global name of ``matcher`` in the generated code. None: call ``render`` instead.
        """
        return None

    @cached_property
    def pattern(self) -> str:
        """A regular expression without capture groups that every text matches in full."""
        return regex(self.language)

    @cached_property
    def matcher(self) -> Callable[[str], re.Match[str] | None]:
        """Return a function that matches a whole text against `pattern`."""
        return re.compile(self.pattern).fullmatch

    def _refusal(self, found: object) -> ValueError:
        return ValueError(f"expected {self.expected}, found {found!r}")


class Verbatim(Alphabet[str]):
    """A str that is written as it is."""

    @property
    def python_type(self) -> type:
        return str

    def render(self, value: object) -> str:
        if type(value) is str and self.matcher(value) is not None:
            return self.read(value)
        raise self._refusal(value)

    def read(self, text: str) -> str:
        return text

    def inline(self, var: str, const: str) -> str | None:
        return f"type({var}) is str and {const}({var}) is not None"


def refuse_unwritable(text: str) -> None:
    for char in text:
        if char in "{}" or char.isspace() or not char.isprintable():
            raise ValueError(
                f"{char!r} cannot be part of a key name: no braces, spaces or control characters"
            )
