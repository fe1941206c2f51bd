"""The message channels of the gateway, for AsyncAPI."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

from keywright.tools import ChannelParameter, MessageChannel, ProgramChannels
from keywright_discord.interpreter import EVENTS

__all__ = ["gateway_channels"]

# The packets that a worker may send to Discord: presence, voice state, and three requests.
WORKER_OPCODES = (3, 4, 8, 31, 43)
_GUILD = {"type": "string", "pattern": "^[0-9]+$", "description": "A guild's id."}
_PACKET: dict[str, Any] = {
    "type": "object",
    "description": "A packet as Discord's gateway takes it.",
    "properties": {"op": {"type": "integer", "enum": list(WORKER_OPCODES)}, "d": {"type": "object"}},
    "required": ["op", "d"],
}
_EXAMPLE = {"op": 4, "d": {"guild_id": "81384788765712384", "channel_id": None}}

_EVENTS = MessageChannel(
    name="events",
    address="{event}",
    description="The events of Discord's gateway: the `d` of a packet with op 0, under its `t`. A service "
    "reads it from the queue `<group>:[<subgroup>:]<event>`.",
    action="send",
    message="Event",
    payload={"type": "object", "description": "The `d` of the packet, as Discord documents it."},
    parameters={
        "event": ChannelParameter(
            "The `t` of the packet; the events that the cache applies are listed.", tuple(EVENTS)
        )
    },
    example={"id": "334385199974967042", "content": "a message"},
)
_SEND = MessageChannel(
    name="send",
    address="SEND",
    description="A packet for whichever shard has the guild: the gateway that gets it publishes it there.",
    action="receive",
    message="SendRequest",
    payload={
        "type": "object",
        "properties": {"guild_id": _GUILD, "packet": _PACKET},
        "required": ["guild_id", "packet"],
    },
    parameters={},
    example={"guild_id": "81384788765712384", "packet": _EXAMPLE},
)
_SHARDS = MessageChannel(
    name="shards",
    address="{shard}",
    description="A packet for one shard, sent by the gateway that runs it.",
    action="receive",
    message="ShardPacket",
    payload=_PACKET,
    parameters={"shard": ChannelParameter("The shard's number, from 0.", examples=("0", "3"))},
    example=_EXAMPLE,
)


def gateway_channels(group: str = "gateway") -> ProgramChannels:
    """Return the channels between a gateway and its workers, as the gateway sees them."""
    return ProgramChannels(
        title="Spectacles gateway",
        description="How a gateway to Discord and its workers talk over a message broker. The group is the "
        "exchange, an event the routing key. Exchanges and queues are durable.",
        version=version("keywright-discord"),
        exchange=group,
        content_type="application/json",
        channels=(_EVENTS, _SEND, _SHARDS),
    )
