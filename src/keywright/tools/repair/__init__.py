"""Repair of the findings of an audit: plans that can be reviewed and saved, their application, and undo."""

from keywright.tools.repair.plan import RepairPlan, make_plan, read_plan
from keywright.tools.repair.repairer import StepOutcome
from keywright.tools.repair.rounds import Repair, repair
from keywright.tools.repair.step import Step
from keywright.tools.repair.undo import UndoFile, undo

__all__ = [
    "Repair",
    "RepairPlan",
    "Step",
    "StepOutcome",
    "UndoFile",
    "make_plan",
    "read_plan",
    "repair",
    "undo",
]
