"""Redis streams as a broker: wire-compatible with Spectacles, and nothing that was published is lost."""

from keywright_messaging.redis_streams.broker import RedisStreamsBroker

__all__ = ["RedisStreamsBroker"]
