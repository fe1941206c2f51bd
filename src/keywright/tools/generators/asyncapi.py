"""The streams and pub/sub channels of a model in AsyncAPI 3, as one program that sends and receives them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from keywright.errors import UsageError
from keywright.tools.docs.asyncapi import ChannelParameter, MessageChannel, ProgramChannels, asyncapi
from keywright.tools.generators.generator import Generation, Generator
from keywright.tools.generators.values import shapes_schema, value_schema
from keywright.tools.model import Model
from keywright.tools.schema.builder import schema_of
from keywright.tools.schema.document import (
    CodecSchema,
    KeyspaceSchema,
    Schema,
    TemplateSchema,
    VariableSchema,
)

__all__ = ["GENERATOR", "program_channels", "redis_channels"]

_TYPES = {"json": "application/json", "msgpack": "application/msgpack", "text": "text/plain"}
_BYTES = "application/octet-stream"


def redis_channels(schema: Schema) -> ProgramChannels:
    """Return the streams and channels of a schema. Raise UsageError if it has none."""
    channels = tuple(_renamed(each for space in schema.keyspaces for each in _channels(space)))
    if not channels:
        raise UsageError(f"{schema.model!r} has no streams and no channels to describe in AsyncAPI.")
    return ProgramChannels(
        title=schema.model,
        description=" ".join(space.doc for space in schema.keyspaces),
        version=schema.keyspaces[0].version or "1",
        exchange="",
        content_type=_BYTES,
        channels=channels,
        schemas={name: _moved(each) for name, each in schema.definitions.items()},
    )


def _channels(space: KeyspaceSchema) -> Iterator[MessageChannel]:
    for key in space.keys:
        if key.kind == "stream":
            groups = f" Consumer groups: {', '.join(key.groups)}." if key.groups else ""
            yield from _both(
                space, key.name, key.template, f"A stream. {key.doc}{groups}", shapes_schema(key.shapes), ""
            )
    for channel in space.channels:
        sort = "A sharded channel." if channel.sharded else "A channel."
        payload = value_schema(channel.message)
        text = f"{sort} {channel.doc}".rstrip()
        yield from _both(space, channel.name, channel.template, text, payload, _content_type(channel.message))


def _both(
    space: KeyspaceSchema, name: str, template: TemplateSchema, text: str, payload: Any, content_type: str
) -> Iterator[MessageChannel]:
    for action in ("send", "receive"):
        yield MessageChannel(
            name=name,
            address=_address(space.lead, template),
            description=text,
            action=action,
            message=name,
            payload=_moved(payload),
            parameters={each.name: _parameter(each) for each in template.variables},
            content_type=content_type,
        )


def _renamed(channels: Iterator[MessageChannel]) -> Iterator[MessageChannel]:
    """Yield channels under names of their own: namesakes of several keyspaces get a number."""
    places: dict[str, list[str]] = {}
    for channel in channels:
        known = places.setdefault(channel.name, [])
        if channel.address not in known:
            known.append(channel.address)
        number = known.index(channel.address)
        name = f"{channel.name}{number + 1}" if number else channel.name
        yield channel._replace(name=name, message=name)


def _address(lead: str, template: TemplateSchema) -> str:
    """Return the name with its variables in braces. Braces of the name itself are escaped as in URLs."""
    parts = [lead.replace("{", "%7B").replace("}", "%7D")]
    for part in template.parts:
        literal = part.text or part.base64 or ""
        text = literal.replace("{", "%7B").replace("}", "%7D")
        parts.append(f"{{{part.variable}}}" if part.variable else text)
    return "".join(parts)


def _parameter(variable: VariableSchema) -> ChannelParameter:
    values = variable.alphabet.parameters.get("values", ())
    return ChannelParameter(variable.alphabet.words, tuple(map(str, values)))


def _content_type(codec: CodecSchema) -> str:
    return _TYPES.get(codec.codec, _BYTES)


def _moved(schema: Any) -> Any:
    """Return a JSON schema whose references lead to the components of the document."""
    if isinstance(schema, dict):
        return {
            name: each.replace("#/$defs/", "#/components/schemas/") if name == "$ref" else _moved(each)
            for name, each in schema.items()
        }
    return [_moved(each) for each in schema] if isinstance(schema, list) else schema


def program_channels(model: Model) -> ProgramChannels:
    """Return the channels that a model describes for its programs, else its streams and channels in Redis."""
    return redis_channels(schema_of(model)) if model.channels is None else model.channels()


def _generate(generation: Generation) -> str:
    return asyncapi(program_channels(generation.model))


GENERATOR = Generator("asyncapi", "the streams and pub/sub channels of the model in AsyncAPI 3", _generate)
