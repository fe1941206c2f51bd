"""The container registry as a model of the tools: its keys, the older cache, the state of its service."""

from __future__ import annotations

from keywright.tools import Model
from keywright_registry import schema

__all__ = ["registry"]

registry = Model("registry", (schema.registry, schema.legacy, schema.notifications))
