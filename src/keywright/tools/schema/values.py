"""Types of values as JSON Schema (draft 2020-12), with one definition for each class.

What JSON Schema lacks stands in members that begin with `x-`: `x-object` is how an object is written,
`x-keys` is the type of the keys of an object, `x-names` are the names of an enum, `x-omit-defaults` leaves
members out that have their default, `x-computed` is a default that only the program can make.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import msgspec
from msgspec import inspect

from keywright.keyspace.codecs.models import REQUIRED, dumped, fields_of, is_model
from keywright.tools.describe.words import attribute_docs, own_doc
from keywright.tools.schema.stand_ins import Constant

__all__ = ["Definitions"]

_FORMATS: tuple[tuple[type[inspect.Type], str], ...] = (
    (inspect.DateTimeType, "date-time"),
    (inspect.DateType, "date"),
    (inspect.TimeType, "time"),
    (inspect.TimeDeltaType, "duration"),
    (inspect.UUIDType, "uuid"),
    (inspect.DecimalType, "decimal"),
)
_BOUNDS = {
    "gt": "exclusiveMinimum",
    "ge": "minimum",
    "lt": "exclusiveMaximum",
    "le": "maximum",
    "multiple_of": "multipleOf",
}
_LENGTHS = {"min_length": "minLength", "max_length": "maxLength", "pattern": "pattern"}
_ITEMS = {"min_length": "minItems", "max_length": "maxItems"}
_MEMBERS = {"min_length": "minProperties", "max_length": "maxProperties"}

_CLASSES = (
    inspect.EnumType,
    inspect.StructType,
    inspect.DataclassType,
    inspect.TypedDictType,
    inspect.NamedTupleType,
)
_Schema = dict[str, Any]


class Definitions:
    """The definitions of a schema file. Each class has one, by its name; namesakes get a number."""

    def __init__(self) -> None:
        self.schemas: dict[str, _Schema] = {}
        self._names: dict[Any, str] = {}

    def schema_of(self, hint: Any) -> _Schema:
        """Return the JSON Schema of a type; classes are referred to."""
        try:
            described = inspect.type_info(hint)
        except TypeError:
            return {}  # a type that only the program knows
        return self._schema(described)

    def _schema(self, node: inspect.Type) -> _Schema:
        match node:
            case inspect.Metadata(type=inner):
                return {**self._schema(inner), **_annotations(node)}
            case inspect.NoneType():
                return {"type": "null"}
            case inspect.BoolType():
                return {"type": "boolean"}
            case inspect.IntType():
                return {"type": "integer", **_limits(node, _BOUNDS)}
            case inspect.FloatType():
                return {"type": "number", **_limits(node, _BOUNDS)}
            case inspect.StrType():
                return {"type": "string", **_limits(node, _LENGTHS)}
            case inspect.BytesType() | inspect.ByteArrayType() | inspect.MemoryViewType():
                return {"type": "string", "contentEncoding": "base64"}
            case inspect.LiteralType(values=values):
                return {"enum": list(values)}
            case inspect.UnionType(types=types):
                return self._union(types)
            case inspect.DictType(key_type=key, value_type=value):
                return self._mapping(node, key, value)
            case inspect.TupleType(item_types=items):
                return {
                    "type": "array",
                    "prefixItems": [self._schema(each) for each in items],
                    "minItems": len(items),
                    "items": False,
                }
            case inspect.CollectionType(item_type=item):
                return self._collection(node, item)
        for kind, written in _FORMATS:
            if isinstance(node, kind):
                return {"type": "string", "format": written}
        return self._reference(node) if hasattr(node, "cls") else {}

    def _union(self, types: Iterable[inspect.Type]) -> _Schema:
        return {"anyOf": [self._schema(each) for each in types]}

    def _mapping(self, node: inspect.Type, key: inspect.Type, value: inspect.Type) -> _Schema:
        found: _Schema = {"type": "object", **_limits(node, _MEMBERS)}
        names = self._schema(key)
        if names not in ({}, {"type": "string"}):
            found["x-keys"] = names
        found["additionalProperties"] = self._schema(value)
        return found

    def _collection(self, node: inspect.Type, item: inspect.Type) -> _Schema:
        found: _Schema = {"type": "array", "items": self._schema(item), **_limits(node, _ITEMS)}
        if isinstance(node, inspect.SetType | inspect.FrozenSetType):
            found["uniqueItems"] = True
        return found

    def _reference(self, node: Any) -> _Schema:
        if not isinstance(node, _CLASSES) and not is_model(node.cls):
            return {}
        if node.cls not in self._names:
            name = _free(node.cls.__name__, self.schemas)
            self._names[node.cls] = name
            self.schemas[name] = {}
            self.schemas[name] = self._definition(node)
        return {"$ref": f"#/$defs/{self._names[node.cls]}"}

    def _definition(self, node: Any) -> _Schema:
        doc = own_doc(node.cls)
        named: _Schema = {"title": node.cls.__name__, **({"description": doc} if doc else {})}
        if isinstance(node, inspect.EnumType):
            members = list(node.cls)
            return {
                **named,
                "enum": [each.value for each in members],
                "x-names": [each.name for each in members],
            }
        if isinstance(node, inspect.NamedTupleType):
            return {**named, **self._array(node, [])}
        if isinstance(node, inspect.StructType) and node.array_like:
            return {**named, **self._array(node, [] if node.tag_field is None else [{"enum": [node.tag]}])}
        return {**named, **self._object(node)}

    def _array(self, node: Any, first: list[_Schema]) -> _Schema:
        docs = attribute_docs(node.cls)
        items = [
            {**self._member(each, docs), "title": getattr(each, "encode_name", each.name)}
            for each in node.fields
        ]
        return {
            "type": "array",
            "prefixItems": [*first, *items],
            "minItems": len(first) + sum(each.required for each in node.fields),
            "x-object": "array",
        }

    def _object(self, node: Any) -> _Schema:
        docs = attribute_docs(node.cls)
        properties: dict[str, _Schema] = {}
        required: list[str] = []
        tag = getattr(node, "tag_field", None)
        if tag is not None:
            properties[tag] = {"enum": [node.tag]}
            required.append(tag)
        for field in _fields(node):
            properties[field.encode_name] = self._member(field, docs)
            if field.required:
                required.append(field.encode_name)
        found: _Schema = {"type": "object", "properties": properties}
        if required:
            found["required"] = required
        if getattr(node, "forbid_unknown_fields", False):
            found["additionalProperties"] = False
        if isinstance(node, inspect.TypedDictType):
            found["x-object"] = "dict"
        elif is_model(node.cls) or getattr(node.cls, "__schema_object__", None) == "model":
            found["x-object"] = "model"
        if isinstance(node, inspect.StructType) and node.cls.__struct_config__.omit_defaults:
            found["x-omit-defaults"] = True
        return found

    def _member(self, field: inspect.Field, docs: Mapping[str, str]) -> _Schema:
        found = self._schema(field.type)
        doc = docs.get(field.name)
        if doc:
            found = {**found, "description": doc}
        if field.default is not msgspec.NODEFAULT:
            found = {**found, "default": _json(field.default)}
        elif field.default_factory is not msgspec.NODEFAULT:
            plain = _made(field.default_factory)
            found = {**found, **({"x-computed": True} if plain is None else {"default": plain})}
        return found


def _fields(node: Any) -> Iterable[inspect.Field]:
    if not is_model(node.cls):
        yield from node.fields
        return
    for field in fields_of(node.cls):
        try:
            described = inspect.type_info(field.hint)
        except TypeError:
            described = inspect.AnyType()
        if field.default is REQUIRED:
            yield inspect.Field(field.attribute, field.stored, described)
        elif callable(field.default):
            yield inspect.Field(
                field.attribute, field.stored, described, required=False, default_factory=field.default
            )
        else:
            yield inspect.Field(
                field.attribute, field.stored, described, required=False, default=field.default
            )


def _annotations(node: inspect.Metadata) -> _Schema:
    extra = dict(node.extra_json_schema or {})
    return {name: value for name, value in extra.items() if name != "examples" or value}


def _limits(node: Any, names: Mapping[str, str]) -> _Schema:
    return {
        written: getattr(node, name) for name, written in names.items() if getattr(node, name) is not None
    }


def _made(factory: Any) -> Any:
    """Return what a factory of defaults makes, as JSON; None if it is not the same each time."""
    if isinstance(factory, Constant):
        return factory.plain
    known = isinstance(factory, type) and (
        factory.__module__ == "builtins" or issubclass(factory, msgspec.Struct)
    )
    return _json(factory()) if known else None


def _json(value: Any) -> Any:
    """Return a default as the JSON that is written for it."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, datetime | date | time | timedelta | UUID | Decimal):
        return msgspec.to_builtins(value)
    try:
        return msgspec.json.decode(msgspec.json.encode(value, enc_hook=dumped))
    except (TypeError, NotImplementedError):
        return None


def _free(name: str, taken: Mapping[str, Any]) -> str:
    number, free = 2, name
    while free in taken:
        free, number = f"{name}{number}", number + 1
    return free
