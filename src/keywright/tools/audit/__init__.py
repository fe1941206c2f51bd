"""Audit of live data against its declaration: counts and sizes by template, and findings."""

from keywright.tools.audit.auditor import audit
from keywright.tools.audit.budgets import Budget, parse_budget
from keywright.tools.audit.checkpoint import Checkpoint
from keywright.tools.audit.findings import CODES, Code, Finding, codes_named
from keywright.tools.audit.report import Report, Row
from keywright.tools.audit.walk import Options, Progress

__all__ = [
    "CODES",
    "Budget",
    "Checkpoint",
    "Code",
    "Finding",
    "Options",
    "Progress",
    "Report",
    "Row",
    "audit",
    "codes_named",
    "parse_budget",
]
