"""Errors of Open Mod.

PlatformError
└── MalformedEventError     an event without the members that its type must have
"""

from __future__ import annotations

from keywright_service.errors import PlatformError

__all__ = ["MalformedEventError"]


class MalformedEventError(PlatformError):
    """An event lacks members that its type must have. Nothing of it was recorded."""

    exit_code = 1

    def __init__(self, event: str, reason: str) -> None:
        self.event = event
        self.reason = reason
        super().__init__(
            f"{event} is not as the platform documents it: {reason}. "
            "Compare it with the fields of events in systems/openmod/docs/guide.md#events; "
            "delivering it again changes nothing."
        )
