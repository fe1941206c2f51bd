"""Alphabets of variables and ids as constants of the module, each declared once."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from keywright.tools.generators.typescript.notation import Unsupported, camel, identifier, regex, string
from keywright.tools.schema.document import AlphabetSchema

__all__ = ["Alphabets", "Expression"]

_VERBATIM = frozenset(
    [
        *("plain", "hex", "base64url", "ulid", "email", "rest", "tag-text", "uuid-text", "uuid"),
        *("prefixed", "segment", "pattern", "one-of"),
    ]
)
_INTEGERS = {
    "signed64": "-(2n ** 63n), 2n ** 63n - 1n",
    "unsigned64": "0n, 2n ** 64n - 1n",
    "snowflake": "0n, 2n ** 64n - 1n",
}


class Expression(NamedTuple):
    """An expression and the type of its values."""

    code: str
    type: str


class Alphabets:
    """The constants of the alphabets of one module, in the order in which they are first used."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._known: dict[bytes, Expression] = {}
        self._names: set[str] = set()

    def constant(self, alphabet: AlphabetSchema) -> Expression:
        """Return the constant of an alphabet. Raise Unsupported if the runtime has no such alphabet."""
        content = msgspec.json.encode(alphabet)
        if content not in self._known:
            code, kind = _declared(alphabet)
            own = alphabet.parameters.get("name") if alphabet.alphabet == "custom" else None
            name = identifier(camel(str(own or alphabet.alphabet)), self._names)
            self._names.add(name)
            self.lines.append(f"const {name} = {code};\n")
            self._known[content] = Expression(name, kind)
        return self._known[content]


def _declared(alphabet: AlphabetSchema) -> Expression:
    name, given = alphabet.alphabet, alphabet.parameters
    tail = f"{regex(alphabet.pattern)}, {string(alphabet.words)}"
    if name in _VERBATIM:
        if not alphabet.exact:
            raise Unsupported(f"an alphabet of which the pattern does not decide: {alphabet.words}")
        return Expression(f"kw.verbatim({tail})", "string")
    if name == "custom" and given.get("verbatim") and (alphabet.exact or "max_bytes" in given):
        limit = f", kw.atMostBytes({given['max_bytes']})" if "max_bytes" in given else ""
        return Expression(f"kw.verbatim({tail}{limit})", "string")
    if name in _INTEGERS:
        return Expression(f"kw.integers({_INTEGERS[name]}, {tail})", "bigint")
    match name:
        case "snowflake-text":
            return Expression(f"kw.verbatim({tail}, kw.belowTwoTo64)", "string")
        case "text":
            empty = ", true" if given.get("allow_empty") else ""
            return Expression(f"kw.escapedText({tail}{empty})", "string")
        case "day":
            return Expression(f"kw.days({string(given.get('separator', '-'))}, {tail})", "string")
        case "instant":
            return Expression(f"kw.instants({tail})", "Date")
        case "decimal":
            return Expression(f"kw.decimals({tail})", "string")
        case "truth":
            words = string(given.get("true", "true")), string(given.get("false", "false"))
            return Expression(f"kw.truth({', '.join(words)}, {tail})", "boolean")
        case "choice":
            values = [string(str(value)) for value in given["values"]]
            return Expression(f"kw.oneOf([{', '.join(values)}], {tail})", " | ".join(values))
        case "except":
            return _except(alphabet, tail)
    raise Unsupported(f"the alphabet {given.get('name', name)!r}, which only Python knows")


def _except(alphabet: AlphabetSchema, tail: str) -> Expression:
    base = _declared(msgspec.convert(alphabet.parameters["base"], AlphabetSchema))
    excluded = alphabet.parameters["exceptions"]
    words = ", ".join(string(each) for each in excluded if isinstance(each, str))
    patterns = ", ".join(regex(each["pattern"]) for each in excluded if not isinstance(each, str))
    return Expression(f"kw.except({base.code}, [{words}], [{patterns}], {tail})", base.type)
