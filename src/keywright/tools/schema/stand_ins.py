"""Stand-ins for what a schema file cannot hold: functions, codecs and alphabets of the program.

They have the name and documentation of the original, so the schema of what they are part of is the same.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from typing import Any

from keywright.errors import UsageError
from keywright.keyspace.alphabets import Verbatim, before_first, sha256_hex
from keywright.keyspace.alphabets.expression import language_of
from keywright.keyspace.codecs import Codec
from keywright.keyspace.languages.language import Language, every_character, words
from keywright.tools.schema.document import AlphabetSchema, CodecSchema, ComputedSchema

__all__ = ["Constant", "ForeignAlphabet", "foreign_codec", "function", "maker"]

_BEFORE_FIRST = re.compile(r"before_first\((.+)\)")


class Constant:
    """A factory of defaults that are known, but cannot be shared."""

    def __init__(self, value: Any, plain: Any) -> None:
        self.value = value
        self.plain = plain
        """The value as JSON."""

    def __call__(self) -> Any:
        return self.value


class ForeignAlphabet(Verbatim):
    """An alphabet that only the program knows: its texts are those of its pattern."""

    def __init__(self, schema: AlphabetSchema) -> None:
        self.schema = schema

    @property
    def expected(self) -> str:
        return self.schema.words

    @property
    def pattern_decides(self) -> bool:
        return self.schema.exact

    @property
    def language(self) -> Language:
        try:
            return language_of(self.schema.pattern.removeprefix("^").removesuffix("$"))
        except ValueError:
            return every_character("{}").repeat(1)

    @property
    def samples(self) -> tuple[str, ...]:
        return words(self.language)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ForeignAlphabet) and other.schema == self.schema

    def __hash__(self) -> int:
        return hash(self.schema.pattern)


class _ForeignCodec(Codec[bytes]):
    """A codec that only the program knows: its bytes are passed on as they are."""

    python_type = bytes

    def encode(self, value: bytes) -> bytes:
        if isinstance(value, bytes):
            return value
        raise self.refusal(value)

    def decode(self, data: bytes) -> bytes:
        return bytes(data)


def foreign_codec(schema: CodecSchema, layout: Any, alike: Codec[Any] | None) -> Codec[bytes]:
    """Return the stand-in of a codec, in a class of its name."""
    made = type(schema.name or schema.codec, (_ForeignCodec,), {"__doc__": schema.doc or None})
    codec: Codec[bytes] = made()
    codec.expected = schema.words
    codec.layout = layout
    codec.alike = alike
    return codec


def function(computed: ComputedSchema, *, of_a_text: bool = False) -> Callable[..., Any]:
    """Return a function with the name and documentation of one of the program. Calling it raises UsageError.

    Of functions of a text the well-known ones come back.
    """
    if of_a_text and computed.name == "sha256_hex":
        return sha256_hex
    known = _BEFORE_FIRST.fullmatch(computed.name) if of_a_text else None
    if known is not None:
        try:
            return before_first(ast.literal_eval(known[1]))
        except (ValueError, SyntaxError):
            pass

    def stand_in(*_: Any) -> Any:
        raise UsageError(
            f"{computed.name} is a function of the program that wrote the schema file. "
            "Use its declaration for what needs it."
        )

    made: Callable[..., Any] = _named(stand_in, computed)
    return made


def maker(computed: ComputedSchema, words: str | None = None) -> Callable[[], str | None]:
    """Return the stand-in of a function that makes a default: it gives the default in words."""

    def stand_in() -> str | None:
        return words

    made: Callable[[], str | None] = _named(stand_in, computed)
    return made


def _named(stand_in: Any, computed: ComputedSchema) -> Any:
    stand_in.__name__ = stand_in.__qualname__ = computed.name
    stand_in.__doc__ = computed.doc or None
    return stand_in
