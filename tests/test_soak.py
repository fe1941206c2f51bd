"""The soak: a short run passes and leaves nothing, Ctrl-C ends everything, growing memory is seen."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from soak.judge.findings import Findings
from soak.memory import Growth, growth
from soak.scenario import Result
from soak.scenarios import SCENARIOS

from keywright.testing import descendants, is_running, wait_until

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
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
def test_a_signal_ends_every_process_of_the_soak(tmp_path: Path, number: signal.Signals) -> None:
    process = soak(tmp_path / "run", "--minutes", "5", "--only", "single")
    log = tmp_path / "run" / "single" / "scenario.log"
    wait_until(lambda: log.exists() and "started" in log.read_text(), "the soak has started", seconds=120)
    (scenario,) = [pid for pid in descendants(process.pid) if pid in _children(process.pid)]
    below = descendants(process.pid)
    process.send_signal(number)
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 130, output
    assert not [pid for pid in below if is_running(pid)]
    assert not list(Path("/tmp").glob(f"keywright-{scenario}-*"))


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


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
