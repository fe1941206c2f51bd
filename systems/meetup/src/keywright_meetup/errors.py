"""Errors of the Meetup bot.

UsageError
└── RefusedChangeError      a change that the rules of the model forbid
"""

from __future__ import annotations

from keywright.errors import UsageError

__all__ = ["RefusedChangeError"]


class RefusedChangeError(UsageError):
    """A change that the rules of a model forbid; nothing was changed."""

    exit_code = 1

    def __init__(self, subject: str, reason: str, remedy: str) -> None:
        self.subject = subject
        self.reason = reason
        self.remedy = remedy
        super().__init__(f"{subject} {reason}. {remedy}")
