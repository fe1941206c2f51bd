"""The engines: connections, batches, retries, cluster. The only package that imports redis."""

from keywright.engine.async_database import AsyncDatabase
from keywright.engine.capabilities import Server
from keywright.engine.database import Database
from keywright.engine.embedded import EmbeddedServer
from keywright.engine.factory import Clock, aconnect, connect
from keywright.engine.pubsub import Channel, Subscription
from keywright.engine.retry import Retry
from keywright.engine.settings import Durability, Settings
from keywright.engine.telemetry import Observer, RoundTrip

__all__ = [
    "AsyncDatabase",
    "Channel",
    "Clock",
    "Database",
    "Durability",
    "EmbeddedServer",
    "Observer",
    "Retry",
    "RoundTrip",
    "Server",
    "Settings",
    "Subscription",
    "aconnect",
    "connect",
]
