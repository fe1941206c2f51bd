"""Audit of live data against its declaration: counts and sizes by template, and findings."""

from keywright.tools.audit.auditor import audit
from keywright.tools.audit.budgets import Budget, parse_budget
from keywright.tools.audit.checkpoint import Checkpoint
from keywright.tools.audit.findings import CODES, Finding, FindingCode, codes_named
from keywright.tools.audit.report import AuditReport, ServerReport, TemplateRow
from keywright.tools.audit.walk import AuditOptions, WalkProgress

__all__ = [
    "CODES",
    "AuditOptions",
    "AuditReport",
    "Budget",
    "Checkpoint",
    "Finding",
    "FindingCode",
    "ServerReport",
    "TemplateRow",
    "WalkProgress",
    "audit",
    "codes_named",
    "parse_budget",
]
