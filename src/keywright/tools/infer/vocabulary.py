"""Words of programs: those of `vocabulary.txt`, which may stand in a module although they were seen once.

A name of a person, a customer or a host is not in the list, so a text that is must not be one.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from functools import lru_cache
from importlib import resources

__all__ = ["is_program_text", "parts_of"]

LONGEST = 60

_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\x00-\x7f]+")
_FIXED = re.compile(
    r"(?i)(?:sha(?:1|224|256|384|512)|md[45]|base(?:16|32|62|64)|utf8|oauth[12]|p95|p99)(?![0-9a-z])"
)
_ABBREVIATION = re.compile(r"[bcdfghjklmnpqrstvwxz]{2,4}").fullmatch
"""Beside known words; without a vowel it is hardly a name."""
_SUFFIXES = (
    *(
        ("ies", "y"),
        ("ied", "y"),
        ("ying", "ie"),
        ("es", ""),
        ("es", "e"),
        ("s", ""),
        ("ed", ""),
        ("ed", "e"),
    ),
    *(("d", ""), ("ing", ""), ("ing", "e"), ("ers", ""), ("ers", "e"), ("er", ""), ("er", "e")),
    *(
        ("ors", ""),
        ("ors", "e"),
        ("or", ""),
        ("or", "e"),
        ("ion", ""),
        ("ion", "e"),
        ("ions", "e"),
        ("ions", ""),
    ),
    *(("ment", ""), ("ments", ""), ("able", ""), ("ly", "")),
)
_KNOWN = frozenset(
    word
    for line in resources.files("keywright.tools.infer")
    .joinpath("vocabulary.txt")
    .read_text("ascii")
    .splitlines()
    if not line.startswith("#")
    for word in line.split()
)


def is_program_text(text: str, others: Collection[str] = ()) -> bool:
    """Return whether all words of a text are words of programs, or `others`, and its numbers are small."""
    if len(text) > LONGEST:
        return False
    parts = parts_of(_FIXED.sub("", text))
    if parts and all(part.isdigit() for part in parts):
        return False
    strange = [part for part in parts if part not in others and not _is_known(part)]
    beside = any(len(part) > 2 and not part.isdigit() and part not in strange for part in parts)
    return not strange or (beside and all(map(_ABBREVIATION, strange)))


def parts_of(text: str) -> list[str]:
    """Return the words and numbers of a text in lower case: `taskMeta-2` has task, meta and 2."""
    return [part.lower() for part in _PARTS.findall(text)]


@lru_cache(maxsize=8192)
def _is_known(part: str) -> bool:
    if part.isdigit():
        return len(part) <= 2
    return len(part) == 1 or part in _KNOWN or any(_stems(part))


def _stems(part: str) -> Iterable[bool]:
    """Yield whether the word without an ending is known."""
    for ending, instead in _SUFFIXES:
        if part.endswith(ending) and len(part) > len(ending) + 2:
            stem = part[: -len(ending)] + instead
            yield stem in _KNOWN
            yield len(stem) > 3 and stem[-1] == stem[-2] and stem[:-1] in _KNOWN
