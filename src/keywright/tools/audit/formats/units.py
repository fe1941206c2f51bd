"""Numbers with units, for people."""

from __future__ import annotations

__all__ = ["bytes_shown", "share_shown"]


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
