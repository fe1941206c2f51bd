"""The report as text, for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from keywright.tools.audit.findings import CODES
from keywright.tools.audit.formats.units import bytes_shown, estimated_bytes, estimated_share, share_shown
from keywright.tools.audit.report import AuditReport, ServerReport
from keywright.tools.audit.sample import LEAST
from keywright.tools.layout import Block, Column, Line, Meaning, Table, plain
from keywright.tools.terminal import printable

__all__ = ["as_text", "blocks"]

SHOWN = 10

_COLUMNS = (
    Column("template", flexible=True, meaning=Meaning.NAME),
    Column("keys", right=True),
    Column("bytes", right=True),
    Column("share", right=True),
    Column("expire", right=True),
    Column("declared", flexible=True),
    Column("largest", right=True),
)
_LEVELS = {"error": Meaning.ERROR, "warning": Meaning.WARNING, "note": Meaning.MUTED}


def as_text(report: AuditReport | ServerReport) -> str:
    return plain(blocks(report))


def blocks(report: AuditReport | ServerReport) -> Iterator[Block]:
    """Yield the report for people, database by database."""
    for number, each in enumerate(report.reports):
        if number:
            yield ""
        yield from _of_database(each)
    if len(report.reports) > 1:
        total = sum(report.counts.values())
        yield ""
        yield f"{len(report.reports)} databases, {total:,} {'finding' if total == 1 else 'findings'}."


def _of_database(report: AuditReport) -> Iterator[Block]:
    tally = report.tally
    where = f" ({report.replicas} replicas)" if report.replicas else ""
    numbers = f": {report.keys:,} keys in {report.seconds:.1f} s"
    yield Line(Meaning.HEADING(report.model), f" on {report.place}{where}{numbers}")
    outside = f"; {tally.outside:,} keys outside of it were not read" if tally.outside else ""
    yield f"scope: {report.scope}{outside}"
    if report.sample < 1:
        yield f"values of {report.sample:.1%} of the keys were read, and of at least {LEAST} of each template"
    if tally.truncated:
        yield f"{tally.truncated:,} large collections were read in part"
    yield ""
    yield _table(report)
    if any(row.bytes_error or row.coverage_error for row in report.rows):
        yield Line(Meaning.MUTED("~ is an estimate from a sample, with its margin at 95 % confidence"))
    seals = [row for row in report.rows if row.sealing]
    if seals:
        yield ""
        yield "values that are declared sealed:"
        yield from (Line("  ", Meaning.NAME(row.template), f": {row.sealing}", hang=4) for row in seals)
    if report.patterns:
        yield ""
        yield "unknown keys look like:"
        for pattern, count in report.patterns[:SHOWN]:
            yield Line(f"  {count:>9,}  ", Meaning.NAME(printable(pattern)), hang=13)
        if len(report.patterns) > SHOWN:
            yield f"  … and {len(report.patterns) - SHOWN:,} more patterns; --format json has all"
    yield from _findings(report)
    yield ""
    yield _verdict(report)


def _table(report: AuditReport) -> Table:
    return Table(
        _COLUMNS,
        [
            (
                row.template,
                f"{row.keys:,}",
                estimated_bytes(row.bytes, row.bytes_error),
                share_shown(row.share),
                estimated_share(row.coverage, row.coverage_error),
                row.expiry or "-",
                bytes_shown(row.largest_bytes) if row.largest_bytes else "-",
            )
            for row in report.rows
        ],
    )


def _findings(report: AuditReport) -> Iterator[Block]:
    for code, found in sorted(report.tally.findings.items()):
        kind = CODES[code]
        yield ""
        level = _LEVELS.get(kind.level, Meaning.ERROR)
        yield Line(level(f"{code} {kind.word}"), f": {kind.title} ({found.count:,})", hang=2)
        for finding in found.kept:
            name = printable(finding.shown_name(show_ids=report.show_ids))
            yield Line("  ", Meaning.NAME(name), hang=4)
            yield f"      {printable(finding.shown_reason(show_ids=report.show_ids))}"
        if found.count > len(found.kept):
            yield f"  … and {found.count - len(found.kept):,} more; raise --limit to list them"


def _verdict(report: AuditReport) -> Line:
    total = sum(report.counts.values())
    if not total:
        part = "" if report.sample >= 1 else f" in the {report.sample:.1%} of the values that were read"
        return Line(f"{report.model} is ", Meaning.OK("as declared"), f"{part}.")
    hint = "" if report.show_ids else " Ids are masked; --show-ids shows them."
    noun = "finding" if total == 1 else "findings"
    return Line(Meaning.ERROR(f"{total:,} {noun}"), f": `keywright explain CODE` explains each.{hint}")
