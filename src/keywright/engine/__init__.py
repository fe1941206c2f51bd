"""How calls reach Redis: the only package that imports redis."""

from keywright.engine.aio import AsyncDatabase
from keywright.engine.connecting import aconnect, connect
from keywright.engine.database import Database
from keywright.engine.embedded import EmbeddedServer
from keywright.engine.probing import Server
from keywright.engine.retrying import Retry
from keywright.engine.settings import Durability, Settings
from keywright.engine.telemetry import Observer, RoundTrip

__all__ = [
    "AsyncDatabase",
    "Database",
    "Durability",
    "EmbeddedServer",
    "Observer",
    "Retry",
    "RoundTrip",
    "Server",
    "Settings",
    "aconnect",
    "connect",
]
