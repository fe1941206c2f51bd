"""The choice of the server of a command."""

from __future__ import annotations

from pathlib import Path

import pytest

from keywright.cli.targets import server_url, setting
from keywright.errors import UsageError


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "pyproject.toml").write_text('[tool.keywright]\nurl = "redis://project/0"\n')
    (tmp_path / ".git").mkdir()
    below = tmp_path / "src"
    below.mkdir()
    monkeypatch.chdir(below)
    monkeypatch.delenv("REDIS_URL", raising=False)
    return tmp_path


def test_an_option_wins_over_the_environment_and_that_over_the_project(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert server_url(None, None) == "redis://project/0"
    assert server_url(None, None, configured="redis://file/0") == "redis://file/0"
    monkeypatch.setenv("REDIS_URL", "redis://environment/0")
    assert server_url(None, None, configured="redis://file/0") == "redis://environment/0"
    assert server_url("redis://option/0", None) == "redis://option/0"


def test_two_servers_are_refused() -> None:
    with pytest.raises(UsageError, match="Give one of them"):
        server_url("redis://option/0", "unix:///folder/redis.sock")


@pytest.mark.parametrize("text", ["[tool.keywright]\nurl = 1\n", "[tool]\nkeywright = 1\n", "not toml"])
def test_an_invalid_project_file_is_an_error(project: Path, text: str) -> None:
    (project / "pyproject.toml").write_text(text)
    with pytest.raises(UsageError):
        setting("url")


def test_the_project_file_that_chose_the_server_is_named(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert server_url(None, None) == "redis://project/0"
    assert str(project / "pyproject.toml") in capsys.readouterr().err


@pytest.mark.parametrize("border", ["repository", "home", "neither"])
def test_a_project_file_above_the_repository_or_the_home_folder_is_ignored(
    project: Path, monkeypatch: pytest.MonkeyPatch, border: str
) -> None:
    (project / ".git").rmdir()
    own = project / "src" / "own"
    (own / "below").mkdir(parents=True)
    monkeypatch.chdir(own / "below")
    monkeypatch.setenv("HOME", str(own if border == "home" else project / "elsewhere"))
    if border == "repository":
        (own / ".git").touch()  # a file, as in a worktree
    with pytest.raises(UsageError, match="no server is given"):
        server_url(None, None)
    if border != "neither":
        (own / "pyproject.toml").write_text('[tool.keywright]\nurl = "redis://own/0"\n')
        assert server_url(None, None) == "redis://own/0"
