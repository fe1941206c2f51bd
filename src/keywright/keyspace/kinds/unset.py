"""The one sentinel for "not given", where None already means something."""

from __future__ import annotations

import enum
from typing import Final


class Unset(enum.Enum):
    UNSET = "unset"

    def __repr__(self) -> str:
        return "UNSET"


UNSET: Final = Unset.UNSET
