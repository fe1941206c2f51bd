"""The prefixes of the samples in Redis and at the broker, separate from other data.

Only the keys of the registry have no prefix, because its service takes none.
"""

from __future__ import annotations

from datetime import timedelta

from keywright_messaging import BrokerSettings

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
    "TOUR",
    "broker_settings",
]

DISCORD = "sample-discord"
SPECTACLES = "sample-spectacles"
STREAMS = "sample-events"
GATEWAY = "sample-gateway"
OPENMOD = "sample-openmod"
MEETUP = "sample-meetup"
TOUR = "sample-bookshop"

GROUP = "keywright-sample"
"""Not the default `gateway`: at a real broker those may be the queues of a real bot."""
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
"""The events that the gateway publishes: only those that the worker handles, as others would pile up."""


def broker_settings() -> BrokerSettings:
    return BrokerSettings(group=GROUP, prefix=STREAMS, retention=timedelta(minutes=5))
