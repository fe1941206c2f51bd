"""The actions that a shard's conversation asks for, and its session."""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from keywright_discord.gateway.opcodes import Op

__all__ = ["Close", "Connect", "Dispatch", "Output", "Session", "Stop", "Transmit"]


class Session(msgspec.Struct, frozen=True):
    """The id and URL that a resume needs besides the sequence."""

    id: str
    url: str


class Connect(msgspec.Struct, frozen=True):
    """Open a connection; one that does not resume will identify, so it must wait for its turn."""

    url: str
    resuming: bool


class Transmit(msgspec.Struct, frozen=True):
    """Send a payload of the protocol; a token in it is still a Secret."""

    op: Op
    d: Any


class Close(msgspec.Struct, frozen=True):
    """Close the connection with this code."""

    code: int
    reason: str


class Dispatch(msgspec.Struct, frozen=True):
    """Process an event: `data` is the JSON of its `d`. `session` is set for the first event of a session."""

    event: str
    sequence: int
    data: msgspec.Raw
    session: Session | None = None


class Stop(msgspec.Struct, frozen=True):
    """Stop: Discord refuses this shard as it is configured, and a retry cannot help."""

    code: int
    reason: str


Output: TypeAlias = Connect | Transmit | Close | Dispatch | Stop
