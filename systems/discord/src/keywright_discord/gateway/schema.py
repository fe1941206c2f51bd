"""What gateways keep in Redis: each shard's session and owner, and whose turn it is to identify.

The bot is part of every name, so bots can share a server; so is the number of shards, since a session of
shard 0 of 2 is of no use to shard 0 of 4.
"""

from __future__ import annotations

from datetime import timedelta

import msgspec

from keywright import U64, Id, Keyspace, Lease, Record, Value, expires_in

__all__ = ["Applied", "IdentifyTurn", "SessionState", "ShardApplied", "ShardOwner", "ShardSession", "gateway"]

gateway = Keyspace("gateway", "Sessions, ownership and turns of a bot's gateway processes.", prefix="gateway")

# Discord keeps a session for minutes; what is older only costs one refused resume.
SESSION_EXPIRY = expires_in(timedelta(days=1))


class SessionState(msgspec.Struct, frozen=True):
    """A session as far as its events are in the cache and with the broker."""

    id: str
    url: str
    sequence: int
    terms: str
    """What the session was begun with. With other intents, or for another cache, it is of no use."""
    bot: str | None = None


class Applied(msgspec.Struct, frozen=True):
    """The last event that the cache has."""

    session: str
    sequence: int


class ShardSession(
    Record[SessionState], key="{<bot>:<shards>:<shard>}:session", space=gateway, expiry=SESSION_EXPIRY
):
    """Where a restarted process resumes: written after the events up to `sequence` are safe."""

    bot: Id
    shards: U64
    shard: U64


class ShardApplied(
    Value[Applied], key="{<bot>:<shards>:<shard>}:applied", space=gateway, expiry=SESSION_EXPIRY
):
    """How far the cache is: written with it, so that no event of a resumed session is applied again."""

    bot: Id
    shards: U64
    shard: U64


class ShardOwner(Lease, key="{<bot>:<shards>:<shard>}:owner", space=gateway):
    """The process that runs a shard."""

    bot: Id
    shards: U64
    shard: U64


class IdentifyTurn(Lease, key="<bot>:identify:<bucket>", space=gateway):
    """Who may identify in a bucket of `max_concurrency`; runs out when the next may."""

    bot: Id
    bucket: U64
