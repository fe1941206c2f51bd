"""The vocabulary of a shard's conversation: opcodes, a session, and what a conversation asks to be done."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, TypeAlias

import msgspec

__all__ = ["Close", "Connect", "Dispatch", "Op", "Output", "Session", "Stop", "Transmit"]


class Op(IntEnum):
    DISPATCH = 0
    HEARTBEAT = 1
    IDENTIFY = 2
    PRESENCE_UPDATE = 3
    VOICE_STATE_UPDATE = 4
    RESUME = 6
    RECONNECT = 7
    REQUEST_GUILD_MEMBERS = 8
    INVALID_SESSION = 9
    HELLO = 10
    HEARTBEAT_ACK = 11
    REQUEST_SOUNDBOARD_SOUNDS = 31
    REQUEST_CHANNEL_INFO = 43


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
    """Discord will not have this shard as it is configured; trying again cannot help."""

    code: int
    reason: str


Output: TypeAlias = Connect | Transmit | Close | Dispatch | Stop
