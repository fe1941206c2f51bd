"""RESP without a client library: a small connection for set-up, and frame boundaries for the proxy."""

from __future__ import annotations

import socket
from pathlib import Path
from types import TracebackType
from typing import Self, TypeAlias

from keywright.errors import ConnectionLostError, ServerRefusedError

__all__ = ["Address", "Frames", "RawConnection", "Reply", "dial"]

Address: TypeAlias = Path | tuple[str, int]
Reply: TypeAlias = "bytes | int | list[Reply] | None"


def dial(address: Address, *, seconds: float | None = None) -> socket.socket:
    """Return a stream socket connected to a unix path or a host and port."""
    if not isinstance(address, Path):
        connection = socket.create_connection(address, timeout=seconds)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(seconds)
        connection.connect(str(address))
    except BaseException:
        connection.close()
        raise
    return connection


class RawConnection:
    """A blocking RESP2 connection. An error reply raises ServerRefusedError."""

    def __init__(self, address: Address, *, password: str | None = None, seconds: float = 10.0) -> None:
        self._name = str(address)
        try:
            self._socket = dial(address, seconds=seconds)
        except OSError as exc:
            raise ConnectionLostError(self._name, str(exc)) from exc
        self._replies = self._socket.makefile("rb")
        if password is not None:
            self.call("AUTH", password)

    def call(self, *words: str | bytes | int) -> Reply:
        """Send a command and return its reply. An error reply is raised."""
        encoded = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        parts = [b"*%d\r\n" % len(encoded), *(b"$%d\r\n%b\r\n" % (len(word), word) for word in encoded)]
        try:
            self._socket.sendall(b"".join(parts))
            reply = self._read()
        except OSError as exc:
            raise ConnectionLostError(self._name, str(exc)) from exc
        if isinstance(reply, _Refusal):
            key = encoded[1] if len(encoded) > 1 else b""
            raise ServerRefusedError(str(words[0]), key, reply.decode())
        return reply

    def text(self, *words: str | bytes | int) -> str:
        """Run a command whose reply is text, such as INFO or CLUSTER NODES."""
        reply = self.call(*words)
        return reply.decode() if isinstance(reply, bytes) else ""

    def close(self) -> None:
        """Close the connection."""
        self._replies.close()
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _read(self) -> Reply:
        line = self._replies.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError("the server closed the connection")
        mark, rest = line[:1], line[1:-2]
        if mark == b"-":
            return _Refusal(rest)
        if mark == b"+":
            return rest
        if mark == b":":
            return int(rest)
        if rest == b"-1":
            return None
        if mark == b"*":
            return [self._read() for _ in range(int(rest))]
        return self._read_bulk(int(rest))

    def _read_bulk(self, length: int) -> bytes:
        body = self._replies.read(length + 2)
        if len(body) < length + 2:
            raise ConnectionError("the server closed the connection")
        return body[:-2]


class _Refusal(bytes):
    """An error reply, which stays a value inside an array."""


class Frames:
    """A splitter of a byte stream into whole RESP2 or RESP3 messages, commands and replies alike."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._position = 0
        self._missing = 1  # elements still to come before the message is whole

    def feed(self, data: bytes) -> list[bytes]:
        """Add received bytes. Return the messages that they complete."""
        self._buffer += data
        whole = []
        while self._step():
            if self._missing == 0:
                whole.append(bytes(self._buffer[: self._position]))
                del self._buffer[: self._position]
                self._position, self._missing = 0, 1
        return whole

    def _step(self) -> bool:
        end = self._buffer.find(b"\r\n", self._position)
        if end < 0:
            return False
        mark = self._buffer[self._position : self._position + 1]
        if mark in _COUNTED:
            count = int(self._buffer[self._position + 1 : end])
            if mark in _STRINGS and count >= 0:
                end += count + 2
                if len(self._buffer) < end + 2:
                    return False
            elif count >= 0:
                self._missing += count * (2 if mark in _PAIRS else 1)
        if mark != b"|":  # attributes come before the element they describe and do not count as it
            self._missing -= 1
        self._position = end + 2
        return True


_STRINGS = (b"$", b"!", b"=")
_PAIRS = (b"%", b"|")
_COUNTED = (*_STRINGS, *_PAIRS, b"*", b"~", b">")
