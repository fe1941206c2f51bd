"""The choice of the server of a command."""

from __future__ import annotations

from pathlib import Path

import pytest

from keywright.cli.targets import server_url, setting
from keywright.errors import UsageError


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "pyproject.toml").write_text('[tool.keywright]\nurl = "redis://project/0"\n')
    below = tmp_path / "src"
    below.mkdir()
    monkeypatch.chdir(below)
    monkeypatch.delenv("REDIS_URL", raising=False)
    return tmp_path


def test_an_option_wins_over_the_environment_and_that_over_the_project(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert server_url(None) == "redis://project/0"
    monkeypatch.setenv("REDIS_URL", "redis://environment/0")
    assert server_url(None) == "redis://environment/0"
    assert server_url("redis://option/0") == "redis://option/0"


def test_without_any_there_is_an_embedded_server(project: Path) -> None:
    (project / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    assert server_url(None) is None


@pytest.mark.parametrize("text", ["[tool.keywright]\nurl = 1\n", "[tool]\nkeywright = 1\n", "not toml"])
def test_an_invalid_project_file_is_an_error(project: Path, text: str) -> None:
    (project / "pyproject.toml").write_text(text)
    with pytest.raises(UsageError):
        setting("url")
