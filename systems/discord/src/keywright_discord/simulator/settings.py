"""The settings of a simulated Discord: token, guilds, limits."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from keywright.errors import UsageError
from keywright_discord.gateway.intents import PRIVILEGED, Intents

__all__ = ["SimulatorSettings"]


@dataclass(frozen=True, kw_only=True)
class SimulatorSettings:
    """The settings; the defaults of limits are Discord's own."""

    token: str | None = None
    """The bot's token; None makes one that begins with the bot's id, as Discord's tokens do."""
    host: str = "127.0.0.1"
    port: int = 0
    """The port of the gateway; 0 takes a free one."""
    api_port: int = 0
    """The port of the REST API; 0 takes a free one."""

    seed: int = 0
    guilds: int = 2
    members: int = 20
    """Members of each guild, the bot included."""

    shards: int = 1
    """The number that /gateway/bot recommends; a client may choose another one."""
    guilds_per_shard: int = 2500
    """A shard with more guilds is closed with 4011: sharding is required."""
    privileged: Intents = PRIVILEGED
    """The privileged intents that the bot was granted; requesting another one closes with 4014."""

    max_concurrency: int = 1
    identify_window_seconds: float = 5.0
    session_starts: int = 1000
    session_start_window_seconds: float = 24 * 3600.0

    heartbeat_interval_ms: int = 41_250
    heartbeat_grace_seconds: float = 15.0
    """How much later than its interval a heartbeat may arrive."""
    session_lifetime_seconds: float = 180.0
    """How long a session without a connection can be resumed."""

    sends: int = 120
    sends_window_seconds: float = 60.0
    presences: int = 5
    presences_window_seconds: float = 20.0
    member_requests_window_seconds: float = 30.0
    """All members of a guild can be requested once in this time."""

    replay_events: int = 10_000
    replay_bytes: int = 64 * 1024 * 1024
    """The events that a session keeps for a resume. A client that needs older ones cannot resume."""
    outbox: int = 10_000
    """Packets that may wait for one client; one that reads too slowly is cut off, and can resume."""
    remembered: int = 10_000
    """How many packets of clients are kept for tests."""
    integer_ids: bool = True
    """In ETF Discord may send ids as integers; False sends them as text, as in JSON."""

    clock: Callable[[], float] = time.monotonic
    """The clock of every limit and timeout, in seconds; ManualClock.monotonic stops it."""

    def __post_init__(self) -> None:
        for name in ("shards", "max_concurrency", "members", "outbox", "replay_events"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name} cannot be {getattr(self, name)}. Give 1 or more.")
        if self.guilds < 0:
            raise UsageError(f"guilds cannot be {self.guilds}. Give 0 or more.")
