"""Sets of texts, described once and read two ways: as a regular expression over str, and as UTF-8 bytes.

Owns the expressions and their regular expression. The automaton and its proofs are in ``automaton``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from keywright.keyspace.misuse import explained

__all__ = [
    "Language",
    "alternation",
    "any_byte",
    "characters",
    "concatenation",
    "difference",
    "every_character",
    "literal",
    "one_of",
    "regex",
    "words",
]

LONGEST_RUN = 1024
_SURROGATES = (0xD800, 0xDFFF)
_LAST_CHARACTER = 0x10FFFF

Span = tuple[int, int]


class Language:
    """A regular set of byte strings. Immutable and hashable; made by the functions of this module."""

    @explained
    def repeat(self, least: int, most: int | None = None) -> Language:
        """Return the language of ``least`` to ``most`` words in a row; without ``most``, no limit."""
        if least < 0 or (most is not None and most < max(least, 1)):
            raise ValueError(f"cannot repeat {least} to {most} times")
        if least > LONGEST_RUN:
            raise ValueError(f"a run of {least} is too long to reason about; the limit is {LONGEST_RUN}")
        return Repeated(self, least, most)

    def __add__(self, other: Language) -> Language:
        return concatenation((self, other))

    def __or__(self, other: Language) -> Language:
        return alternation((self, other))


@dataclass(frozen=True)
class Word(Language):
    word: bytes


@dataclass(frozen=True)
class OneByte(Language):
    mask: int


@dataclass(frozen=True)
class OneCharacter(Language):
    spans: tuple[Span, ...]

    def as_bytes(self) -> Language:
        """Return the same characters as UTF-8: one byte for ASCII, then each run of longer sequences."""
        ascii_mask = 0
        longer: list[Language] = []
        for sequence in (sequence for span in self.spans for sequence in _utf8(*span)):
            if len(sequence) == 1:
                ascii_mask |= _span_mask(sequence[0])
            else:
                longer.append(Chain(tuple(OneByte(_span_mask(span)) for span in sequence)))
        return alternation(([OneByte(ascii_mask)] if ascii_mask else []) + longer)


@dataclass(frozen=True)
class Chain(Language):
    parts: tuple[Language, ...]


@dataclass(frozen=True)
class Either(Language):
    options: tuple[Language, ...]


@dataclass(frozen=True)
class Repeated(Language):
    body: Language
    least: int
    most: int | None


@dataclass(frozen=True)
class AnyByte(Language):
    """One byte, also of a sequence that is not UTF-8, except some of ASCII."""

    but: bytes

    def as_bytes(self) -> OneByte:
        return OneByte(((1 << 256) - 1) ^ sum(1 << byte for byte in set(self.but)))


@dataclass(frozen=True)
class Difference(Language):
    """The words of one language that are not words of another."""

    base: Language
    excluded: Language


@explained
def literal(word: bytes) -> Language:
    """Return the language of exactly ``word``, which may be empty."""
    return Word(word)


def one_of(allowed: bytes | int) -> Language:
    """Return the language of one byte of ``allowed``: bytes, or a mask with bit ``n`` for byte ``n``."""
    mask = allowed if isinstance(allowed, int) else sum(1 << byte for byte in set(allowed))
    if not 0 < mask < 1 << 256:
        raise ValueError("one_of() needs at least one byte, and none above 255")
    return OneByte(mask)


@explained
def characters(allowed: str, *spans: Span) -> Language:
    """Return the language of one character of ``allowed`` or of the code point ``spans`` (inclusive)."""
    merged = tuple(_merged([*((ord(char), ord(char)) for char in allowed), *spans]))
    if not merged or merged[0][0] < 0 or merged[-1][1] > 0x10FFFF:
        raise ValueError("characters() needs at least one code point, and only those of Unicode")
    if any(low <= _SURROGATES[1] and high >= _SURROGATES[0] for low, high in merged):
        raise ValueError("surrogates have no UTF-8 form")
    return OneCharacter(merged)


def every_character(but: str = "", spans: Iterable[Span] = ()) -> Language:
    """Return the language of one character, also a control character, not of ``but`` nor of ``spans``."""
    kept, low = [], 0
    for gap in _merged([*((ord(char), ord(char)) for char in but), *spans, _SURROGATES]):
        if low < gap[0]:
            kept.append((low, gap[0] - 1))
        low = gap[1] + 1
    return OneCharacter((*kept, (low, _LAST_CHARACTER)) if low <= _LAST_CHARACTER else tuple(kept))


def any_byte(but: bytes = b"") -> Language:
    """Return the language of one byte except those of ``but``, which are ASCII.

    Its regular expression is for names that are decoded with ``surrogateescape``.
    """
    if not but.isascii():
        raise ValueError("only bytes of ASCII can be left out: others are parts of characters")
    return AnyByte(but)


def difference(base: Language, excluded: Language) -> Language:
    """Return the words of ``base`` that are not words of ``excluded``."""
    return Difference(base, excluded)


def concatenation(parts: Iterable[Language]) -> Language:
    """Return the language of a word of each part, in order."""
    return Chain(
        tuple(inner for part in parts for inner in (part.parts if isinstance(part, Chain) else (part,)))
    )


def alternation(options: Iterable[Language]) -> Language:
    """Return the language of a word of any one of the options."""
    flat = tuple(
        inner for option in options for inner in (option.options if isinstance(option, Either) else (option,))
    )
    if not flat:
        raise ValueError("an alternation needs an option")
    return flat[0] if len(flat) == 1 else Either(flat)


def regex(language: Language) -> str:
    """Return a regular expression over str, without capture groups, for ``fullmatch``.

    That of a difference matches what it excludes, too.
    """
    match language:
        case Word(word):
            return re.escape(word.decode())
        case OneByte(mask) if mask < 1 << 128:
            return _character_class(_merged((byte, byte) for byte in range(128) if mask >> byte & 1))
        case OneCharacter(spans):
            return _character_class(spans)
        case AnyByte(but):
            return f"[^{re.escape(but.decode())}]" if but else r"[\s\S]"
        case Difference(base):
            return regex(base)
        case Chain(parts):
            return "".join(map(regex, parts))
        case Either(options):
            return f"(?:{'|'.join(map(regex, options))})"
        case Repeated(body, least, most):
            inner = regex(body)
            atomic = isinstance(body, OneByte | OneCharacter | AnyByte | Either)
            return (inner if atomic else f"(?:{inner})") + _quantifier(least, most)
    raise ValueError(f"{language!r} is not text: it has no regular expression over str")


def words(language: Language) -> tuple[str, ...]:
    """Return two words of a language of text: a short one, and a longer one of other characters."""
    return tuple(dict.fromkeys((_word(language, 0), _word(language, -1))))


def _word(language: Language, end: int) -> str:
    """Return a word made of the first (0) or the last (-1) choices."""
    match language:
        case Word(word):
            return word.decode()
        case OneByte(mask):
            return chr((mask & -mask).bit_length() - 1 if end == 0 else mask.bit_length() - 1)
        case OneCharacter(spans):
            return chr(spans[end][end])
        case Chain(parts):
            return "".join(_word(part, end) for part in parts)
        case Either(options):
            return _word(options[end], end)
        case Repeated(body, least, most):
            longer = least + 2 if most is None else min(most, least + 2)
            return _word(body, end) * (least if end == 0 else longer)
    raise ValueError(f"{language!r} has no words of text")


def _quantifier(least: int, most: int | None) -> str:
    if most is None:
        return {0: "*", 1: "+"}.get(least, f"{{{least},}}")
    if least == most:
        return f"{{{least}}}"
    return "?" if (least, most) == (0, 1) else f"{{{least},{most}}}"


def _character_class(spans: Iterable[Span]) -> str:
    return f"[{''.join(map(_span_text, spans))}]"


def _span_text(span: Span) -> str:
    low, high = (re.escape(chr(end)) for end in span)
    if span[0] == span[1]:
        return low
    return low + high if span[0] + 1 == span[1] else f"{low}-{high}"


def _span_mask(span: Span) -> int:
    low, high = span
    return (1 << high + 1) - (1 << low)


def _merged(spans: Iterable[Span]) -> Iterator[Span]:
    current: Span | None = None
    for low, high in sorted(spans):
        if current is not None and low <= current[1] + 1:
            current = (current[0], max(current[1], high))
            continue
        if current is not None:
            yield current
        current = (low, high)
    if current is not None:
        yield current


def _utf8(low: int, high: int) -> Iterator[tuple[Span, ...]]:
    """Yield byte spans whose products are together the UTF-8 forms of ``low`` to ``high``.

    A run of code points is a product of byte spans only if it is cut where the encoded length changes and
    where a continuation byte does not run over its whole range.
    """
    for longest in (0x7F, 0x7FF, 0xFFFF):
        if low <= longest < high:
            yield from _utf8(low, longest)
            yield from _utf8(longest + 1, high)
            return
    for continuation in (0x3F, 0xFFF, 0x3FFFF) if high > 0x7F else ():
        if low | continuation == high | continuation:
            continue
        if low & continuation:
            cut = low | continuation
        elif ~high & continuation:
            cut = (high & ~continuation) - 1
        else:
            continue
        yield from _utf8(low, cut)
        yield from _utf8(cut + 1, high)
        return
    yield tuple(zip(chr(low).encode(), chr(high).encode(), strict=True))
