"""Shell completion: what bash, zsh and fish offer, without a server and without running a command."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from invoking import Invoke

ROOT = Path(__file__).parents[2]


def _offered(invoke: Invoke, monkeypatch: pytest.MonkeyPatch, *words: str, shell: str = "zsh") -> list[str]:
    monkeypatch.setenv("_KEYWRIGHT_COMPLETE", shell)
    done = invoke(*words)
    assert (done.exit_code, done.stderr) == (0, "")
    return [line.partition("\t")[0] for line in done.stdout.splitlines()]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["aud"], ["audit"]),
        (["broker", "dead", ""], ["list", "replay", "drop"]),
        (["audit", "drc", "--form"], ["--format"]),
        (["audit", "drc", "--format", "s"], ["sarif"]),
        (["audit", "drc", "--format=s"], ["--format=sarif"]),
        (["--color", "n"], ["never"]),
        (["audit", "dr"], ["drc", "dramatiq"]),
        (["audit", "drc,celer"], ["drc,celery"]),
        (["check", "cli_spaces:o"], ["cli_spaces:overlapping"]),
        (["explain", "KW40"], ["KW401", "KW402", "KW403", "KW404", "KW405"]),
        (["repair", "drc", "--remove", "unknown,dang"], ["unknown,dangling"]),
        (["scan", "cli_spaces:kinds", "or"], ["order:<order>"]),
        (["audit", "cli_spaces:kinds", "--max-bytes", "or"], ["order:<order>="]),
        (["audit", "drc", "--output", "x"], [""]),  # names of files
        (["nonsense", ""], []),
        (["audit", "nonsense:nonsense", "--max-bytes", ""], []),
    ],
)
def test_words_are_completed(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch, words: list[str], expected: list[str]
) -> None:
    assert _offered(invoke, monkeypatch, *words) == expected


def test_candidates_are_described(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_KEYWRIGHT_COMPLETE", "fish")
    assert invoke("explain", "KW401").stdout == "KW401\ta reference that leads nowhere\n"


def test_completion_runs_nothing(invoke: Invoke, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    assert "--yes" in _offered(invoke, monkeypatch, "repair", "drc", "--embedded", str(folder), "--y")
    assert not folder.exists()


def test_the_words_of_options_import_no_client() -> None:
    script = (
        "import sys; from keywright.cli import app\n"
        "try: app(['audit', 'd'])\n"
        "except SystemExit: pass\n"
        "sys.exit('redis' in sys.modules and 'keywright.tools.audit' not in sys.modules)"
    )
    environment = {**os.environ, "_KEYWRIGHT_COMPLETE": "zsh"}
    assert subprocess.run([sys.executable, "-c", script], env=environment, check=False).returncode == 0


def _bash(tmp_path: Path, line: str) -> list[str]:
    """Return what real bash offers at the end of a line."""
    program = tmp_path / "keywright"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m keywright "$@"\n')
    program.chmod(0o755)
    words = (
        line.replace(":", " : ").replace("=", " = ").split(" ")
        if ":" in line or "=" in line
        else line.split(" ")
    )
    quoted = " ".join(f"'{word}'" for word in words)
    script = f"""
        eval "$(keywright completion bash)"
        COMP_LINE='{line}' COMP_POINT={len(line)} COMP_WORDS=({quoted}) COMP_CWORD={len(words) - 1}
        COMP_WORDBREAKS=$' \\t\\n"\\'><=;|&(:'
        _keywright_completion keywright
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    environment = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "--norc", "-c", script],
        capture_output=True,
        text=True,
        env=environment,
        check=True,
        cwd=ROOT / "tests",
    )
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("keywright exp", ["explore", "export", "explain"]),
        ("keywright check cli_spaces:ov", ["overlapping"]),
        ("keywright audit drc --format=j", ["json", "junit"]),
        ("keywright scan cli_spaces:kinds or", [r"order:\<order\>"]),
    ],
)
def test_bash_completes(tmp_path: Path, line: str, expected: list[str]) -> None:
    assert sorted(_bash(tmp_path, line)) == sorted(expected)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell_is_printed_and_its_syntax_is_right(invoke: Invoke, shell: str) -> None:
    script = invoke("completion", shell).stdout
    assert f"_KEYWRIGHT_COMPLETE={shell}" in script
    if shutil.which(shell) is not None:  # the others are tested by their protocol above
        subprocess.run([shell, "-n"], input=script, text=True, check=True)
