"""The session of one client: its sequence numbers, and the events it may have missed."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any, Protocol

from keywright_discord.gateway.intents import Intents
from keywright_discord.gateway.opcodes import Op
from keywright_discord.simulator.wire import PacketEncoding

__all__ = ["Outlet", "ReplayBuffer", "SimulatedSession", "SimulatedShard"]


@dataclass(frozen=True)
class SimulatedShard:
    """The shard of a session."""

    id: int
    count: int

    def has(self, guild: str | None) -> bool:
        """Return whether a guild is in the shard: `(guild_id >> 22) % num_shards`, or 0 without guild."""
        return self.id == ((int(guild) >> 22) % self.count if guild is not None else 0)


class Outlet(Protocol):
    """The receiver of a session's packets while a client is connected."""

    def push(self, payload: bytes) -> None:
        """Send a packet without blocking, when the client is ready to read."""


class ReplayBuffer:
    """The last packets of a session, bounded in number and in bytes."""

    def __init__(self, events: int, size: int) -> None:
        self._most_events = events
        self._most_bytes = size
        self._payloads: deque[bytes] = deque()
        self._bytes = 0
        self._last = 0

    def append(self, payload: bytes) -> None:
        self._payloads.append(payload)
        self._bytes += len(payload)
        self._last += 1
        while len(self._payloads) > self._most_events or self._bytes > self._most_bytes:
            self._bytes -= len(self._payloads.popleft())

    def after(self, sequence: int) -> list[bytes] | None:
        """Return the packets after a sequence, or None if some of them are gone."""
        missed = self._last - sequence
        if missed > len(self._payloads):
            return None
        return list(self._payloads)[len(self._payloads) - missed :]


@dataclass(eq=False)
class SimulatedSession:
    """A session. Dispatches are numbered from 1, and encoded once."""

    id: str
    shard: SimulatedShard
    intents: Intents
    encoding: PacketEncoding
    buffer: ReplayBuffer
    large_threshold: int = 50
    sequence: int = 0
    outlet: Outlet | None = None
    unannounced: dict[str, None] = field(default_factory=dict)
    """The guilds of READY whose GUILD_CREATE is still to come, in order."""
    disconnected_at: float | None = None
    replayed: int = 0
    """Packets that were sent again after a resume."""
    resumes: int = 0

    def dispatch(self, event: str, data: Any) -> None:
        self.sequence += 1
        packet = {"t": event, "s": self.sequence, "op": int(Op.DISPATCH), "d": data}
        payload = self.encoding.encode(packet)
        self.buffer.append(payload)
        if self.outlet is not None:
            self.outlet.push(payload)

    def replay(self, missed: list[bytes], outlet: Outlet) -> None:
        """Send missed packets to a new connection, which has the session from now on."""
        self.outlet = outlet
        self.disconnected_at = None
        self.resumes += 1
        self.replayed += len(missed)
        for payload in missed:
            outlet.push(payload)
