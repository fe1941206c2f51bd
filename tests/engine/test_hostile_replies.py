"""A server that answers in other forms than Redis causes an error of ours, on every operation."""

from __future__ import annotations

import contextlib
import random
import socketserver
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from engines import Engine
from keywright import (
    Call,
    Counter,
    Id,
    Keyspace,
    List,
    Map,
    Retry,
    Set,
    Settings,
    SortedSet,
    Value,
    atomic,
    gather,
)
from keywright.errors import KeywrightError, MalformedReplyError

OpenEngine = Callable[..., Engine]

space = Keyspace("hostile", "Keys on a server that is not Redis.")
HASTY = Settings(timeout_seconds=0.05, connect_seconds=10.0, retry=Retry(attempts=1))
ONE_TRY = Settings(timeout_seconds=10.0, connect_seconds=10.0, retry=Retry(attempts=1))


class Word(Value[str], key="word:<n>", space=space):
    """A text."""

    n: Id


class Words(Set[str], key="words", space=space):
    """Texts."""


class Meanings(Map[str, str], key="meanings", space=space):
    """Texts by text."""


class Ranks(SortedSet[str, int], key="ranks", space=space):
    """Numbers of texts."""


class Lines(List[str], key="lines", space=space):
    """Texts in order."""


class Visits(Counter, key="visits", space=space):
    """A number."""


CALLS: dict[str, Call[Any]] = {
    "get": Word("a").get(),
    "get_many": Word.get_many(["a", "b"]),
    "set": Word("a").set("x"),
    "ttl": Word("a").ttl(),
    "exists": Word("a").exists(),
    "members": Words().members(),
    "all": Meanings().all(),
    "values of a map": Meanings().get_many(["a"]),
    "scan": Meanings().scan(),
    "scores": Ranks().range(),
    "items": Lines().range(),
    "count": Visits().add(),
    "gather": gather(Word("a").get(), Words().members()),
    "atomic": atomic(Word("a").set("x"), Word("a").get()),
}

REPLIES = {
    "an integer": b":5\r\n",
    "a text": b"+OK\r\n",
    "nothing": b"$-1\r\n",
    "an empty array": b"*0\r\n",
    "an odd array": b"*3\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n",
    "arrays in arrays": b"*2\r\n*1\r\n*0\r\n:1\r\n",
    "a map": b"%1\r\n+a\r\n+b\r\n",
    "a map of arrays": b"%1\r\n*1\r\n+a\r\n+b\r\n",
    "a push message": b">2\r\n+invalidate\r\n*0\r\n",
    "a double": b",1.5\r\n",
    "a boolean": b"#t\r\n",
    "null": b"_\r\n",
    "a large number": b"(349289032840923850932485094385094382502\r\n",
    "a verbatim text": b"=5\r\ntxt:a\r\n",
    "a set of maps": b"~2\r\n%1\r\n+a\r\n,inf\r\n#f\r\n",
    "attributes": b"|1\r\n+a\r\n+b\r\n+OK\r\n",
    "a push and a reply": b">2\r\n+invalidate\r\n*0\r\n+OK\r\n",
    "arrays in arrays in arrays": b"*1\r\n" * 5000 + b":1\r\n",
    "maps in maps": b"%1\r\n:1\r\n" * 5000 + b":1\r\n",
    "too many elements": b"*4294967295\r\n",
    "a negative length": b"$-5\r\n",
    "HTTP": b"HTTP/1.1 200 OK\r\n\r\n",
    "an error that is not UTF-8": b"-ERR \xff\xfe\r\n",
    "a redirection": b"-MOVED 1 127.0.0.1:1\r\n",
    "a redirection to nowhere": b"-MOVED x\r\n",
}


class _Handler(socketserver.BaseRequestHandler):
    """Answers the handshake and the probe as Redis does, and other commands with a given reply."""

    def handle(self) -> None:
        server: Any = self.server
        while received := self.request.recv(65536):
            answers = [server.answer(command) for command in received.split(b"*")[1:]]
            self.request.sendall(b"".join(answers))


