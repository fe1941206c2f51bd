"""A server with field expiry: that of the tests if it has it, else a stand-in with HPEXPIRE and HPTTL."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import hiredis

from keywright.testing import RedisServer
from keywright.testing.wire import Frames

_ADDED = (b"HPEXPIRE", b"HPTTL")


@contextmanager
def field_expiry(server: RedisServer) -> Iterator[str]:
    """Provide the URL of a server whose fields expire; it has the data of the given one."""
    known = server.call("COMMAND", "INFO", "HPTTL")
    if known != [None]:
        yield server.tcp_url
        return
    stand_in = _StandIn(server)
    try:
        yield stand_in.url
    finally:
        stand_in.close()


class _StandIn:
    """Forwards every command but those of field expiry, which it answers from a table of its own."""

    def __init__(self, server: RedisServer) -> None:
        self._server = server
        self._ttls: dict[tuple[bytes, bytes], int] = {}
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"redis://127.0.0.1:{self._listener.getsockname()[1]}/0"
        self._sockets: list[socket.socket] = [self._listener]
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def close(self) -> None:
        for each in self._sockets:
            with each, suppress(OSError):  # the other side may have been first
                each.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=(client,))
            self._sockets.append(client)
            self._threads.append(thread)
            thread.start()

    def _serve(self, client: socket.socket) -> None:
        frames = Frames()
        with client, socket.create_connection(("127.0.0.1", self._server.port)) as upstream:
            try:
                while data := client.recv(65_536):
                    for frame in frames.feed(data):
                        client.sendall(self._answer(frame, upstream))
            except OSError:
                return

    def _answer(self, frame: bytes, upstream: socket.socket) -> bytes:
        reader = hiredis.Reader()
        reader.feed(frame)
        verb, *words = reader.gets()
        if verb.upper() in _ADDED:
            return _array([b":%d\r\n" % number for number in self._expiry(verb.upper(), *words)])
        upstream.sendall(frame)
        reply, reader = b"", hiredis.Reader()
        while not (whole := Frames().feed(reply)):
            reply += upstream.recv(65_536)
        if (verb.upper(), words[:1]) == (b"COMMAND", [b"INFO"]):
            reader.feed(whole[0])
            entries = zip(words[1:], reader.gets(), strict=True)
            there = [name in _ADDED or entry is not None for name, entry in entries]
            return _array([b"*1\r\n:1\r\n" if each else b"*-1\r\n" for each in there])
        return reply

    def _expiry(self, verb: bytes, key: bytes, *words: bytes) -> list[int]:
        if verb == b"HPEXPIRE":
            milliseconds, _, _, *fields = words
            self._ttls.update({(key, field): int(milliseconds) for field in fields})
            return [1] * len(fields)
        there = self._server.call("HMGET", key, *words[2:])
        assert isinstance(there, list)
        pairs = zip(words[2:], there, strict=True)
        return [-2 if value is None else self._ttls.get((key, field), -1) for field, value in pairs]


def _array(items: list[bytes]) -> bytes:
    return b"*%d\r\n" % len(items) + b"".join(items)
