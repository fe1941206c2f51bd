"""The container registry: repository cache, counters, leases, and the database behind them."""

from keywright_registry import mentions

__all__ = ["mentions"]
