"""The report of an audit, as data that every format is made from. Ids are masked unless asked for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from keywright.tools.audit.findings import CODES, Finding
from keywright.tools.audit.tally import Tally

__all__ = ["AuditReport", "ServerReport", "TemplateRow"]


class TemplateRow(NamedTuple):
    """The figures of one template; `coverage` is the share of its keys that expire. None is unknown.

    The errors are margins at 95 % confidence: of bytes as a share of them, of the coverage in shares of 1.
    A figure whose error is not 0 is an estimate.
    """

    template: str
    keys: int
    bytes: int | None
    share: float | None
    coverage: float | None
    expiry: str
    largest_bytes: int
    largest: str
    bytes_error: float = 0.0
    coverage_error: float = 0.0
    sealed: int = 0
    in_clear: int = 0

    @property
    def sealing(self) -> str:
        """Return how the values that are declared sealed are stored; "" if there are none."""
        if not self.sealed and not self.in_clear:
            return ""
        state = "mixed" if self.sealed and self.in_clear else "sealed" if self.sealed else "in clear"
        return f"{state} ({self.sealed:,} values sealed, {self.in_clear:,} in clear)"


class AuditReport(NamedTuple):
    """The result of one audit."""

    model: str
    server: str
    seconds: float
    sample: float
    replicas: int
    tally: Tally
    expiries: dict[str, str]
    failing: frozenset[str]
    show_ids: bool = False
    lead: bytes = b""
    """The beginning of all names in the scope."""
    database: int | None = None
    """The number of the database, if the model declares one."""

    @property
    def reports(self) -> tuple[AuditReport, ...]:
        """Return the reports by database: this one."""
        return (self,)

    @property
    def place(self) -> str:
        """Return the server, and the database if the model declares one, in words."""
        return self.server if self.database is None else f"{self.server}, database {self.database}"

    @property
    def rows(self) -> list[TemplateRow]:
        """Return the figures of the templates, largest first, those without keys last."""
        total = sum(measure.total_bytes or 0 for measure in self.tally.templates.values()) or 1
        rows = []
        for template, expiry in self.expiries.items():
            measure = self.tally.templates.get(template)
            if measure is None:
                rows.append(TemplateRow(template, 0, 0, 0.0, None, expiry, 0, ""))
                continue
            size, name = measure.largest_key
            shown = Finding("KW101", template, name, "").shown_name(show_ids=self.show_ids) if name else ""
            size_of_all = measure.total_bytes
            rows.append(
                TemplateRow(
                    template,
                    measure.keys,
                    size_of_all,
                    None if size_of_all is None else size_of_all / total,
                    measure.coverage,
                    expiry,
                    size,
                    shown,
                    measure.bytes_error,
                    measure.coverage_error,
                    measure.sealed,
                    measure.in_clear,
                )
            )
        return sorted(rows, key=lambda row: (-(row.bytes or 0), row.template))

    @property
    def keys(self) -> int:
        """Return the number of keys in the scope."""
        return self.tally.inside

    @property
    def scope(self) -> str:
        """Return the names that were audited, in words."""
        if self.lead:
            prefix = self.lead.decode("utf-8", "backslashreplace")
            return f"keys whose names begin with {prefix!r}"
        return "all keys" if not self.tally.outside else "keys of the bound prefixes"

    @property
    def counts(self) -> dict[str, int]:
        """Return the number of findings of each code."""
        return {code: found.count for code, found in sorted(self.tally.findings.items())}

    @property
    def findings(self) -> Iterator[Finding]:
        """Return the findings that were kept, by code."""
        return (finding for _, found in sorted(self.tally.findings.items()) for finding in found.kept)

    @property
    def failed(self) -> bool:
        """Return whether there is a finding of a code that this audit fails on."""
        return any(count for code, count in self.counts.items() if code in self.failing)

    @property
    def patterns(self) -> list[tuple[str, int]]:
        """Return the patterns of unknown keys with their counts, the most frequent first."""
        return sorted(self.tally.patterns.items(), key=lambda item: (-item[1], item[0]))

    def as_data(self) -> dict[str, Any]:
        return {
            "model": self.model,
            "server": self.server,
            **({} if self.database is None else {"database": self.database}),
            "seconds": round(self.seconds, 3),
            "sample": self.sample,
            "replicas": self.replicas,
            "scope": self.scope,
            "names": self.keys,
            "outside": self.tally.outside,
            "truncated": self.tally.truncated,
            "failed": self.failed,
            "templates": [row._asdict() for row in self.rows],
            "patterns": [{"pattern": pattern, "keys": count} for pattern, count in self.patterns],
            "counts": self.counts,
            "findings": [self._described(finding) for finding in self.findings],
        }

    def _described(self, finding: Finding) -> dict[str, Any]:
        named = {} if finding.invariant is None else {"invariant": finding.invariant}
        return {
            "code": finding.code,
            "word": CODES[finding.code].word,
            "level": CODES[finding.code].level,
            "template": finding.template,
            "key": finding.shown_name(show_ids=self.show_ids),
            "reason": finding.shown_reason(show_ids=self.show_ids),
            "page": CODES[finding.code].page,
            **({} if self.database is None else {"database": self.database}),
            **named,
        }


class ServerReport(NamedTuple):
    """The reports of several databases of one server, in the order of their numbers."""

    reports: tuple[AuditReport, ...]

    @property
    def failed(self) -> bool:
        return any(report.failed for report in self.reports)

    @property
    def counts(self) -> dict[str, int]:
        """Return the number of findings of each code in all databases."""
        counts: dict[str, int] = {}
        for report in self.reports:
            for code, count in report.counts.items():
                counts[code] = counts.get(code, 0) + count
        return dict(sorted(counts.items()))

    def as_data(self) -> dict[str, Any]:
        first = self.reports[0]
        return {
            "model": first.model,
            "server": first.server,
            "names": sum(report.keys for report in self.reports),
            "failed": self.failed,
            "counts": self.counts,
            "databases": [report.as_data() for report in self.reports],
        }
