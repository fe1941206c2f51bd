"""One shard's side of Discord's gateway protocol, without I/O.

A `Conversation` is informed of events (a connection opened or ended, a payload came, time passed) and returns
the actions to perform, in order. It uses neither sockets nor clocks: `now` is any monotonic number of
seconds, and `due` is the time of the next `ticked`. Its caller calls `closed` exactly once for each
`Connect`, whether the connection was never opened, was closed by Discord, or was closed on request.

    RESTING → CONNECTING → GREETING → IDENTIFYING | RESUMING → READY → (CLOSING) → RESTING → …
                                        any of them → STOPPED
"""

from __future__ import annotations

import random as chance
from collections.abc import Callable
from enum import Enum
from typing import Any

import msgspec

from keywright import Secret
from keywright_discord.gateway.actions import Close, Connect, Dispatch, Output, Session, Stop, Transmit
from keywright_discord.gateway.close_codes import RESUMABLE, After, after_closing, refusal
from keywright_discord.gateway.opcodes import Op
from keywright_discord.gateway.wire import Payload
from keywright_service.backoff import Backoff

__all__ = ["Conversation", "Identity", "Phase"]

HELLO_SECONDS = 20.0
LONGEST_REST_SECONDS = 60.0
RECONNECT = Backoff(1.0, LONGEST_REST_SECONDS)
# The attempts at the resume URL before the general one is tried.
RESUME_ATTEMPTS = 3


class Phase(Enum):
    RESTING = "resting"
    CONNECTING = "connecting"
    GREETING = "greeting"
    IDENTIFYING = "identifying"
    RESUMING = "resuming"
    READY = "ready"
    CLOSING = "closing"
    STOPPED = "stopped"


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """The part of an identify that is the same for all shards of a bot."""

    token: Secret[str]
    intents: int
    presence: dict[str, Any] | None = None
    large_threshold: int = 250


class _Hello(msgspec.Struct):
    heartbeat_interval: float


class _Ready(msgspec.Struct):
    session_id: str
    resume_gateway_url: str | None = None


