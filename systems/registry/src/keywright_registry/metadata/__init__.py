"""The registry's metadata database: one contract, PostgreSQL and SQLite."""

from keywright_registry.metadata.contract import Metadata, Transaction
from keywright_registry.metadata.urls import open_metadata

__all__ = ["Metadata", "Transaction", "open_metadata"]
