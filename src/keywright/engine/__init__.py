"""How calls reach Redis: the only package that imports redis."""

from keywright.engine.aio import AsyncDatabase
from keywright.engine.connecting import aconnect, connect
from keywright.engine.database import Database
from keywright.engine.embedded import EmbeddedServer
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
from keywright.engine.probing import Server
from keywright.engine.retrying import Retry
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
