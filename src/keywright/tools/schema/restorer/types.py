"""Types of Python from JSON Schema: structs, enums and the hints that the codecs take."""

from __future__ import annotations

import enum
import keyword
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal, NotRequired, TypedDict, Union
from uuid import UUID

import msgspec

from keywright.errors import UsageError
from keywright.tools.schema.document import ComputedSchema
from keywright.tools.schema.stand_ins import Constant, maker

__all__ = ["Types", "attribute_of"]

_FORMATS: dict[str, Any] = {
    "date-time": datetime,
    "date": date,
    "time": time,
    "duration": timedelta,
    "uuid": UUID,
    "decimal": Decimal,
}
_META = {
    "exclusiveMinimum": "gt",
    "minimum": "ge",
    "exclusiveMaximum": "lt",
    "maximum": "le",
    "multipleOf": "multiple_of",
    "minLength": "min_length",
    "maxLength": "max_length",
    "minItems": "min_length",
    "maxItems": "max_length",
    "minProperties": "min_length",
    "maxProperties": "max_length",
    "pattern": "pattern",
    "description": "description",
    "title": "title",
}
_PREFIX = "#/$defs/"
_DEEPEST = 100


class Types:
    """The types of one schema file, each made once. Definitions may refer to themselves."""

    def __init__(self, definitions: Mapping[str, Any]) -> None:
        self._definitions = definitions
        self._made: dict[str, Any] = {}
        self._pending: list[str] = []
        self._depth = 0

    def of(self, schema: Any) -> Any:
        """Return the type of a JSON Schema. Raise UsageError if it is malformed."""
        self._depth += 1
        try:
            if self._depth > _DEEPEST:
                raise UsageError(
                    f"a JSON Schema of the file is nested deeper than {_DEEPEST} levels. Flatten it."
                )
            return self._type(schema)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise UsageError(
                f"the schema file has a JSON Schema that is not understood ({type(error).__name__}: {error})."
            ) from error
        finally:
            self._depth -= 1

    def _type(self, schema: Mapping[str, Any]) -> Any:
        if "$ref" in schema:
            return self._referred(schema["$ref"].removeprefix(_PREFIX))
        if "anyOf" in schema:
            return Union[tuple(self.of(each) for each in schema["anyOf"])]  # noqa: UP007  # at run time
        if "enum" in schema:
            return Literal[tuple(schema["enum"])]
        base = self._plain(schema)
        fixed = "prefixItems" in schema
        metas = {
            _META[name]: value
            for name, value in schema.items()
            if name in _META and not (fixed and name == "minItems")
        }
        return Annotated[base, msgspec.Meta(**metas)] if metas and base is not Any else base

    def _plain(self, schema: Mapping[str, Any]) -> Any:
        match schema.get("type"):
            case "null":
                return None
            case "boolean":
                return bool
            case "integer":
                return int
            case "number":
                return float
            case "string":
                return self._text(schema)
            case "array":
                return self._array(schema)
            case "object":
                return dict[self.of(schema.get("x-keys", {"type": "string"})), self._values(schema)]  # type: ignore[misc]  # at run time
        return Any

    def _values(self, schema: Mapping[str, Any]) -> Any:
        return self.of(schema.get("additionalProperties", {}))

    def _text(self, schema: Mapping[str, Any]) -> Any:
        if schema.get("contentEncoding") == "base64":
            return bytes
        return _FORMATS.get(schema.get("format", ""), str)

    def _array(self, schema: Mapping[str, Any]) -> Any:
        if "prefixItems" in schema:
            return tuple[tuple(self.of(each) for each in schema["prefixItems"])]  # type: ignore[misc]  # at run time
        item: Any = self.of(schema.get("items", {}))
        collection: Any = set if schema.get("uniqueItems") else list
        return collection[item]

    def _referred(self, name: str) -> Any:
        if name in self._made:
            return self._made[name]
        if name in self._pending:
            return f"_type_{self._pending.index(name)}"  # resolved in the attributes of the class
        if name not in self._definitions:
            raise UsageError(f"the schema file refers to {name!r}, which it does not define.")
        self._pending.append(name)
        made = self._defined(name, self._definitions[name])
        self._pending.pop()
        self._made[name] = made
        return made

    def _defined(self, name: str, schema: Mapping[str, Any]) -> Any:
        title = schema.get("title", name)
        if "enum" in schema:
            made = _enum(title, schema)
        elif schema.get("type") == "array":
            made = self._struct_as_array(title, schema)
        elif schema.get("x-object") == "dict":
            made = self._typed_dict(title, schema)
        else:
            made = self._struct(title, schema)
        made.__doc__ = schema.get("description")
        for place, pending in enumerate(self._pending):
            if pending == name and not isinstance(made, enum.EnumType):
                setattr(made, f"_type_{place}", made)
        return made

    def _struct(self, title: str, schema: Mapping[str, Any]) -> Any:
        properties, required = dict(schema["properties"]), schema.get("required", ())
        tag = _tag(properties, required)
        tagged = {} if tag is None else {"tag_field": tag, "tag": properties.pop(tag)["enum"][0]}
        made = self._made_of(
            title,
            [(name, member, name in required) for name, member in properties.items()],
            **tagged,
            forbid_unknown_fields=schema.get("additionalProperties") is False,
            omit_defaults=bool(schema.get("x-omit-defaults")),
        )
        if "x-object" in schema:
            made.__schema_object__ = schema["x-object"]
        return made

    def _struct_as_array(self, title: str, schema: Mapping[str, Any]) -> Any:
        items = list(schema["prefixItems"])
        tagged = {}
        if items and set(items[0]) == {"enum"}:
            tagged = {"tag": items.pop(0)["enum"][0]}
        required = schema["minItems"] - bool(tagged)
        members = [
            (
                each["title"],
                {name: value for name, value in each.items() if name != "title"},
                place < required,
            )
            for place, each in enumerate(items)
        ]
        return self._made_of(title, members, array_like=True, **tagged)

    def _made_of(self, title: str, members: list[tuple[str, Any, bool]], **options: Any) -> Any:
        fields: list[Any] = []
        renamed: dict[str, str] = {}
        docs: dict[str, str] = {}
        for name, schema, required in members:
            attribute = attribute_of(name, set(renamed))
            renamed[attribute] = name
            bare = {key: value for key, value in schema.items() if key not in ("description", "default")}
            if "description" in schema:
                docs[attribute] = schema["description"]
            hint = self.of(bare)
            fields.append((attribute, hint) if required else (attribute, hint, _default(hint, schema)))
        options["rename"] = {attribute: name for attribute, name in renamed.items() if attribute != name}
        made = msgspec.defstruct(
            title,
            fields,
            module=__name__,
            namespace={"__doc__": None},
            kw_only=not options.get("array_like"),
            **options,
        )
        made.__attribute_docs__ = docs  # type: ignore[attr-defined]  # read by attribute_docs
        return made

    def _typed_dict(self, title: str, schema: Mapping[str, Any]) -> Any:
        required = schema.get("required", ())
        members = {}
        for name, each in schema["properties"].items():
            hint = self.of(each)
            members[name] = hint if name in required else NotRequired[hint]
        return TypedDict(title, members)  # type: ignore[operator]  # made at run time


