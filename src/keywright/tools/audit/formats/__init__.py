"""The formats of an audit report."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from keywright.tools.audit.formats.html import as_html
from keywright.tools.audit.formats.json import as_json
from keywright.tools.audit.formats.junit import as_junit
from keywright.tools.audit.formats.sarif import as_sarif
from keywright.tools.audit.formats.text import as_text
from keywright.tools.audit.report import AuditReport, ServerReport

__all__ = ["FORMATS"]

FORMATS: Mapping[str, Callable[[AuditReport | ServerReport], str]] = {
    "text": as_text,
    "json": as_json,
    "sarif": as_sarif,
    "junit": as_junit,
    "html": as_html,
}
