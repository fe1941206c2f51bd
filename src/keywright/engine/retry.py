"""The retry policy: how long, how often and how fast."""

from __future__ import annotations

import random
from typing import NamedTuple

from keywright.keyspace.misuse import explained


class Retry(NamedTuple):
    """Attempts with exponential back-off and jitter, for commands that are safe to repeat.

    Attempts begin within `within_seconds` of the first one; None stands for the timeout of the settings.
    With more time than a deployment needs to replace a primary, calls outlast a failover. `attempts` also
    bounds their number.
    """

    attempts: int | None = None
    first_seconds: float = 0.01
    longest_seconds: float = 0.5
    within_seconds: float | None = None

    @explained
    def pause(self, attempt: int) -> float:
        """Return the back-off in seconds before this attempt; 0 before the first retry."""
        if attempt <= 1:
            return 0.0
        ceiling = min(self.longest_seconds, self.first_seconds * 2.0 ** min(attempt - 2, 30))
        return random.uniform(ceiling / 2, ceiling)  # spreading load, not secrecy


def is_spent(retry: Retry, attempts: int) -> bool:
    """Return whether this many attempts are all that there may be."""
    return retry.attempts is not None and attempts >= retry.attempts


NEVER = Retry(attempts=1)
