"""Fault injection: a loopback proxy in front of a real server that breaks connections on cue.

It knows where RESP messages begin and end, so a fault hits an exact command or reply, not a moment in time.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from enum import Enum, auto
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import parse_qs, unquote, urlsplit

from keywright.errors import UsageError
from keywright.testing.servers import LOOPBACK
from keywright.testing.wire import Address, Frames, dial

__all__ = ["Proxy"]

_CHUNK = 65_536
_JOIN_SECONDS = 5.0
# What a client sends to set a connection up is forwarded but not counted, so that "the first command" is the
# caller's first command, on a warm connection and on a new one.
_HANDSHAKE = frozenset({b"AUTH", b"CLIENT", b"HELLO", b"READONLY", b"SELECT"})


class _Fault(Enum):
    CUT_AFTER_BYTES = auto()
    CUT_AFTER_COMMANDS = auto()
    CUT_BEFORE_REPLY = auto()
    TRUNCATE_REPLY = auto()


class Proxy:
    """A proxy to `upstream` (a redis:// or unix:// URL) that a test can break.

    One cut or truncation can be armed at a time; it counts from then on, over all connections, and strikes
    once. delay() and refuse() last. heal() ends them all. Connections that SUBSCRIBE are for cut() only: they
    get more replies than they send commands.
    """

    def __init__(self, upstream: str) -> None:
        self._target, self._credentials, self._database = _parse(upstream)
        self._guard = threading.RLock()
        self._links: set[_Link] = set()
        self._accepting: threading.Thread | None = None
        self._listener: socket.socket | None = None
        self._placeholder: socket.socket | None = None
        self._port = 0
        self._commands = 0
        self._connections = 0
        self._fault: _Fault | None = None
        self._countdown = 0
        self._delay_seconds = 0.0
        self._undelayed = threading.Event()
        self._listen()

    @property
    def url(self) -> str:
        """Return the URL of the server through the proxy."""
        return f"redis://{self._credentials}{LOOPBACK}:{self._port}/{self._database}"

    @property
    def port(self) -> int:
        """Return the port of the proxy."""
        return self._port

    @property
    def commands(self) -> int:
        """Return the number of forwarded commands, without set-up (HELLO, AUTH, CLIENT, SELECT, READONLY)."""
        with self._guard:
            return self._commands

    @property
    def connections(self) -> int:
        """Return the number of connections accepted so far, also while the server behind was away."""
        with self._guard:
            return self._connections

    def cut(self) -> None:
        """Close every connection now."""
        with self._guard:
            links = tuple(self._links)
        for link in links:
            link.cut()

    def cut_after_commands(self, count: int) -> None:
        """Let `count` commands through with their replies, then cut; the rest never reaches the server."""
        self._arm(_Fault.CUT_AFTER_COMMANDS, count)

    def cut_after_bytes(self, count: int) -> None:
        """Let `count` bytes towards the server, perhaps half a command, deliver the replies, then cut."""
        self._arm(_Fault.CUT_AFTER_BYTES, count)

    def cut_before_reply(self, number: int = 1) -> None:
        """Cut when the reply of that command arrives: the server applied it, the client gets no reply."""
        self._arm(_Fault.CUT_BEFORE_REPLY, number)

    def truncate_reply(self) -> None:
        """Deliver the first half of the next command's reply, then cut."""
        self._arm(_Fault.TRUNCATE_REPLY, 1)

    def delay(self, seconds: float) -> None:
        """Delay the server's replies by this long; replies that arrive together wait together."""
        with self._guard:
            self._delay_seconds = seconds
            self._undelayed.clear()

    def refuse(self) -> None:
        """Refuse new connections; those that exist go on."""
        with self._guard:
            listener, self._listener = self._listener, None
            thread, self._accepting = self._accepting, None
        if listener is not None and thread is not None:
            _shut(listener)  # wakes the thread that waits in accept()
            thread.join(_JOIN_SECONDS)
            listener.close()
            # Bound without listening: connections are refused, and no other program takes the port meanwhile.
            self._placeholder = placeholder = socket.socket()
            placeholder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            placeholder.bind((LOOPBACK, self._port))

    def heal(self) -> None:
        """Disarm every fault, deliver delayed replies and accept connections again."""
        with self._guard:
            self._fault = None
            self._delay_seconds = 0.0
            self._undelayed.set()
            if self._listener is None:
                self._listen()

    def close(self) -> None:
        """Refuse, cut, and wait for the threads. Idempotent."""
        self.refuse()
        self._free_port()
        self._undelayed.set()
        self.cut()
        with self._guard:
            links = tuple(self._links)
        for link in links:
            link.join(_JOIN_SECONDS)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _arm(self, fault: _Fault, count: int) -> None:
        least = 0 if fault in (_Fault.CUT_AFTER_COMMANDS, _Fault.CUT_AFTER_BYTES) else 1
        if count < least:
            raise UsageError(f"count must be at least {least}, got {count}.")
        with self._guard:
            self._fault, self._countdown = fault, count

    def _free_port(self) -> None:
        if self._placeholder is not None:
            self._placeholder.close()
            self._placeholder = None

    def _listen(self) -> None:
        self._free_port()
        self._listener = listener = socket.create_server((LOOPBACK, self._port))
        self._port = listener.getsockname()[1]
        self._accepting = threading.Thread(target=self._accept, args=(listener,), daemon=True)
        self._accepting.start()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            with self._guard:
                self._connections += 1
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            try:
                server = dial(self._target)
            except OSError:
                client.close()
                continue
            self._link(client, server)

    def _link(self, client: socket.socket, server: socket.socket) -> None:
        with self._guard:
            link = _Link(self, client, server)
            self._links.add(link)
        link.start()

    def _forget(self, link: _Link) -> None:
        with self._guard:
            self._links.discard(link)

    def _admit(self, link: _Link, commands: list[bytes]) -> tuple[bytes, bool]:
        """Return the bytes of these commands to forward, and whether the connection stays open for more."""
        with self._guard:
            admitted: list[bytes] = []
            for command in commands:
                if self._cuts_before(command):
                    return b"".join(admitted), False
                admitted.append(command)
                link.sent += 1
                if self._strikes(link, command):
                    return b"".join(admitted), False
            return self._within_bytes(b"".join(admitted))

    def _cuts_before(self, command: bytes) -> bool:
        if self._fault is not _Fault.CUT_AFTER_COMMANDS or self._countdown or _is_handshake(command):
            return False
        self._fault = None
        return True

    def _strikes(self, link: _Link, command: bytes) -> bool:
        if _is_handshake(command):
            return False
        self._commands += 1
        if self._fault is None or self._fault is _Fault.CUT_AFTER_BYTES:
            return False
        self._countdown -= 1
        if self._countdown:
            return False
        link.doom(link.sent, self._fault)
        self._fault = None
        return True

    def _within_bytes(self, admitted: bytes) -> tuple[bytes, bool]:
        if self._fault is not _Fault.CUT_AFTER_BYTES:
            return admitted, True
        if len(admitted) < self._countdown:
            self._countdown -= len(admitted)
            return admitted, True
        self._fault = None
        return admitted[: self._countdown], False

    def _hold_back(self) -> None:
        with self._guard:
            seconds = self._delay_seconds
        if seconds:
            self._undelayed.wait(seconds)


class _Link:
    """A client's connection and the one to the server behind it: a thread for each direction."""

    def __init__(self, proxy: Proxy, client: socket.socket, server: socket.socket) -> None:
        self.sent = 0
        self._proxy = proxy
        self._client = client
        self._server = server
        self._answered = 0
        self._last_reply: int | None = None
        self._fault = _Fault.CUT_AFTER_COMMANDS
        self._closing = threading.Lock()
        self._closed = False
        self._replies = threading.Thread(target=self._pump_replies, daemon=True)
        self._requests = threading.Thread(target=self._pump_requests, daemon=True)

    def start(self) -> None:
        self._replies.start()
        self._requests.start()

    def join(self, seconds: float) -> None:
        self._requests.join(seconds)

    def doom(self, number: int, fault: _Fault) -> None:
        """Make the reply with this number the last one. How much of it is delivered depends on the fault."""
        self._fault = fault
        self._last_reply = number

    def cut(self) -> None:
        with self._closing:  # a closed descriptor may already be somebody else's
            if not self._closed:
                _shut(self._client)
                _shut(self._server)

    def _pump_requests(self) -> None:
        frames, open_for_more = Frames(), True
        with contextlib.suppress(OSError):
            while data := self._client.recv(_CHUNK):
                # After a fault the rest is read and dropped: unread bytes would turn the close into a reset,
                # which may overtake the last replies.
                if not open_for_more:
                    continue
                admitted, open_for_more = self._proxy._admit(self, frames.feed(data))
                self._server.sendall(admitted)
                if not open_for_more:
                    self._end_requests()
        self._end_requests()
        self._replies.join()
        with self._closing:
            self._closed = True
            self._client.close()
            self._server.close()
        self._proxy._forget(self)

    def _end_requests(self) -> None:
        # Seeing the end of input, the server answers what it has and closes: no reply is lost by chance.
        # While a last reply is awaited the input stays open: its end would cancel a command that blocks.
        if self._last_reply is None:
            with contextlib.suppress(OSError):
                self._server.shutdown(socket.SHUT_WR)

    def _pump_replies(self) -> None:
        frames = Frames()
        with contextlib.suppress(OSError):
            while data := self._server.recv(_CHUNK):
                self._proxy._hold_back()
                delivered, open_for_more = self._deliverable(frames.feed(data))
                self._client.sendall(delivered)
                if not open_for_more:
                    break
        self.cut()

    def _deliverable(self, replies: list[bytes]) -> tuple[bytes, bool]:
        delivered: list[bytes] = []
        for reply in replies:
            if not reply.startswith(b">"):  # a push answers no command
                self._answered += 1
                if self._answered == self._last_reply:
                    delivered.append(_remains(reply, self._fault))
                    return b"".join(delivered), False
            delivered.append(reply)
        return b"".join(delivered), True


def _remains(reply: bytes, fault: _Fault) -> bytes:
    if fault is _Fault.CUT_BEFORE_REPLY:
        return b""
    return reply[: len(reply) // 2] if fault is _Fault.TRUNCATE_REPLY else reply


def _shut(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


def _is_handshake(command: bytes) -> bool:
    words = command.split(b"\r\n", 3)  # *2, $4, AUTH, the rest
    return len(words) > 2 and words[2].upper() in _HANDSHAKE


def _parse(url: str) -> tuple[Address, str, str]:
    parts = urlsplit(url)
    credentials = parts.netloc.rpartition("@")[0]
    prefix = f"{credentials}@" if credentials else ""
    if parts.scheme == "unix":
        return Path(unquote(parts.path)), prefix, parse_qs(parts.query).get("db", ["0"])[0]
    if parts.scheme == "redis":
        return (parts.hostname or LOOPBACK, parts.port or 6379), prefix, parts.path.strip("/") or "0"
    raise UsageError(f"the proxy cannot read {parts.scheme}:// traffic. Give it a redis:// or unix:// URL.")
