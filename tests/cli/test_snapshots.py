"""The main outputs at 80 and 120 columns, as they were read and found good.

KEYWRIGHT_RENEW_SNAPSHOTS=1 writes them again; read the difference before it is committed.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from invoking import Invoke
from keywright.testing import Raw

SNAPSHOTS = Path(__file__).parent / "snapshots"
RENEWED = bool(os.environ.get("KEYWRIGHT_RENEW_SNAPSHOTS"))

WITHOUT_SERVER = {
    "check-faulty": ("check", "cli_spaces:overlapping"),
    "check-union": ("check", "cli_spaces:queues,results"),
    "diff": ("diff", "cli_spaces:results", "cli_spaces:kinds"),
    "explain": ("explain",),
    "help": ("--help",),
    "help-audit": ("audit", "--help"),
    "error-command": ("aduit",),
    "error-model": ("check", "dcr"),
    "error-option": ("audit", "drc", "--formt", "json"),
    "error-value": ("audit", "drc", "--limit", "none"),
}
ON_A_SERVER = {
    "audit": ("audit", "cli_spaces:kinds"),
    "infer": ("infer", "--output", os.devnull),
    "migrate": ("migrate", "cli_spaces:kinds"),
    "repair": ("repair", "cli_spaces:kinds", "--remove", "unknown"),
    "stats": ("stats", "cli_spaces:kinds", "--sample", "100%"),
}


@pytest.fixture
def filled(redis_url: str, raw: Raw) -> str:
    raw("SET", "kinds:total", "many")
    raw("SET", "kinds:blob", "bytes")
    raw("HSET", "kinds:versioned", "message", "of version 1")
    raw("SADD", "kinds:members", "1", "2")
    raw("SET", "kinds:a name that no template of the declaration matches:" + "0123456789" * 6, "x")
    return redis_url


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("name", WITHOUT_SERVER)
def test_output_is_as_it_was(invoke: Invoke, monkeypatch: pytest.MonkeyPatch, name: str, width: int) -> None:
    _compare(invoke, monkeypatch, name, width, WITHOUT_SERVER[name])


@pytest.mark.parametrize("width", [80, 120])
def test_output_about_a_server_is_as_it_was(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch, filled: str, width: int
) -> None:
    for name, arguments in ON_A_SERVER.items():
        _compare(invoke, monkeypatch, name, width, (*arguments, "--url", filled))


def _compare(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch, name: str, width: int, arguments: tuple[str, ...]
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setattr("keywright.cli.output.width_of", lambda _: width)
    done = invoke(*arguments)
    text = f"$ keywright {' '.join(arguments[:-2] if '--url' in arguments else arguments)}\n{done.output}"
    text = f"{_settled(text)}exit code {done.exit_code}\n"
    assert [line for line in text.splitlines() if len(line) > width and " " in line.strip()] == []
    path = SNAPSHOTS / f"{name}-{width}.txt"
    if RENEWED:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, "utf-8")
    assert text == path.read_text("utf-8"), "see the docstring of this module"


def _settled(text: str) -> str:
    """Replace what differs between runs and servers: times, addresses, and the widths of sizes."""
    text = re.sub(r"\d+\.\d s\b", "0.0 s", text)
    text = re.sub(r"on \S*redis\.sock", "on SERVER", text)
    text = re.sub(r" +[\d.]+ (?:B|KiB)\b", "  SIZE", text)
    text = re.sub(r" +\d+(?:\.\d)?%(?= |$)", "  SHARE", text, flags=re.MULTILINE)
    return re.sub(r"(?m)^(\S+)( {2,}\S+)( {2,}.*)$", _narrowed, text)


def _narrowed(row: re.Match[str]) -> str:
    return row[0] if "SIZE" not in row[0] and "bytes" not in row[0] else re.sub(" {2,}", "  ", row[0])
