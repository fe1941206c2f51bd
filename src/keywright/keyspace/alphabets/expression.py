"""Texts that a regular expression describes."""

from __future__ import annotations

import re
from functools import lru_cache

# The parser of the standard library, without which every feature would be read a second time, differently.
from re import _constants, _parser  # type: ignore[attr-defined]  # typeshed does not have them
from typing import Any

from keywright.keyspace.languages.language import (
    Language,
    alternation,
    characters,
    concatenation,
    every_character,
    literal,
)

__all__ = ["language_of"]

LONGEST_EXPRESSION = 1000
_CATEGORIES = {
    _constants.CATEGORY_DIGIT: ((0x30, 0x39),),
    _constants.CATEGORY_WORD: ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)),
    _constants.CATEGORY_SPACE: ((0x09, 0x0D), (0x20, 0x20)),
}


@lru_cache(maxsize=256)
def language_of(expression: str) -> Language:
    """Return the texts that match an expression in full. Raise ValueError if they are not a regular set."""
    if len(expression) > LONGEST_EXPRESSION:
        raise ValueError(f"an expression of {len(expression)} characters; the limit is {LONGEST_EXPRESSION}")
    try:
        tree = _parser.parse(expression, re.ASCII)
    except re.error as error:
        raise ValueError(f"{expression!r} is not a regular expression: {error}") from error
    if tree.state.flags & (re.IGNORECASE | re.MULTILINE | re.DOTALL | re.VERBOSE):
        raise ValueError(f"{expression!r} has flags; write what it matches without them")
    return _sequence(tree)


def _sequence(tree: Any) -> Language:
    return concatenation(_one(operator, argument) for operator, argument in tree)


def _one(operator: Any, argument: Any) -> Language:
    match operator:
        case _constants.LITERAL:
            return literal(chr(argument).encode())
        case _constants.NOT_LITERAL:
            return every_character(but=chr(argument))
        case _constants.ANY:
            return every_character(but="\n")
        case _constants.IN:
            return _class(argument)
        case _constants.BRANCH:
            return alternation(map(_sequence, argument[1]))
        case _constants.SUBPATTERN:
            _, added, dropped, tree = argument
            if not added and not dropped:
                return _sequence(tree)
        case _constants.MAX_REPEAT | _constants.MIN_REPEAT:
            least, most, tree = argument
            return _sequence(tree).repeat(least, None if most == _constants.MAXREPEAT else max(most, 1))
        case _constants.AT:
            raise ValueError("the whole text is matched: leave out ^, $ and \\b")
    raise ValueError(
        "it uses more than characters, classes, groups, | and repetition, so nothing can be proved of it"
    )


def _class(parts: Any) -> Language:
    negated = parts[0][0] is _constants.NEGATE
    spans: list[tuple[int, int]] = []
    for operator, argument in parts[negated:]:
        if operator is _constants.LITERAL:
            spans.append((argument, argument))
        elif operator is _constants.RANGE:
            spans.append(argument)
        elif operator is _constants.CATEGORY and argument in _CATEGORIES:
            spans += _CATEGORIES[argument]
        else:
            raise ValueError("a class has characters, ranges, \\d, \\w and \\s; write others out")
    return every_character(spans=spans) if negated else characters("", *spans)
