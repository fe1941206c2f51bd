"""Regular expressions that Python and ECMAScript (flag `u`) read alike, from the languages of alphabets."""

from __future__ import annotations

from collections.abc import Iterable

from keywright.keyspace.languages.language import (
    AnyByte,
    Chain,
    Difference,
    Either,
    Language,
    OneByte,
    OneCharacter,
    Repeated,
    Word,
)

__all__ = ["anchored", "escaped", "expression", "longest"]

_SYNTAX = frozenset("^$\\.*+?()[]{}|/")
_IN_CLASS = frozenset("^\\[]-")


def anchored(body: str) -> str:
    """Return an expression that matches whole texts only."""
    return f"^(?:{body})$" if "|" in body and not _is_group(body) else f"^{body}$"


def escaped(text: str) -> str:
    """Return the expression of a text."""
    return "".join(_character(char, _SYNTAX) for char in text)


def expression(language: Language, *, as_bytes: bool = False) -> str:
    """Return the expression of a language, without groups that capture.

    With `as_bytes` it is for bytes that are read as the characters U+0000 to U+00FF.
    """
    match language:
        case Word(word):
            return escaped(word.decode("latin-1") if as_bytes else word.decode("utf-8", "surrogateescape"))
        case OneByte(mask):
            return _class((byte, byte) for byte in range(256) if mask >> byte & 1)
        case OneCharacter(spans) if not as_bytes or spans[-1][1] < 128:
            return _class(spans)
        case OneCharacter():
            return expression(language.as_bytes(), as_bytes=True)
        case AnyByte():
            return expression(language.as_bytes(), as_bytes=True)
        case Difference(base, excluded):
            inner = expression(excluded, as_bytes=as_bytes)
            return f"(?!(?:{inner})$){expression(base, as_bytes=as_bytes)}"
        case Chain(parts):
            return "".join(expression(part, as_bytes=as_bytes) for part in parts)
        case Either(options):
            return f"(?:{'|'.join(expression(option, as_bytes=as_bytes) for option in options)})"
        case Repeated(body, least, most):
            inner = expression(body, as_bytes=as_bytes)
            return (inner if _is_atom(inner) else f"(?:{inner})") + _quantifier(least, most)
    raise ValueError(f"{language!r} has no regular expression")


def longest(language: Language) -> int | None:
    """Return the length of the longest word in characters, or in bytes of `AnyByte`; None without a limit."""
    match language:
        case Word(word):
            return len(word.decode("utf-8", "surrogateescape"))
        case OneByte() | OneCharacter() | AnyByte():
            return 1
        case Difference(base):
            return longest(base)
        case Chain(parts):
            lengths = [longest(part) for part in parts]
            return None if None in lengths else sum(filter(None, lengths))
        case Either(options):
            lengths = [longest(option) for option in options]
            return None if None in lengths else max(filter(None, lengths), default=0)
        case Repeated(body, _, most):
            length = longest(body)
            return None if most is None or length is None else length * most
    raise ValueError(f"{language!r} has no words")


def _is_atom(text: str) -> bool:
    """Return whether a quantifier after this expression is about all of it."""
    if text.startswith("["):
        return _closing(text) == len(text) - 1
    return len(text) == 1 or (len(text) == 2 and text[0] == "\\") or _is_group(text)


def _closing(text: str) -> int:
    place = 1
    while text[place] != "]":
        place += 2 if text[place] == "\\" else 1
    return place


def _is_group(text: str) -> bool:
    return text.startswith("(?:") and text.endswith(")") and text.count("(?") == 1


def _class(spans: Iterable[tuple[int, int]]) -> str:
    merged: list[tuple[int, int]] = []
    for low, high in spans:
        if merged and low == merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], high)
        else:
            merged.append((low, high))
    if len(merged) == 1 and merged[0][0] == merged[0][1]:
        return _character(chr(merged[0][0]), _SYNTAX)
    return f"[{''.join(map(_span, merged))}]"


def _span(span: tuple[int, int]) -> str:
    low, high = (_character(chr(end), _IN_CLASS) for end in span)
    if span[0] == span[1]:
        return low
    return low + high if span[0] + 1 == span[1] else f"{low}-{high}"


def _character(char: str, special: frozenset[str]) -> str:
    if char in special:
        return f"\\{char}"
    if " " <= char <= "~" or ord(char) > 0xFFFF:
        return char  # no escape of a character beyond the BMP is valid in both
    return f"\\x{ord(char):02x}" if ord(char) < 0x100 else f"\\u{ord(char):04x}"


def _quantifier(least: int, most: int | None) -> str:
    if most is None:
        return {0: "*", 1: "+"}.get(least, f"{{{least},}}")
    if least == most:
        return "" if least == 1 else f"{{{least}}}"
    return "?" if (least, most) == (0, 1) else f"{{{least},{most}}}"
