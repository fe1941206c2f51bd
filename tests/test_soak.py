"""The soak: a short run passes and leaves nothing, Ctrl-C ends everything, growing memory is seen."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest
from soak.clock import ClockedRedis, clocked_server
from soak.disk import TinyDisk
from soak.judge.findings import Findings
from soak.memory import Growth, growth
from soak.relay import Relay
from soak.scenario import Result
from soak.scenarios import SCENARIOS

from keywright.errors import KeywrightError, ServerRefusedError
from keywright.testing import RawConnection, RedisServer, descendants, is_running, wait_until

ROOT = Path(__file__).parents[1]


def soak(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "soak", "--folder", str(folder), *arguments]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


@pytest.mark.usefixtures("keywright_server")
def test_a_short_soak_survives_its_faults_and_writes_its_page(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    names = ("single", "streams")
    process = soak(tmp_path / "run", "--minutes", "0.25", "--only", *names, "--report", str(page))
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0, output
    for name in names:
        result = msgspec.json.decode((tmp_path / "run" / name / "result.json").read_bytes(), type=Result)
        assert result.faults["Redis killed"] == 1
        assert result.findings.acknowledged > 0
        assert f"| {SCENARIOS[name].title} |" in page.read_text("utf-8")


@pytest.mark.usefixtures("keywright_server")
def test_a_soak_fails_if_an_acknowledged_write_disappears(tmp_path: Path) -> None:
    process = soak(tmp_path / "run", "--minutes", "0.1", "--only", "single")
    scenario = _started(process, tmp_path / "run" / "single")
    (socket_,) = Path("/tmp").glob(f"keywright-{scenario}-*/redis.sock")

    def remove() -> str | None:
        with suppress(KeywrightError, OSError), RawConnection(socket_) as wire:
            return wire.text("LPOP", "log:a-0")
        return None  # nothing is there yet, or a fault hit this connection too

    removed = wait_until(remove, "a write is removed")
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 1, output
    assert f"lost: {removed} of log:a-0" in output


@pytest.mark.usefixtures("keywright_server")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
def test_a_signal_ends_every_process_of_the_soak(tmp_path: Path, number: signal.Signals) -> None:
    process = soak(tmp_path / "run", "--minutes", "5", "--only", "single")
    scenario = _started(process, tmp_path / "run" / "single")
    below = descendants(process.pid)
    process.send_signal(number)
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 130, output
    assert not [pid for pid in below if is_running(pid)]
    assert not list(Path("/tmp").glob(f"keywright-{scenario}-*"))


def _started(process: subprocess.Popen[str], folder: Path) -> int:
    """Wait until the only scenario of a soak has started. Return its process id."""
    log = folder / "scenario.log"
    wait_until(lambda: log.exists() and "started" in log.read_text(), "the soak has started", seconds=120)
    return int(Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text())


def test_a_relay_forwards_and_can_be_cut_refused_and_opened_again_on_its_port() -> None:
    with RedisServer(tcp=True) as server, Relay(server.port) as relay:
        address = ("127.0.0.1", relay.port)
        with socket.create_connection(address, timeout=10) as client:
            client.sendall(b"PING\r\n")
            assert client.recv(64) == b"+PONG\r\n"
            relay.refuse()
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(address, timeout=10)
            client.sendall(b"PING\r\n")
            assert client.recv(64) == b"+PONG\r\n", "refusing leaves connections alone"
            relay.cut()
            assert client.recv(64) == b""
        relay.accept()
        relay.bytes_a_second = 1_000_000
        with socket.create_connection(address, timeout=10) as client:
            client.sendall(b"PING\r\n")
            assert client.recv(64) == b"+PONG\r\n"


def test_a_server_on_a_full_disk_refuses_writes_until_there_is_room(tmp_path: Path) -> None:
    disk = TinyDisk(tmp_path / "disk", megabytes=4)
    try:
        if not disk.available:
            pytest.skip("mounting a tmpfs needs root")
        with RedisServer(options={"appendfsync": "everysec", "dir": f'"{disk.folder}"'}) as server:
            server.call("SET", "a", 1)
            disk.fill()
            wait_until(lambda: _refuses(server), "the server refuses writes")
            disk.free()
            wait_until(lambda: not _refuses(server), "the server accepts writes again")
    finally:
        disk.close()


def _refuses(server: RedisServer) -> bool:
    try:
        server.call("SET", "a", 2)
    except ServerRefusedError as error:
        return "MISCONF" in str(error)
    return False


def test_the_clock_of_a_server_jumps() -> None:
    if clocked_server() is None:
        pytest.skip("no server starts with libfaketime")
    with ClockedRedis() as server:
        server.move_clock(3600)
        assert _seconds(server) > time.time() + 3000
        server.move_clock(-3600)
        assert _seconds(server) < time.time() - 3000


def _seconds(server: RedisServer) -> int:
    found = server.call("TIME")
    assert isinstance(found, list)
    assert isinstance(found[0], bytes)
    return int(found[0])


def test_memory_that_grows_is_distinguished_from_memory_that_varies() -> None:
    varying = [(float(second), 50.0 + second % 20) for second in range(0, 600, 5)]
    growing = [(float(second), 50.0 + second / 20) for second in range(0, 600, 5)]
    assert growth("varies", varying).is_flat
    assert growth("grows", growing) == Growth("grows", 9.9, 50.0, 29.8)
    assert not growth("grows", growing).is_flat


@pytest.mark.parametrize("found", [Findings(lost=1), Findings(doubled=1), Findings(violations=1)])
def test_a_finding_fails_the_scenario(found: Findings) -> None:
    assert Result(name="any", title="any", findings=Findings(allowed_lost=1, repeated=1)).passed
    assert not Result(name="any", title="any", findings=found).passed


def test_a_problem_fails_the_scenario() -> None:
    assert not Result(name="any", title="any", problems=["a process was left"]).passed
