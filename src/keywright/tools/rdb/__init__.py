"""Dumps of databases (RDB files) and the tools on them: a dump is read like a server that has loaded it."""

from __future__ import annotations

from keywright.tools.rdb.database import DumpDatabase
from keywright.tools.rdb.difference import ChangedKey, DumpDifference, compare_dumps

__all__ = ["ChangedKey", "DumpDatabase", "DumpDifference", "compare_dumps"]
