"""The report as one HTML page, without scripts and external resources; light and dark, narrow and wide."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from keywright.tools.audit.findings import CODES
from keywright.tools.audit.formats.units import bytes_shown, estimated_bytes, estimated_share, share_shown
from keywright.tools.audit.report import AuditReport, ServerReport, TemplateRow

__all__ = ["as_html"]

SHOWN = 50

_STYLE = """
:root { color-scheme: light dark; --ink: #1c1f24; --soft: #5b6470; --line: #d9dee5; --page: #fbfcfd;
  --card: #ffffff; --bar: #3b6fb6; --bad: #b3261e; --good: #1f7a4d; --note: #8a6100; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8eaee; --soft: #a2abb8; --line: #343a43;
  --page: #14171b; --card: #1c2026; --bar: #6ea0e6; --bad: #ff8a80; --good: #6fd3a0; --note: #e3b95b; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 72rem; margin: 0 auto; padding: 1.25rem; }
h1 { font-size: 1.5rem; margin: 0 0 .25rem; } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
p { margin: .25rem 0; color: var(--soft); }
.verdict { font-weight: 600; } .bad { color: var(--bad); } .good { color: var(--good); }
.note { color: var(--note); }
.scroll { overflow-x: auto; border: 1px solid var(--line); border-radius: .5rem; background: var(--card); }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: .45rem .75rem; text-align: right; white-space: nowrap; border-top: 1px solid var(--line); }
thead th { border-top: 0; color: var(--soft); font-weight: 600; font-size: .85rem; }
th:first-child, td:first-child { text-align: left; }
code { font: .875rem/1.4 ui-monospace, monospace; overflow-wrap: anywhere; }
.bar { display: inline-block; width: 5rem; height: .5rem; background: var(--line); border-radius: .25rem; }
.bar i { display: block; height: 100%; background: var(--bar); border-radius: .25rem; min-width: 1px; }
details { border: 1px solid var(--line); border-radius: .5rem; background: var(--card); margin: .5rem 0; }
summary { padding: .6rem .75rem; cursor: pointer; } summary b { font-weight: 600; }
ul { list-style: none; margin: 0; padding: 0; }
li { padding: .45rem .75rem; border-top: 1px solid var(--line); }
li span { display: block; color: var(--soft); }
nav { display: flex; flex-wrap: wrap; gap: .4rem; margin-top: .5rem; }
nav a { padding: .1rem .6rem; border: 1px solid var(--line); border-radius: 1rem; background: var(--card);
  color: inherit; text-decoration: none; font-size: .875rem; }
nav a:focus-visible { outline: 2px solid var(--bar); }
@media (max-width: 40rem) { main { padding: .75rem; } .wide { display: none; }
  td:first-child { white-space: normal; min-width: 8rem; } table { font-size: .875rem; }
  th, td { padding: .4rem .5rem; } }
"""


def as_html(report: AuditReport | ServerReport) -> str:
    title = f"Audit of {escape(report.reports[0].model)}"
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>{title}</title>\n'
        f"<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n"
        f"{''.join(part for each in report.reports for part in _body(each))}</main>\n</body>\n</html>\n"
    )


def _body(report: AuditReport) -> Iterator[str]:
    tally = report.tally
    if report.database is not None:
        yield f"<h2>Database {report.database}</h2>\n"
    yield f"<p>{report.keys:,} keys on <code>{escape(report.server)}</code> in {report.seconds:.1f} s"
    yield f"; scope: {escape(report.scope)}"
    yield f", {tally.outside:,} keys outside of it were not read" if tally.outside else ""
    yield f", values of {report.sample:.1%} read</p>\n" if report.sample < 1 else "</p>\n"
    yield _verdict(report)
    if report.counts:
        yield "<nav aria-label=Findings>"
        for code, count in report.counts.items():
            yield f'<a href="#{_anchor(report, code)}">{CODES[code].word} {count:,}</a>'
        yield "</nav>\n"
    yield "<h2>Templates</h2>\n<div class=scroll><table>\n"
    yield "<thead><tr><th>Template</th><th>Keys</th><th>Bytes</th>"
    yield "<th class=wide></th><th>Share</th><th>Expire</th><th class=wide>Declared</th><th>Largest</th>"
    yield "</tr></thead>\n<tbody>\n"
    yield from map(_row, report.rows)
    yield "</tbody></table></div>\n"
    seals = [row for row in report.rows if row.sealing]
    if seals:
        yield "<h2>Values that are declared sealed</h2>\n<ul>\n"
        yield from (f"<li><code>{escape(row.template)}</code> {row.sealing}</li>\n" for row in seals)
        yield "</ul>\n"
    if report.patterns:
        yield "<h2>Unknown keys look like</h2>\n<div class=scroll><table><tbody>\n"
        for pattern, count in report.patterns[:SHOWN]:
            yield f"<tr><td><code>{escape(pattern)}</code></td><td>{count:,}</td></tr>\n"
        yield "</tbody></table></div>\n"
    if report.counts:
        yield "<h2>Findings</h2>\n"
    for code in report.counts:
        yield from _group(report, code)


def _anchor(report: AuditReport, code: str) -> str:
    return code if report.database is None else f"{code}-{report.database}"


def _verdict(report: AuditReport) -> str:
    total = sum(report.counts.values())
    if not total:
        return '<p class="verdict good">Everything is as declared.</p>\n'
    mood = "bad" if report.failed else "note"
    hint = "" if report.show_ids else " Ids are masked."
    noun = "finding" if total == 1 else "findings"
    return f'<p class="verdict {mood}">{total:,} {noun}.{hint}</p>\n'


def _row(row: TemplateRow) -> str:
    bar = f"<span class=bar><i style='width:{row.share or 0:.1%}'></i></span>"
    largest = bytes_shown(row.largest_bytes) if row.largest_bytes else "-"
    size = estimated_bytes(row.bytes, row.bytes_error)
    coverage = estimated_share(row.coverage, row.coverage_error)
    return (
        f"<tr><td><code>{escape(row.template)}</code></td><td>{row.keys:,}</td><td>{size}</td>"
        f"<td class=wide>{bar}</td><td>{share_shown(row.share)}</td><td>{coverage}</td>"
        f"<td class=wide>{escape(row.expiry) or '-'}</td><td>{largest}</td></tr>\n"
    )


def _group(report: AuditReport, code: str) -> Iterator[str]:
    kind, found = CODES[code], report.tally.findings[code]
    mood = "note" if kind.level == "note" else "bad"
    yield f'<details open id="{_anchor(report, code)}"><summary><b class="{mood}">{code} {kind.word}</b> '
    yield f"{escape(kind.title)}, {found.count:,}</summary>\n<ul>\n"
    shown = found.kept[:SHOWN]
    for finding in shown:
        name = escape(finding.shown_name(show_ids=report.show_ids))
        reason = escape(finding.shown_reason(show_ids=report.show_ids))
        yield f"<li><code>{name}</code><span>{reason}</span></li>\n"
    if found.count > len(shown):
        yield f"<li><span>… and {found.count - len(shown):,} more</span></li>\n"
    yield "</ul></details>\n"
