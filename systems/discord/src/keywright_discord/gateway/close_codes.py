"""What the end of a connection means: resume, identify anew, or stop, and what to tell the operator."""

from __future__ import annotations

from enum import Enum

__all__ = ["RESUMABLE", "After", "after_closing", "refusal"]

# Any code but 1000 and 1001, with which a client ends its session for good.
RESUMABLE = 4000


class After(Enum):
    RESUME = "resume"
    IDENTIFY = "identify"
    STOP = "stop"


# 4007: the sequence is not of this session. 4009: the session timed out.
_NEW_SESSION = frozenset({4007, 4009})

_REFUSALS = {
    4004: "the token is not valid. Set DISCORD_TOKEN to the bot's token of the developer portal.",
    4010: "the shard is not valid. Ids must be below shards.count, which is the same in every process.",
    4011: "the bot is in too many guilds for so few shards. Raise shards.count, or leave it out to use "
    "Discord's recommendation.",
    4012: "the version of the gateway is not valid. Set gateway_version to one that Discord has, such as 10.",
    4013: "the intents are not valid. Name them in intents instead of giving a number.",
    4014: "an intent is not allowed. GUILD_MEMBERS, GUILD_PRESENCES and MESSAGE_CONTENT must be enabled for "
    "the bot in the developer portal, or left out of intents.",
}


def after_closing(code: int | None) -> After:
    """What to do after Discord closed with this code, or the connection broke without one.

    Codes that nobody knows, 1000 and 1001 among them when Discord sends them, try to resume: at worst
    Discord answers that the session is invalid.
    """
    if code in _REFUSALS:
        return After.STOP
    return After.IDENTIFY if code in _NEW_SESSION else After.RESUME


def refusal(code: int) -> str:
    """Why Discord does not want the shard, with the remedy."""
    return _REFUSALS[code]
