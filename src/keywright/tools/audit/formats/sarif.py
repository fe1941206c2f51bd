"""The report as SARIF 2.1.0, for code scanning. A key is a logical location: there is no file."""

from __future__ import annotations

import json
import re
from importlib.metadata import version
from typing import Any

from keywright.tools.audit.findings import CODES, Finding, FindingCode
from keywright.tools.audit.report import AuditReport, ServerReport

__all__ = ["as_sarif"]


def as_sarif(report: AuditReport | ServerReport) -> str:
    document = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [_run(each) for each in report.reports],
    }
    return json.dumps(document, indent=2, ensure_ascii=False)


def _run(report: AuditReport) -> dict[str, Any]:
    used = [CODES[code] for code in report.counts]
    return {
        "tool": {
            "driver": {
                "name": "keywright audit",
                "version": version("keywright"),
                "informationUri": "https://pypi.org/project/keywright/",
                "rules": [_rule(code) for code in used],
            }
        },
        "results": [_result(report, finding) for finding in report.findings],
        "properties": {
            "counts": report.counts,
            "names": report.keys,
            "outside": report.tally.outside,
            **_database(report),
        },
    }


def _database(report: AuditReport) -> dict[str, int]:
    return {} if report.database is None else {"database": report.database}


def _rule(code: FindingCode) -> dict[str, Any]:
    return {
        "id": code.code,
        "name": code.word,
        "shortDescription": {"text": code.title},
        "helpUri": code.page,
        "defaultConfiguration": {"level": code.level},
    }


def _plain(text: str) -> str:
    """Return text in which no name or value of a database is a link: SARIF reads `[text](url)` as one."""
    return re.sub(r"[\\\[\]]", r"\\\g<0>", text)


def _result(report: AuditReport, finding: Finding) -> dict[str, Any]:
    name = finding.shown_name(show_ids=report.show_ids)
    properties = {
        **_database(report),
        **({} if finding.invariant is None else {"invariant": finding.invariant}),
    }
    return {
        "ruleId": finding.code,
        "level": CODES[finding.code].level,
        "message": {"text": _plain(f"{name}: {finding.shown_reason(show_ids=report.show_ids)}")},
        "locations": [
            {"logicalLocations": [{"name": finding.template, "fullyQualifiedName": name, "kind": "member"}]}
        ],
        "partialFingerprints": {"key/v1": finding.shown_name(show_ids=False)},
        **({"properties": properties} if properties else {}),
    }
