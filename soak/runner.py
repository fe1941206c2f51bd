"""Runs the scenarios at the same time, a process each, and collects their results."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from keywright.testing import death_with_parent
from soak.scenario import Result

__all__ = ["run_all"]

END_SECONDS = 30.0
STAGGER_SECONDS = 1.0
# Starting and judging take a few minutes at most, however long the faults last.
SPARE_SECONDS = 900.0


def run_all(names: Sequence[str], seconds: float, folder: Path) -> list[Result]:
    """Run these scenarios for this long. Return their results; one that left none has failed.

    Everything is stopped after Ctrl-C as well, and KeyboardInterrupt is raised again.
    """
    shutil.rmtree(folder, ignore_errors=True)
    running: dict[str, subprocess.Popen[bytes]] = {}
    try:
        for name in names:
            (folder / name).mkdir(parents=True)
            running[name] = _started(name, seconds, folder / name)
            time.sleep(STAGGER_SECONDS)  # two cores cannot start all servers at once
        deadline = time.monotonic() + seconds + SPARE_SECONDS
        for name, process in running.items():
            try:
                process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                print(f"{name} did not end in time", flush=True)
    finally:
        _end(running.values())
    return [_result(name, folder / name, process.returncode) for name, process in running.items()]


def _started(name: str, seconds: float, folder: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "soak.scenario", name, str(folder), str(seconds)]
    with (folder / "scenario.log").open("ab") as log, warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=Path(__file__).parents[1],
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
            start_new_session=True,  # Ctrl-C reaches only us: we end them, and they end their servers
            preexec_fn=death_with_parent(signal.SIGTERM),  # noqa: PLW1509 - it takes no lock
        )


def _end(processes: Iterable[subprocess.Popen[bytes]]) -> None:
    living = [each for each in processes if each.poll() is None]
    for each in living:
        each.send_signal(signal.SIGTERM)
    for each in living:
        try:
            each.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(each.pid, signal.SIGKILL)
            each.wait()


def _result(name: str, folder: Path, code: int) -> Result:
    try:
        return msgspec.json.decode((folder / "result.json").read_bytes(), type=Result)
    except OSError:
        log = (folder / "scenario.log").read_text("utf-8", "replace").splitlines()[-8:]
        problem = f"the scenario ended with exit code {code} and left no result: " + "\n".join(log)
        return Result(name=name, title=name, problems=[problem])
