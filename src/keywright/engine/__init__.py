"""How calls reach Redis: the only package that imports redis."""

from keywright.engine.async_database import AsyncDatabase
from keywright.engine.capabilities import Server
from keywright.engine.database import Database
from keywright.engine.embedded import EmbeddedServer
from keywright.engine.factory import aconnect, connect
from keywright.engine.primitives import (
    Claim,
    Claimed,
    ClaimState,
    DueQueue,
    Lease,
    LiveIndex,
    modify,
    new_token,
    replace_if,
)
from keywright.engine.retry import Retry
from keywright.engine.settings import Durability, Settings
from keywright.engine.telemetry import Observer, RoundTrip

__all__ = [
    "AsyncDatabase",
    "Claim",
    "ClaimState",
    "Claimed",
    "Database",
    "DueQueue",
    "Durability",
    "EmbeddedServer",
    "Lease",
    "LiveIndex",
    "Observer",
    "Retry",
    "RoundTrip",
    "Server",
    "Settings",
    "aconnect",
    "connect",
    "modify",
    "new_token",
    "replace_if",
]
