"""Small line charts of counts over time."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["HEIGHT", "WIDTH", "sparkline"]

WIDTH, HEIGHT = 160.0, 28.0


def sparkline(values: Sequence[int], width: float = WIDTH, height: float = HEIGHT) -> str:
    """Return the points of a polyline from zero to the largest value, newest at the right."""
    largest = max(values, default=0) or 1
    step = width / max(1, len(values) - 1)
    shown = values if len(values) > 1 else [*values, *values]
    return " ".join(
        f"{min(width, place * step):.1f},{height - 1 - (height - 2) * value / largest:.1f}"
        for place, value in enumerate(shown)
    )
