"""Structs for documents: the types of members, which are optional, and the classes that declare them."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Sequence
from datetime import date, datetime
from typing import Any, NamedTuple
from uuid import UUID

import msgspec

from keywright.tools.infer.words import Words

__all__ = ["Field", "StructMember", "Structs", "attribute_of", "class_name_of", "quoted"]

DEEPEST = 3
MOST_MEMBERS = 60
MOST_VALUES = 500
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,60}")
_TYPES = frozenset(("bool", "bytes", "date", "datetime", "dict", "float", "int", "list", "msgspec", "str"))
_TEXTS = {"datetime": datetime, "date": date, "UUID": UUID}
"""What texts of JSON may be, if writing it gives the same text, but for zeros at the end of a fraction."""
_FRACTION = re.compile(r"(?<=\.\d{3})0+(?=Z?$)")
_SCALARS = {str: "str", int: "int", float: "float", bool: "bool", bytes: "bytes"}


class Field(NamedTuple):
    """A member of a struct: its stored name, its type, whether it may be missing, and what is doubtful."""

    stored: str
    hint: str
    optional: bool
    doubt: str = ""
    doc: str = ""
    """The text of its docstring, as source."""


class StructMember(NamedTuple):
    """A member as a struct declares it."""

    stored: str
    attribute: str
    hint: str
    optional: bool


class Structs:
    """The structs of one module, each under a name of its own."""

    def __init__(self, reserved: Iterable[str], words: Words | None = None) -> None:
        self.words = words or Words()
        self.reserved = frozenset(reserved)
        self.taken = set(self.reserved)
        self.sources: dict[str, list[str]] = {}
        self.members: dict[str, list[StructMember]] = {}
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

    def declare(self, label: str, fields: Sequence[Field], doc: str, others: str = "") -> str:
        """Write a struct. Return its name. `others` is the type of fields that it does not name."""
        name = self.class_name(label)
        lines = [f"class {name}(msgspec.Struct, kw_only=True):", f'    """{doc}"""', ""]
        used: set[str] = set()
        members = self.members.setdefault(name, [])
        for field in fields:
            if field.doubt:
                lines.append(f"    # guess: {field.doubt}")
            attribute = _unused(attribute_of(field.stored), used)
            optional = field.optional and not field.hint.endswith("| None") and field.hint != "Any"
            hint = f"{field.hint} | None" if optional else field.hint
            default = " = None" if field.optional else ""
            if attribute != field.stored:
                inner = f"default=None, name={quoted(field.stored)}" if field.optional else ""
                default = f" = msgspec.field({inner or f'name={quoted(field.stored)}'})"
            lines.append(f"    {attribute}: {hint}{default}")
            members.append(StructMember(field.stored, attribute, hint, field.optional))
            if field.doc:
                lines.append(f'    """{field.doc}"""')
        if others:
            attribute = _unused("others", used)
            lines.append(f"    {attribute}: Annotated[dict[str, {others}], OtherFields] = {{}}")
        self.sources[name] = lines
        return name

    def hint(self, documents: Sequence[Any], label: str, depth: int = 0, *, is_json: bool = False) -> str:
        """Return the type of decoded documents. Objects with fixed members get a struct."""
        kinds = {type(each) for each in documents if each is not None}
        suffix = " | None" if any(each is None for each in documents) else ""
        if kinds <= {int, float} and kinds:
            return ("float" if float in kinds else "int") + suffix
        if len(kinds) != 1:
            return self._any()
        kind = kinds.pop()
        present = [each for each in documents if each is not None]
        if kind is str and is_json:
            return _text_type(present) + suffix
        if kind in _SCALARS:
            return _SCALARS[kind] + suffix
        if kind is list and depth > DEEPEST:
            return f"list[{self._any()}]{suffix}"
        if kind is list:
            items = [item for each in present for item in each[:50]]
            inner = self.hint(items, f"{label} item", depth + 1, is_json=is_json) if items else self._any()
            return f"list[{inner}]{suffix}"
        return (
            self._object(present, label, depth, is_json=is_json) if kind is dict else self._any()
        ) + suffix

    def _object(self, documents: Sequence[dict[Any, Any]], label: str, depth: int, *, is_json: bool) -> str:
        names = dict.fromkeys(name for each in documents for name in each)
        kinds = {type(name) for name in names}
        if not names or (kinds == {str} and depth >= DEEPEST):
            return f"dict[str, {self._any()}]"
        if kinds != {str}:
            if len(kinds) > 1 or depth >= DEEPEST or not kinds <= {int, bytes}:
                return self._any()  # what the keys of such a map are cannot be declared
            values = [value for each in documents for value in each.values()][:MOST_VALUES]
            return f"dict[{_SCALARS[kinds.pop()]}, {self.hint(values, f'{label} value', depth + 1)}]"
        shown = self.words.members(documents, lambda value: type(value).__name__)
        if len(names) > MOST_MEMBERS or len(shown) < len(names):
            values = [value for each in documents for value in each.values()]
            return f"dict[str, {self.hint(values[:MOST_VALUES], f'{label} value', depth + 1)}]"
        fields = []
        for name in sorted(names):
            values = [each[name] for each in documents if name in each]
            hint = self.hint(values, f"{label} {name}", depth + 1, is_json=is_json)
            fields.append(Field(name, hint, optional=len(values) < len(documents)))
        return self.declare(f"{label} details" if not depth else label, fields, "Members as they were seen.")

    def _any(self) -> str:
        self.uses_any = True
        return "Any"


def _text_type(texts: Sequence[str]) -> str:
    """Return the type of texts of JSON documents."""
    return next(
        (name for name, kind in _TEXTS.items() if all(_is_written_so(text, kind) for text in texts)), "str"
    )


def _is_written_so(text: str, kind: type) -> bool:
    try:
        written = msgspec.to_builtins(msgspec.convert(text, kind))
    except msgspec.ValidationError:
        return False
    return _FRACTION.sub("", text) == _FRACTION.sub("", written)


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


def quoted(text: str) -> str:
    """Return a text as a literal, escaped to ASCII."""
    literal = ascii(text)
    return f'"{text}"' if literal[1:-1] == text and '"' not in text else literal
