"""The engines: connections, batches, retries, cluster. The only package that imports redis."""

from keywright.engine.async_database import AsyncDatabase
from keywright.engine.blocking_pubsub import BlockingSubscription
from keywright.engine.capabilities import Server
from keywright.engine.database import Database
from keywright.engine.embedded import EmbeddedServer
from keywright.engine.factory import Clock, aconnect, connect
from keywright.engine.messages import Message
from keywright.engine.opentelemetry import OpenTelemetryObserver
from keywright.engine.pubsub import Subscription
from keywright.engine.reply_cache import CacheStats
from keywright.engine.retry import Retry
from keywright.engine.settings import Caching, Durability, Settings
from keywright.engine.telemetry import Observer, RoundTrip

__all__ = [
    "AsyncDatabase",
    "BlockingSubscription",
    "CacheStats",
    "Caching",
    "Clock",
    "Database",
    "Durability",
    "EmbeddedServer",
    "Message",
    "Observer",
    "OpenTelemetryObserver",
    "Retry",
    "RoundTrip",
    "Server",
    "Settings",
    "Subscription",
    "aconnect",
    "connect",
]
