"""The numbers of the gateway protocol: opcodes and close codes."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["NEVER_RESUMED", "CloseCode", "HangUp", "Op"]


class Op(IntEnum):
    DISPATCH = 0
    HEARTBEAT = 1
    IDENTIFY = 2
    PRESENCE = 3
    VOICE_STATE = 4
    RESUME = 6
    RECONNECT = 7
    REQUEST_MEMBERS = 8
    INVALID_SESSION = 9
    HELLO = 10
    HEARTBEAT_ACK = 11
    REQUEST_SOUNDBOARD = 31
    REQUEST_CHANNEL_INFO = 43


class CloseCode(IntEnum):
    NORMAL = 1000
    GOING_AWAY = 1001
    UNKNOWN_ERROR = 4000
    UNKNOWN_OPCODE = 4001
    DECODE_ERROR = 4002
    NOT_AUTHENTICATED = 4003
    AUTHENTICATION_FAILED = 4004
    ALREADY_AUTHENTICATED = 4005
    INVALID_SEQUENCE = 4007
    RATE_LIMITED = 4008
    SESSION_TIMED_OUT = 4009
    INVALID_SHARD = 4010
    SHARDING_REQUIRED = 4011
    INVALID_VERSION = 4012
    INVALID_INTENTS = 4013
    DISALLOWED_INTENTS = 4014

    @property
    def reason(self) -> str:
        """The words Discord closes with."""
        return _REASONS.get(self, self.name.replace("_", " ").capitalize() + ".")


NEVER_RESUMED = frozenset(
    {
        CloseCode.AUTHENTICATION_FAILED,
        CloseCode.INVALID_SEQUENCE,
        CloseCode.SESSION_TIMED_OUT,
        CloseCode.INVALID_SHARD,
        CloseCode.SHARDING_REQUIRED,
        CloseCode.INVALID_VERSION,
        CloseCode.INVALID_INTENTS,
        CloseCode.DISALLOWED_INTENTS,
    }
)
"""What Discord closes with when the session is over; after any other code it can be resumed."""

_REASONS = {
    CloseCode.NORMAL: "",
    CloseCode.GOING_AWAY: "",
    CloseCode.DECODE_ERROR: "Error while decoding payload.",
    CloseCode.INVALID_SEQUENCE: "Invalid seq.",
    CloseCode.RATE_LIMITED: "You are being rate limited.",
    CloseCode.SESSION_TIMED_OUT: "Session timed out.",
    CloseCode.INVALID_VERSION: "Invalid API version.",
    CloseCode.INVALID_INTENTS: "Invalid intent(s).",
    CloseCode.DISALLOWED_INTENTS: "Disallowed intent(s).",
}


class HangUp(Exception):  # noqa: N818  # not an error of ours: what the client gets for its own
    """The client broke a rule, and its connection is closed with this code."""

    def __init__(self, code: CloseCode) -> None:
        self.code = code
        super().__init__(code.reason)
