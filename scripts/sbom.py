"""Write a software bill of materials (CycloneDX, JSON) of everything that an installation has.

    python -m scripts.sbom [--dist dist]

The wheels of `make dist` are installed with all extras into a new environment, with the versions of the lock
file, and CycloneDX's own tool lists it: packages, versions, licences, and which package needs which. Packages
that are vendored into a wheel are added.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import venv
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packaging.metadata import Metadata
from scripts.lock import LOCK, ROOT
from scripts.version import current

SECONDS = 600
SPECIFICATION = SchemaVersion.V1_6
VENDORED = ROOT / "src/keywright/explorer/static/vendor/README.md"
ROW = re.compile(r"(?m)^\| `[^`]+` \| npm `([^`]+)` (\S+) \| `[^`]+` \| `[0-9a-f]{64}` \| (\S+) \|$")


def inventory(environment: Path) -> dict[str, Any]:
    """Return the document of what a virtual environment has, with what is vendored into the library."""
    command = [
        sys.executable,
        "-m",
        "cyclonedx_py",
        "environment",
        "--mc-type",
        "library",
        "--output-reproducible",
    ]
    options = ["--output-format", "JSON", "--spec-version", SPECIFICATION.to_version()]
    listed = _run([*command, *options, "--pyproject", str(ROOT / "pyproject.toml"), str(environment)])
    document: dict[str, Any] = json.loads(listed)
    vendored = vendored_components()
    document["components"] += vendored
    (own,) = (each for each in document["dependencies"] if each["ref"] == "root-component")
    own["dependsOn"] = sorted([*own.get("dependsOn", ()), *(each["bom-ref"] for each in vendored)])
    document["dependencies"] += [{"ref": each["bom-ref"]} for each in vendored]
    return document


def vendored_components() -> list[dict[str, Any]]:
    """Return the packages of the table of vendored files."""
    return [
        {
            "bom-ref": f"{name}@{version}",
            "type": "library",
            "name": name,
            "version": version,
            "licenses": [{"license": {"id": licence}}],
            "purl": f"pkg:npm/{name}@{version}",
        }
        for name, version, licence in sorted(set(ROW.findall(VENDORED.read_text())))
    ]


def write(document: dict[str, Any], output: Path) -> Path:
    """Write a document that the schema of CycloneDX accepts."""
    text = json.dumps(document, indent=2) + "\n"
    refused = JsonStrictValidator(SPECIFICATION).validate_str(text)
    if refused is not None:
        raise RuntimeError(f"the document is not valid: {refused}")
    output.write_text(text)
    return output


def install(wheels: Sequence[Path], environment: Path) -> None:
    """Install wheels with all their extras, in the versions of the lock file."""
    venv.create(environment, with_pip=False)
    pinned = environment / "constraints.txt"
    pinned.write_text("\n".join(re.findall(r"(?m)^[\w.-]+==[^\\\n]+", LOCK.read_text())))
    pip = [sys.executable, "-m", "pip", "--python", str(environment / "bin" / "python"), "install"]
    _run([*pip, "--quiet", "--no-compile", "--constraint", str(pinned), *map(_with_extras, wheels)])
    for file in environment.glob("lib/python*/site-packages/keywright*.dist-info/direct_url.json"):
        file.unlink()  # the folder of the wheels: a path of this machine, and not where users get them


def _with_extras(wheel: Path) -> str:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        extras = Metadata.from_email(archive.read(name)).provides_extra or []
    return f"{wheel}[{','.join(extras)}]" if extras else str(wheel)


def _run(command: Sequence[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    if done.returncode:
        raise RuntimeError(f"{command[2]} ended with {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dist", type=Path, default=ROOT / "dist", help="the folder of the wheels")
    folder = parser.parse_args().dist.resolve()
    wheels = sorted(folder.glob("*.whl"))
    if not wheels:
        print(f"error: {folder} has no wheels: run make dist first.", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as environment:
        install(wheels, Path(environment))
        print(write(inventory(Path(environment)), folder / f"keywright-{current()}.cdx.json"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
