"""`keywright init` begins a project whose declaration is proved, and overwrites nothing."""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from invoking import Invoke
from keywright.testing import Raw


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    path = list(sys.path)
    yield tmp_path
    sys.path[:] = path
    sys.modules.pop("schema", None)


def test_a_project_begins_with_a_declaration_that_is_proved(invoke: Invoke, folder: Path) -> None:
    done = invoke("init", "shop", "--url", "redis://localhost:6379/3")
    assert done.exit_code == 0, done.output
    assert "wrote schema.py" in done.stdout
    assert sum(line.startswith("  keywright ") for line in done.stdout.splitlines()) == 3
    settings = tomllib.loads((folder / "pyproject.toml").read_text())["tool"]["keywright"]
    assert settings == {"model": "schema:shop", "url": "redis://localhost:6379/3"}
    report = json.loads(invoke("check", "--format", "json").stdout)
    assert (report["keyspace"], report["proved"], report["keys"]) == ("shop", True, 4)


def test_nothing_that_exists_is_overwritten(invoke: Invoke, folder: Path) -> None:
    (folder / "schema.py").write_text("mine = 1\n")
    (folder / "pyproject.toml").write_text('[project]\nname = "mine"')
    done = invoke("init", "shop")
    assert "exists, and stays: schema.py" in done.stdout
    assert (folder / "schema.py").read_text() == "mine = 1\n"
    text = (folder / "pyproject.toml").read_text()
    assert text.startswith('[project]\nname = "mine"\n\n[tool.keywright]\n')
    again = invoke("init", "other")
    assert "exists, and stays: pyproject.toml" in again.stdout
    assert 'model = "schema:other"' in again.stdout
    assert (folder / "pyproject.toml").read_text() == text


def test_an_inferred_project_declares_the_keys_of_the_server(
    invoke: Invoke, folder: Path, redis_url: str, raw: Raw, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(20):
        raw("HSET", f"user:{number}", "name", f"n{number}", "age", number)
    assert invoke("init", "app", "--infer").exit_code == 2
    assert list(folder.iterdir()) == []
    monkeypatch.setenv("REDIS_URL", redis_url)
    done = invoke("init", "app", "--infer", "--format", "json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["model"] == "schema:app"
    assert "user:<" in (folder / "schema.py").read_text()
    assert "url" not in (folder / "pyproject.toml").read_text()
    assert invoke("check").exit_code == 0


def test_a_workflow_for_ci_passes_on_the_new_project(invoke: Invoke, folder: Path) -> None:
    done = invoke("init", "shop", "--ci", "github")
    assert done.exit_code == 0, done.output
    workflow = (folder / ".github/workflows/keyspace.yml").read_text()
    commands = [
        line.partition("run: keywright ")[2].split()
        for line in workflow.splitlines()
        if "run: keywright " in line
    ]
    assert [each[0] for each in commands] == ["check", "diff", "audit"]
    for command in commands[:2]:
        assert invoke(*command).exit_code == 0, command
    assert "--format sarif --output keywright.sarif" in workflow
    assert "secrets.KEYWRIGHT_REDIS_URL" in workflow
    again = invoke("init", "shop", "--ci", "github")
    assert again.stdout.count("exists, and stays") == 4


def test_a_password_is_not_written(invoke: Invoke, folder: Path) -> None:
    done = invoke("init", "shop", "--url", "redis://:hunter2@localhost/0")
    assert done.exit_code == 2
    assert "hunter2" not in done.output
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("name", ["Shop", "a-b", "class", "1a"])
def test_a_name_that_python_does_not_take_is_refused(invoke: Invoke, folder: Path, name: str) -> None:
    assert invoke("init", name).exit_code == 2
    assert list(folder.iterdir()) == []
