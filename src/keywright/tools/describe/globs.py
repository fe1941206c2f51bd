"""Redis globs for the names of a template, as narrow as a glob can be: for access rules, not for parsing.

A glob knows characters, not lengths or repetition, so `*` stands wherever a text has no fixed length. The
first character of such a text is narrowed to those that are valid, and short lists of texts are spelled out.
"""

from __future__ import annotations

import itertools
import re
import string
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from keywright.keyspace.alphabets import (
    Alphabet,
    Choice,
    Hex,
    OneOf,
    Plain,
    Prefixed,
    Signed64,
    Snowflake,
    SnowflakeText,
    Unsigned64,
)
from keywright.keyspace.template import Part

__all__ = ["example_of", "glob_escaped", "globs_of", "regex_of"]

# Each name is matched against each pattern: beyond this a template is worth one wide pattern.
MOST = 32
_SPECIAL = re.compile(r"([*?\[\]\\^])")
# Characters that would end a rule: the glob has `?` in their place.
_UNWRITABLE = re.compile(r"[\x00-\x20\x7f]")
_TOKEN = re.compile(
    r"\\(?P<literal>.)|(?P<choice>\[(?:\\.|[^]\\])*\])|(?P<wild>[?*])|(?P<plain>.)", re.DOTALL
)
_BODIES = {"base36": "[0-9a-z]", "decimal": "[0-9]", "hex": "[0-9a-f]"}


def glob_escaped(text: str) -> str:
    """Return a glob that matches this text only."""
    return _SPECIAL.sub(r"\\\1", text)


def regex_of(glob: str) -> str:
    """Return a regular expression that matches the same texts as a glob."""
    wild = {"?": "(?s:.)", "*": "(?s:.*)"}
    return "".join(
        token["choice"] or wild.get(token["wild"] or "") or re.escape(token["literal"] or token["plain"])
        for token in _TOKEN.finditer(glob)
    )


def example_of(glob: str) -> str:
    """Return a text that a glob matches."""
    wild = {"?": "x", "*": ""}
    return "".join(
        next(char for char in string.printable if re.match(token["choice"], char))
        if token["choice"]
        else wild[token["wild"]]
        if token["wild"]
        else token["literal"] or token["plain"]
        for token in _TOKEN.finditer(glob)
    )


def globs_of(forms: Iterable[Sequence[Part]], alphabets: Mapping[str, Alphabet[Any]]) -> tuple[str, ...]:
    """Return globs that together match every name made of the parts of one of these forms."""
    return tuple(glob for parts in forms for glob in _of_parts(parts, alphabets))


def _of_parts(parts: Sequence[Part], alphabets: Mapping[str, Alphabet[Any]]) -> tuple[str, ...]:
    choices = [
        _texts(alphabets[part.text]) if part.is_variable else [_UNWRITABLE.sub("?", glob_escaped(part.text))]
        for part in parts
    ]
    while _product(map(len, choices)) > MOST:
        widest = max(choices, key=len)
        choices[choices.index(widest)] = ["?*"]
    return tuple("".join(pieces) for pieces in itertools.product(*choices))


def _texts(alphabet: Alphabet[Any]) -> list[str]:
    if isinstance(alphabet, Choice):
        return [glob_escaped(alphabet.render(value)) for value in alphabet.values]
    if isinstance(alphabet, OneOf):
        return list(dict.fromkeys(glob for each in alphabet.alphabets for glob in _texts(each)))
    if isinstance(alphabet, Hex):
        return [("[0-9A-F]" if alphabet.upper else "[0-9a-f]") * alphabet.length]
    if isinstance(alphabet, Prefixed):
        return [f"{glob_escaped(alphabet.prefix)}{_BODIES[alphabet.body]}*"]
    if isinstance(alphabet, Plain):
        # Every mark is escaped: a bare - between two others would be a range.
        extra = "".join(f"\\{char}" for char in alphabet.extra if char.isascii())
        return [f"[A-Za-z0-9\\_\\-{extra}]*" if alphabet.extra.isascii() else "?*"]
    if isinstance(alphabet, Unsigned64 | Snowflake | SnowflakeText):
        return ["[0-9]*"]
    if isinstance(alphabet, Signed64):
        return ["[0-9\\-]*"]
    return ["*" if alphabet.matcher("") else "?*"]


def _product(sizes: Iterable[int]) -> int:
    total = 1
    for size in sizes:
        total *= size
    return total
