"""Decoded values of any codec as JSON Schema, for documents that know nothing of codecs."""

from __future__ import annotations

from typing import Any

from keywright.tools.schema.document import AlphabetSchema, CodecSchema, KeySchema, ShapeSchema

__all__ = ["key_value_schema", "shapes_schema", "value_schema"]

_PLAIN: dict[str, dict[str, Any]] = {
    "text": {"type": "string"},
    "bytes": {"type": "string", "contentEncoding": "base64"},
    "int64": {"type": "integer", "minimum": -(2**63), "maximum": 2**63 - 1},
    "uint64": {"type": "integer", "minimum": 0, "maximum": 2**64 - 1},
    "float": {"type": "number"},
    "boolean": {"type": "boolean"},
    "flag": {"type": "boolean"},
    "rfc3339": {"type": "string", "format": "date-time"},
    "epoch-ms": {"type": "string", "format": "date-time"},
    "epoch-seconds": {"type": "string", "format": "date-time"},
    "epoch-float": {"type": "string", "format": "date-time"},
    "duration": {"type": "string", "format": "duration"},
    "pickled": {"type": "string", "contentEncoding": "base64"},
    "bitmap": {"type": "string", "contentEncoding": "base64"},
}
_AROUND = ("compressed", "sealed", "secret")
_IDS: dict[str, dict[str, Any]] = {
    "int": {"type": "integer"},
    "bool": {"type": "boolean"},
    "bytes": {"type": "string", "contentEncoding": "base64"},
    "uuid": {"type": "string", "format": "uuid"},
    "date": {"type": "string", "format": "date"},
    "datetime": {"type": "string", "format": "date-time"},
}
_NUMBERS = {"signed64": "int64", "unsigned64": "uint64", "snowflake": "uint64"}


def value_schema(codec: CodecSchema) -> dict[str, Any]:
    """Return the JSON Schema of the values of a codec. `x-stored` says how they are stored."""
    found = _value(codec)
    return found if codec.codec == "json" else {**found, "x-stored": codec.words}


def _value(codec: CodecSchema) -> dict[str, Any]:
    match codec.codec:
        case "json" | "msgpack":
            return dict(codec.schema or {})
        case "enum" | "literal":
            return {"enum": list(codec.values)}
        case "id" if codec.alphabet is not None:
            return _identity(codec.alphabet)
        case "bits":
            high = (1 << (codec.width or 1) - codec.signed) - 1
            return {"type": "integer", "minimum": -high - 1 if codec.signed else 0, "maximum": high}
        case "first-of":
            return {"anyOf": [_value(each) for each in codec.codecs]}
        case "empty-as-none" if codec.inner is not None:
            return {"anyOf": [_value(codec.inner), {"type": "null"}]}
        case around if around in _AROUND and codec.inner is not None:
            return _value(codec.inner)
        case "custom" if codec.inner is not None:
            return _value(codec.inner)
        case "custom" if codec.schema is not None:
            return dict(codec.schema)
    return dict(_PLAIN.get(codec.codec, {}))


def _identity(alphabet: AlphabetSchema) -> dict[str, Any]:
    if alphabet.alphabet in _NUMBERS:
        return dict(_PLAIN[_NUMBERS[alphabet.alphabet]])
    if alphabet.type in _IDS:
        return dict(_IDS[alphabet.type])
    return {"type": "string", "pattern": alphabet.pattern}


def shapes_schema(shapes: tuple[ShapeSchema, ...]) -> dict[str, Any]:
    """Return the JSON Schema of members, as one object or as the alternatives."""
    found = [_shape(each) for each in shapes]
    return found[0] if len(found) == 1 else {"anyOf": found}


def _shape(shape: ShapeSchema) -> dict[str, Any]:
    properties = {}
    for member in shape.members:
        described = value_schema(member.codec)
        properties[member.name] = {**described, "description": member.doc} if member.doc else described
    found: dict[str, Any] = {
        "title": shape.name,
        **({"description": shape.doc} if shape.doc else {}),
        "type": "object",
        "properties": properties,
    }
    required = [member.name for member in shape.members if member.required]
    if required:
        found["required"] = required
    if shape.others is not None:
        found["additionalProperties"] = value_schema(shape.others.value)
    return found


def key_value_schema(key: KeySchema) -> dict[str, Any]:
    """Return the JSON Schema of the whole value of a key."""
    item = {} if key.value is None else value_schema(key.value)
    content: dict[str, Any]
    match key.kind:
        case "record" | "bit fields":
            content = shapes_schema(key.shapes)
        case "stream":
            content = {"type": "array", "items": shapes_schema(key.shapes)}
        case "map":
            content = {"type": "object", "additionalProperties": item}
            names = {} if key.field is None else value_schema(key.field)
            if names.get("type") == "string" and "pattern" in names:
                content["propertyNames"] = names
        case "set" | "hyperloglog" | "geo":
            content = {"type": "array", "items": item, "uniqueItems": True}
        case "list":
            content = {"type": "array", "items": item}
        case "sorted set" | "due queue":
            pair = {"member": item, "score": {"type": "number"}}
            content = {
                "type": "array",
                "items": {"type": "object", "properties": pair, "required": list(pair)},
            }
        case _:
            content = item
    doc = {"description": key.doc} if key.doc else {}
    return {"title": key.name, **doc, **content} if "$ref" not in content else {**content, **doc}
