"""The intents of Discord's gateway, by name. Discord's former names are understood too."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from enum import IntFlag
from functools import reduce
from operator import or_

from keywright.errors import UsageError

__all__ = ["ALL", "PRIVILEGED", "UNPRIVILEGED", "Intents", "intents_of"]


class Intents(IntFlag):
    GUILDS = 1 << 0
    GUILD_MEMBERS = 1 << 1
    GUILD_MODERATION = 1 << 2
    GUILD_EXPRESSIONS = 1 << 3
    GUILD_INTEGRATIONS = 1 << 4
    GUILD_WEBHOOKS = 1 << 5
    GUILD_INVITES = 1 << 6
    GUILD_VOICE_STATES = 1 << 7
    GUILD_PRESENCES = 1 << 8
    GUILD_MESSAGES = 1 << 9
    GUILD_MESSAGE_REACTIONS = 1 << 10
    GUILD_MESSAGE_TYPING = 1 << 11
    DIRECT_MESSAGES = 1 << 12
    DIRECT_MESSAGE_REACTIONS = 1 << 13
    DIRECT_MESSAGE_TYPING = 1 << 14
    MESSAGE_CONTENT = 1 << 15
    GUILD_SCHEDULED_EVENTS = 1 << 16
    AUTO_MODERATION_CONFIGURATION = 1 << 20
    AUTO_MODERATION_EXECUTION = 1 << 21
    GUILD_MESSAGE_POLLS = 1 << 24
    DIRECT_MESSAGE_POLLS = 1 << 25


_FORMER = {
    "GUILD_BANS": "GUILD_MODERATION",
    "GUILD_EMOJIS": "GUILD_EXPRESSIONS",
    "GUILD_EMOJIS_AND_STICKERS": "GUILD_EXPRESSIONS",
}

ALL = reduce(or_, Intents)
PRIVILEGED = Intents.GUILD_MEMBERS | Intents.GUILD_PRESENCES | Intents.MESSAGE_CONTENT
UNPRIVILEGED = ALL & ~PRIVILEGED


def intents_of(names: Iterable[str]) -> Intents:
    """Return the intents of these names together. Raise UsageError for an unknown one, with the nearest."""
    total = Intents(0)
    for name in names:
        wanted = name.strip().upper()
        known = Intents.__members__.get(_FORMER.get(wanted, wanted))
        if known is None:
            near = get_close_matches(wanted, [*Intents.__members__, *_FORMER], 1, cutoff=0.0)[0]
            raise UsageError(
                f"{name!r} is not an intent. The nearest is {near}. See systems/discord/docs/gateway.md."
            )
        total |= known
    return total
