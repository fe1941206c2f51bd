"""The state that clients share: sessions, connections, limits, and the routing of events."""

from __future__ import annotations

import secrets
from base64 import b64encode
from collections import deque
from dataclasses import dataclass
from itertools import islice
from typing import Any

from keywright_discord.gateway.close_codes import After, CloseCode, after_closing
from keywright_discord.gateway.intents import Intents
from keywright_discord.gateway.opcodes import Op
from keywright_discord.simulator.connection import SimulatedConnection
from keywright_discord.simulator.limits import IdentifyLimits, Window
from keywright_discord.simulator.resources import SimulatedInteraction
from keywright_discord.simulator.session import ReplayBuffer, SimulatedSession, SimulatedShard
from keywright_discord.simulator.settings import SimulatorSettings
from keywright_discord.simulator.visibility import allowed, seen_with
from keywright_discord.simulator.world import SimulatedWorld

__all__ = ["Received", "SimulatedGateway"]

_ANNOUNCED_AT_ONCE = 20
_WHOLE_GUILD = ("GUILD_CREATE", "GUILD_UPDATE", "GUILD_DELETE")


@dataclass(frozen=True)
class Received:
    """A packet of a client. `shard` is None if it came before the client had a session."""

    op: int
    data: Any
    shard: int | None
    connection: int


