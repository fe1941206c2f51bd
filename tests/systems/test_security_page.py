"""The bounds in docs/security.md are those of the code."""

from __future__ import annotations

from environments import ROOT
from keywright.explorer import key_reader, presentation
from keywright.explorer.explorer import LARGEST_FORM
from keywright.keyspace.codecs import compression
from keywright.tools.audit import page_reader, value_checks
from keywright.tools.http import HttpLimits, access, limits
from keywright_discord.gateway import packets, pipeline, wire
from keywright_meetup.service import pages
from keywright_messaging import etf

PAGE = (ROOT / "docs" / "security.md").read_text()
KIB, MIB = 1 << 10, 1 << 20


def row(subject: str) -> str:
    return next(line for line in PAGE.splitlines() if line.startswith(f"| {subject} |"))


def test_bounds_of_requests() -> None:
    bounds = HttpLimits()
    times = f"{bounds.head_seconds:g} s, {bounds.body_seconds:g} s more"
    assert f"{times}; {limits.MOST_CONNECTIONS} connections" in row("HTTP head, body")
    assert pages.LARGEST_FORM == LARGEST_FORM
    assert f"{access.LONGEST_COOKIES // KIB} KiB, {LARGEST_FORM // KIB} KiB" in row("HTTP cookies, forms")
    assert f"{access.PAUSE_SECONDS} s each, {access.MOST_WAITING} waiting" in row("wrong tokens")


def test_bounds_of_messages() -> None:
    terms = (
        f"{etf._MOST_TERMS:,} terms, {etf._TERMS_PER_BYTE} for each byte received beyond {etf._FEW_TERMS:,}"
    )
    assert f"{etf._DEEPEST} levels; {terms}; {etf._UNPACKED_PER_BYTE} times" in row("ETF messages")
    events = f"{wire.MOST_BYTES // MIB} MiB unpacked, {pipeline.MOST_BYTES // MIB} MiB in memory"
    assert events in row("events from Discord")
    assert f"{packets.LARGEST_PACKET:,} bytes" in row("packets from workers")


def test_bounds_of_stored_values() -> None:
    assert page_reader.MOST_BYTES == value_checks.MOST_UNPACKED == key_reader.MOST_BYTES == MIB
    assert f"{compression._LARGEST // MIB} MiB unpacked" in row("compressed values")
    shown = (
        f"{key_reader.MOST_ENTRIES} entries, {presentation.MOST_PARTS:,} parts, {presentation.DEEPEST} levels"
    )
    assert f"1 MiB, {shown}" in row("values on a page of the explorer")
    assert "| 1 MiB |" in row("values in an audit")
