"""Tools over any keyspace: proofs, documents, audit, repair, migration. Public is what `__all__` lists.

Names are imported on first use, so that a program pays only for the tools that it calls.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from keywright.tools.audit import audit
    from keywright.tools.check import prove
    from keywright.tools.docs.asyncapi import Channel, Channels, Parameter
    from keywright.tools.migrate import (
        Bookmark,
        Conversion,
        Counts,
        Options,
        Pace,
        Page,
        Progress,
        Refusal,
        Result,
        Route,
        convert_all,
        sweep,
    )
    from keywright.tools.model import Model
    from keywright.tools.plugins import load_model
    from keywright.tools.purger import count, purge
    from keywright.tools.repair import repair

__all__ = [
    "Bookmark",
    "Channel",
    "Channels",
    "Conversion",
    "Counts",
    "Model",
    "Options",
    "Pace",
    "Page",
    "Parameter",
    "Progress",
    "Refusal",
    "Result",
    "Route",
    "audit",
    "convert_all",
    "count",
    "load_model",
    "prove",
    "purge",
    "repair",
    "sweep",
]

_HOMES = {
    "Bookmark": "migrate",
    "Channel": "docs.asyncapi",
    "Channels": "docs.asyncapi",
    "Conversion": "migrate",
    "Counts": "migrate",
    "Model": "model",
    "Options": "migrate",
    "Pace": "migrate",
    "Page": "migrate",
    "Parameter": "docs.asyncapi",
    "Progress": "migrate",
    "Refusal": "migrate",
    "Result": "migrate",
    "Route": "migrate",
    "audit": "audit",
    "convert_all": "migrate",
    "count": "purger",
    "load_model": "plugins",
    "prove": "check",
    "purge": "purger",
    "repair": "repair",
    "sweep": "migrate",
}

if not TYPE_CHECKING:  # a checker that saw it would take any name for one of ours

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