class SimulatedGateway:
    """The server side of the gateway: sessions, connections and limits of one bot."""

    def __init__(self, settings: SimulatorSettings) -> None:
        self.settings = settings
        self.world = SimulatedWorld(settings.seed, guilds=settings.guilds, members=settings.members)
        self.bot = str(self.world.bot["id"])
        self.token = settings.token or _token_of(self.bot)
        self.sessions: dict[str, SimulatedSession] = {}
        self.connections: dict[int, SimulatedConnection] = {}
        self.received: deque[Received] = deque(maxlen=settings.remembered)
        self.identifies = IdentifyLimits(settings)
        self.commands: dict[tuple[str, str | None], list[dict[str, Any]]] = {}
        """The commands of an application, by its id and their guild; None for the global ones."""
        self.interactions: dict[str, SimulatedInteraction] = {}
        self.resume_url = ""
        self._member_requests: dict[str, Window] = {}
        self._token_was_reset = False

    def knows(self, token: object) -> bool:
        """Return whether it is the bot's token; some clients write `Bot` before it."""
        return (
            isinstance(token, str) and not self._token_was_reset and token.removeprefix("Bot ") == self.token
        )

    def reset_token(self) -> None:
        """End all sessions and make the token invalid, as Discord does after too many session starts."""
        self._token_was_reset = True
        for connection in list(self.connections.values()):
            self.hang_up(connection, CloseCode.AUTHENTICATION_FAILED)
        self.sessions.clear()

    def open_session(
        self, connection: SimulatedConnection, shard: SimulatedShard, intents: Intents, large_threshold: int
    ) -> SimulatedSession:
        buffer = ReplayBuffer(self.settings.replay_events, self.settings.replay_bytes)
        session = SimulatedSession(
            secrets.token_hex(16), shard, intents, connection.encoding, buffer, large_threshold
        )
        session.outlet = connection
        connection.session = session
        self.sessions[session.id] = session
        if Intents.GUILDS in intents:
            session.unannounced = dict.fromkeys(self.world.guilds_of(shard))
        return session

    def end_session(self, session: SimulatedSession) -> None:
        """End a session: it cannot be resumed. Its connection may identify again."""
        self.sessions.pop(session.id, None)
        self._detach(session)

    def _detach(self, session: SimulatedSession) -> None:
        if isinstance(session.outlet, SimulatedConnection):
            session.outlet.session = None
        session.outlet = None
        session.disconnected_at = self.settings.clock()

    def suspend(self, connection: SimulatedConnection) -> None:
        """Detach a connection from its session, which can be resumed."""
        if connection.session is not None:
            self._detach(connection.session)

    def hang_up(self, connection: SimulatedConnection, code: CloseCode) -> None:
        """Close a connection with this code, which decides whether the session can be resumed."""
        if connection.session is not None and after_closing(code) is not After.RESUME:
            self.end_session(connection.session)
        self.suspend(connection)
        connection.hang_up(code)

    def cut(self, connection: SimulatedConnection) -> None:
        self.suspend(connection)
        connection.cut()

    def disconnected(self, connection: SimulatedConnection, client_code: int | None) -> None:
        """Process the end of a connection; a client that closes with 1000 or 1001 ends its session."""
        self.connections.pop(connection.number, None)
        session = connection.session
        if session is None:
            return
        by_client = connection.hung_up_with is None and client_code in (
            CloseCode.NORMAL,
            CloseCode.GOING_AWAY,
        )
        if by_client:
            self.end_session(session)
        else:
            self.suspend(connection)

    def take_over(self, session: SimulatedSession) -> None:
        """Close the former connection of a session that is resumed on another."""
        former = session.outlet
        if isinstance(former, SimulatedConnection):
            former.session = None
            former.hang_up(CloseCode.UNKNOWN_ERROR)

    def may_request_all(self, guild: str) -> float:
        """Return 0 if all members of the guild may be requested now, else the seconds to wait."""
        seconds = self.settings.member_requests_window_seconds
        window = self._member_requests.setdefault(guild, Window(1, seconds, self.settings.clock))
        return 0.0 if window.admit() else window.reset_after

    def dispatch(self, event: str, data: Any, *, guild: str | None = None) -> int:
        """Send an event to every session of its shard and intents. Return the number of sessions."""
        about = guild or guild_of(event, data)
        reached = [session for session in self.sessions.values() if session.shard.has(about)]
        return sum(self.deliver(session, event, data, guild=about) for session in reached)

    def deliver(self, session: SimulatedSession, event: str, data: Any, *, guild: str | None = None) -> bool:
        """Send an event to one session if its intents allow it, and never before its guild."""
        if guild in session.unannounced:
            if event in ("GUILD_CREATE", "GUILD_DELETE"):
                del session.unannounced[guild]
            else:
                self._announce(session, guild)
        if not allowed(event, data, session.intents, self.bot):
            return False
        seen = seen_with(event, data, session.intents, self.bot, large_threshold=session.large_threshold)
        session.dispatch(event, seen)
        return True

    def _announce(self, session: SimulatedSession, guild: str) -> None:
        del session.unannounced[guild]
        created = self.world.guild_create(guild)
        if created is not None:
            self.deliver(session, "GUILD_CREATE", created)

    async def announce(self, session: SimulatedSession, connection: SimulatedConnection) -> None:
        """Send the GUILD_CREATE of each guild of READY, at the pace of the client."""
        while session.unannounced and session.outlet is connection:
            for guild in list(islice(session.unannounced, _ANNOUNCED_AT_ONCE)):
                self._announce(session, guild)
            await connection.drained()

    def expire(self) -> None:
        """Close connections without heartbeats, and end sessions that were not resumed in time."""
        for connection in list(self.connections.values()):
            if connection.is_silent:
                self.hang_up(connection, CloseCode.SESSION_TIMED_OUT)
        horizon = self.settings.clock() - self.settings.session_lifetime_seconds
        for session in list(self.sessions.values()):
            if session.disconnected_at is not None and session.disconnected_at < horizon:
                self.end_session(session)

    def invalidate(self, connection: SimulatedConnection, *, resumable: bool) -> None:
        """Send op 9: the client has to resume or identify again, on this connection or another."""
        session = connection.session
        if session is not None and not resumable:
            self.end_session(session)
        elif session is not None:
            self.suspend(connection)
        connection.send(Op.INVALID_SESSION, resumable)


def _token_of(bot: str) -> str:
    """Return a token whose first part is the bot's id, which some clients read."""
    return f"{b64encode(bot.encode()).decode().rstrip('=')}.simulated.token"


def guild_of(event: str, data: Any) -> str | None:
    """Return the guild an event is about, or None."""
    if not isinstance(data, dict):
        return None
    found = data.get("id") if event in _WHOLE_GUILD else data.get("guild_id")
    return None if found is None else str(found)
