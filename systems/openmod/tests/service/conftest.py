from browsing import chromium

__all__ = ["chromium"]
