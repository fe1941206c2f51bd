"""What a shard's conversation asks to be done, and the session it is about."""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from keywright_discord.gateway.opcodes import Op

__all__ = ["Close", "Connect", "Dispatch", "Output", "Session", "Stop", "Transmit"]


class Session(msgspec.Struct, frozen=True):
    """What a resume needs besides the sequence."""

    id: str
    url: str


class Connect(msgspec.Struct, frozen=True):
    """Open a connection; one that does not resume will identify, so it needs its turn."""

    url: str
    resuming: bool


class Transmit(msgspec.Struct, frozen=True):
    """Send a payload of the protocol's own; a token in it is still a Secret."""

    op: Op
    d: Any


class Close(msgspec.Struct, frozen=True):
    """Close the connection with this code."""

    code: int
    reason: str


class Dispatch(msgspec.Struct, frozen=True):
    """An event: `data` is the JSON of its `d`. `session` is set where it is the first of a new one."""

    event: str
    sequence: int
    data: msgspec.Raw
    session: Session | None = None


class Stop(msgspec.Struct, frozen=True):
    """Discord refuses this shard as it is configured; trying again cannot help."""

    code: int
    reason: str


Output: TypeAlias = Connect | Transmit | Close | Dispatch | Stop
