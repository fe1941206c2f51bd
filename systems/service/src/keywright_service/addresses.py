"""Addresses in the configuration of a service."""

from __future__ import annotations

from keywright.tools.http import LOOPBACK, is_loopback, listening
from keywright_service.configuration import ConfigurationError

__all__ = ["LOOPBACK", "host_and_port", "is_loopback", "listening"]

LARGEST_PORT = 65535
LONGEST_PORT = 5


def host_and_port(setting: str, text: str) -> tuple[str, int]:
    """The parts of `host:port`; loopback where no host is given. The setting is named in the error."""
    host, _, port = text.rpartition(":")
    if not port.isdecimal() or len(port) > LONGEST_PORT or int(port) > LARGEST_PORT:
        raise ConfigurationError(setting, f"cannot be {text!r}", "Write host:port, as in 127.0.0.1:8080.")
    return host.strip("[]") or LOOPBACK, int(port)
