"""The limits of the same work: prepacked bytes on a socket, and `redis-benchmark -P` on the server.

Prepacked bytes are the least that a Python client does: the commands of redis-py's pipeline are packed
before the clock starts; then they are sent, and hiredis parses the replies, which nobody reads. With the
calls made before, they are the least of a program that makes typed calls: nothing is packed or decoded.
"""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import urlsplit

import hiredis

__all__ = ["CALLS_MADE", "PREPACKED", "SERVER", "Prepacked", "packed", "server_rate"]

PREPACKED = "prepacked bytes"
CALLS_MADE = "calls made, then prepacked bytes"
SERVER = "redis-benchmark -P"
PIECE = 1 << 18


def packed(fill: Callable[[Any], object], client: Any) -> tuple[bytes, int]:
    """Return the bytes of the commands that are added to a pipeline of redis-py, and their number."""
    pipe = client.pipeline(transaction=False)
    fill(pipe)
    commands = [arguments for arguments, _ in pipe.command_stack]
    return b"".join(hiredis.pack_command(tuple(arguments)) for arguments in commands), len(commands)


class Prepacked:
    """One connection without a client."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme == "unix":
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self._socket.connect(parts.path)
        else:
            self._socket = socket.create_connection((parts.hostname or "localhost", parts.port or 6379))
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, data: bytes, replies: int) -> None:
        """Send commands and read so many replies. An error among them raises."""
        reader = hiredis.Reader()
        self._socket.sendall(data)
        while replies:
            reader.feed(self._socket.recv(PIECE))
            while replies and (reply := reader.gets()) is not False:
                if isinstance(reply, hiredis.ReplyError):
                    raise reply
                replies -= 1

    def reply(self, data: bytes) -> Any:
        """Send one command and return its reply."""
        reader = hiredis.Reader()
        self._socket.sendall(data)
        while (reply := reader.gets()) is False:
            reader.feed(self._socket.recv(PIECE))
        return reply

    def close(self) -> None:
        self._socket.close()


def server_rate(url: str, command: Sequence[object], calls: int) -> float:
    """Return the commands a second of redis-benchmark, with one connection and as deep a pipeline."""
    parts = urlsplit(url)
    asked = ["redis-benchmark", "-h", parts.hostname or "localhost", "-p", str(parts.port or 6379)]
    asked += ["-c", "1", "-P", str(calls), "-n", str(calls * 50), "--csv"]
    texts = [each.decode() if isinstance(each, bytes) else str(each) for each in command]
    done = subprocess.run([*asked, *texts], check=True, capture_output=True, text=True)
    return float(done.stdout.splitlines()[-1].rsplit('","', 7)[1])
