"""The report as text, for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from keywright.tools.audit.findings import CODES
from keywright.tools.audit.formats.units import bytes_shown, share_shown
from keywright.tools.audit.report import AuditReport

__all__ = ["as_text"]

SHOWN = 10


def as_text(report: AuditReport) -> str:
    return "\n".join(_lines(report))


def _lines(report: AuditReport) -> Iterator[str]:
    tally = report.tally
    where = f" ({report.replicas} replicas)" if report.replicas else ""
    yield f"{report.model} on {report.server}{where}: {tally.names:,} keys in {report.seconds:.1f} s"
    if report.sample < 1:
        yield f"values of {report.sample:.1%} of the keys were read; bytes and expiries are extrapolated"
    if tally.outside:
        yield f"{tally.outside:,} keys outside the prefix were left alone"
    if tally.truncated:
        yield f"{tally.truncated:,} large collections were read in part"
    yield ""
    yield from _table(report)
    if report.patterns:
        yield "\nunknown keys look like:"
        yield from (f"  {count:>9,}  {pattern}" for pattern, count in report.patterns[:SHOWN])
    yield from _findings(report)
    yield "\n" + _verdict(report)


def _table(report: AuditReport) -> Iterator[str]:
    head = ("template", "keys", "bytes", "share", "expire", "declared", "largest")
    rows = [
        (
            row.template,
            f"{row.keys:,}",
            bytes_shown(row.bytes),
            share_shown(row.share),
            share_shown(row.coverage),
            row.expiry or "-",
            bytes_shown(row.largest_bytes) if row.keys else "-",
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
        shown = found.kept[:SHOWN]
        for finding in shown:
            yield f"  {finding.shown_name(show_ids=report.show_ids)}"
            yield f"      {finding.shown_reason(show_ids=report.show_ids)}"
        if found.count > len(shown):
            yield f"  … and {found.count - len(shown):,} more"


def _verdict(report: AuditReport) -> str:
    total = sum(report.counts.values())
    if not total:
        return f"{report.model} is as declared."
    hint = "" if report.show_ids else " Ids are masked; --show-ids shows them."
    noun = "finding" if total == 1 else "findings"
    return f"{total:,} {noun}, explained in docs/findings.{hint}"
