"""Tools over any keyspace: proofs, documents, audit, repair, migration. `__all__` lists the public names.

Names are imported on first use, so that a program pays only for the tools that it calls.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from keywright.tools.audit import AuditOptions
    from keywright.tools.audit import audit as audit_database
    from keywright.tools.check import prove
    from keywright.tools.docs.asyncapi import ChannelParameter, MessageChannel, ProgramChannels
    from keywright.tools.jobs import JobPlan
    from keywright.tools.migrate import (
        Bookmark,
        Conversion,
        ConversionPage,
        ConversionRoute,
        MigrationPacemaker,
        MigrationProgress,
        Refusal,
        SweepCounts,
        SweepOptions,
        SweepResult,
        convert_all,
        sweep,
    )
    from keywright.tools.model import Model
    from keywright.tools.pace import Pace
    from keywright.tools.plugins import load_model
    from keywright.tools.program import Program
    from keywright.tools.purger import count, purge
    from keywright.tools.repair import repair as repair_database

__all__ = [
    "AuditOptions",
    "Bookmark",
    "ChannelParameter",
    "Conversion",
    "ConversionPage",
    "ConversionRoute",
    "JobPlan",
    "MessageChannel",
    "MigrationPacemaker",
    "MigrationProgress",
    "Model",
    "Pace",
    "Program",
    "ProgramChannels",
    "Refusal",
    "SweepCounts",
    "SweepOptions",
    "SweepResult",
    "audit_database",
    "convert_all",
    "count",
    "load_model",
    "prove",
    "purge",
    "repair_database",
    "sweep",
]

# Never the name of a submodule: importing that would put the module in the place of the function.
_HOMES = {
    "AuditOptions": ("audit", "AuditOptions"),
    "Bookmark": ("migrate", "Bookmark"),
    "ChannelParameter": ("docs.asyncapi", "ChannelParameter"),
    "Conversion": ("migrate", "Conversion"),
    "ConversionPage": ("migrate", "ConversionPage"),
    "ConversionRoute": ("migrate", "ConversionRoute"),
    "JobPlan": ("jobs", "JobPlan"),
    "MessageChannel": ("docs.asyncapi", "MessageChannel"),
    "ProgramChannels": ("docs.asyncapi", "ProgramChannels"),
    "Program": ("program", "Program"),
    "MigrationPacemaker": ("migrate", "MigrationPacemaker"),
    "MigrationProgress": ("migrate", "MigrationProgress"),
    "Model": ("model", "Model"),
    "Pace": ("pace", "Pace"),
    "Refusal": ("migrate", "Refusal"),
    "SweepCounts": ("migrate", "SweepCounts"),
    "SweepOptions": ("migrate", "SweepOptions"),
    "SweepResult": ("migrate", "SweepResult"),
    "audit_database": ("audit", "audit"),
    "convert_all": ("migrate", "convert_all"),
    "count": ("purger", "count"),
    "load_model": ("plugins", "load_model"),
    "prove": ("check", "prove"),
    "purge": ("purger", "purge"),
    "repair_database": ("repair", "repair"),
    "sweep": ("migrate", "sweep"),
}

if not TYPE_CHECKING:  # a checker that saw it would take any name for one of ours

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module, attribute = _HOMES[name]
        return getattr(import_module(f"{__name__}.{module}"), attribute)
