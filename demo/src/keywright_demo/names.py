"""What the samples are called in Redis and at the broker: apart from anything else that may be there.

Only the registry's keys have their own names, since its service takes no prefix.
"""

from __future__ import annotations

from datetime import timedelta

from keywright_messaging.contract import BrokerSettings

__all__ = [
    "DISCORD",
    "EVENTS",
    "GATEWAY",
    "GROUP",
    "MEETUP",
    "OPENMOD",
    "SPECTACLES",
    "STATS",
    "STREAMS",
    "broker_settings",
]

DISCORD = "sample-discord"
SPECTACLES = "sample-spectacles"
STREAMS = "sample-events"
GATEWAY = "sample-gateway"
OPENMOD = "sample-openmod"
MEETUP = "sample-meetup"

GROUP = "keywright-sample"
"""Not the usual `gateway`: at a real broker its queues may be those of a real bot."""
STATS = "STATS"
EVENTS = (
    "MESSAGE_CREATE",
    "MESSAGE_UPDATE",
    "MESSAGE_DELETE",
    "MESSAGE_REACTION_ADD",
    "INTERACTION_CREATE",
    "GUILD_MEMBER_ADD",
    "GUILD_MEMBER_UPDATE",
    "PRESENCE_UPDATE",
    "TYPING_START",
    "VOICE_STATE_UPDATE",
)
"""What the gateway publishes: no more than the worker handles, so that no stream grows forever."""


def broker_settings() -> BrokerSettings:
    return BrokerSettings(group=GROUP, prefix=STREAMS, retention=timedelta(minutes=5))
