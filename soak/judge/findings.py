"""What a judge found: counts for the table, and every violation in words."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["Findings"]

_SHOWN = 20


@dataclass
class Findings:
    """The counts of one scenario. `lost`, `doubled` and `violations` must be zero for it to pass."""

    acknowledged: int = 0
    lost: int = 0
    doubled: int = 0
    violations: int = 0
    allowed_lost: int = 0
    """Lost where the documentation says so: failover without WAIT, eviction."""
    repeated: int = 0
    """Messages that a worker received again: delivery is at least once."""
    errors: dict[str, int] = field(default_factory=dict)
    """The errors that callers saw, by class."""
    details: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        return not (self.lost or self.doubled or self.violations)

    def error(self, name: str, count: int = 1) -> None:
        self.errors[name] = self.errors.get(name, 0) + count

    def lose(self, what: str) -> None:
        self.lost += 1
        self._detail(f"lost: {what}")

    def double(self, what: str) -> None:
        self.doubled += 1
        self._detail(f"doubled: {what}")

    def violate(self, what: str) -> None:
        self.violations += 1
        self._detail(f"violation: {what}")

    def _detail(self, text: str) -> None:
        if len(self.details) < _SHOWN:
            self.details.append(text)
