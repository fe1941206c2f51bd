"""The container registry as a model of the tools: its keys, the older cache, and what its service keeps."""

from __future__ import annotations

from keywright.tools import Model
from keywright_registry import schema
from keywright_registry.service import schema as service_schema

__all__ = ["registry"]

registry = Model("registry", (schema.registry, schema.legacy, service_schema.notifications))
