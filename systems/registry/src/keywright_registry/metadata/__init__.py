"""The metadata database of the registry: one contract, one implementation for PostgreSQL and SQLite."""

from keywright_registry.metadata.contract import Metadata, MetadataTransaction
from keywright_registry.metadata.urls import open_metadata

__all__ = ["Metadata", "MetadataTransaction", "open_metadata"]
