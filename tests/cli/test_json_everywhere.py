"""Every command that prints has `--format json`: one document on standard output, errors as JSON too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.main import get_command

import cli_spaces as spaces
from invoking import Invoke
from keywright import connect
from keywright.cli import app
from keywright.cli.program import COMMANDS
from keywright.testing import Raw

KINDS = "cli_spaces:kinds"
WITHOUT = {
    "completion",  # a script
    "generate",  # files in formats of other programs
    "explore",  # pages; they are JSON for who asks for it
    "shell",  # a prompt
    "tour",  # a text to be read
}

# The arguments of each command, and members that its document has. "lines": one document on each line.
PRINTED: dict[str, tuple[list[str], set[str] | str]] = {
    "acl": ([KINDS, "--role", "reader"], {"user", "role", "server", "rules", "exposed", "command"}),
    "audit": ([KINDS], {"model", "server", "counts", "findings", "templates", "failed"}),
    "check": ([KINDS], {"keyspace", "proved", "keys", "relations", "proofs", "findings"}),
    "diff": ([KINDS, KINDS], {"compatible", "changes"}),
    "docs": ([KINDS], {"name", "spaces"}),
    "explain": (["KW402"], "list"),
    "export": ([KINDS], "lines"),
    "get": ([KINDS, "kinds:total"], "value"),
    "import": ([KINDS, "{export}"], {"applied", "plan", "result"}),
    "infer": ([], {"module", "output", "coverage"}),
    "init": (["shop"], {"model", "files", "next"}),
    "migrate": ([KINDS], {"model", "applied", "templates", "refusals"}),
    "recover": ([KINDS], {"model", "applied", "to_finish", "to_undo", "set_aside"}),
    "repair": ([KINDS], {"model", "applied", "steps", "listed", "left"}),
    "scan": ([KINDS], "lines"),
    "stats": ([KINDS], {"model", "names", "templates"}),
}


def parameters(name: str) -> set[str]:
    program = get_command(app)
    command: Any = program.get_command(typer.Context(program), name)  # type: ignore[attr-defined]
    return {option for parameter in command.params for option in parameter.opts}


def own_commands() -> set[str]:
    return set(COMMANDS)


def test_every_command_is_tried_or_prints_nothing_for_programs() -> None:
    assert set(PRINTED) | WITHOUT == own_commands()
    assert {name for name in own_commands() if "--format" not in parameters(name)} == WITHOUT


@pytest.fixture
def project(
    redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, raw: Raw, invoke: Invoke
) -> Path:
    with connect(redis_url) as db:
        db.run(spaces.Total().add(2))
    raw("HSET", "kinds:order:a", "colour", "red")
    raw("SET", "kinds:nobody", "x")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REDIS_URL", redis_url)
    assert invoke("export", KINDS, "-o", str(tmp_path / "export")).exit_code == 1
    return tmp_path


@pytest.mark.parametrize("name", PRINTED)
def test_a_command_prints_json_for_programs(invoke: Invoke, project: Path, name: str) -> None:
    arguments, members = PRINTED[name]
    given = [each.replace("{export}", str(project / "export")) for each in arguments]
    done = invoke(name, *given, "--format", "json")
    assert done.exit_code in (0, 1), done.output
    if members == "lines":
        assert all(isinstance(json.loads(line), dict) for line in done.stdout.splitlines())
        return
    document = json.loads(done.stdout)
    if isinstance(members, set):
        assert members <= document.keys()


def test_what_was_done_is_json_too(invoke: Invoke, project: Path) -> None:
    done = invoke("repair", KINDS, "--yes", "--remove", "unknown", "--format", "json")
    document = json.loads(done.stdout)
    assert (document["applied"], document["done"]) == (True, {"remove-key": 1})
    undone = invoke("repair", KINDS, "--undo", document["undo"], "--yes", "--format", "json")
    assert json.loads(undone.stdout) == {"model": KINDS, "restored": 1, "left": 0}
    done = invoke("recover", KINDS, "--yes", "--format", "json")
    assert json.loads(done.stdout)["finished"] == 0
    done = invoke("infer", "-o", "found.py", "--format", "json")
    assert json.loads(done.stdout)["output"] == "found.py"
    assert (project / "found.py").exists()


@pytest.mark.parametrize("given", [["--format", "json"], ["--format=json"]])
def test_an_error_is_one_line_of_json_for_a_program(invoke: Invoke, given: list[str]) -> None:
    done = invoke("check", "nothing\x1b[31m", *given)
    assert (done.exit_code, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    error = json.loads(line)["error"]
    assert (error["type"], error["exit_code"]) == ("UsageError", 2)
    assert "does not name a model" in error["message"]
    assert "\x1b" not in line


def test_an_error_is_text_for_a_person(invoke: Invoke) -> None:
    assert invoke("check", "nothing").stderr.startswith("error: ")


def test_an_unreachable_server_is_an_error_in_json(invoke: Invoke) -> None:
    done = invoke("stats", KINDS, "--url", "redis://127.0.0.1:1/0", "--format", "json")
    assert json.loads(done.stderr)["error"]["exit_code"] == done.exit_code == 3
