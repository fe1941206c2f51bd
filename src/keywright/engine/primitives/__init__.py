"""Patterns that several processes share: claims, leases, due queues, live indexes, compare-and-set."""

from keywright.engine.primitives.claim import Claim, ClaimState
from keywright.engine.primitives.compare_and_set import modify, replace_if
from keywright.engine.primitives.due_queue import Claimed, DueQueue
from keywright.engine.primitives.hold import new_token
from keywright.engine.primitives.lease import Lease
from keywright.engine.primitives.live_index import LiveIndex

__all__ = [
    "Claim",
    "ClaimState",
    "Claimed",
    "DueQueue",
    "Lease",
    "LiveIndex",
    "modify",
    "new_token",
    "replace_if",
]
