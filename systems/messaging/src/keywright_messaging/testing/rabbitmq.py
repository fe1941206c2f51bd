"""A private RabbitMQ server that a test may stop, kill, freeze and start again.

The node runs without epmd and without plugins, with a name and ports of its own, so it does not conflict with
a RabbitMQ of the machine or another test run.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

from keywright.errors import EngineError, UsageError
from keywright.testing import (
    LOOPBACK,
    PORT_PAIR_OFFSET,
    START_SECONDS,
    STOP_SECONDS,
    PrivateServer,
    ServerProcess,
    death_with_parent,
    descendants,
    is_running,
    start_on_free_port,
    wait_until,
    witness,
)

__all__ = ["RabbitServer", "find_rabbitmq"]

# Debian's script on PATH changes to the rabbitmq user; the wrapped script runs as any user.
_SCRIPTS = (Path("/usr/lib/rabbitmq/bin/rabbitmq-server"),)
_PROTOCOL_HEADER = b"AMQP\x00\x00\x09\x01"


def find_rabbitmq() -> Path:
    """Return the script that starts a RabbitMQ node: KEYWRIGHT_RABBITMQ, else the installed one.

    Raise EngineError if there is none.
    """
    if named := os.environ.get("KEYWRIGHT_RABBITMQ"):
        return Path(named)
    for script in _SCRIPTS:
        if os.access(script, os.X_OK):
            return script
    if found := shutil.which("rabbitmq-server"):
        return Path(found)
    raise EngineError("RabbitMQ was not found: rabbitmq-server is not on PATH. Install rabbitmq-server.")


class RabbitServer(PrivateServer["_Node"]):
    """A real RabbitMQ node in a temporary folder, on a free loopback port. Starting takes seconds.

    Port and data survive stop() and kill() until close(). Log in as guest, as `url` does.
    `options` are rabbitmq.conf lines: `{"channel_max": "100"}`.
    """

    start_seconds = 6 * START_SECONDS

    def __init__(self, *, options: Mapping[str, str] | None = None) -> None:
        super().__init__()
        self._options = dict(options or {})
        self._name = f"keywright-{secrets.token_hex(4)}"
        self._port = 0
        self._answered = 0

    @property
    def url(self) -> str:
        """The URL of the default virtual host."""
        return self.url_of("/")

    def url_of(self, vhost: str) -> str:
        """Return the URL of a virtual host."""
        return f"amqp://guest:guest@{LOOPBACK}:{self.port}/{vhost.replace('/', '%2F')}"

    @property
    def port(self) -> int:
        self.started()
        return self._port

    def start(self) -> Self:
        """Start the node. Return once it is up: its port of TCP answers before its other ports do."""
        if self.pid is None:
            super().start()
            self.evaluate("rabbit:await_startup()")
        return self

    def evaluate(self, expression: str) -> str:
        """Return the value of an Erlang expression in the node's shell, printed on one line."""
        process = self.started()
        self._answered += 1
        mark = f"keywright-answer-{self._answered}:"
        process.write(f'io:format("~n{mark} ~0p~n", [catch {expression}]).\n')
        return wait_until(lambda: _line_after(mark, self.log), f"the node evaluates {expression}")

    def make_vhost(self) -> str:
        """Create an empty virtual host for guest and return its name."""
        name = f"test-{secrets.token_hex(4)}"
        grant = f'<<"guest">>, <<"{name}">>, <<".*">>, <<".*">>, <<".*">>, <<"keywright">>'
        self._expect_ok(f'rabbit_vhost:add(<<"{name}">>, <<"keywright">>)')
        self._expect_ok(f"rabbit_auth_backend_internal:set_permissions({grant})")
        return name

    def remove_vhost(self, name: str) -> None:
        """Delete a virtual host with its queues; its connections are closed."""
        self.evaluate(f'rabbit_vhost:delete(<<"{name}">>, <<"keywright">>)')

    def close_connections(self) -> None:
        """Close every client connection on the server."""
        self.evaluate(
            '[rabbit_networking:close_connection(P, "for a test") || P <- rabbit_networking:connections()]'
        )

    def _expect_ok(self, expression: str) -> None:
        if (found := self.evaluate(expression)) != "ok":
            raise EngineError(f"RabbitMQ answered {expression} with {found}. Check the node's log.")

    def make_process(self, folder: Path) -> _Node:
        return _Node(folder, self._name)

    def first_start(self, process: _Node, folder: Path) -> None:
        def start(port: int) -> None:
            self._port = port
            process.listen_on(port, self._options)
            process.start(seconds=self.start_seconds)

        start_on_free_port(start, taken="eaddrinuse")
        witness("RabbitMQ", self.evaluate("rabbit_misc:version()").strip('"'))


