"""The retry policy: attempts and back-off."""

from __future__ import annotations

import random
from typing import NamedTuple

from keywright.keyspace.misuse import explained


class Retry(NamedTuple):
    """Bounded attempts with exponential back-off and jitter, for commands that are safe to repeat."""

    attempts: int = 12
    first_seconds: float = 0.01
    longest_seconds: float = 0.5

    @explained
    def pause(self, attempt: int) -> float:
        """Return the back-off in seconds before this attempt; 0 before the first retry."""
        if attempt <= 1:
            return 0.0
        ceiling = min(self.longest_seconds, self.first_seconds * 2.0 ** (attempt - 2))
        return random.uniform(ceiling / 2, ceiling)  # spreading load, not secrecy


NEVER = Retry(attempts=1)
