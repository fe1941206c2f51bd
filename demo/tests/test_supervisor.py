"""The supervisor of `keywright up`: processes that fail or hang, its figures, and its output."""

from __future__ import annotations

import asyncio
import io
import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

import pytest
from rich.console import Console

from keywright import aconnect
from keywright.testing import wait_until
from keywright_demo import processes, services, supervisor
from keywright_demo.console import StatusConsole, status_line
from keywright_demo.folder import swept_folder
from keywright_demo.metrics import Figures, MetricsReader
from keywright_demo.options import UpOptions
from keywright_demo.processes import ChildProcess, ProcessFailedError, ProcessGroup, ProcessSpec
from keywright_demo.services import DemoService
from keywright_demo.supervisor import Supervisor

pytestmark = pytest.mark.anyio

SPECTACLES = UpOptions(models=("spectacles",), explorer=False)
DEAF = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("ready", flush=True)
time.sleep(600)
"""


def process(folder: Path, source: str) -> ChildProcess:
    """Return a process that runs this source. It starts in the folder, where Python finds the module."""
    (folder / "sample_process.py").write_text(source)
    return ChildProcess(ProcessSpec("sample process", "sample_process"), folder, folder)


async def start_deaf(group: ProcessGroup) -> None:
    (group.workspace.folder / "deaf.py").write_text(DEAF)
    await group.start("deaf", "deaf")


async def printed(output: io.StringIO, text: str) -> None:
    """Wait until this was printed."""
    await asyncio.to_thread(wait_until, lambda: text in output.getvalue(), text)


async def test_a_process_that_ends_at_once_is_reported_with_its_log(tmp_path: Path) -> None:
    failing = process(tmp_path, "raise SystemExit('no anchovies')")
    with pytest.raises(ProcessFailedError, match=r"ended at the start with exit code 1(.|\n)*no anchovies"):
        await failing.start()


async def test_a_process_that_is_never_ready_is_reported_after_a_timeout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "READY_SECONDS", 0.3)
    waiting = process(tmp_path, "import time; print('almost', flush=True); time.sleep(600)")
    try:
        with pytest.raises(ProcessFailedError, match=r"was not ready within 0\.3 s"):
            await waiting.start()
    finally:
        await waiting.stop()
    assert waiting.exit_code is not None


async def test_a_process_inherits_no_settings_and_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DISCORD_TOKEN", "a-real-token")
    monkeypatch.setenv("OPENMOD_PREFIX", "a-real-prefix")
    listing = process(tmp_path, "import os; print(dict(os.environ)); print('ready')")
    await listing.start()
    await listing.stop()
    log = listing.log.read_text()
    assert "PATH" in log
    assert "a-real" not in log


async def test_a_process_that_ignores_sigterm_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "STOP_SECONDS", 0.1)
    deaf = process(tmp_path, DEAF)
    await deaf.start()
    await deaf.stop()
    assert deaf.exit_code == -signal.SIGKILL


async def test_a_second_interrupt_does_not_wait_for_a_process_that_hangs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(processes, "STOP_SECONDS", 3600.0)
    monkeypatch.setitem(services.SERVICES, "spectacles", DemoService("", (), start_deaf))
    output = io.StringIO()
    running = asyncio.create_task(Supervisor(SPECTACLES, StatusConsole(Console(file=output))).run())
    await printed(output, "2 processes up")
    os.kill(os.getpid(), signal.SIGINT)
    await printed(output, "Stopping")
    os.kill(os.getpid(), signal.SIGINT)
    assert await asyncio.wait_for(running, 30) == 0


async def test_an_interrupt_does_not_wait_for_a_server_that_never_answers() -> None:
    output = io.StringIO()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"redis://127.0.0.1:{silent.getsockname()[1]}"
        options = UpOptions(models=("spectacles",), explorer=False, url=url)
        running = asyncio.create_task(Supervisor(options, StatusConsole(Console(file=output))).run())
        connection, _ = await asyncio.to_thread(silent.accept)
        with connection:
            os.kill(os.getpid(), signal.SIGINT)
            assert await asyncio.wait_for(running, 15) == 0
    assert "Stopped" in output.getvalue()


async def test_a_process_that_ended_just_before_the_stop_fails_the_run_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(supervisor, "WATCH_SECONDS", 3600.0)
    groups: list[ProcessGroup] = []

    async def start(group: ProcessGroup) -> None:
        groups.append(group)
        await start_deaf(group)

    monkeypatch.setitem(services.SERVICES, "spectacles", DemoService("", (), start))
    output = io.StringIO()
    running = asyncio.create_task(Supervisor(SPECTACLES, StatusConsole(Console(file=output))).run())
    await printed(output, "2 processes up")
    (deaf,) = groups[0].processes
    deaf.kill()
    await asyncio.to_thread(wait_until, lambda: deaf.exit_code is not None, "its end")
    os.kill(os.getpid(), signal.SIGINT)
    assert await asyncio.wait_for(running, 30) == 1
    assert "the deaf ended with exit code -9" in output.getvalue()


METRIC = b'gateway_packets_received{op="0"} 7'


@contextmanager
def replying(reply: bytes) -> Iterator[str]:
    """A server that sends the same reply to every request, and closes the connection."""

    def serve() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with connection:
                    connection.recv(4096)
                    connection.sendall(reply)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = threading.Thread(target=serve)
        server.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/metrics"
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            server.join()


async def read_twice(redis_url: str, gateway: str) -> Figures:
    async with aconnect(redis_url) as db, MetricsReader(db, redis_url) as metrics:
        metrics.gateway = gateway
        await metrics.read()
        return await metrics.read()


async def test_after_an_incomplete_reply_one_figure_is_unknown_and_the_others_known(redis_url: str) -> None:
    with replying(b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n" + METRIC) as gateway:
        figures = await read_twice(redis_url, gateway)
    assert (figures.events_a_second, figures.keys) == (None, 0)


async def test_the_gateway_is_asked_directly_even_if_a_proxy_is_set(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    with replying(b"HTTP/1.1 200 OK\r\nContent-Length: 34\r\n\r\n" + METRIC) as gateway:
        assert (await read_twice(redis_url, gateway)).events_a_second == 0.0


async def test_memory_is_read_from_the_server(redis_url: str) -> None:
    async with aconnect(redis_url) as db, MetricsReader(db, redis_url) as metrics:
        assert ((await metrics.read()).memory_bytes or 0) > 100_000


async def test_a_model_whose_packages_are_missing_is_left_out_with_the_install_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(services, "find_spec", lambda name: None if name == "asyncpraw" else find_spec(name))
    output = io.StringIO()
    options = UpOptions(models=("spectacles", "openmod"), explorer=False, seconds=0.0)
    console = StatusConsole(Console(file=output, width=200))
    assert await Supervisor(options, console).run() == 0
    assert "openmod is left out: it needs asyncpraw, which is not installed." in output.getvalue()
    assert "pip install keywright-openmod" in output.getvalue()


def test_a_folder_is_removed_after_its_block_even_after_an_error() -> None:
    folders = []
    with suppress(RuntimeError), swept_folder() as folder:
        (folder / "file").write_text("x")
        folders.append(folder)
        raise RuntimeError
    assert not folders[0].exists()


def test_a_status_line_omits_unknown_figures() -> None:
    everything = Figures(events_a_second=19.96, handled=1234, keys=4321, memory_bytes=6_100_000)
    assert status_line(everything, 12, [], []) == (
        "20.0 events/s · 1,234 handled · 4,321 keys · 6.1 MB · 12 processes up"
    )
    assert status_line(Figures(keys=0), 1, ["gateway"], ["worker"]) == (
        "0 keys · 1 process up · starting: gateway · DOWN: worker"
    )


def test_on_a_terminal_the_status_line_is_rewritten_below_other_lines() -> None:
    screen = io.StringIO()
    console = StatusConsole(Console(file=screen, force_terminal=True, width=80))
    with console.live():
        console.status("first")
        console.print("something happened")
        console.status("second")
    shown = screen.getvalue()
    assert shown.index("something happened") < shown.rindex("second")
    assert "\x1b[2K" in shown, "the line is erased before it is written again"
