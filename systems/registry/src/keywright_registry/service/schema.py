"""What the service keeps in Redis beside the registry's own keys: events it has counted, whose turn it is."""

from __future__ import annotations

from datetime import timedelta

from keywright import FreeText, Keyspace, Lease, Value, expires_in
from keywright_registry.schema import Namespace, PathHash

__all__ = ["CountedEvent", "FlushTurn", "notifications"]

notifications = Keyspace(
    "registry-notifications", "Which of the registry's notifications were counted.", prefix="registry"
)

# The registry sends an event again until it is acknowledged, even after an outage.
EVENT_EXPIRY = expires_in(timedelta(hours=6))


class CountedEvent(
    Value[str],
    key="api:{repository:<namespace>:<path_hash>}:event:<event>",
    space=notifications,
    expiry=EVENT_EXPIRY,
):
    """An event that was counted, and its action; in the slot of the counters, so that both are one step."""

    namespace: Namespace
    path_hash: PathHash
    event: FreeText


class FlushTurn(Lease, key="api:{flush}:turn", space=notifications):
    """The process that moves counts to the database."""
