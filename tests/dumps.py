"""Dumps of test servers, and audits of both that must agree."""

from __future__ import annotations

import asyncio
import re
import shutil
from pathlib import Path
from typing import Any

import redis

from audited import Sample
from keywright.tools.audit import AuditOptions, AuditReport, Finding, audit
from keywright.tools.rdb import DumpDatabase
from keywright.tools.rdb.checksum import crc64

__all__ = [
    "audited_dump",
    "comparable",
    "coverages",
    "crafted",
    "dump_of",
    "packed",
    "record",
    "text",
    "totals",
]

_SECONDS = re.compile(r"[0-9][0-9.e+]* s\b")


def dump_of(client: redis.Redis, path: Path) -> Path:
    """Let a server save its data. Return a copy of the file."""
    client.save()
    options: Any = {**client.config_get("dir"), **client.config_get("dbfilename")}
    shutil.copy(Path(options["dir"], options["dbfilename"]), path)
    return path


def audited_dump(
    path: Path, sample: Sample, *, options: AuditOptions | None = None, number: int = 0
) -> tuple[AuditReport, list[Finding]]:
    """Audit a dump. Return the report and every finding."""
    found: list[Finding] = []

    async def run() -> AuditReport:
        async with DumpDatabase(path, *sample.bindings, number=number, checked=True) as db:
            return await audit(db, sample.model, options, on_finding=found.append)

    return asyncio.run(run()), found


def comparable(findings: list[Finding]) -> list[tuple[Any, ...]]:
    """Return findings in an order of their own, without durations, which go on between two audits."""
    rows = [
        (
            each.code,
            each.template,
            each.name,
            each.member or b"",
            each.other or b"",
            each.field or b"",
            each.link,
            _SECONDS.sub("… s", each.reason),
            _SECONDS.sub("… s", each.found),
        )
        for each in findings
    ]
    return sorted(rows)


def totals(report: AuditReport) -> dict[str, Any]:
    """Return the counts that do not depend on the order in which keys are read, or on their memory."""
    tally = report.tally
    return {
        "names": tally.names,
        "outside": tally.outside,
        "truncated": tally.truncated,
        "patterns": tally.patterns,
        "scope": report.scope,
        "failed": report.failed,
        "templates": {
            name: (each.keys, each.read, each.sealed, each.in_clear, each.groups)
            for name, each in tally.templates.items()
        },
    }


def coverages(*reports: AuditReport) -> list[dict[str, float | None]]:
    """Return for each report the shares of expiring keys of the templates for which all of them are exact."""
    estimated = {row.template for report in reports for row in report.rows if row.coverage_error}
    return [
        {row.template: row.coverage for row in report.rows if row.template not in estimated}
        for report in reports
    ]


def text(data: bytes) -> bytes:
    """Return a string in the format of a dump."""
    size = len(data)
    if size < 64:
        return bytes([size]) + data
    return (
        bytes([0x40 | size >> 8, size & 0xFF]) if size < 1 << 14 else b"\x80" + size.to_bytes(4, "big")
    ) + data


def record(name: bytes, kind: int, value: bytes, *, before: bytes = b"") -> bytes:
    """Return a key in the format of a dump."""
    return before + bytes([kind]) + text(name) + value


def crafted(
    *records: bytes, magic: bytes = b"REDIS0011", taken: int = 1_700_000_000, version: bytes = b"7.4.0"
) -> bytes:
    """Return a dump with a right checksum."""
    facts = b"\xfa" + text(b"redis-ver") + text(version) + b"\xfa" + text(b"ctime") + text(b"%d" % taken)
    body = magic + facts + b"\xfe\x00\xfb\x05\x00" + b"".join(records) + b"\xff"
    return body + crc64(body).to_bytes(8, "little")


def packed(*items: bytes) -> bytes:
    """Return a listpack of short texts and small numbers."""
    parts = []
    for item in items:
        if item.isdigit() and (item == b"0" or item[:1] != b"0") and int(item) < 128:
            parts.append(bytes([int(item), 1]))
        elif item.isdigit():
            parts.append(b"\xf4" + int(item).to_bytes(8, "little") + b"\x09")
        else:
            assert len(item) < 64
            parts.append(bytes([0x80 | len(item)]) + item + bytes([1 + len(item)]))
    body = b"".join(parts)
    return (len(body) + 7).to_bytes(4, "little") + len(items).to_bytes(2, "little") + body + b"\xff"
