"""Settings of an open database: timeouts, retries, bounds, durability."""

from __future__ import annotations

from typing import NamedTuple

from keywright.engine.retry import Retry
from keywright.engine.wire_format import pack_command


class Durability(NamedTuple):
    """The number of replicas that must confirm each write before it counts as done (WAIT)."""

    replicas: int
    within_ms: int = 1000

    @property
    def command(self) -> bytes:
        return pack_command((b"WAIT", self.replicas, self.within_ms))


class Settings(NamedTuple):
    """Timeouts, retries and bounds.

    `timeout_seconds` is the time of one round trip in all: connections, attempts and the reply. Blocking
    commands and `durability` add their own waits, and a batch that is sent in parts has it for each part.
    `connect_seconds` bounds one attempt to connect.
    """

    timeout_seconds: float = 5.0
    connect_seconds: float = 2.0
    retry: Retry = Retry()
    most_connections: int = 64
    most_bytes_in_flight: int = 64 * 1024 * 1024
    most_calls_in_flight: int = 100_000
    durability: Durability | None = None
