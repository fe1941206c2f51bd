"""Versions of a declaration: `MODEL`, `MODEL@REVISION`, `MODEL@FILE` or a lock file."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

from keywright.errors import UsageError
from keywright.tools.lock import ModelVersion, parsed_lock, read_lock, version_of
from keywright.tools.plugins import load_model

__all__ = ["version_at"]

# Run in a process of its own: the modules of a revision must not mix with those loaded here.
_DESCRIBE = (
    "import sys; from keywright.tools.schema import schema_of, schema_text; "
    "from keywright.tools.plugins import load_model; "
    "sys.stdout.write(schema_text(schema_of(load_model(sys.argv[1]))))"
)


def version_at(name: str) -> ModelVersion:
    """Return the version of a model that an argument of `diff` names."""
    if name.endswith(".json") and "@" not in name:
        return read_lock(Path(name))
    model, at, when = name.partition("@")
    if not at:
        return version_of(load_model(model))
    return read_lock(Path(when)) if Path(when).is_file() else _at_revision(model, when)


def _at_revision(model: str, revision: str) -> ModelVersion:
    """Return the version at a git revision, unpacked to a temporary folder and imported there."""
    with TemporaryDirectory(prefix="keywright-") as folder:
        with tarfile.open(fileobj=BytesIO(_archive(revision))) as archive:
            archive.extractall(folder, filter="data")
        return parsed_lock(_described_in(Path(folder), model, revision), f"{model}@{revision}")


def _archive(revision: str) -> bytes:
    if revision.startswith("-"):
        raise UsageError(f"{revision!r} is not a revision. Write MODEL@TAG, MODEL@HEAD~1 or MODEL@FILE.")
    command = ["git", "archive", "--format=tar", revision]
    return _output(command, _top(), f"no revision or file is called {revision!r}")


def _described_in(folder: Path, model: str, revision: str) -> bytes:
    below = Path.cwd().resolve().relative_to(_top().resolve())
    places = [folder / below, folder / below / "src", folder, folder / "src"]
    paths = [str(place) for place in places if place.is_dir()]
    given = os.environ.get("PYTHONPATH")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*paths, given] if given else paths)}
    command = [sys.executable, "-c", _DESCRIBE, model]
    return _output(command, folder, f"{model} cannot be described as of {revision}", environment)


def _top() -> Path:
    found = _output(["git", "rev-parse", "--show-toplevel"], Path.cwd(), "this is not a git repository")
    return Path(os.fsdecode(found.rstrip(b"\n")))


def _output(
    command: list[str], folder: Path, failure: str, environment: dict[str, str] | None = None
) -> bytes:
    try:
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False)
    except FileNotFoundError as error:
        raise UsageError(f"{command[0]} is not installed. Compare with a lock file instead.") from error
    if done.returncode:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise UsageError(f"{failure}: {lines[-1] if lines else 'no reason given'}. Compare with a lock file.")
    return done.stdout
