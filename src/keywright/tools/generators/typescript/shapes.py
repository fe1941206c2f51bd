"""JSON Schema of values as TypeScript types, and as the shapes that the runtime checks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from keywright.tools.generators.typescript.notation import (
    Unsupported,
    comment,
    identifier,
    literal,
    member_name,
    string,
)

__all__ = ["Definitions"]

# For people, or not needed to check and write a value.
_LEFT_OUT = frozenset(
    ["title", "description", "x-names", "x-object", "x-computed", "x-keys", "uniqueItems", "format"]
)
_PRIMITIVES = {
    "null": "null",
    "boolean": "boolean",
    "integer": "kw.Integer",
    "number": "number",
    "string": "string",
}
_DEEPEST = 60


class Definitions:
    """The types of the values of one module, each written once, in the order in which they are first used."""

    def __init__(self, schemas: Mapping[str, Any]) -> None:
        self._schemas = schemas
        self._names: dict[str, str] = {}
        self.taken: set[str] = set()

    def type_of(self, schema: Any, form: str) -> str:
        """Return the type of a schema. Raise Unsupported if the form cannot be written from TypeScript."""
        for part in self._parts(schema):
            _check(part, form)
        return self._type(schema)

    def shape(self, schema: Any) -> str:
        """Return a schema as the runtime takes it."""
        return literal(_bare(schema))

    def lines(self) -> Iterator[str]:
        """Yield the types and the constant `definitions`."""
        if not self._names:
            return
        done: set[str] = set()
        while len(done) < len(self._names):
            for name in [each for each in self._names if each not in done]:
                done.add(name)
                yield self._declaration(name)
        yield "const definitions: kw.Shapes = {\n"
        for name in sorted(self._names):
            yield f"  {member_name(name)}: {literal(_bare(self._schemas[name]))},\n"
        yield "};\n"

    def _declaration(self, name: str) -> str:
        schema = self._schemas[name]
        lead = "\n" + comment(schema.get("description", ""))
        if _is_object(schema) and isinstance(schema.get("additionalProperties", True), bool):
            return f"{lead}export interface {self._names[name]} {{\n{self._members(schema)}}}\n"
        return f"{lead}export type {self._names[name]} = {self._type(schema)};\n"

    def _members(self, schema: Any) -> str:
        required = schema.get("required", ())
        return "".join(
            comment(member.get("description", ""), indent="  ")
            + f"  readonly {member_name(name)}{'' if name in required else '?'}: {self._type(member)};\n"
            for name, member in schema["properties"].items()
        )

    def _type(self, schema: Any) -> str:
        if "$ref" in schema:
            return self._reference(schema["$ref"].removeprefix("#/$defs/"))
        if "anyOf" in schema:
            return " | ".join(dict.fromkeys(self._type(arm) for arm in schema["anyOf"]))
        if "enum" in schema:
            return " | ".join(string(each) if isinstance(each, str) else str(each) for each in schema["enum"])
        kind = schema.get("type")
        if kind == "array":
            return self._array(schema)
        if kind == "object":
            return self._object(schema)
        return _PRIMITIVES.get(kind, "kw.Json")

    def _reference(self, name: str) -> str:
        if name not in self._names:
            self._names[name] = found = identifier(name, self.taken)
            self.taken.add(found)
        return self._names[name]

    def _array(self, schema: Any) -> str:
        items = schema.get("items", True)
        if "prefixItems" not in schema:
            return f"readonly ({self._type({} if items is True else items)})[]"
        least = schema.get("minItems", 0)
        parts = [
            f"{self._type(each)}" if place < least else f"({self._type(each)})?"
            for place, each in enumerate(schema["prefixItems"])
        ]
        if items is not False:
            parts.append(f"...({self._type({} if items is True else items)})[]")
        return f"readonly [{', '.join(parts)}]"

    def _object(self, schema: Any) -> str:
        if schema.get("properties"):
            members = self._members(schema).replace("\n", " ").strip()
            return f"{{ {members} }}"
        values = schema.get("additionalProperties", True)
        return f"{{ readonly [name: string]: {self._type({} if isinstance(values, bool) else values)} }}"

    def _parts(self, schema: Any, seen: frozenset[str] = frozenset(), depth: int = 0) -> Iterator[Any]:
        if not isinstance(schema, Mapping) or depth > _DEEPEST:
            return
        yield schema
        name = schema.get("$ref", "").removeprefix("#/$defs/")
        if name and name not in seen:
            yield from self._parts(self._schemas[name], seen | {name}, depth + 1)
        inside = [
            *schema.get("properties", {}).values(),
            *schema.get("anyOf", ()),
            *schema.get("prefixItems", ()),
        ]
        for each in [*inside, schema.get("items"), schema.get("additionalProperties")]:
            yield from self._parts(each, seen, depth + 1)


def _is_object(schema: Any) -> bool:
    return schema.get("type") == "object" and bool(schema.get("properties"))


def _check(schema: Any, form: str) -> None:
    """Raise Unsupported for what MessagePack stores in a type that TypeScript would not write alike."""
    if form != "msgpack":
        return
    if schema.get("format") == "date-time":
        raise Unsupported("a time inside MessagePack")
    if "contentEncoding" in schema:
        raise Unsupported("bytes inside MessagePack")
    if "x-keys" in schema:
        raise Unsupported("an object inside MessagePack whose keys are not text")


def _bare(schema: Any) -> Any:
    if isinstance(schema, Mapping):
        return {
            name: (
                {each: _bare(member) for each, member in value.items()}
                if name == "properties"
                else value
                if name == "default"
                else _bare(value)
            )
            for name, value in schema.items()
            if name not in _LEFT_OUT and (name != "default" or schema.get("default") is not ...)
        }
    return [_bare(each) for each in schema] if isinstance(schema, list) else schema
