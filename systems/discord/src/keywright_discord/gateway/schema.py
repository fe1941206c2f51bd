"""The keys of gateway processes: the session and owner of each shard, and the turns to identify.

The bot is part of every name, so bots can share a server; so is the number of shards, since a session of
shard 0 of 2 cannot be resumed as shard 0 of 4.
"""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec

from keywright import U64, Id, Keyspace, Lease, Record, Value, expires_in

__all__ = [
    "Applied",
    "IdentifyTurn",
    "ResetRequest",
    "SessionState",
    "ShardApplied",
    "ShardOwner",
    "ShardReset",
    "ShardSession",
    "gateway",
]

gateway = Keyspace("gateway", "Sessions, ownership and turns of a bot's gateway processes.", prefix="gateway")

# Discord keeps a session for minutes; an older one only costs one refused resume.
SESSION_EXPIRY = expires_in(timedelta(days=1))


class SessionState(msgspec.Struct, frozen=True):
    """A session, and the last of its events that is in the cache and with the broker."""

    id: str
    """The session id of READY."""
    url: str
    """The address for resuming."""
    sequence: int
    """The sequence of the last event that is in the cache and with the broker."""
    terms: str
    """A fingerprint of its settings. With other intents, or for another cache, it is not resumed."""
    bot: str | None = None
    """The id of the bot's user."""


class Applied(msgspec.Struct, frozen=True):
    """The last event that the cache has."""

    session: str
    """The id of the session."""
    sequence: int
    """The sequence of the event."""


class ShardSession(
    Record[SessionState], key="{<bot>:<shards>:<shard>}:session", space=gateway, expiry=SESSION_EXPIRY
):
    """The session that a restarted process resumes; written after the events up to `sequence` are safe."""

    bot: Id
    shards: U64
    shard: U64


class ShardApplied(
    Value[Applied], key="{<bot>:<shards>:<shard>}:applied", space=gateway, expiry=SESSION_EXPIRY
):
    """The progress of the cache; written with it, so that no event of a resumed session is applied again."""

    bot: Id
    shards: U64
    shard: U64


class ShardOwner(Lease, key="{<bot>:<shards>:<shard>}:owner", space=gateway):
    """The process that runs a shard."""

    bot: Id
    shards: U64
    shard: U64


class ResetRequest(msgspec.Struct, frozen=True):
    """A request for a new session."""

    at: datetime
    """The time of the request."""


class ShardReset(
    Value[ResetRequest], key="{<bot>:<shards>:<shard>}:reset", space=gateway, expiry=SESSION_EXPIRY
):
    """The request that the shard begins a new session; removed when it has."""

    bot: Id
    shards: U64
    shard: U64


class IdentifyTurn(Lease, key="<bot>:identify:<bucket>", space=gateway):
    """The shard that may identify in a bucket of `max_concurrency`; expires when the next may."""

    bot: Id
    bucket: U64
