"""The report as text, for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from keywright.tools.audit.findings import CODES
from keywright.tools.audit.formats.units import bytes_shown, estimated_bytes, estimated_share, share_shown
from keywright.tools.audit.report import AuditReport
from keywright.tools.audit.tally import LEAST
from keywright.tools.terminal import printable

__all__ = ["as_text"]

SHOWN = 10


def as_text(report: AuditReport) -> str:
    return "\n".join(_lines(report))


def _lines(report: AuditReport) -> Iterator[str]:
    tally = report.tally
    where = f" ({report.replicas} replicas)" if report.replicas else ""
    yield f"{report.model} on {report.server}{where}: {report.keys:,} keys in {report.seconds:.1f} s"
    outside = f"; {tally.outside:,} keys outside of it were not read" if tally.outside else ""
    yield f"scope: {report.scope}{outside}"
    if report.sample < 1:
        yield f"values of {report.sample:.1%} of the keys were read, and of at least {LEAST} of each template"
    if tally.truncated:
        yield f"{tally.truncated:,} large collections were read in part"
    yield ""
    yield from _table(report)
    if any(row.bytes_error or row.coverage_error for row in report.rows):
        yield "~ is an estimate from a sample, with its margin at 95 % confidence"
    seals = [row for row in report.rows if row.sealing]
    if seals:
        yield "\nvalues that are declared sealed:"
        yield from (f"  {row.template}: {row.sealing}" for row in seals)
    if report.patterns:
        yield "\nunknown keys look like:"
        yield from (f"  {count:>9,}  {printable(pattern)}" for pattern, count in report.patterns[:SHOWN])
        if len(report.patterns) > SHOWN:
            yield f"  … and {len(report.patterns) - SHOWN:,} more patterns; --format json has all"
    yield from _findings(report)
    yield "\n" + _verdict(report)


def _table(report: AuditReport) -> Iterator[str]:
    head = ("template", "keys", "bytes", "share", "expire", "declared", "largest")
    rows = [
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
    ]
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    for row in (head, *rows):
        yield _aligned(row, widths)


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    left = {0, 5}
    padded = [
        cell.ljust(width) if column in left else cell.rjust(width)
        for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return "  ".join(padded).rstrip()


def _findings(report: AuditReport) -> Iterator[str]:
    for code, found in sorted(report.tally.findings.items()):
        kind = CODES[code]
        yield f"\n{code} {kind.word}: {kind.title} ({found.count:,})"
        for finding in found.kept:
            yield f"  {printable(finding.shown_name(show_ids=report.show_ids))}"
            yield f"      {printable(finding.shown_reason(show_ids=report.show_ids))}"
        if found.count > len(found.kept):
            yield f"  … and {found.count - len(found.kept):,} more; raise --limit to list them"


def _verdict(report: AuditReport) -> str:
    total = sum(report.counts.values())
    if not total:
        part = "" if report.sample >= 1 else f" in the {report.sample:.1%} of the values that were read"
        return f"{report.model} is as declared{part}."
    hint = "" if report.show_ids else " Ids are masked; --show-ids shows them."
    noun = "finding" if total == 1 else "findings"
    return f"{total:,} {noun}, explained in docs/findings.{hint}"
