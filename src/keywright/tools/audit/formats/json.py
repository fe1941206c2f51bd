"""The report as one JSON object, for programs."""

from __future__ import annotations

import json

from keywright.tools.audit.report import AuditReport, ServerReport

__all__ = ["as_json"]


def as_json(report: AuditReport | ServerReport) -> str:
    return json.dumps(report.as_data(), indent=2, ensure_ascii=False)
