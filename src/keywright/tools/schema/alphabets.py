"""Alphabets and templates as schema files have them."""

from __future__ import annotations

import base64
import dataclasses
from collections.abc import Iterable, Sequence
from enum import Enum
from itertools import groupby
from typing import Any

import msgspec

from keywright.keyspace import alphabets as known
from keywright.keyspace.alphabets import Alphabet, Derived, Verbatim
from keywright.keyspace.template import Part, Template, encoded
from keywright.tools.describe.words import alphabet_words, own_doc
from keywright.tools.schema.document import (
    AlphabetSchema,
    ComputedSchema,
    PartSchema,
    TemplateSchema,
    VariableSchema,
)
from keywright.tools.schema.expressions import anchored, escaped, expression, longest
from keywright.tools.schema.stand_ins import ForeignAlphabet

__all__ = ["ALPHABETS", "alphabet_schema", "computed", "template_schema"]

ALPHABETS: dict[str, type[Alphabet[Any]]] = {
    "base64url": known.Base64Url,
    "bytes": known.Bytes,
    "choice": known.Choice,
    "day": known.Day,
    "decimal": known.PlainDecimal,
    "email": known.Email,
    "except": known.Except,
    "hex": known.Hex,
    "instant": known.Instant,
    "one-of": known.OneOf,
    "pattern": known.Pattern,
    "plain": known.Plain,
    "prefixed": known.Prefixed,
    "rest": known.Rest,
    "segment": known.Segment,
    "signed64": known.Signed64,
    "snowflake": known.Snowflake,
    "snowflake-text": known.SnowflakeText,
    "tag-text": known.TagText,
    "text": known.Text,
    "truth": known.Truth,
    "ulid": known.Ulid,
    "unsigned64": known.Unsigned64,
    "uuid": known.Uuid,
    "uuid-text": known.UuidText,
}
"""The alphabets of schema files by their names."""
_NAMES = {kind: name for name, kind in ALPHABETS.items()}
_TYPES = {
    "str": "text",
    "int": "int",
    "bytes": "bytes",
    "UUID": "uuid",
    "date": "date",
    "datetime": "datetime",
    "Decimal": "decimal",
    "bool": "bool",
}


def computed(function: Any) -> ComputedSchema:
    """Return the name and docstring of a function of the declaration."""
    return ComputedSchema(getattr(function, "__name__", type(function).__name__), own_doc(function))


def alphabet_schema(alphabet: Alphabet[Any]) -> AlphabetSchema:
    """Return an alphabet with its parameters; one that is not of the library is `custom`."""
    if isinstance(alphabet, ForeignAlphabet):
        return alphabet.schema
    name = _NAMES.get(type(alphabet), "custom")
    parameters = _parameters(alphabet) if name != "custom" else _own(alphabet)
    as_bytes = not alphabet.is_text
    return AlphabetSchema(
        alphabet=name,
        type=_value_type(alphabet),
        pattern=anchored(expression(alphabet.language, as_bytes=as_bytes)),
        words=alphabet_words(alphabet),
        exact=_exact(alphabet, name),
        max_length=longest(alphabet.language),
        parameters=parameters,
    )


def _value_type(alphabet: Alphabet[Any]) -> str:
    kind = alphabet.python_type
    return "enum" if issubclass(kind, Enum) else _TYPES.get(kind.__name__, "text")


def _exact(alphabet: Alphabet[Any], name: str) -> bool:
    """Return whether the pattern decides: that of Python does not express exceptions, and ours does."""
    if name == "except":
        inside = [alphabet.base, *(each for each in alphabet.exceptions if not isinstance(each, str))]  # type: ignore[attr-defined]  # it is an Except
        return all(_exact(each, _NAMES.get(type(each), "custom")) for each in inside)
    return alphabet.pattern_decides


def _own(alphabet: Alphabet[Any]) -> dict[str, Any]:
    """Return what other languages may know of an alphabet of a program."""
    found: dict[str, Any] = {"name": type(alphabet).__name__}
    if isinstance(alphabet, Verbatim):
        found["verbatim"] = True
        most = getattr(alphabet, "max_bytes", None)
        found |= {} if most is None else {"max_bytes": most}
    return found


def _parameters(alphabet: Any) -> dict[str, Any]:
    """Return the parameters that differ from their defaults."""
    found = {}
    for field in dataclasses.fields(alphabet):
        value = getattr(alphabet, field.name)
        if field.default is dataclasses.MISSING or value != field.default:
            found.update(_parameter(field.name, value))
    return found


def _parameter(name: str, value: Any) -> dict[str, Any]:
    if isinstance(value, tuple) and value and isinstance(value[0], Enum):
        return {
            name: [each.value for each in value],
            "enum": type(value[0]).__name__,
            "names": [each.name for each in value],
        }
    if isinstance(value, tuple):
        return {name: [_plain(each) for each in value]}
    return {name: _plain(value)}


def _plain(value: Any) -> Any:
    if isinstance(value, Alphabet):
        return msgspec.to_builtins(alphabet_schema(value))
    return value.decode("ascii") if isinstance(value, bytes) else value


def template_schema(
    template: Template, order: Sequence[str], derived: dict[str, Derived] | None = None
) -> TemplateSchema:
    """Return a template with its variables, in the order of the constructor."""
    return TemplateSchema(
        source=template.source,
        parts=tuple(map(_part, template.marked_parts)),
        pattern=_name_pattern(template),
        variables=tuple(_variable(template, name, (derived or {}).get(name)) for name in order),
        several_divisions=template.backtracks
        and not all(each.pattern_decides for each in template.alphabets.values()),
        hash_tag=None if template.marked_tag is None else tuple(map(_part, template.marked_tag)),
        encoding="utf-8" if template.is_text else "bytes",
    )


def _variable(template: Template, name: str, derived: Derived | None) -> VariableSchema:
    return VariableSchema(
        name,
        alphabet_schema(template.alphabets[name]),
        optional=name in template.optional,
        derived_from=None if derived is None else derived.source,
        derived_by=None if derived is None else computed(derived.by),
    )


def _part(part: Part) -> PartSchema:
    if part.is_variable:
        return PartSchema(variable=part.text, segment=part.group)
    data = encoded(part.text)
    try:
        return PartSchema(text=data.decode(), segment=part.group)
    except UnicodeDecodeError:
        return PartSchema(base64=base64.b64encode(data).decode(), segment=part.group)


def _name_pattern(template: Template) -> str:
    pattern = ""
    for group, together in groupby(template.marked_parts, key=lambda part: part.group):
        inner = "".join(_part_pattern(template, part) for part in together)
        pattern += f"(?:{inner})?" if group else inner
    return f"^{pattern}$"


def _part_pattern(template: Template, part: Part) -> str:
    if part.is_variable:
        return f"({_inside(template.alphabets[part.text], as_bytes=not template.is_text)})"
    return escaped(part.text if template.is_text else encoded(part.text).decode("latin-1"))


def _inside(alphabet: Alphabet[Any], *, as_bytes: bool) -> str:
    """Return the expression of an alphabet inside a name: exceptions, which look at an end, are left out."""
    base = getattr(alphabet, "base", None)
    if isinstance(base, Alphabet):
        return _inside(base, as_bytes=as_bytes)
    inner: Iterable[Alphabet[Any]] | None = getattr(alphabet, "alphabets", None)
    if inner is not None:
        return "|".join(f"(?:{_inside(each, as_bytes=as_bytes)})" for each in inner)
    return expression(alphabet.language, as_bytes=as_bytes)