class Conversation:
    """The state of one shard. `sequence` is the last one received, and belongs to `session`."""

    def __init__(
        self,
        shard: int,
        shards: int,
        identity: Identity,
        url: str,
        *,
        session: Session | None = None,
        sequence: int | None = None,
        random: Callable[[], float] = chance.random,
    ) -> None:
        self.shard = shard
        self.shards = shards
        self.phase = Phase.RESTING
        self.session = session
        self.sequence = sequence if session else None
        self.latency: float | None = None
        self._identity = identity
        self._url = url
        self._random = random
        self._attempts = 0
        self._unreached = 0
        self._after = After.RESUME
        self._rest_until = 0.0
        self._hello_by: float | None = None
        self._interval = 0.0
        self._beat_at: float | None = None
        self._beaten_at = 0.0
        self._unanswered = False
        self._deaf = False

    @property
    def due(self) -> float | None:
        """The time at which `ticked` must be called; None: not before another event."""
        if self.phase is Phase.RESTING:
            return self._rest_until
        if self.phase is Phase.GREETING:
            return self._hello_by
        return self._beat_at

    @property
    def ready(self) -> bool:
        return self.phase is Phase.READY

    def opened(self, now: float) -> list[Output]:
        """Process that the requested connection is open."""
        if self.phase is not Phase.CONNECTING:
            return []
        self.phase = Phase.GREETING
        self._unreached = 0
        self._hello_by = now + HELLO_SECONDS
        return []

    def received(self, payload: Payload, now: float) -> list[Output]:
        """Process a payload; unknown ones, and those after a close was requested, are ignored."""
        if self.phase in (Phase.RESTING, Phase.CONNECTING, Phase.CLOSING, Phase.STOPPED):
            return []
        handler = _HANDLERS.get(payload.op)
        return handler(self, payload, now) if handler else []

    def closed(self, code: int | None, now: float) -> list[Output]:
        """Process that the connection ended or could not be opened; `code` is None without a close code."""
        self._beat_at = self._hello_by = None
        self._unanswered = False
        if self.phase is Phase.STOPPED:
            return []
        after = self._after if self.phase is Phase.CLOSING else after_closing(code)
        if after is After.STOP:
            self.phase = Phase.STOPPED
            assert code is not None
            return [Stop(code, refusal(code))]
        if self.phase is Phase.CONNECTING:
            self._unreached += 1
        if after is After.IDENTIFY:
            self._forget_session()
        self._rest(now, at_least=1 + 4 * self._random() if self._after is After.IDENTIFY else 0.0)
        self._after = After.RESUME
        return []

    def ticked(self, now: float) -> list[Output]:
        """Process that time passed: connect after a pause, send a heartbeat, close a silent connection."""
        if self.due is None or now < self.due:
            return []
        if self.phase is Phase.RESTING:
            return self._connect()
        if self.phase is Phase.GREETING:
            return self._close("no hello", After.RESUME)
        if self._unanswered and not self._deaf:
            return self._close("a heartbeat was not acknowledged", After.RESUME)
        self._beat_at = now + self._interval
        self._unanswered = True
        self._beaten_at = now
        return [self._heartbeat()]

    def stop(self) -> list[Output]:
        """Stop, so that the session can be resumed later."""
        was = self.phase
        self.phase = Phase.STOPPED
        self._beat_at = None
        return [] if was in (Phase.RESTING, Phase.STOPPED) else [Close(RESUMABLE, "shutting down")]

    def deafen(self) -> None:
        """Ignore missing acknowledgements: the socket is not read for a while."""
        self._deaf = True

    def listen(self) -> None:
        """Expect acknowledgements again; those of earlier heartbeats may still be in the buffer."""
        self._deaf = False
        self._unanswered = False

    def give_up(self, reason: str) -> list[Output]:
        """Close a connection that sent a malformed frame."""
        return self._close(reason, After.RESUME)

    def begin_again(self, reason: str) -> list[Output] | None:
        """Replace the session by a new one. Return None while a connection is opened, which cannot be."""
        if self.phase is Phase.RESTING:
            self._forget_session()
            return []
        if self.phase in (Phase.READY, Phase.RESUMING):
            return self._close(reason, After.IDENTIFY)
        return None

    def _connect(self) -> list[Output]:
        self.phase = Phase.CONNECTING
        if self.session and self._unreached < RESUME_ATTEMPTS:
            return [Connect(self.session.url, resuming=True)]
        return [Connect(self._url, resuming=self.session is not None)]

    def _close(self, reason: str, after: After) -> list[Output]:
        self.phase = Phase.CLOSING
        self._after = after
        self._beat_at = self._hello_by = None
        return [Close(RESUMABLE, reason)]

    def _rest(self, now: float, at_least: float) -> None:
        self.phase = Phase.RESTING
        rest = RECONNECT.pause(self._attempts, self._random) if self._attempts else 0.0
        self._attempts += 1
        self._rest_until = now + max(at_least, rest)

    def _forget_session(self) -> None:
        self.session = None
        self.sequence = None

    def _heartbeat(self) -> Transmit:
        return Transmit(Op.HEARTBEAT, self.sequence)

    def _on_hello(self, payload: Payload, now: float) -> list[Output]:
        if self.phase is not Phase.GREETING:
            return []
        hello = _decoded(payload, _Hello)
        if hello is None or not hello.heartbeat_interval > 0:
            return self._close("a hello without an interval", After.RESUME)
        self._interval = hello.heartbeat_interval / 1000
        self._beat_at = now + self._interval * self._random()
        self._hello_by = None
        if self.session is None:
            self.phase = Phase.IDENTIFYING
            return [Transmit(Op.IDENTIFY, self._introduction())]
        self.phase = Phase.RESUMING
        return [Transmit(Op.RESUME, self._reminder(self.session))]

    def _on_dispatch(self, payload: Payload, now: float) -> list[Output]:
        if payload.t is None or payload.s is None:
            return []
        session = None
        if self.phase in (Phase.GREETING, Phase.IDENTIFYING) and payload.t != "READY":
            return []  # it does not belong to a session
        if payload.t == "READY":
            ready = _decoded(payload, _Ready)
            if ready is None:
                return self._close("a READY without a session", After.IDENTIFY)
            session = self.session = Session(ready.session_id, ready.resume_gateway_url or self._url)
            self.sequence = None
            self.phase = Phase.READY
        elif payload.t == "RESUMED":
            self.phase = Phase.READY
        # A repeated event has been applied already; applied again it would undo later ones.
        if self.sequence is not None and payload.s <= self.sequence:
            return []
        self.sequence = payload.s
        return [Dispatch(payload.t, payload.s, payload.d, session)]

    def _on_heartbeat(self, payload: Payload, now: float) -> list[Output]:
        return [self._heartbeat()]

    def _on_acknowledgement(self, payload: Payload, now: float) -> list[Output]:
        if self._unanswered:
            self._unanswered = False
            self.latency = now - self._beaten_at
        if self.ready:
            self._attempts = 0
        return []

    def _on_reconnect(self, payload: Payload, now: float) -> list[Output]:
        return self._close("asked to reconnect", After.RESUME)

    def _on_invalid_session(self, payload: Payload, now: float) -> list[Output]:
        resumable = bytes(payload.d) == b"true"
        return self._close("the session is invalid", After.RESUME if resumable else After.IDENTIFY)

    def _introduction(self) -> dict[str, Any]:
        identity = self._identity
        data: dict[str, Any] = {
            "token": identity.token,
            "properties": {"os": "linux", "browser": "keywright", "device": "keywright"},
            "large_threshold": identity.large_threshold,
            "shard": [self.shard, self.shards],
            "intents": identity.intents,
        }
        if identity.presence is not None:
            data["presence"] = identity.presence
        return data

    def _reminder(self, session: Session) -> dict[str, Any]:
        return {
            "token": self._identity.token,
            "session_id": session.id,
            "seq": self.sequence if self.sequence is not None else 0,
        }


_HANDLERS: dict[int, Callable[[Conversation, Payload, float], list[Output]]] = {
    Op.DISPATCH: Conversation._on_dispatch,
    Op.HEARTBEAT: Conversation._on_heartbeat,
    Op.RECONNECT: Conversation._on_reconnect,
    Op.INVALID_SESSION: Conversation._on_invalid_session,
    Op.HELLO: Conversation._on_hello,
    Op.HEARTBEAT_ACK: Conversation._on_acknowledgement,
}


def _decoded(payload: Payload, to: type[Any]) -> Any:
    try:
        return msgspec.json.decode(payload.d, type=to)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):  # `d` was not decoded before
        return None
