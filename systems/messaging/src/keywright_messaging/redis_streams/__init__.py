"""The broker on Redis streams: wire-compatible with Spectacles, and no published message is lost."""

from keywright_messaging.redis_streams.broker import RedisStreamsBroker

__all__ = ["RedisStreamsBroker"]
