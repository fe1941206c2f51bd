"""Addresses in the configuration of a service."""

from __future__ import annotations

from keywright.tools.http import LOOPBACK, is_loopback, listening
from keywright_service.configuration import host_and_port

__all__ = ["LOOPBACK", "host_and_port", "is_loopback", "listening"]