class _Node(ServerProcess):
    """The Erlang process of one node; its standard input is the Erlang shell."""

    def __init__(self, folder: Path, name: str) -> None:
        super().__init__(folder)
        self.log = folder / "rabbitmq.log"
        self._folder = folder
        self._name = f"{name}@localhost"
        self._port = 0

    def listen_on(self, port: int, options: Mapping[str, str]) -> None:
        """Write the node's configuration for this port; Erlang distribution uses its pair."""
        self._port = port
        settings = {
            "listeners.tcp.1": f"{LOOPBACK}:{port}",
            "log.file": "false",
            "log.console": "true",
            "log.console.level": "warning",
            "disk_free_limit.absolute": "10MB",
            **options,
        }
        lines = [f"{name} = {value}\n" for name, value in settings.items()]
        (self._folder / "rabbitmq.conf").write_text("".join(lines), encoding="utf-8")
        (self._folder / "enabled_plugins").write_text("[].\n", encoding="utf-8")
        # Without it Erlang starts a helper process to resolve localhost.
        (self._folder / "inetrc").write_text(
            '{lookup, [file]}.\n{host, {127,0,0,1}, ["localhost"]}.\n', encoding="utf-8"
        )

    def write(self, text: str) -> None:
        """Write to the Erlang shell."""
        child = self._own_child()
        if child is None or child.stdin is None:
            raise UsageError("the server is not running. Call start() first.")
        child.stdin.write(text.encode())
        child.stdin.flush()

    def stop(self, *, seconds: float = STOP_SECONDS) -> None:
        with self._until_all_ended():
            super().stop(seconds=seconds)

    def kill(self) -> None:
        with self._until_all_ended():
            super().kill()

    @contextmanager
    def _until_all_ended(self) -> Iterator[None]:
        """Wait for Erlang's own children, which run in another session and end after their parent."""
        child = self._own_child()
        followers = descendants(child.pid) if child else []
        yield
        if child and child.stdin:
            with suppress(BrokenPipeError):
                child.stdin.close()
        wait_until(lambda: not any(map(is_running, followers)), "the processes of the node end")

    def spawn(self, held: Sequence[int]) -> subprocess.Popen[bytes]:
        # Since 3.12 a preexec_fn warns when threads run; under -W error the child would be lost to us.
        with self.log.open("ab") as log, warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            return subprocess.Popen(
                self._command(),
                env=self._environment(),
                cwd=self._folder,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                pass_fds=held,
                start_new_session=True,
                preexec_fn=death_with_parent(signal.SIGKILL),  # noqa: PLW1509 - it takes no lock
            )

    def _command(self) -> list[str]:
        # RabbitMQ does not look up a node in epmd that has its name before the boot.
        distribution = ["-sname", self._name, "-start_epmd", "false"]
        ports = ["-erl_epmd_port", str(self._port + PORT_PAIR_OFFSET)]
        loopback = ["-kernel", "inet_dist_use_interface", "{127,0,0,1}"]
        threads = ["+S", "2:2", "+SDcpu", "2:2", "+SDio", "4"]
        return [str(find_rabbitmq()), *distribution, *ports, *loopback, *threads]

    def _environment(self) -> dict[str, str]:
        outside = {
            name: value for name, value in os.environ.items() if not name.startswith(("RABBITMQ_", "ERL_"))
        }
        folder = self._folder
        paths = {
            "HOME": folder,  # the Erlang cookie is made there
            "ERL_INETRC": folder / "inetrc",
            "ERL_CRASH_DUMP": folder / "erl_crash.dump",
            "RABBITMQ_ADVANCED_CONFIG_FILE": folder / "advanced.config",
            "RABBITMQ_CONFIG_FILE": folder / "rabbitmq.conf",
            "RABBITMQ_CONF_ENV_FILE": folder / "rabbitmq-env.conf",
            "RABBITMQ_ENABLED_PLUGINS_FILE": folder / "enabled_plugins",
            "RABBITMQ_LOG_BASE": folder / "log",
            "RABBITMQ_MNESIA_BASE": folder / "data",
            "RABBITMQ_PID_FILE": folder / "node.pid",
        }
        words = {
            "ERL_CRASH_DUMP_SECONDS": "0",
            "RABBITMQ_ALLOW_INPUT": "true",  # runs the node without a wrapping script, with its shell
            "RABBITMQ_DIST_PORT": str(self._port + PORT_PAIR_OFFSET),
            "RABBITMQ_LOGS": "-",
            "RABBITMQ_NODENAME": self._name,
            "TERM": "dumb",
        }
        return outside | {name: str(path) for name, path in paths.items()} | words

    def answers(self) -> bool:
        try:
            with socket.create_connection((LOOPBACK, self._port), timeout=1.0) as probe:
                probe.sendall(_PROTOCOL_HEADER)
                return probe.recv(1) == b"\x01"
        except OSError:
            return False


def _line_after(mark: str, log: str) -> str | None:
    start = log.rfind(mark)
    end = log.find("\n", start)
    return log[start + len(mark) : end].strip() if start >= 0 and end >= 0 else None
