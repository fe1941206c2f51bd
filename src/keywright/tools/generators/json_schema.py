"""The values of all keys as one JSON Schema."""

from __future__ import annotations

from typing import Any

from keywright.tools.generators.generator import Generation, Generator
from keywright.tools.generators.output import as_json
from keywright.tools.generators.values import key_value_schema, value_schema
from keywright.tools.schema.json_schema import DIALECT

__all__ = ["GENERATOR"]


def _generate(generation: Generation) -> str:
    schema = generation.schema
    properties: dict[str, Any] = {}
    for space in schema.keyspaces:
        for key in space.keys:
            name = key.name if key.name not in properties else f"{space.name}.{key.name}"
            properties[name] = {**key_value_schema(key), "x-template": space.lead + key.template.source}
        for channel in space.channels:
            name = channel.name if channel.name not in properties else f"{space.name}.{channel.name}"
            template = space.lead + channel.template.source
            properties[name] = {**value_schema(channel.message), "x-channel": template}
    return as_json(
        {
            "$schema": DIALECT,
            "title": f"Values of {schema.model}",
            "description": "One property for each class of keys and channels: its decoded value.",
            "type": "object",
            "properties": properties,
            "$defs": schema.definitions,
        }
    )


GENERATOR = Generator("json-schema", "the decoded values of all keys and channels as JSON Schema", _generate)
