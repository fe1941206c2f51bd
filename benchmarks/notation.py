"""Figures, ratios and targets as people read them."""

from __future__ import annotations

from benchmarks.measuring import Figure, Result, Unit

__all__ = ["figure", "ratio", "short", "target", "verdict"]

_UNITS: dict[Unit, str] = {
    "ops_per_second": "/s",
    "keys_per_second": " keys/s",
    "microseconds": " µs",
    "seconds": " s",
    "megabytes": " MB",
    "bytes": " bytes",
    "share": "",
    "count": "",
    "commands": " commands",
}
NOT_MET = "**NOT MET**"


def short(value: float) -> str:
    """Return a number with three significant digits."""
    if value == 0:
        return "0"
    if abs(value) >= 1000:
        return f"{float(f'{value:.3g}'):,.0f}"
    return f"{float(f'{value:.3g}'):g}"


def figure(found: Figure, unit: Unit) -> str:
    spread = "" if found.low == found.high else f" ({short(found.low)}\N{EN DASH}{short(found.high)})"
    return f"{short(found.value)}{_UNITS[unit]}{spread}"


def ratio(result: Result) -> str:
    found = result.ratio
    spread = "" if found.low == found.high else f" ({found.low:.2f}\N{EN DASH}{found.high:.2f})"
    return f"{found.value:.2f}{spread}"


def target(result: Result) -> str:
    if result.target is None:
        return "—"
    return f"{'≥' if result.target.bound == 'at least' else '≤'} {result.target.ratio:g}"


def verdict(result: Result) -> str:
    """Return whether the median met the target, and whether every round did."""
    if result.target is None or result.met is None:
        return "—"
    if not result.met:
        return NOT_MET
    every = all(result.target.met_by(each) for each in (result.ratio.low, result.ratio.high))
    return "met" if every else "met, not in every round"
