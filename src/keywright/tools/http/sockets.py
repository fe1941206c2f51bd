"""Listening sockets, and which addresses mean this machine only."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterator
from contextlib import contextmanager

from keywright.errors import UsageError

__all__ = ["LOOPBACK", "is_loopback", "listening", "url_of"]

LOOPBACK = "127.0.0.1"


def is_loopback(host: str) -> bool:
    """Return whether a name or address means this machine only."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@contextmanager
def listening(host: str, port: int, *, remedy: str) -> Iterator[socket.socket]:
    """Yield a socket that accepts connections until the end of the block. Port 0 takes a free port.

    Raise UsageError with the remedy if the address cannot be used.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        bound = socket.create_server((host, port), family=family)
    except (OSError, OverflowError) as error:
        raise UsageError(f"{host}:{port} cannot be listened on: {error}. {remedy}") from error
    with bound:
        # asyncio sets it only on sockets that name their protocol; without it each answer waits 40 ms.
        bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield bound


def url_of(bound: socket.socket) -> str:
    """Return the address of a listening socket as a URL."""
    host, port = bound.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
