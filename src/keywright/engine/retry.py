"""How often and how long to try again."""

from __future__ import annotations

import random
from typing import NamedTuple


class Retry(NamedTuple):
    """Bounded attempts with growing, jittered pauses, for what is safe to send again."""

    attempts: int = 12
    first_seconds: float = 0.01
    longest_seconds: float = 0.5

    def pause(self, attempt: int) -> float:
        """Seconds to wait before this attempt; none before the first repetition."""
        if attempt <= 1:
            return 0.0
        ceiling = min(self.longest_seconds, self.first_seconds * 2.0 ** (attempt - 2))
        return random.uniform(ceiling / 2, ceiling)  # spreading load, not secrecy


NEVER = Retry(attempts=1)