class HostileServer(socketserver.ThreadingTCPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.reply = b"+OK\r\n"
        self.facts = b"redis_version:7.0.15\r\nredis_mode:standalone\r\n"
        self.info: bytes | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.server_address[1]}/0"

    def answer(self, command: bytes) -> bytes:
        words = command.upper()
        if b"HELLO" in words:
            return b"%1\r\n$5\r\nproto\r\n:3\r\n"
        if b"CLIENT" in words or b"SELECT" in words:
            return b"+OK\r\n"
        if b"COMMAND" in words:
            return b"*0\r\n"
        if b"INFO" in words:
            return self.info or b"$%d\r\n%b\r\n" % (len(self.facts), self.facts)
        return self.reply


@pytest.fixture
def hostile() -> Iterator[HostileServer]:
    with HostileServer() as server:
        serving = threading.Thread(target=server.serve_forever, args=(0.01,))
        serving.start()
        yield server
        server.shutdown()
        serving.join()


@pytest.mark.parametrize("protocol", [2, 3])
@pytest.mark.parametrize("form", REPLIES)
def test_a_reply_of_another_form_is_returned_or_raises_an_error_of_ours(
    open_engine: OpenEngine, hostile: HostileServer, form: str, protocol: int
) -> None:
    engine = open_engine(hostile.url, HASTY if form == "a push message" else ONE_TRY, protocol=protocol)
    hostile.reply = REPLIES[form]
    for call in CALLS.values():
        run_or_refuse(engine, call)


def run_or_refuse(engine: Any, call: Call[Any]) -> None:
    with contextlib.suppress(KeywrightError):
        engine.run(call)


@pytest.mark.parametrize(
    ("call", "reply"),
    [
        (CALLS["get"], b":5\r\n"),
        (CALLS["all"], REPLIES["an odd array"]),
        (CALLS["scan"], b"*0\r\n"),
        (CALLS["gather"], b":5\r\n"),
    ],
)
def test_such_a_reply_is_not_blamed_on_the_arguments_of_the_call(
    open_engine: OpenEngine, hostile: HostileServer, call: Call[Any], reply: bytes
) -> None:
    engine = open_engine(hostile.url, ONE_TRY)
    hostile.reply = reply
    with pytest.raises(MalformedReplyError, match="does not have the form of the command"):
        engine.run(call)


@pytest.mark.parametrize("form", ["an integer", "arrays in arrays", "a map"])
def test_a_probe_that_is_answered_in_another_form_is_an_error_of_ours(
    open_engine: OpenEngine, hostile: HostileServer, form: str
) -> None:
    hostile.info = REPLIES[form]
    with pytest.raises(KeywrightError):
        open_engine(hostile.url, ONE_TRY)


@pytest.mark.parametrize("form", ["an integer", "a text", "arrays in arrays", "an odd array"])
def test_slots_that_are_described_in_another_form_are_an_error_of_ours(
    open_engine: OpenEngine, hostile: HostileServer, form: str
) -> None:
    hostile.reply = REPLIES[form]
    with pytest.raises(KeywrightError):
        open_engine(hostile.url.replace("redis://", "redis+cluster://"), ONE_TRY).run(CALLS["get"])


def test_an_error_of_a_function_of_the_caller_stays_as_it_is(open_engine: OpenEngine, redis_url: str) -> None:
    engine = open_engine(redis_url)
    engine.run(Word("a").set("no number"))
    with pytest.raises(ValueError, match="invalid literal"):
        engine.run(Word("a").get().map(int))  # type: ignore[arg-type]  # it may be None
    with pytest.raises(ZeroDivisionError):
        engine.run(Word("a").get().map(lambda _: 1 // 0))


@pytest.mark.parametrize("protocol", [2, 3])
def test_random_replies_raise_nothing_but_errors_of_ours(
    open_engine: OpenEngine, hostile: HostileServer, protocol: int
) -> None:
    chance = random.Random(16)
    tokens = b"*1 *2 $1\r\na $-1 :1 +OK -ERR *-1 %1 ~1 _ #t (1 ,1 >1 |1 -NOSCRIPT -WRONGTYPE".split(b" ")
    for _ in range(150):
        # What is left over closes the connection, and so does what is missing, at the next command.
        hostile.reply = b"".join(chance.choice(tokens) + b"\r\n" for _ in range(chance.randint(1, 6))) + b"!"
        engine = open_engine(hostile.url, ONE_TRY, protocol=protocol)
        run_or_refuse(engine, chance.choice(list(CALLS.values())))
