"""The pieces of `keywright up` one by one: processes that fail or linger, and what a person reads of them."""

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
from keywright.testing.conditions import wait_until
from keywright_demo import part, supervisor
from keywright_demo import services as scenes
from keywright_demo.console import Teller, status_line
from keywright_demo.folder import swept_folder
from keywright_demo.metrics import Figures, Readings
from keywright_demo.options import UpOptions
from keywright_demo.part import Part, PartFailedError, PartProcess
from keywright_demo.processes import Crew
from keywright_demo.services import Scene
from keywright_demo.supervisor import Supervisor

DEAF = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("ready", flush=True)
time.sleep(600)
"""


def process(folder: Path, source: str) -> PartProcess:
    """A part that runs this source; parts are started in the folder, so a module there is found."""
    (folder / "sample_part.py").write_text(source)
    return PartProcess(Part("sample part", "sample_part"), folder, folder)


def test_a_part_that_ends_at_once_is_told_with_its_log(tmp_path: Path) -> None:
    failing = process(tmp_path, "raise SystemExit('no anchovies')")
    with pytest.raises(PartFailedError, match=r"ended at the start with exit code 1(.|\n)*no anchovies"):
        asyncio.run(failing.start())


def test_a_part_that_is_never_ready_is_told_when_patience_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(part, "READY_SECONDS", 0.3)
    waiting = process(tmp_path, "import time; print('almost', flush=True); time.sleep(600)")

    async def session() -> None:
        try:
            with pytest.raises(PartFailedError, match=r"was not ready within 0\.3 s"):
                await waiting.start()
        finally:
            await waiting.stop()

    asyncio.run(session())
    assert waiting.exit_code is not None


def test_a_part_gets_none_of_our_settings_and_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DISCORD_TOKEN", "a-real-token")
    monkeypatch.setenv("OPENMOD_PREFIX", "a-real-prefix")
    telling = process(tmp_path, "import os; print(dict(os.environ)); print('ready')")

    async def session() -> None:
        await telling.start()
        await telling.stop()

    asyncio.run(session())
    told = telling.log.read_text()
    assert "PATH" in told
    assert "a-real" not in told


def test_a_part_that_does_not_end_when_asked_is_ended_by_force(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(part, "STOP_SECONDS", 0.1)
    deaf = process(tmp_path, DEAF)

    async def session() -> None:
        await deaf.start()
        await deaf.stop()

    asyncio.run(session())
    assert deaf.exit_code == -signal.SIGKILL


def test_a_second_interrupt_does_not_wait_for_a_part_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(part, "STOP_SECONDS", 3600.0)
    monkeypatch.setitem(scenes.SCENES, "spectacles", Scene("", (), start_deaf))
    printed = io.StringIO()
    options = UpOptions(models=("spectacles",), explorer=False)

    async def said(text: str) -> None:
        await asyncio.to_thread(wait_until, lambda: text in printed.getvalue(), text)

    async def session() -> int:
        running = asyncio.create_task(Supervisor(options, Teller(Console(file=printed))).run())
        await said("2 parts up")
        os.kill(os.getpid(), signal.SIGINT)
        await said("Stopping")
        os.kill(os.getpid(), signal.SIGINT)
        return await asyncio.wait_for(running, 30)

    assert asyncio.run(session()) == 0


def test_an_interrupt_does_not_wait_for_a_server_that_never_answers() -> None:
    printed = io.StringIO()

    async def session() -> int:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            url = f"redis://127.0.0.1:{silent.getsockname()[1]}"
            options = UpOptions(models=("spectacles",), explorer=False, url=url)
            running = asyncio.create_task(Supervisor(options, Teller(Console(file=printed))).run())
            connection, _ = await asyncio.to_thread(silent.accept)
            with connection:
                os.kill(os.getpid(), signal.SIGINT)
                return await asyncio.wait_for(running, 15)

    assert asyncio.run(session()) == 0
    assert "Stopped" in printed.getvalue()


def test_a_part_that_ended_just_before_the_stop_fails_the_run_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "WATCH_SECONDS", 3600.0)
    crews: list[Crew] = []

    async def start(crew: Crew) -> None:
        crews.append(crew)
        await start_deaf(crew)

    monkeypatch.setitem(scenes.SCENES, "spectacles", Scene("", (), start))
    printed = io.StringIO()
    options = UpOptions(models=("spectacles",), explorer=False)

    async def session() -> int:
        running = asyncio.create_task(Supervisor(options, Teller(Console(file=printed))).run())
        await asyncio.to_thread(wait_until, lambda: "2 parts up" in printed.getvalue(), "the part")
        (deaf,) = crews[0].parts
        deaf.kill()
        await asyncio.to_thread(wait_until, lambda: deaf.exit_code is not None, "its end")
        os.kill(os.getpid(), signal.SIGINT)
        return await asyncio.wait_for(running, 30)

    assert asyncio.run(session()) == 1
    assert "the deaf ended with exit code -9" in printed.getvalue()


METRIC = b'gateway_packets_received{op="0"} 7'


@contextmanager
def answering(answer: bytes) -> Iterator[str]:
    """A server that says the same to everybody, and closes."""

    def serve() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with connection:
                    connection.recv(4096)
                    connection.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = threading.Thread(target=serve)
        server.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/metrics"
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            server.join()


async def taken_twice(redis_url: str, metrics: str) -> Figures:
    async with aconnect(redis_url) as db, Readings(db, redis_url) as readings:
        readings.metrics = metrics
        await readings.take()
        return await readings.take()


def test_an_answer_that_breaks_off_leaves_a_figure_unknown_and_the_others_known(redis_url: str) -> None:
    with answering(b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n" + METRIC) as metrics:
        figures = asyncio.run(taken_twice(redis_url, metrics))
    assert (figures.events_a_second, figures.keys) == (None, 0)


def test_parts_are_asked_directly_whatever_proxy_is_set(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    with answering(b"HTTP/1.1 200 OK\r\nContent-Length: 34\r\n\r\n" + METRIC) as metrics:
        assert asyncio.run(taken_twice(redis_url, metrics)).events_a_second == 0.0


async def start_deaf(crew: Crew) -> None:
    (crew.site.folder / "deaf.py").write_text(DEAF)
    await crew.start("deaf", "deaf")


def test_what_is_not_installed_is_left_out_and_its_distribution_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(scenes, "find_spec", lambda name: None if name == "asyncpraw" else find_spec(name))
    printed = io.StringIO()
    options = UpOptions(models=("spectacles", "openmod"), explorer=False, seconds=0.0)

    async def session() -> int:
        return await Supervisor(options, Teller(Console(file=printed, width=200))).run()

    assert asyncio.run(session()) == 0
    assert "openmod is left out: it needs asyncpraw, which is not installed." in printed.getvalue()
    assert "pip install keywright-openmod" in printed.getvalue()


def test_a_folder_is_gone_after_its_block_even_after_an_error() -> None:
    folders = []
    with suppress(RuntimeError), swept_folder() as folder:
        (folder / "file").write_text("x")
        folders.append(folder)
        raise RuntimeError
    assert not folders[0].exists()


def test_a_status_line_tells_only_what_is_known() -> None:
    everything = Figures(events_a_second=19.96, handled=1234, keys=4321, memory_bytes=6_100_000)
    assert status_line(everything, 12, [], []) == (
        "20.0 events/s · 1,234 handled · 4,321 keys · 6.1 MB · 12 parts up"
    )
    assert status_line(Figures(keys=0), 1, ["gateway"], ["worker"]) == (
        "0 keys · 1 part up · starting: gateway · DOWN: worker"
    )


def test_on_a_terminal_the_status_line_is_rewritten_below_what_is_said() -> None:
    screen = io.StringIO()
    teller = Teller(Console(file=screen, force_terminal=True, width=80))
    with teller.live():
        teller.status("first")
        teller.say("something happened")
        teller.status("second")
    shown = screen.getvalue()
    assert shown.index("something happened") < shown.rindex("second")
    assert "\x1b[2K" in shown, "the line is erased before it is written again"
