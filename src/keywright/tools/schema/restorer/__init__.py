"""Keyspaces from schema files: the way back, for tools that have a file and no program."""

from keywright.tools.schema.restorer.keyspaces import keyspaces_from_schema

__all__ = ["keyspaces_from_schema"]