def attribute_of(name: str, taken: set[str] | Mapping[str, Any]) -> str:
    """Return an attribute for a stored name."""
    usable = name.isidentifier() and not keyword.iskeyword(name) and not name.startswith("_")
    attribute = name if usable else f"member_{len(taken)}"
    while attribute in taken:
        attribute += "_"
    return attribute


def _tag(properties: Mapping[str, Any], required: Any) -> str | None:
    """Return the member that a tagged struct begins with."""
    first = next(iter(properties), None)
    if first is None or first not in required or set(properties[first]) != {"enum"}:
        return None
    return first if len(properties[first]["enum"]) == 1 else None


def _enum(title: str, schema: Mapping[str, Any]) -> Any:
    values = schema["enum"]
    names = schema.get("x-names") or [f"VALUE_{number}" for number in range(len(values))]
    return enum.Enum(title, dict(zip(names, values, strict=True)))


def _default(hint: Any, schema: Mapping[str, Any]) -> Any:
    if schema.get("x-computed"):
        return msgspec.field(default_factory=maker(ComputedSchema("computed")))
    plain = schema.get("default")
    if plain is None:
        return None
    try:
        value = msgspec.json.decode(msgspec.json.encode(plain), type=hint)
    except Exception:  # noqa: BLE001  # a hint that is not complete yet: the default stays as JSON
        value = plain
    if isinstance(value, list | dict | set) and not value:
        return msgspec.field(default_factory=type(value))
    if isinstance(value, list | dict | set | msgspec.Struct):
        return msgspec.field(default_factory=Constant(value, plain))
    return value
