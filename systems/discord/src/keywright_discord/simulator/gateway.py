"""Everything that clients share: sessions, connections, limits, and which event goes to whom."""

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
from keywright_discord.simulator.connection import Connection
from keywright_discord.simulator.limits import IdentifyLimits, Window
from keywright_discord.simulator.session import ReplayBuffer, Session, Shard
from keywright_discord.simulator.settings import SimulatorSettings
from keywright_discord.simulator.visibility import allowed, seen_with
from keywright_discord.simulator.world import SimulatedWorld

__all__ = ["Gateway", "Received"]

_ANNOUNCED_AT_ONCE = 20
_WHOLE_GUILD = ("GUILD_CREATE", "GUILD_UPDATE", "GUILD_DELETE")


@dataclass(frozen=True)
class Received:
    """A packet from a client. `shard` is None when it came before the client had a session."""

    op: int
    data: Any
    shard: int | None
    connection: int


class Gateway:
    def __init__(self, settings: SimulatorSettings) -> None:
        self.settings = settings
        self.world = SimulatedWorld(settings.seed, guilds=settings.guilds, members=settings.members)
        self.bot = str(self.world.bot["id"])
        self.token = settings.token or _token_of(self.bot)
        self.sessions: dict[str, Session] = {}
        self.connections: dict[int, Connection] = {}
        self.received: deque[Received] = deque(maxlen=settings.remembered)
        self.identifies = IdentifyLimits(settings)
        self.resume_url = ""
        self._member_requests: dict[str, Window] = {}
        self._token_was_reset = False

    def knows(self, token: object) -> bool:
        """Whether it is the bot's token; some clients write `Bot` before it."""
        return (
            isinstance(token, str) and not self._token_was_reset and token.removeprefix("Bot ") == self.token
        )

    def reset_token(self) -> None:
        """What Discord does when a bot has started too many sessions: all end, and the token is worthless."""
        self._token_was_reset = True
        for connection in list(self.connections.values()):
            self.hang_up(connection, CloseCode.AUTHENTICATION_FAILED)
        self.sessions.clear()

    def open_session(
        self, connection: Connection, shard: Shard, intents: Intents, large_threshold: int
    ) -> Session:
        buffer = ReplayBuffer(self.settings.replay_events, self.settings.replay_bytes)
        session = Session(secrets.token_hex(16), shard, intents, connection.encoding, buffer, large_threshold)
        session.outlet = connection
        connection.session = session
        self.sessions[session.id] = session
        if Intents.GUILDS in intents:
            session.unannounced = dict.fromkeys(self.world.guilds_of(shard))
        return session

    def end_session(self, session: Session) -> None:
        """End a session: it cannot be resumed. A connection that had it may identify again."""
        self.sessions.pop(session.id, None)
        self._detach(session)

    def _detach(self, session: Session) -> None:
        if isinstance(session.outlet, Connection):
            session.outlet.session = None
        session.outlet = None
        session.disconnected_at = self.settings.clock()

    def suspend(self, connection: Connection) -> None:
        """The connection goes without its session, which can be resumed."""
        if connection.session is not None:
            self._detach(connection.session)

    def hang_up(self, connection: Connection, code: CloseCode) -> None:
        """Close with this code, which decides whether the session can be resumed."""
        if connection.session is not None and after_closing(code) is not After.RESUME:
            self.end_session(connection.session)
        self.suspend(connection)
        connection.hang_up(code)

    def cut(self, connection: Connection) -> None:
        self.suspend(connection)
        connection.cut()

    def disconnected(self, connection: Connection, client_code: int | None) -> None:
        """Closing with 1000 or 1001 is the client's way to end its session."""
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

    def take_over(self, session: Session) -> None:
        """A session that is resumed elsewhere leaves the connection it had."""
        former = session.outlet
        if isinstance(former, Connection):
            former.session = None
            former.hang_up(CloseCode.UNKNOWN_ERROR)

    def may_request_all(self, guild: str) -> float:
        """0 if all members of the guild may be asked for now, else the seconds to wait."""
        seconds = self.settings.member_requests_window_seconds
        window = self._member_requests.setdefault(guild, Window(1, seconds, self.settings.clock))
        return 0.0 if window.admit() else window.reset_after

    def dispatch(self, event: str, data: Any, *, guild: str | None = None) -> int:
        """Number it in every session whose shard and intents it is for; how many there were."""
        about = guild or guild_of(event, data)
        reached = [session for session in self.sessions.values() if session.shard.has(about)]
        return sum(self.deliver(session, event, data, guild=about) for session in reached)

    def deliver(self, session: Session, event: str, data: Any, *, guild: str | None = None) -> bool:
        """To one session, if its intents ask for it; never before the guild it is about."""
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

    def _announce(self, session: Session, guild: str) -> None:
        del session.unannounced[guild]
        created = self.world.guild_create(guild)
        if created is not None:
            self.deliver(session, "GUILD_CREATE", created)

    async def announce(self, session: Session, connection: Connection) -> None:
        """The GUILD_CREATE of each guild of READY, at the pace of the client."""
        while session.unannounced and session.outlet is connection:
            for guild in list(islice(session.unannounced, _ANNOUNCED_AT_ONCE)):
                self._announce(session, guild)
            await connection.drained()

    def expire(self) -> None:
        """Close what has been silent for too long, and forget what nobody resumed."""
        for connection in list(self.connections.values()):
            if connection.is_silent:
                self.hang_up(connection, CloseCode.SESSION_TIMED_OUT)
        horizon = self.settings.clock() - self.settings.session_lifetime_seconds
        for session in list(self.sessions.values()):
            if session.disconnected_at is not None and session.disconnected_at < horizon:
                self.end_session(session)

    def invalidate(self, connection: Connection, *, resumable: bool) -> None:
        """Op 9: the client has to resume, or to identify again; on this connection or another."""
        session = connection.session
        if session is not None and not resumable:
            self.end_session(session)
        elif session is not None:
            self.suspend(connection)
        connection.send(Op.INVALID_SESSION, resumable)


def _token_of(bot: str) -> str:
    """Some clients read the bot's id out of the first part."""
    return f"{b64encode(bot.encode()).decode().rstrip('=')}.simulated.token"


def guild_of(event: str, data: Any) -> str | None:
    """Return the guild an event is about, or None."""
    if not isinstance(data, dict):
        return None
    found = data.get("id") if event in _WHOLE_GUILD else data.get("guild_id")
    return None if found is None else str(found)
