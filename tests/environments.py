"""Virtual environments, into which a test installs packages as a user would."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path

import pytest
from scripts import distributions

__all__ = ["ROOT", "Environment", "build_wheels"]

ROOT = Path(__file__).parents[1]
INSTALL_SECONDS = 300


@dataclass(frozen=True)
class Environment:
    """An environment without pip; the pip of the tests installs into it."""

    folder: Path

    @classmethod
    def create(cls, folder: Path, *requirements: str) -> Environment:
        """Return a new environment with these installed."""
        venv.create(folder, with_pip=False)
        created = cls(folder)
        created.install(*requirements)
        return created

    def install(self, *requirements: str, dependencies: bool = True) -> None:
        # Most of what is installed is not imported: compiling it takes longer than unpacking it.
        options = ["--no-compile"] if dependencies else ["--no-compile", "--no-deps"]
        self.pip("install", *options, *requirements)

    def pip(self, *arguments: str) -> None:
        command = [sys.executable, "-m", "pip", "--python", str(self._program("python")), "--quiet"]
        done = subprocess.run(
            [*command, *arguments],
            capture_output=True,
            text=True,
            timeout=INSTALL_SECONDS,
            check=False,
            cwd=self.folder,
        )
        if done.returncode == 0:
            return
        # In CI a skipped suite would pass for a tested one.
        if os.environ.get("CI") == "true" or "No matching distribution" not in done.stderr:
            pytest.fail(done.stderr)
        pytest.skip(f"the package index cannot be reached: {done.stderr[-300:]}")

    def python(self, code: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run code with warnings as errors."""
        return self._run(["python", "-W", "error", "-c", code], environment)

    def keywright(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return self._run(["keywright", *arguments], environment)

    def start(self, program: str, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [self._program(program), *arguments],
            stdout=subprocess.PIPE,
            text=True,
            cwd=self.folder,
            env=_variables({"PYTHONUNBUFFERED": "1"}),
        )

    def _run(self, command: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
        program, *arguments = command
        return subprocess.run(
            [self._program(program), *arguments],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            # Outside the checkout, so that nothing is imported from the current folder.
            cwd=self.folder,
            env=_variables(environment),
        )

    def _program(self, name: str) -> Path:
        return self.folder / "bin" / name


def build_wheels(folder: Path, *sources: Path) -> dict[str, str]:
    """Build a wheel of each source and return their paths by the names of the distributions.

    They are installed by path: by name, an index could answer with a package of somebody else.
    """
    built = [distributions.build_wheel(source, folder / "wheels") for source in sources]
    return {path.name.partition("-")[0].replace("_", "-"): str(path) for path in built}


def _variables(more: dict[str, str]) -> dict[str, str]:
    """Return the variables without those of the packages, the server or the terminal of this run."""
    hidden = ("PYTHON", "REDIS_URL", "KEYWRIGHT", "COVERAGE", "COV_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(hidden)}
    return {**kept, "COLUMNS": "200", "NO_COLOR": "1", **more}
