"""Opens the broker that a URL names."""

from __future__ import annotations

from urllib.parse import urlsplit

from keywright.errors import UsageError
from keywright_messaging.contract import Broker, BrokerSettings

__all__ = ["open_broker"]

_REDIS = frozenset({"redis", "rediss", "unix", "valkey", "valkeys", "redis+cluster", "redis+sentinel"})
_AMQP = frozenset({"amqp", "amqps"})


async def open_broker(url: str, settings: BrokerSettings | None = None) -> Broker:
    """Connect to RabbitMQ (`amqp://`), Redis (`redis://` and its variants) or a broker in memory (`memory://`).

    The result is an async context manager. The client library of a broker is imported when one is opened.
    """
    chosen = settings or BrokerSettings()
    scheme = urlsplit(url).scheme
    if scheme in _AMQP:
        from keywright_messaging.amqp import AmqpBroker

        return await AmqpBroker.open(url, chosen)
    if scheme in _REDIS:
        from keywright_messaging.redis_streams import RedisStreamsBroker

        return await RedisStreamsBroker.open(url, chosen)
    if scheme == "memory":
        from keywright_messaging.memory import MemoryBroker

        return await MemoryBroker.open(url, chosen)
    raise UsageError(
        f"{scheme or url!r} is not the scheme of a broker. Use amqp://, amqps://, redis:// or memory://."
    )
