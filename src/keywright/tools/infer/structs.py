"""Structs for documents: the types of members, which are optional, and the classes that declare them."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from keywright.tools.infer.segments import looks_of

__all__ = ["Field", "Structs", "attribute_of", "class_name_of", "is_fixed_name"]

DEEPEST = 3
MOST_MEMBERS = 60
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,60}")
_TYPES = frozenset(("bool", "bytes", "date", "datetime", "dict", "float", "int", "list", "msgspec", "str"))
_SCALARS = {str: "str", int: "int", float: "float", bool: "bool", bytes: "bytes"}


class Field(NamedTuple):
    """A member of a struct: its stored name, its type, whether it may be missing, and what is doubtful."""

    stored: str
    hint: str
    optional: bool
    doubt: str = ""


class Structs:
    """The structs of one module, each under a name of its own."""

    def __init__(self, reserved: Iterable[str]) -> None:
        self.reserved = frozenset(reserved)
        self.taken = set(self.reserved)
        self.sources: dict[str, list[str]] = {}
        self.uses_any = False

    def class_name(self, label: str) -> str:
        """Return a class name for a label that no other class of the module has."""
        base = class_name_of(label) or "Text"
        if base in self.reserved:
            base += "Key"
        name, number = base, 1
        while name in self.taken:
            number += 1
            name = f"{base}{number}"
        self.taken.add(name)
        return name

    def declare(self, label: str, fields: Sequence[Field], doc: str) -> str:
        """Write a struct. Return its name."""
        name = self.class_name(label)
        lines = [f"class {name}(msgspec.Struct, kw_only=True):", f'    """{doc}"""', ""]
        used: set[str] = set()
        for field in fields:
            if field.doubt:
                lines.append(f"    # guess: {field.doubt}")
            attribute = _unused(attribute_of(field.stored), used)
            optional = field.optional and not field.hint.endswith("| None") and field.hint != "Any"
            hint = f"{field.hint} | None" if optional else field.hint
            default = " = None" if field.optional else ""
            if attribute != field.stored:
                inner = f"default=None, name={_quoted(field.stored)}" if field.optional else ""
                default = f" = msgspec.field({inner or f'name={_quoted(field.stored)}'})"
            lines.append(f"    {attribute}: {hint}{default}")
        self.sources[name] = lines
        return name

    def hint(self, documents: Sequence[Any], label: str, depth: int = 0) -> str:
        """Return the type of decoded documents. Objects with fixed members get a struct."""
        kinds = {type(each) for each in documents if each is not None}
        suffix = " | None" if any(each is None for each in documents) else ""
        if kinds <= {int, float} and kinds:
            return ("float" if float in kinds else "int") + suffix
        if len(kinds) != 1:
            return self._any()
        kind = kinds.pop()
        present = [each for each in documents if each is not None]
        if kind in _SCALARS:
            return _SCALARS[kind] + suffix
        if kind is list:
            items = [item for each in present for item in each[:50]]
            inner = self.hint(items, f"{label} item", depth + 1) if items else self._any()
            return f"list[{inner}]{suffix}"
        return (self._object(present, label, depth) if kind is dict else self._any()) + suffix

    def _object(self, documents: Sequence[dict[Any, Any]], label: str, depth: int) -> str:
        names = dict.fromkeys(name for each in documents for name in each)
        if not names or depth >= DEEPEST or not all(isinstance(name, str) for name in names):
            return f"dict[{'str' if all(isinstance(n, str) for n in names) else self._any()}, {self._any()}]"
        presence = sum(map(len, documents)) / (len(names) * len(documents))
        if len(names) > MOST_MEMBERS or presence < 0.3 or not all(map(is_fixed_name, names)):
            values = [value for each in documents for value in each.values()]
            return f"dict[str, {self.hint(values[:500], f'{label} value', depth + 1)}]"
        fields = []
        for name in sorted(names):
            values = [each[name] for each in documents if name in each]
            hint = self.hint(values, f"{label} {name}", depth + 1)
            fields.append(Field(name, hint, optional=len(values) < len(documents)))
        return self.declare(f"{label} details" if not depth else label, fields, "Members as they were seen.")

    def _any(self) -> str:
        self.uses_any = True
        return "Any"


def is_fixed_name(name: str) -> bool:
    """Return whether a member name is a word of a program, not an id."""
    return _IDENTIFIER.fullmatch(name) is not None and isinstance(looks_of(name.encode())[0], bytes)


def class_name_of(label: str) -> str:
    """Return words as a class name: `user posts` is UserPosts. It is ASCII."""
    words = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+", label)
    name = "".join(word[:1].upper() + word[1:].lower() for word in words)[:60]
    return f"Key{name}" if name[:1].isdigit() else name


def attribute_of(text: str) -> str:
    """Return a text as the name of an attribute: in snake case, ASCII, not a keyword."""
    words = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+", text)
    name = "_".join(word.lower() for word in words)[:60] or "member"
    if name[0].isdigit():
        name = f"n{name}"
    return f"{name}_" if name in _TYPES or keyword.iskeyword(name) or keyword.issoftkeyword(name) else name


def _unused(name: str, used: set[str]) -> str:
    found, number = name, 1
    while found in used:
        number += 1
        found = f"{name}_{number}"
    used.add(found)
    return found


def _quoted(text: str) -> str:
    return ascii(text)
