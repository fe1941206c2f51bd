"""Errors of the platforms that services talk to, such as Discord, Meetup or Reddit.

KeywrightError
└── PlatformError               the platform refused, or could not be reached
    ├── PlatformTroubleError    no certain answer: nothing is known, ask again later
    └── PlatformRefusedError    a final refusal: asking again changes nothing
        └── HttpRefusedError    the same, with the HTTP status
"""

from __future__ import annotations

from keywright.errors import KeywrightError

__all__ = ["HttpRefusedError", "PlatformError", "PlatformRefusedError", "PlatformTroubleError"]


class PlatformError(KeywrightError):
    """The platform that a model watches refused, or could not be reached."""

    exit_code = 3


class PlatformTroubleError(PlatformError):
    """No certain answer: a rate limit, an outage, a reply that says nothing. Not proof that anything is gone.

    `retry_after` is the number of seconds after which the platform said to ask again, if it did.
    """

    def __init__(self, platform: str, asked: str, reason: str, *, retry_after: float | None = None) -> None:
        self.platform = platform
        self.asked = asked
        self.reason = reason
        self.retry_after = retry_after
        super().__init__(f"{platform} gave no certain answer to {asked}: {reason}. Ask again later.")


class PlatformRefusedError(PlatformError):
    """A refusal that asking again does not change."""

    def __init__(self, platform: str, asked: str, reason: str, remedy: str) -> None:
        self.platform = platform
        self.asked = asked
        self.reason = reason
        self.remedy = remedy
        super().__init__(f"{platform} refused {asked}: {reason}. {remedy}")


class HttpRefusedError(PlatformRefusedError):
    """A refusal of an HTTP API, with its status."""

    def __init__(self, platform: str, asked: str, status: int, reason: str, remedy: str) -> None:
        self.status = status
        super().__init__(platform, asked, f"status {status} {reason}".strip(), remedy)
