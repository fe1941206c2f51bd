"""The registry's metadata database: one contract, PostgreSQL and SQLite."""

from keywright.models.registry.metadata.contract import Metadata, Transaction
from keywright.models.registry.metadata.opening import open_metadata

__all__ = ["Metadata", "Transaction", "open_metadata"]
