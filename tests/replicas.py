"""A replica that follows its primary."""

from __future__ import annotations

from keywright.testing import RedisServer, wait_until

__all__ = ["replica_in_sync"]


def replica_in_sync(primary: RedisServer, replica: RedisServer) -> None:
    """Wait until both say so: a primary of Valkey reports a replica as online before it has the data."""
    wait_until(lambda: "state=online" in primary.text("INFO", "replication"), "the primary has a replica")
    wait_until(
        lambda: "master_link_status:up" in replica.text("INFO", "replication"), "the replica has the data"
    )
