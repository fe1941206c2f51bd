"""Key groups of redis_exporter: one Lua pattern for each form of a template, and the name that it gives.

A group is named by the captures of its pattern together: the literal texts of the template. Templates with
the same literal texts share a group.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any, NamedTuple

from keywright.keyspace import Key
from keywright.keyspace.alphabets import Alphabet
from keywright.keyspace.languages.automaton import accepts, bytes_used
from keywright.keyspace.template import Part
from keywright.tools.model import Model

__all__ = ["KeyGroup", "key_groups"]

_MOST_CAPTURES = 32
_PRINTABLE = range(0x21, 0x7F)
_CONTROLS = (*range(0x20), 0x7F)


class KeyGroup(NamedTuple):
    """A group: the keyspace, class and template of its keys, its Lua pattern and its name."""

    space: str
    key: type[Key]
    template: str
    pattern: str
    name: str


def key_groups(model: Model) -> list[KeyGroup]:
    """Return the groups of a model, the most specific first, as the exporter tries them."""
    found = [
        (_rank(key), group)
        for space, described in zip(model.spaces, model.described().spaces, strict=True)
        for key in space
        for group in _groups(space.name, key, described.lead)
    ]
    found.sort(key=lambda each: (each[0], -len(each[1].name)))
    return [group for _, group in found]


def _rank(key: type[Key]) -> int:
    """Return how many classes have precedence over a class, one over the other."""
    return 1 + max(map(_rank, key.declaration.superiors()), default=0)


def _groups(space: str, key: type[Key], lead: str) -> Iterator[KeyGroup]:
    template = key.declaration.template
    for form in template.forms:
        pattern, name, captures = "^", "", 0
        for is_variable, together in groupby(_with_lead(form, lead), key=lambda part: part.is_variable):
            parts = list(together)
            if is_variable:
                pattern += "".join(_variable(template.alphabets[part.text]) for part in parts)
                continue
            text = "".join(part.text for part in parts)
            captures += 1
            pattern += f"({_literal(text)})" if captures <= _MOST_CAPTURES else _literal(text)
            name += text if captures <= _MOST_CAPTURES else ""
        yield KeyGroup(space, key, lead + template.source, f"{pattern}$", name)


def _with_lead(form: tuple[Part, ...], lead: str) -> tuple[Part, ...]:
    return (Part(lead, is_variable=False), *form) if lead else form


def _literal(text: str) -> str:
    return "".join(f"%{char}" if char.isascii() and not char.isalnum() else char for char in text)


def _variable(alphabet: Alphabet[Any]) -> str:
    used = bytes_used(alphabet.language)
    quantifier = "*" if accepts(alphabet.language, b"") else "+"
    if used >> 128:  # beyond ASCII everything is taken: single bytes of UTF-8 are not characters
        excluded = "".join(_in_class(byte) for byte in _PRINTABLE if not used >> byte & 1)
        if not used >> 0x20 & 1:
            excluded += " "
        if not any(used >> byte & 1 for byte in _CONTROLS):
            excluded += "%c"
        return f"[^{excluded}]{quantifier}" if excluded else f".{quantifier}"
    return f"[{''.join(_spans(used))}]{quantifier}"


def _spans(used: int) -> Iterator[str]:
    """Yield the parts of a Lua class of ASCII: ranges of letters and digits, and single characters."""
    if any(used >> byte & 1 for byte in _CONTROLS):
        yield "%c"
    run: list[int] = []
    for byte in (*range(0x20, 0x7F), 0x100):
        joins = byte < 0x100 and bool(used >> byte & 1) and chr(byte).isalnum()
        if run and not (joins and byte == run[-1] + 1):
            yield chr(run[0]) if len(run) == 1 else f"{chr(run[0])}-{chr(run[-1])}"
            run = []
        if joins:
            run.append(byte)
        elif byte < 0x100 and used >> byte & 1:
            yield _in_class(byte)


def _in_class(byte: int) -> str:
    return chr(byte) if chr(byte).isalnum() or byte == 0x20 else f"%{chr(byte)}"
