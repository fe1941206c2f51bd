"""A scenario: servers and programs of one system, the faults it gets, and its judge.

`python -m soak.scenario NAME FOLDER SECONDS` runs one in the main thread of a process of its own, so that the
kernel ends servers and programs with it, and writes `result.json` into the folder.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
import traceback
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import msgspec

from keywright.testing import descendants, is_running, started_pids, wait_until
from soak.judge.findings import Findings
from soak.memory import Growth, MemorySampler
from soak.programs import Program

__all__ = ["Fault", "Result", "Scenario", "run_scenario"]

PAUSE_SECONDS = (2.0, 5.0)
CALM_SECONDS = 3.0
_TEMPORARY = Path("/tmp")


class Fault(NamedTuple):
    """A fault with its name in the table. `inject` returns when it is over and the servers are whole."""

    name: str
    inject: Callable[[], None]
    ends_program: bool = False


class Result(msgspec.Struct, kw_only=True):
    """The outcome of a scenario."""

    name: str
    title: str
    seconds: float = 0.0
    faults: dict[str, int] = {}
    findings: Findings = msgspec.field(default_factory=Findings)
    memory: list[Growth] = []
    problems: list[str] = []
    """What ended early, stayed behind or grew: each makes the scenario fail."""
    unavailable: list[str] = []

    @property
    def passed(self) -> bool:
        return not self.problems and self.findings.passed


class Scenario(ABC):
    """The servers, programs and faults of one system. Everything is closed in reverse order at the end."""

    title: ClassVar[str]

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.chance = random.Random()
        self.programs: list[Program] = []
        self.problems: list[str] = []
        self.unavailable: list[str] = []
        self.stack = ExitStack()

    @abstractmethod
    def start(self) -> None:
        """Start the servers, then the programs."""

    @abstractmethod
    def faults(self) -> Sequence[Fault]:
        """Return the faults, in the order of the first round; later rounds are shuffled."""

    @abstractmethod
    def judge(self) -> Findings:
        """Stop the loads, let work under way settle, and judge."""

    def program(self, *arguments: str, name: str, module: str, **settings: Any) -> Program:
        """Start a program of this scenario; it is stopped at the end."""
        made = Program(name, module, *arguments, folder=self.folder, **settings)
        self.programs.append(made)
        self.stack.callback(made.kill)
        made.start()
        return made

    def hold(self, least: float, most: float) -> None:
        """Keep a fault up for a random time."""
        time.sleep(self.chance.uniform(least, most))

    def inject_until(self, deadline: float) -> Counter[str]:
        """Inject faults one after another until the deadline. Return how often each one was.

        In the second half no program is killed, so that its memory can be observed.
        """
        injected: Counter[str] = Counter()
        faults = list(self.faults())
        half = (time.monotonic() + deadline) / 2
        while True:
            for fault in faults:
                if fault.ends_program and time.monotonic() > half:
                    continue
                pause = self.chance.uniform(*PAUSE_SECONDS)
                time.sleep(min(pause, max(0.0, deadline - time.monotonic())))
                if time.monotonic() >= deadline:
                    return injected
                print(f"{time.strftime('%H:%M:%S')} {fault.name}", flush=True)
                try:
                    fault.inject()
                except Exception:  # noqa: BLE001 - whatever it is, the judge still looks at the data
                    self.problems.append(f"{fault.name!r} did not end: {traceback.format_exc(limit=-3)}")
                    return injected
                injected[fault.name] += 1
            self.chance.shuffle(faults)

    def ended_programs(self) -> list[str]:
        """Describe the programs that ended by themselves."""
        return [
            f"{each.name} ended with exit code {each.exit_code}: {each.tail(3)}"
            for each in self.programs
            if each.pid is None
        ]


def run_scenario(scenario: Scenario, name: str, seconds: float) -> Result:
    """Run a scenario: start, inject faults for this long, judge, close, and look for leftovers."""
    problems: list[str] = []
    injected: Counter[str] = Counter()
    findings = Findings()
    grown: list[Growth] = []
    begun = time.monotonic()
    with scenario.stack:
        try:
            scenario.start()
            print("started", flush=True)
            sampler = MemorySampler(
                lambda: [(p.name, p.pid) for p in list(scenario.programs) if p.steady and p.pid is not None]
            )
            begun = time.monotonic()
            injected = scenario.inject_until(begun + seconds)
            scenario.hold(CALM_SECONDS, CALM_SECONDS)
            problems += [*scenario.problems, *scenario.ended_programs()]
            grown = sampler.stop()
            findings = scenario.judge()
        except Exception:  # noqa: BLE001 - whatever it is, the report has to say so
            problems.append(f"the scenario failed: {traceback.format_exc(limit=-6)}")
    problems += [
        f"the memory of {each.name} grew by {each.grown_mb} MB" for each in grown if not each.is_flat
    ]
    problems += leftovers()
    return Result(
        name=name,
        title=scenario.title,
        seconds=round(time.monotonic() - begun, 1),
        faults=dict(injected),
        findings=findings,
        memory=grown,
        problems=problems,
        unavailable=scenario.unavailable,
    )


def leftovers() -> list[str]:
    """Describe processes below this one, and folders of its servers, that are still there."""

    def none_left() -> bool:
        return not any(map(is_running, descendants(os.getpid())))

    problems = []
    try:
        wait_until(none_left, "every process ends", seconds=10)
    except AssertionError:
        left = [pid for pid in descendants(os.getpid()) if is_running(pid)]
        problems.append(f"processes were left running: {left or started_pids()}")
    folders = [str(each) for each in _TEMPORARY.glob(f"keywright-{os.getpid()}-*")]
    if folders:
        problems.append(f"folders were left: {folders}")
    return problems


def main() -> None:
    from soak.scenarios import SCENARIOS

    name, folder, seconds = sys.argv[1], Path(sys.argv[2]), float(sys.argv[3])
    scenario = SCENARIOS[name](folder)
    # Both end it at once; servers and programs are closed on the way out.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    result = run_scenario(scenario, name, seconds)
    (folder / "result.json").write_bytes(msgspec.json.encode(result))
    sys.exit(0 if result.passed else 1)


if __name__ == "__main__":
    main()
