"""Repair of the findings of an audit: plans that can be reviewed and saved, their application, and undo."""

from keywright.tools.repair.plan import Plan, make_plan, read_plan
from keywright.tools.repair.repairer import Outcome
from keywright.tools.repair.rounds import Repair, repair
from keywright.tools.repair.step import Step
from keywright.tools.repair.undo import UndoFile, undo

__all__ = [
    "Outcome",
    "Plan",
    "Repair",
    "Step",
    "UndoFile",
    "make_plan",
    "read_plan",
    "repair",
    "undo",
]
