"""Replies of a server that lies: any bytes in answer to any kind of call.

The input's first byte chooses the call, and with its highest bit RESP3; the rest is the reply, after which
the server hangs up. The call returns or raises a KeywrightError.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from typing import Annotated, Any

import msgspec

from keywright import (
    Call,
    Counter,
    Id,
    Json,
    Keyspace,
    List,
    Map,
    Record,
    Retry,
    Set,
    Settings,
    SortedSet,
    Stream,
    Value,
    atomic,
    connect,
    gather_list,
)
from keywright.errors import KeywrightError

liars = Keyspace("liars", "A key of every kind, for a server that lies.", prefix="liar")


class Text(Value[str], key="text:<n>", space=liars):
    """Text."""

    n: Id


class Document(Value[Annotated[dict[str, Any], Json]], key="document:<n>", space=liars):
    """A document."""

    n: Id


class Names(Map[str, int], key="names:<n>", space=liars):
    """A hash."""

    n: Id


class Details(msgspec.Struct):
    """Fields of a record or an entry."""

    name: str
    age: int | None = None


class Person(Record[Details], key="person:<n>", space=liars):
    """A record."""

    n: Id


class Tags(Set[str], key="tags:<n>", space=liars):
    """A set."""

    n: Id


class Scores(SortedSet[str, float], key="scores:<n>", space=liars):
    """A sorted set."""

    n: Id


class Queue(List[str], key="queue:<n>", space=liars):
    """A list."""

    n: Id


class Hits(Counter, key="hits:<n>", space=liars):
    """A counter."""

    n: Id


class Log(Stream[Details], key="log:<n>", space=liars):
    """A stream."""

    n: Id


CALLS: tuple[Callable[[], Call[Any]], ...] = (
    lambda: Text("1").get(),
    lambda: Text("1").set("a"),
    lambda: Text("1").ttl(),
    lambda: Text("1").exists(),
    lambda: gather_list([Text(str(n)).get() for n in range(3)]),
    lambda: atomic(Text("1").get(), Hits("1").add(1)),
    lambda: Document("1").get(),
    lambda: Names("1").all(),
    lambda: Names("1").get("a"),
    lambda: Person("1").get(),
    lambda: Tags("1").members(),
    lambda: Tags("1").add("a"),
    lambda: Scores("1").range(),
    lambda: Queue("1").range(),
    lambda: Hits("1").get(),
    lambda: Hits("1").add(1),
    lambda: Log("1").range(),
)

INFO = b"redis_version:7.0.15\r\nredis_mode:standalone\r\ncluster_enabled:0\r\n"


class Liar:
    """A server that answers a handshake honestly, and everything else with `reply`."""

    def __init__(self) -> None:
        self.reply = b""
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"redis://127.0.0.1:{self._listener.getsockname()[1]}/0"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        try:
            with connection:
                self._converse(connection)
        except OSError:
            return

    def _converse(self, connection: socket.socket) -> None:
        while received := connection.recv(65536):
            if b"liar:" in received:
                connection.sendall(self.reply)
                return
            for command in received.split(b"*")[1:]:
                words = command.upper()
                if b"HELLO" in words:
                    connection.sendall(b"%1\r\n$5\r\nproto\r\n:3\r\n")
                elif b"INFO" in words and b"CLIENT" not in words:
                    connection.sendall(b"$%d\r\n%b\r\n" % (len(INFO), INFO))
                else:
                    connection.sendall(b"+OK\r\n")


liar = Liar()
SETTINGS = Settings(timeout_seconds=2, connect_seconds=2, retry=Retry(attempts=1))
databases = [connect(liar.url, settings=SETTINGS, protocol=protocol) for protocol in (2, 3)]


def one_input(data: bytes) -> None:
    if not data:
        return
    liar.reply = data[1:]
    try:
        databases[data[0] >> 7].run(CALLS[data[0] % 128 % len(CALLS)]())
    except KeywrightError:
        pass
