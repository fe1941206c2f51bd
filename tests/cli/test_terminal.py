"""Colour, width and the global options, on a real terminal and in a pipe."""

from __future__ import annotations

import os
import pty
import re
import struct
import subprocess
import sys
import termios
from fcntl import ioctl
from pathlib import Path

import pytest

from invoking import Invoke
from keywright.cli.paragraphs import cells, laid_out
from keywright.testing import Raw
from keywright.tools.layout import Column, Line, Meaning, Table, plain

TESTS = Path(__file__).parents[1]
COLOUR = re.compile(r"\x1b\[[\d;]*m")
CHECK = ("check", "cli_spaces:overlapping")


def _on_a_terminal(columns: int, *arguments: str, **environment: str) -> list[str]:
    """Return the lines that a program prints on a terminal of that width."""
    ours, theirs = pty.openpty()
    ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name not in ("COLUMNS", "NO_COLOR", "FORCE_COLOR")
    }
    command = [sys.executable, "-m", "keywright", *arguments]
    started = subprocess.Popen(
        command,
        stdout=theirs,
        stderr=theirs,
        cwd=TESTS,
        env={**inherited, "TERM": "xterm-256color", **environment},
    )
    os.close(theirs)
    found = b""
    try:
        while some := _read(ours):
            found += some
    finally:
        started.wait()
        os.close(ours)
    return found.decode().replace("\r\n", "\n").splitlines()


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # Linux reports so that the other side is closed
        return b""


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_a_terminal_gets_colours_and_its_width(columns: int) -> None:
    lines = _on_a_terminal(columns, *CHECK)
    shown = [COLOUR.sub("", line) for line in lines]
    assert max(map(len, shown)) <= columns
    assert max(map(len, shown)) > columns - 20
    assert any("\x1b[1;31mFAILED\x1b[0m" in line for line in lines)
    assert any("\x1b[32mproved\x1b[0m" in line for line in lines)


@pytest.mark.parametrize(
    ("arguments", "environment"),
    [((), {"NO_COLOR": "1"}), (("--color", "never"), {"FORCE_COLOR": "1"}), ((), {"TERM": "dumb"})],
)
def test_colours_can_be_turned_off(arguments: tuple[str, ...], environment: dict[str, str]) -> None:
    lines = _on_a_terminal(80, *CHECK, *arguments, **environment)
    assert not COLOUR.search("\n".join(lines))
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize(
    ("before", "after", "environment"),
    [
        ((), ("--color", "always"), {}),
        (("--color", "always"), (), {"NO_COLOR": "1"}),
        ((), (), {"FORCE_COLOR": "1"}),
        ((), (), {"CLICOLOR_FORCE": "1"}),
    ],
)
def test_colours_can_be_forced_into_a_pipe_whose_lines_stay_whole(
    invoke: Invoke,
    monkeypatch: pytest.MonkeyPatch,
    before: tuple[str, ...],
    after: tuple[str, ...],
    environment: dict[str, str],
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    plain_text = invoke(*CHECK).stdout
    assert not COLOUR.search(plain_text)
    assert max(map(len, plain_text.splitlines())) > 100
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    coloured = invoke(*before, *CHECK, *after).stdout
    assert COLOUR.search(coloured)
    assert COLOUR.sub("", coloured) == plain_text


def test_quiet_leaves_results_and_errors(invoke: Invoke, redis_url: str, raw: Raw) -> None:
    raw("SET", "plant:1", "a rose")
    loud = invoke("infer", "--url", redis_url)
    quiet = invoke("infer", "--url", redis_url, "--quiet")
    assert loud.stderr != ""
    assert (quiet.stdout, quiet.stderr) == (loud.stdout, "")
    assert "error: " in invoke("-q", "check", "nowhere:nowhere").stderr


def test_verbose_shows_the_server_without_its_password_and_the_time(invoke: Invoke, redis_url: str) -> None:
    done = invoke("stats", "registry", "--url", redis_url, "-v")
    assert re.search(r"^model: registry, \d+ templates, loaded and checked in", done.stderr, re.MULTILINE)
    assert re.search(r"^server: \S+$", done.stderr, re.MULTILINE)
    assert re.search(r"^ended after \d+\.\d\d s with exit code 0$", done.stderr, re.MULTILINE)
    password = redis_url.partition("://:")[2].partition("@")[0]
    assert password not in done.stderr


def test_quiet_and_verbose_exclude_each_other(invoke: Invoke) -> None:
    done = invoke("-q", *CHECK, "-v")
    assert (done.exit_code, done.stderr) == (
        2,
        "error: --quiet and --verbose exclude each other. Drop one of them.\n",
    )


def test_the_options_of_one_run_are_not_those_of_the_next(invoke: Invoke) -> None:
    assert COLOUR.search(invoke("--color", "always", *CHECK).stdout)
    assert not COLOUR.search(invoke(*CHECK).stdout)


def test_wide_characters_and_long_names_are_laid_out_by_their_cells() -> None:
    name = "order:" + "東京" * 30
    table = Table([Column("template", flexible=True), Column("keys", right=True)], [[name, "1,000"]])
    lines = [
        *laid_out(
            [table, Line("  the text of ", Meaning.NAME("a name"), " goes on", hang=4)], 24, coloured=False
        )
    ]
    assert max(map(cells, lines)) <= 24
    assert "".join(line.split("  ")[0].strip() for line in lines[1:-2]) == name
    assert plain([table]).splitlines()[1] == f"{name}  1,000"
    assert lines[-2:] == ["  the text of a name", "    goes on"]


def test_hostile_text_is_escaped_before_it_is_coloured() -> None:
    (line,) = laid_out([Line(Meaning.NAME("a\x1b[2J\nb"))], None, coloured=True)
    assert line == "\x1b[36ma\\x1b[2J\\nb\x1b[0m"
