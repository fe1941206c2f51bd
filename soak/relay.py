"""A relay of any TCP protocol on loopback that can be cut, slowed down and closed.

For Redis there is `keywright.testing.Proxy`, which knows commands and replies; this one knows bytes only.
"""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress
from types import TracebackType
from typing import Self

from keywright.testing import LOOPBACK
from soak.ports import service_port

__all__ = ["Relay"]

_CHUNK = 16_384


class Relay:
    """Forwards connections to a loopback port. A thread for each direction of a connection."""

    def __init__(self, port: int) -> None:
        self.delay_seconds = 0.0
        """How long each chunk waits before it is forwarded."""
        self.bytes_a_second: int | None = None
        self._target = port
        self._guard = threading.Lock()
        self._sockets: set[socket.socket] = set()
        self._listener: socket.socket | None = None
        self.port = service_port()
        self.accept()

    def accept(self) -> None:
        """Accept connections, always on the same port."""
        if self._listener is None:
            self._listener = socket.create_server((LOOPBACK, self.port))
            threading.Thread(target=self._serve, args=(self._listener,), daemon=True).start()

    def refuse(self) -> None:
        """Refuse new connections; those that exist go on."""
        listener, self._listener = self._listener, None
        if listener is not None:
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()

    def cut(self) -> None:
        """Close every connection now."""
        with self._guard:
            sockets = list(self._sockets)
        for each in sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self.refuse()
        self.cut()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _serve(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection((LOOPBACK, self._target), timeout=5)
            except OSError:
                client.close()
                continue
            server.settimeout(None)
            with self._guard:
                self._sockets |= {client, server}
            for source, sink in ((client, server), (server, client)):
                threading.Thread(target=self._pump, args=(source, sink), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(_CHUNK):
                self._wait(len(data))
                sink.sendall(data)
        for each in (source, sink):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        with self._guard:
            self._sockets.discard(source)
        source.close()

    def _wait(self, size: int) -> None:
        if self.delay_seconds:
            time.sleep(self.delay_seconds)
        if self.bytes_a_second:
            time.sleep(size / self.bytes_a_second)
