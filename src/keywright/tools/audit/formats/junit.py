"""The report as JUnit XML: a test case for each code, which fails when there are findings of it."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from keywright.tools.audit.findings import CODES, FindingCode
from keywright.tools.audit.report import AuditReport, ServerReport

__all__ = ["as_junit"]

_UNPRINTABLE = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def as_junit(report: AuditReport | ServerReport) -> str:
    root = ElementTree.Element("testsuites")
    root.extend(map(_suite, report.reports))
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True)


def _suite(report: AuditReport) -> ElementTree.Element:
    failing = [code for code, count in report.counts.items() if count and code in report.failing]
    suite = ElementTree.Element(
        "testsuite",
        name=f"keywright audit {report.model}{_numbered(report)}",
        tests=str(len(CODES)),
        failures=str(len(failing)),
        errors="0",
        time=f"{report.seconds:.3f}",
    )
    for code in CODES.values():
        _case(suite, report, code)
    return suite


def _numbered(report: AuditReport) -> str:
    return "" if report.database is None else f", database {report.database}"


def _case(suite: ElementTree.Element, report: AuditReport, code: FindingCode) -> None:
    case = ElementTree.SubElement(
        suite, "testcase", classname=f"{report.model}{_numbered(report)}", name=f"{code.code} {code.title}"
    )
    found = report.tally.findings.get(code.code)
    if found is None:
        return
    lines = [
        f"{finding.shown_name(show_ids=report.show_ids)}: {finding.shown_reason(show_ids=report.show_ids)}"
        for finding in found.kept
    ]
    if code.code in report.failing:
        failure = ElementTree.SubElement(case, "failure", message=f"{found.count} findings", type=code.word)
        failure.text = _printable("\n".join(lines))
    else:
        ElementTree.SubElement(case, "system-out").text = _printable("\n".join(lines))


def _printable(text: str) -> str:
    """Return the text without characters that are invalid in XML 1.0."""
    return _UNPRINTABLE.sub("\ufffd", text)
