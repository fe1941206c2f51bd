"""Which texts may stand in a module: words of programs, not ids, names of people or secrets.

A text is shown if its words are those of programs, or if several names repeat it in one place and it has the
form of a word. Everything else is a value: it becomes a variable, or is counted only.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, TypeVar

from keywright.tools.infer.vocabulary import is_program_text, parts_of
from keywright.tools.segments import looks_of

__all__ = ["REPEATED", "Words", "is_fixed_name"]

N = TypeVar("N", str, bytes)

REPEATED = 3
"""A text that so many names or values have in one place is repeated."""
MOST_MEMBERS = 80
ALWAYS = 5
"""A member that each of so many values has is part of their structure."""
RARE = 0.3
"""Names of members of which each value has fewer than this share are names of entries."""
LONGEST = 32
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,60}")
_SHAPE = re.compile(r"[^\w\s@]{0,3}_{0,2}[^\W\d_]+(?:[_.\-][^\W\d_]+)*(?:[_.\-]?\d{1,2})?_{0,2}[^\w\s@]{0,3}")
_CONSONANTS = re.compile(r"[bcdfghjklmnpqrstvwxz]{5}")
_VOWEL = re.compile(r"[aeiouy]")


class Words:
    """Decides which texts are shown. With `everything` all are."""

    def __init__(self, *, everything: bool = False) -> None:
        self.everything = everything
        self._learned: set[str] = set()

    def learn(self, text: bytes) -> None:
        """Take the parts of a text for words of the program: many names with ids begin with it."""
        if _has_form_of_a_word(text):
            self._learned.update(part for part in parts_of(text.decode()) if not part.isdigit())

    def is_known(self, text: bytes) -> bool:
        """Return whether a text may be shown although it was seen once: its words are words of programs."""
        return self._has(text, self._learned)

    def is_listed(self, text: bytes) -> bool:
        """Return whether the words of a text are in the list of words of programs; not learned ones."""
        return self._has(text, set())

    def _has(self, text: bytes, learned: set[str]) -> bool:
        if self.everything:
            return True
        try:
            return is_program_text(text.decode(), learned)
        except UnicodeDecodeError:
            return False

    def is_shown(self, text: bytes, count: int) -> bool:
        """Return whether a text may be shown that `count` names have in one place."""
        return self.is_known(text) or (count >= REPEATED and _has_form_of_a_word(text))

    def members(self, values: Sequence[Mapping[N, Any]], form: Callable[[Any], Hashable]) -> list[N]:
        """Return the members of hashes or documents that are words of a program; the others are entries.

        `form` returns what a value looks like. Members without a word of a program, that all look alike, are
        entries of a map.
        """
        counts = Counter(name for each in values for name in each)
        texts = {name: name if isinstance(name, str) else name.decode("utf-8", "replace") for name in counts}
        fixed = [name for name in counts if is_fixed_name(texts[name])]
        if self.everything:
            return sorted(fixed)
        known = [name for name in fixed if is_program_text(texts[name], self._learned)]
        always = len(values) >= ALWAYS and [name for name in fixed if counts[name] == len(values)]
        forms = {form(value) for each in values for value in each.values()}
        if not known and not always and len(forms) < 2:
            return []
        record = len(known) * 2 >= len(counts)
        shown = [
            name
            for name in fixed
            if is_program_text(texts[name], self._learned)
            or (
                counts[name] >= REPEATED
                and (record or counts[name] * 2 >= len(values))
                and _has_form_of_a_word(texts[name].encode())
            )
        ]
        presence = sum(counts[name] for name in shown) / (len(shown) * len(values)) if shown else 0.0
        return sorted(shown) if presence >= RARE and len(shown) <= MOST_MEMBERS else []


def is_fixed_name(name: str) -> bool:
    """Return whether the name of a member can be an attribute and does not look like an id."""
    return _IDENTIFIER.fullmatch(name) is not None and isinstance(looks_of(name.encode())[0], bytes)


def _has_form_of_a_word(text: bytes) -> bool:
    """Return whether a text can be pronounced: letters in words, at most two digits, not a token."""
    try:
        found = text.decode()
    except UnicodeDecodeError:
        return False
    if len(found) > LONGEST or _SHAPE.fullmatch(found) is None:
        return False
    parts = [part for part in parts_of(found) if not part.isdigit()]
    if not parts or len("".join(parts)) < 2.5 * len(parts) - 1:
        return False
    return not any(
        part.isascii() and len(part) >= 5 and (not _VOWEL.search(part) or _CONSONANTS.search(part))
        for part in parts
    )
