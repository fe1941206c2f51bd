"""The close codes of Discord's gateway, and what each means: resume, identify again, or stop."""

from __future__ import annotations

from enum import Enum, IntEnum

__all__ = ["RESUMABLE", "After", "CloseCode", "after_closing", "refusal"]

# Any code but 1000 and 1001, which end the session.
RESUMABLE = 4000


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


class After(Enum):
    """What a client does after a connection was closed."""

    RESUME = "resume"
    IDENTIFY = "identify"
    STOP = "stop"


_NEW_SESSION = frozenset({CloseCode.INVALID_SEQUENCE, CloseCode.SESSION_TIMED_OUT})

_REFUSALS = {
    CloseCode.AUTHENTICATION_FAILED: "the token is not valid. Set DISCORD_TOKEN to the bot's token of the "
    "developer portal.",
    CloseCode.INVALID_SHARD: "the shard is not valid. Ids must be below shards.count, which is the same in "
    "every process.",
    CloseCode.SHARDING_REQUIRED: "the bot is in too many guilds for so few shards. Raise shards.count, or "
    "leave it out to use Discord's recommendation.",
    CloseCode.INVALID_VERSION: "the version of the gateway is not valid. Set gateway_version to one that "
    "Discord has, such as 10.",
    CloseCode.INVALID_INTENTS: "the intents are not valid. Name them in intents instead of giving a number.",
    CloseCode.DISALLOWED_INTENTS: "an intent is not allowed. GUILD_MEMBERS, GUILD_PRESENCES and "
    "MESSAGE_CONTENT must be enabled for the bot in the developer portal, or left out of intents.",
}

_REASONS = {
    CloseCode.NORMAL: "",
    CloseCode.GOING_AWAY: "",
    CloseCode.DECODE_ERROR: "Error while decoding payload.",
    CloseCode.INVALID_SEQUENCE: "Invalid seq.",
    CloseCode.RATE_LIMITED: "You are being rate limited.",
    CloseCode.INVALID_VERSION: "Invalid API version.",
    CloseCode.INVALID_INTENTS: "Invalid intent(s).",
    CloseCode.DISALLOWED_INTENTS: "Disallowed intent(s).",
}


def after_closing(code: int | None) -> After:
    """Return what to do after Discord closed with this code, or the connection broke without one.

    After unknown codes, and after 1000 and 1001 when Discord sends them, try to resume: at worst Discord
    answers that the session is invalid.
    """
    if code in _REFUSALS:
        return After.STOP
    return After.IDENTIFY if code in _NEW_SESSION else After.RESUME


def refusal(code: int) -> str:
    """Return why Discord refuses the shard, with the remedy."""
    return _REFUSALS[CloseCode(code)]
