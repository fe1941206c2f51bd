"""Ports for services that are killed and started again on the same port."""

from __future__ import annotations

import random
import socket

from keywright.testing import LOOPBACK

__all__ = ["service_port"]

# Above those that test servers choose, and below those that Linux hands to outgoing connections: while a
# service is down no other program takes its port.
_PORTS = range(23_000, 32_000)


def service_port() -> int:
    """Return a free loopback port."""
    while True:
        port = random.choice(_PORTS)
        with socket.socket() as probe:
            try:
                probe.bind((LOOPBACK, port))
            except OSError:
                continue
        return port
