"""A private Redis server that a test may stop, kill, freeze and bring back."""

from __future__ import annotations

import random
import secrets
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Self
from urllib.parse import quote

from keywright.engine.capabilities import product_of
from keywright.engine.embedded import ServerProcess, quoted
from keywright.engine.nodes import info_fields
from keywright.errors import EngineError, KeywrightError, UsageError
from keywright.testing.conditions import wait_until
from keywright.testing.private_server import PrivateServer
from keywright.testing.versions import witness
from keywright.testing.wire import RawConnection, Reply

__all__ = [
    "LOOPBACK",
    "PORT_PAIR_OFFSET",
    "RedisServer",
    "as_user",
    "free_port",
    "random_password",
    "start_on_free_port",
]

LOOPBACK = "127.0.0.1"
"""The address on which servers of tests listen."""
PORT_PAIR_OFFSET = 10_000
"""A cluster node also listens this far above its port."""
_PORTS = range(11_000, 22_000)  # bus ports included, below what Linux hands to outgoing connections
_PORT_ATTEMPTS = 5


class RedisServer(PrivateServer[ServerProcess]):
    """A real server in a temporary folder, on a unix socket and, with `tcp`, on a free loopback port.

    It logs every write to a file, so socket, port and data survive stop() and even kill() until close().
    `options` are redis.conf lines: `{"maxmemory": "10mb"}`. `binary` is the program, instead of the one that
    serves the test run. Any user of the machine can reach the port, so give it a `password` if others work
    there.
    """

    def __init__(
        self,
        *,
        tcp: bool = False,
        password: str | None = None,
        replica_of: RedisServer | None = None,
        options: Mapping[str, str] | None = None,
        binary: Path | None = None,
    ) -> None:
        super().__init__()
        self._tcp = tcp
        self._password = password
        self._master = replica_of
        self._options = dict(options or {})
        self._binary = binary
        self._port = 0
        self._frozen_pid: int | None = None

    @property
    def url(self) -> str:
        """Return the URL of the unix socket."""
        return f"unix://{self._credentials()}{self.socket}"

    @property
    def tcp_url(self) -> str:
        """Return the URL of the loopback port."""
        return f"redis://{self._credentials()}{LOOPBACK}:{self.port}/0"

    @property
    def socket(self) -> Path:
        """Return the path of the unix socket."""
        return self.started().socket

    @property
    def port(self) -> int:
        """Return the loopback port. Raise UsageError if the server has none."""
        self.started()
        if not self._tcp:
            raise UsageError("this server listens on its unix socket only. Make it with tcp=True.")
        return self._port

    @property
    def answers(self) -> bool:
        """Return whether the process runs and is not frozen."""
        return self.pid is not None and self.pid != self._frozen_pid

    def start(self) -> Self:
        super().start()
        if self._password is not None:
            wait_until(self._logged_in, "the server accepts its password")
        return self

    def pause(self) -> None:
        super().pause()
        self._frozen_pid = self.pid

    def resume(self) -> None:
        super().resume()
        self._frozen_pid = None

    def wire(self) -> RawConnection:
        """Return a new raw connection, logged in. The caller closes it."""
        return RawConnection(self.socket, password=self._password)

    def call(self, *words: str | bytes | int) -> Reply:
        """Run one command on a connection of its own."""
        with self.wire() as wire:
            return wire.call(*words)

    def text(self, *words: str | bytes | int) -> str:
        """Run one command whose reply is text, on a connection of its own."""
        with self.wire() as wire:
            return wire.text(*words)

    def make_process(self, folder: Path) -> ServerProcess:
        return ServerProcess(folder, binary=self._binary)

    def first_start(self, process: ServerProcess, folder: Path) -> None:
        def start(port: int) -> None:
            self._port = port
            process.configure(self._settings(folder) | self._options)
            process.start()

        if self._tcp:
            start_on_free_port(start, taken="Failed listening on port")
        else:
            start(0)
        facts = info_fields(self.text("INFO", "server").encode())
        witness(*product_of(facts), chosen=self._binary is not None)

    def _settings(self, folder: Path) -> dict[str, str]:
        settings = self._listening(folder) | {
            "save": '""',
            "appendonly": "yes",
            "appendfsync": "no",
            "auto-aof-rewrite-percentage": "0",
            "repl-diskless-sync-delay": "0",
        }
        if self._password is not None:
            settings["requirepass"] = quoted(self._password)
        if self._master is not None:
            settings["replicaof"] = f"{LOOPBACK} {self._master.port}"
            if self._master._password is not None:
                settings["masterauth"] = quoted(self._master._password)
        return settings

    def _listening(self, folder: Path) -> dict[str, str]:
        return {"bind": LOOPBACK, "port": str(self._port), "dir": quoted(folder)}

    def _logged_in(self) -> bool:
        try:
            return self.call("PING") == b"PONG"
        except KeywrightError:
            return False

    def _credentials(self) -> str:
        return f":{quote(self._password, safe='')}@" if self._password is not None else ""


def as_user(url: str, user: str, password: str) -> str:
    """Return the URL of a server with other credentials."""
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{quote(user, safe='')}:{quote(password, safe='')}@{rest.rpartition('@')[2]}"


def random_password() -> str:
    """Return a password for a server on a port, which any user of the machine can reach."""
    return secrets.token_urlsafe(18)


def free_port() -> int:
    """Return a free loopback port whose pair, `PORT_PAIR_OFFSET` above it, is free too."""
    while True:
        port = random.choice(_PORTS)
        if _is_free(port) and _is_free(port + PORT_PAIR_OFFSET):
            return port


def start_on_free_port(start: Callable[[int], None], *, taken: str) -> None:
    """Start a server on a free port. Retry on another one if it fails with the words `taken`."""
    for attempt in range(1, _PORT_ATTEMPTS + 1):
        try:
            return start(free_port())
        except EngineError as exc:
            # Another process may have taken the port between our look and the server's.
            if attempt == _PORT_ATTEMPTS or taken not in str(exc):
                raise
    return None


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
        return True
