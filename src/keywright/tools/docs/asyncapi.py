"""The message channels of a program as an AsyncAPI 3 document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

__all__ = ["ChannelParameter", "MessageChannel", "ProgramChannels", "asyncapi"]

VERSION = "3.0.0"


class ChannelParameter(NamedTuple):
    """A variable of an address; `values` if they are known."""

    description: str
    values: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()


class MessageChannel(NamedTuple):
    """Messages of one type that the described program sends or receives."""

    name: str
    address: str
    description: str
    action: str
    """`send` or `receive`."""
    message: str
    payload: dict[str, Any]
    """A JSON schema."""
    parameters: dict[str, ChannelParameter]
    example: Any = None
    content_type: str = ""
    """That of the messages, where it is not that of the program."""


class ProgramChannels(NamedTuple):
    """The channels of one program, and the AMQP exchange they are bound to; without one they are Redis'."""

    title: str
    description: str
    version: str
    exchange: str
    content_type: str
    channels: tuple[MessageChannel, ...]
    schemas: Mapping[str, Any] = {}
    """The JSON schemas that payloads refer to, as `#/components/schemas/Name`."""


def asyncapi(described: ProgramChannels) -> str:
    """Return the document as JSON, which every AsyncAPI tool reads."""
    document = {
        "asyncapi": VERSION,
        "info": {
            "title": described.title,
            "version": described.version,
            "description": described.description,
        },
        "defaultContentType": described.content_type,
        "channels": {each.name: _channel(each, described.exchange) for each in described.channels},
        "operations": {f"{each.action}{each.message}": _operation(each) for each in described.channels},
        "components": {
            "messages": {each.message: _message(each) for each in described.channels},
            **({"schemas": dict(described.schemas)} if described.schemas else {}),
        },
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"


def _channel(channel: MessageChannel, exchange: str) -> dict[str, Any]:
    described: dict[str, Any] = {
        "address": channel.address,
        "description": channel.description,
        "messages": {channel.message: {"$ref": f"#/components/messages/{channel.message}"}},
        "bindings": _bindings(exchange),
    }
    if channel.parameters:
        described["parameters"] = {name: _parameter(each) for name, each in channel.parameters.items()}
    return described


def _bindings(exchange: str) -> dict[str, Any]:
    if not exchange:
        return {"redis": {}}
    declared = {"name": exchange, "type": "direct", "durable": True, "autoDelete": False}
    return {"amqp": {"is": "routingKey", "exchange": declared}}


def _parameter(parameter: ChannelParameter) -> dict[str, Any]:
    described: dict[str, Any] = {"description": parameter.description}
    if parameter.values:
        described["enum"] = list(parameter.values)
    if parameter.examples:
        described["examples"] = list(parameter.examples)
    return described


def _operation(channel: MessageChannel) -> dict[str, Any]:
    place = f"#/channels/{channel.name}"
    return {
        "action": channel.action,
        "channel": {"$ref": place},
        "messages": [{"$ref": f"{place}/messages/{channel.message}"}],
    }


def _message(channel: MessageChannel) -> dict[str, Any]:
    described: dict[str, Any] = {
        "name": channel.message,
        "summary": channel.description,
        "payload": channel.payload,
    }
    if channel.content_type:
        described["contentType"] = channel.content_type
    if channel.example is not None:
        described["examples"] = [{"name": "example", "payload": channel.example}]
    return described
