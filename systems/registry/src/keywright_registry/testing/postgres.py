"""A private PostgreSQL server that a test may stop, kill, freeze and bring back."""

from __future__ import annotations

import ctypes
import os
import pwd
import secrets
import shutil
import signal
import socket
import struct
import subprocess
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import psycopg
from psycopg import sql

from keywright.errors import EngineError
from keywright.testing import (
    STOP_SECONDS,
    PrivateServer,
    ServerProcess,
    death_with_parent,
    descendants,
    is_running,
    wait_until,
    witness,
)

__all__ = ["PostgresServer", "find_postgres"]

_DEBIAN_FOLDERS = "usr/lib/postgresql/*/bin"
_USER = "keywright"
_PORT = 5432  # it only names the socket
_PROTOCOL_3 = 3 << 16
_IPC_RMID = 0

_SETTINGS = {
    "listen_addresses": "",
    "max_connections": "50",
    "fsync": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
    "shared_buffers": "16MB",
    # In the data folder instead of /dev/shm, where a killed server would leave it.
    "dynamic_shared_memory_type": "mmap",
    "log_min_messages": "warning",
}


def find_postgres() -> Path:
    """Return the folder of `initdb` and `postgres`. Raise EngineError if there is none."""
    candidates = [Path(found).parent for name in ("initdb",) if (found := shutil.which(name))]
    versions = Path("/").glob(_DEBIAN_FOLDERS)
    candidates += sorted(versions, key=lambda folder: _as_number(folder.parent.name), reverse=True)
    for folder in candidates:
        if os.access(folder / "postgres", os.X_OK) and os.access(folder / "initdb", os.X_OK):
            return folder
    raise EngineError(
        "no PostgreSQL server was found: initdb is neither on PATH nor in /usr/lib/postgresql. "
        "Install postgresql."
    )


def _as_number(version: str) -> float:
    try:
        return float(version)
    except ValueError:
        return 0.0


class PostgresServer(PrivateServer["_Postmaster"]):
    """A real server in a temporary folder, on a unix socket. Commits survive a kill, not a power cut.

    Socket and data survive stop() and even kill() until close(). PostgreSQL refuses to run as root: then
    it runs as the user `postgres`, else `nobody`.
    """

    @property
    def url(self) -> str:
        """The URL of the database that every server has."""
        return self.url_of("postgres")

    def url_of(self, database: str) -> str:
        """Return the URL of a database."""
        folder = quote(str(self.started().folder), safe="")
        return f"postgresql://{_USER}@/{database}?host={folder}&port={_PORT}"

    def make_database(self, template: str = "template0") -> str:
        """Create a copy of a database that has no connections; return its name."""
        name = f"test_{secrets.token_hex(4)}"
        self._run("CREATE DATABASE {} TEMPLATE {}", name, template)
        return name

    def remove_database(self, name: str) -> None:
        """Drop a database and close the connections to it."""
        self._run("DROP DATABASE IF EXISTS {} WITH (FORCE)", name)

    def _run(self, statement: Any, *names: str) -> None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))

    def make_process(self, folder: Path) -> _Postmaster:
        return _Postmaster(folder)

    def first_start(self, process: _Postmaster, folder: Path) -> None:
        process.initialise()
        process.start()
        with psycopg.connect(self.url) as connection:
            # A version of PostgreSQL is followed by that of its package.
            version = connection.info.parameter_status("server_version") or "unknown"
        witness("PostgreSQL", version.split()[0])

    def remove_folder(self, folder: Path) -> None:
        _remove_shared_memory(folder / "data" / "postmaster.pid")
        super().remove_folder(folder)


class _Postmaster(ServerProcess):
    """The first process of a server; the others are its children, each in a session of its own."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.folder = folder
        self.log = folder / "postgres.log"
        self.socket = folder / f".s.PGSQL.{_PORT}"
        self._data = folder / "data"
        self._identity = _identity()

    def initialise(self) -> None:
        """Create the data folder."""
        user, group, groups = self._identity
        if user is not None and group is not None:
            os.chown(self.folder, user, group)
        command = [find_postgres() / "initdb", "--pgdata", self._data, "--username", _USER]
        options = ["--auth", "trust", "--encoding", "UTF8", "--locale", "C", "--no-sync"]
        done = subprocess.run(
            [*map(str, command), *options],
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            user=user,
            group=group,
            extra_groups=groups,
        )
        if done.returncode:
            said = done.stderr.decode(errors="replace").strip()
            raise EngineError(f"initdb failed: {said}. Correct the cause, then start it again.")
        lines = [f"{name} = '{value}'\n" for name, value in _SETTINGS.items()]
        with (self._data / "postgresql.conf").open("a", encoding="utf-8") as settings:
            settings.writelines(lines)

    def stop(self, *, seconds: float = STOP_SECONDS) -> None:
        with self._until_all_ended():
            self.signal(signal.SIGINT)  # SIGTERM would wait for every client to leave
            super().stop(seconds=seconds)

    def kill(self) -> None:
        with self._until_all_ended():
            super().kill()

    @contextmanager
    def _until_all_ended(self) -> Iterator[None]:
        """Wait for the children of the postmaster, which end by themselves after it."""
        followers = descendants(self.pid) if self.pid else []
        yield
        wait_until(lambda: not any(map(is_running, followers)), "the processes of the server end")

    def spawn(self, held: Sequence[int]) -> subprocess.Popen[bytes]:
        command = [find_postgres() / "postgres", "-D", self._data, "-k", self.folder, "-p", _PORT]
        user, group, groups = self._identity
        # Since 3.12 a preexec_fn warns when threads run; under -W error we would lose track of the child.
        with self.log.open("ab") as log, warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            return subprocess.Popen(
                list(map(str, command)),
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=held,
                start_new_session=True,
                # It runs after the change of user, which would reset it.
                preexec_fn=death_with_parent(signal.SIGKILL),  # noqa: PLW1509 - it takes no lock
                user=user,
                group=group,
                extra_groups=groups,
            )

    def answers(self) -> bool:
        words = b"".join(word.encode() + b"\0" for word in ("user", _USER, "database", "postgres", ""))
        hello = struct.pack("!ii", 8 + len(words), _PROTOCOL_3) + words
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
                probe.settimeout(1.0)
                probe.connect(str(self.socket))
                probe.sendall(hello)
                return probe.recv(1) == b"R"  # else an error: it is starting up
        except OSError:
            return False


class _Identity(NamedTuple):
    """The user to run as; without one it is the current user."""

    user: int | None = None
    group: int | None = None
    groups: list[int] | None = None


def _identity() -> _Identity:
    if os.geteuid() != 0:
        return _Identity()
    for name in ("postgres", "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return _Identity(entry.pw_uid, entry.pw_gid, [])
    raise EngineError(
        "PostgreSQL refuses to run as root, and the user nobody is missing. Add a user postgres."
    )


def _remove_shared_memory(pid_file: Path) -> None:
    """Remove the segment that guards the data folder of a killed server; line 7 of the file names it."""
    try:
        line = pid_file.read_text().splitlines()[6]
        segment = int(line.split()[1])
    except (OSError, IndexError, ValueError):
        return
    ctypes.CDLL(None).shmctl(segment, _IPC_RMID, None)
