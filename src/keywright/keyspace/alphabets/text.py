"""Free text: escaped, so that it can stand anywhere, or as it is, at the end of a name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from keywright.keyspace.alphabets.alphabet import Alphabet, Verbatim
from keywright.keyspace.alphabets.expression import language_of
from keywright.keyspace.languages.language import (
    Language,
    alternation,
    any_byte,
    characters,
    every_character,
    literal,
    one_of,
    regex,
    words,
)
from keywright.keyspace.misuse import explained_constructor

__all__ = ["Bytes", "Pattern", "Rest", "Segment", "TagText", "Text"]


_REST = characters("|~", (0x20, 0x7A), (0xA0, 0xD7FF), (0xE000, 0x10FFFF)).repeat(1)


@dataclass(frozen=True)
class Rest(Verbatim):
    """The rest of the name: free text, colons included, without braces and control characters.

    Written as it is, so only the last thing of a template can have this alphabet.
    """

    @property
    def expected(self) -> str:
        return "non-empty text without braces and control characters"

    @property
    def samples(self) -> tuple[str, ...]:
        return ("a", "a:b c", ":", "%25", "Zürich:👍")

    @property
    def language(self) -> Language:
        return _REST


@dataclass(frozen=True)
class TagText(Verbatim):
    """The hashed part of another key name, for a key that must live in its slot; alone in braces."""

    @property
    def expected(self) -> str:
        return "a hash tag: non-empty text without braces and control characters"

    @property
    def samples(self) -> tuple[str, ...]:
        return ("a", "user:1000", "Zürich")

    @property
    def language(self) -> Language:
        return _REST


@explained_constructor
@dataclass(frozen=True)
class Segment(Verbatim):
    """Non-empty text as it is: any character, spaces, controls and braces too, except those of ``but``.

    Braces in a name may decide its slot, so the keys of such a template share no slot that can be proved.
    """

    but: str = ":"

    @property
    def expected(self) -> str:
        return "non-empty text" + (f" without {' '.join(map(repr, self.but))}" if self.but else "")

    @property
    def language(self) -> Language:
        return every_character(self.but).repeat(1)

    @property
    def samples(self) -> tuple[str, ...]:
        texts = ("a", "two words", "{video}", "\x06\x16", "Zürich", "👍", "a:b", "%")
        return tuple(text for text in texts if not set(text) & set(self.but))


@explained_constructor
@dataclass(frozen=True)
class Bytes(Alphabet[bytes]):
    """Bytes as they are, not UTF-8 necessarily; none is one of ``but``, which are ASCII."""

    but: bytes = b":"

    def __post_init__(self) -> None:
        any_byte(self.but)

    @property
    def expected(self) -> str:
        return "non-empty bytes" + (f" without any of {self.but!r}" if self.but else "")

    @property
    def python_type(self) -> type:
        return bytes

    @property
    def is_text(self) -> bool:
        return False

    @property
    def language(self) -> Language:
        return any_byte(self.but).repeat(1)

    @property
    def samples(self) -> tuple[bytes, ...]:
        texts = (b"a", b"\xff\xfe", b"\x00{", "Zürich".encode(), b"a:b")
        return tuple(text for text in texts if not set(text) & set(self.but))

    def render(self, value: object) -> str:
        if type(value) is not bytes or not value or set(value) & set(self.but):
            raise self._refusal(value)
        return value.decode("utf-8", "surrogateescape")

    def render_all(self, values: Sequence[object]) -> list[bytes]:
        return [self.render(value).encode("utf-8", "surrogateescape") for value in values]

    def read(self, text: str) -> bytes:
        return text.encode("utf-8", "surrogateescape")

    def read_all(self, texts: Sequence[bytes]) -> list[bytes]:
        return [self.parse(text.decode("utf-8", "surrogateescape")) for text in texts]


@explained_constructor
@dataclass(frozen=True)
class Pattern(Verbatim):
    """A text that matches a regular expression in full, as ``Pattern("[a-z]{2}-[0-9]+")``.

    Characters, classes (``\\d``, ``\\w`` and ``\\s`` are ASCII), groups, alternatives and repetition.
    """

    expression: str

    def __post_init__(self) -> None:
        language_of(self.expression)

    @property
    def expected(self) -> str:
        return f"text that matches {self.expression}"

    @property
    def language(self) -> Language:
        return language_of(self.expression)

    @property
    def samples(self) -> tuple[str, ...]:
        return words(self.language)


_KEPT = (
    # Printable ASCII without % : { and }
    *((0x21, 0x24), (0x26, 0x39), (0x3B, 0x7A), (0x7C, 0x7C), (0x7E, 0x7E)),
    # The blocks of letters, from Latin-1 to Hangul; the cuts leave out every kind of space.
    *((0xC0, 0x167F), (0x1681, 0x1FFF), (0x3040, 0xD7FF)),
)
_HEX = one_of(b"0123456789ABCDEF")
_TAIL = literal(b"%") + one_of(b"89AB") + _HEX
# The UTF-8 form of every other character, exactly: %41 must not become a second spelling of A.
_ESCAPED = literal(b"%") + alternation(
    [
        one_of(b"01") + _HEX,
        literal(b"2") + one_of(b"05"),
        literal(b"3A"),
        literal(b"7") + one_of(b"BDF"),
        literal(b"C2") + _TAIL,
        literal(b"E1%9A%80"),
        literal(b"E2") + _TAIL + _TAIL,
        literal(b"E3%80") + _TAIL,
        literal(b"E") + one_of(b"EF") + _TAIL + _TAIL,
        literal(b"F0%") + one_of(b"9AB") + _HEX + _TAIL + _TAIL,
        literal(b"F") + one_of(b"123") + _TAIL + _TAIL + _TAIL,
        literal(b"F4%8") + _HEX + _TAIL + _TAIL,
    ]
)
_TEXT_UNIT = characters("", *_KEPT) | _ESCAPED
_TO_ESCAPE = re.compile(f"(?!{regex(characters('', *_KEPT))}).", re.DOTALL)
_ESCAPES = re.compile("(?:%[0-9A-F]{2})+")


@dataclass(frozen=True)
class Text(Alphabet[str]):
    """Any str, made safe: colons, braces, ``%``, spaces, controls and non-ASCII symbols become ``%XX``.

    Printable ASCII and letters stay readable. The empty text is refused unless ``allow_empty``: two keys that
    differ by nothing visible are seldom meant.
    """

    allow_empty: bool = False

    @property
    def python_type(self) -> type:
        return str

    @property
    def expected(self) -> str:
        return "text" if self.allow_empty else "non-empty text"

    @property
    def language(self) -> Language:
        return _TEXT_UNIT.repeat(0 if self.allow_empty else 1)

    @property
    def samples(self) -> tuple[str, ...]:
        return (
            "a",
            "two words: {50%}",
            "Zürich",
            "日本",
            "\x00\n",
            "👍",
            *([""] if self.allow_empty else []),
        )

    def render(self, value: object) -> str:
        if type(value) is not str or not (value or self.allow_empty):
            raise self._refusal(value)
        try:
            return _TO_ESCAPE.sub(lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode()), value)
        except UnicodeEncodeError as lone_surrogate:
            raise self._refusal(value) from lone_surrogate

    def read(self, text: str) -> str:
        return _ESCAPES.sub(lambda found: bytes.fromhex(found[0].replace("%", "")).decode(), text)
