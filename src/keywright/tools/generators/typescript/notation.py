"""TypeScript notation: strings, regular expressions, identifiers, comments."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterable, Mapping
from typing import Any

__all__ = [
    "Unsupported",
    "call",
    "camel",
    "comment",
    "identifier",
    "literal",
    "member_name",
    "regex",
    "string",
]

_WORD = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")
_KEYWORDS = (
    "break case catch class const continue debugger default delete do else enum export extends false finally "
    "for function if import in instanceof new null return super switch this throw true try typeof var void "
    "while with yield let static implements interface package private protected public await async"
)
_OWN = "kw messagePack definitions keys Object Map Set Date Uint8Array String Number Boolean Array"
_RESERVED = frozenset(f"{_KEYWORDS} {_OWN}".split(" "))
_WIDTH = 100
_LONGEST_CALL = 80


class Unsupported(Exception):  # noqa: N818 - it is what was met, and the reason is for people
    """Something of a declaration that the runtime package does not support, with the reason."""


def string(text: str) -> str:
    """Return a string literal in ASCII."""
    return json.dumps(text)


def literal(value: Any) -> str:
    """Return plain data as a literal, with names unquoted where they may be."""
    if isinstance(value, Mapping):
        members = ", ".join(f"{member_name(name)}: {literal(each)}" for name, each in value.items())
        return f"{{ {members} }}" if members else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(literal, value))}]"
    return json.dumps(value)


def regex(pattern: str) -> str:
    """Return a regular expression literal with the flag u."""
    escaped = "".join(
        char if char.isascii() and char.isprintable() else f"\\u{{{ord(char):x}}}" for char in pattern
    )
    return "/" + re.sub(r"(?<!\\)/", r"\\/", escaped) + "/u"


def identifier(name: str, taken: Iterable[str] = ()) -> str:
    """Return an identifier like a name that is not taken."""
    base = re.sub(r"[^A-Za-z0-9_$]+", "_", name)
    if not _WORD.fullmatch(base) or base in _RESERVED:
        base = f"_{base}"
    found, number = base, 2
    while found in taken:
        found, number = f"{base}{number}", number + 1
    return found


def member_name(name: str) -> str:
    return name if _WORD.fullmatch(name) and name.isascii() and name != "__proto__" else string(name)


def camel(name: str) -> str:
    """Return a name in camel case: `snowflake-text` is `snowflakeText`."""
    first, *others = [word for word in re.split(r"[^A-Za-z0-9]+", name) if word] or ["value"]
    return first[0].lower() + first[1:] + "".join(word[0].upper() + word[1:] for word in others)


def call(function: str, *arguments: str) -> str:
    """Return a call, with an argument a line if it is long; empty arguments are left out."""
    given = [each for each in arguments if each]
    line = f"{function}({', '.join(given)})"
    if len(line) <= _LONGEST_CALL and "\n" not in line:
        return line
    inside = "".join(f"  {each},\n".replace("\n", "\n  ", each.count("\n")) for each in given)
    return f"{function}(\n{inside})"


def comment(*paragraphs: str, indent: str = "") -> str:
    """Return a TSDoc comment, empty if there is nothing to say."""
    lines: list[str] = []
    for paragraph in filter(None, (each.strip() for each in paragraphs)):
        if lines:
            lines.append("")
        for line in paragraph.replace("*/", "*\u200b/").splitlines():
            lines += textwrap.wrap(line, _WIDTH, break_long_words=False, break_on_hyphens=False) or [""]
    if not lines:
        return ""
    if len(lines) == 1:
        return f"{indent}/** {lines[0]} */\n"
    return "".join(
        [f"{indent}/**\n", *(f"{indent} * {line}".rstrip() + "\n" for line in lines), f"{indent} */\n"]
    )
