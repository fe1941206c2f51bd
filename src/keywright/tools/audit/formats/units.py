"""Numbers with units, for people."""

from __future__ import annotations

__all__ = ["bytes_shown", "estimated_bytes", "estimated_share", "share_shown"]


def estimated_bytes(size: int | None, error: float) -> str:
    """Return a size, with its margin if it is an estimate: `~1.5 KiB ±4%`. None is unknown."""
    if size is None:
        return "-"
    return f"~{bytes_shown(size)} ±{_margin(error)}" if error else bytes_shown(size)


def estimated_share(share: float | None, error: float) -> str:
    """Return a share, with its margin in percentage points if it is an estimate. None is unknown."""
    if share is None or not error:
        return share_shown(share)
    return f"~{share:.0%} ±{_margin(error)}"


def _margin(error: float) -> str:
    return "<1%" if error < 0.01 else f"{error:.0%}"


def bytes_shown(size: float) -> str:
    """Return a size with its unit: 1536 is `1.5 KiB`."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def share_shown(share: float | None) -> str:
    if share is None:
        return "-"
    return f"{share:.0%}" if share in (0, 1) else f"{share:.1%}"
