"""The browser for the tests of the explorer."""

from __future__ import annotations

from browsing import chromium

__all__ = ["chromium"]
