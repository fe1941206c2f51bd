"""Errors of platforms that services talk to.

KeywrightError
└── PlatformError           the platform refused, or could not be reached
    ├── PlatformTroubleError  no certain answer: nothing is known, ask again later
    └── PlatformRefusedError  a final refusal: asking again changes nothing
"""

from __future__ import annotations

from keywright.errors import KeywrightError

__all__ = ["PlatformError", "PlatformRefusedError", "PlatformTroubleError"]


class PlatformError(KeywrightError):
    """The platform that a model watches refused, or could not be reached."""

    exit_code = 3


class PlatformTroubleError(PlatformError):
    """No certain answer: a rate limit, an outage, a reply that says nothing. Never taken for "it is gone"."""

    def __init__(self, platform: str, asked: str, reason: str) -> None:
        self.platform = platform
        self.asked = asked
        self.reason = reason
        super().__init__(f"{platform} gave no certain answer to {asked}: {reason}. Ask again later.")


class PlatformRefusedError(PlatformError):
    """A refusal that asking again does not change."""

    def __init__(self, platform: str, asked: str, reason: str, remedy: str) -> None:
        self.platform = platform
        self.asked = asked
        self.reason = reason
        self.remedy = remedy
        super().__init__(f"{platform} refused {asked}: {reason}. {remedy}")
