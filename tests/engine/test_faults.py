"""One server that goes away at every moment of a batch: which commands are retried, and the errors."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

from engines import Engine, Group, Log, Note, Queue, Tally, Word
from keywright import Call, Retry, Settings, atomic, gather, gather_list
from keywright.errors import (
    ConnectionLostError,
    DeadlineError,
    OutcomeUnknownError,
)
from keywright.operations import Effect, Script
from keywright.testing import Proxy, RedisServer, wait_until
from keywright.testing.runs import Raw
from old_redis import is_redis_6

OpenEngine = Callable[..., Engine]

HASTY = Settings(retry=Retry(attempts=2, first_seconds=0.001))
PATIENT = Settings(retry=Retry(within_seconds=60, longest_seconds=0.05))
SHORT = Settings(timeout_seconds=0.5)

ONCE: dict[str, Callable[[], Call[Any]]] = {
    "INCRBY": lambda: Tally("a").add(1),
    "RPUSH": lambda: Queue("a").push("x"),
    "XADD": lambda: Log("a").add(Note("x")),
}
SIZES = {"INCRBY": ("GET", "tally:a"), "RPUSH": ("LLEN", "queue:a"), "XADD": ("XLEN", "log:a")}


@pytest.fixture
def proxy(redis_url: str, make_proxy: Callable[[str], Proxy]) -> Proxy:
    return make_proxy(redis_url)


@pytest.fixture
def engine(open_engine: OpenEngine, proxy: Proxy) -> Engine:
    return open_engine(proxy.url)


def _count(raw: Raw, verb: str) -> int:
    return int(raw(*SIZES[verb]) or 0)


def test_a_read_whose_answer_is_lost_is_retried(engine: Engine, proxy: Proxy) -> None:
    engine.run(Word("a").set("x"))
    proxy.cut_before_reply()
    assert engine.run(Word("a").get()) == "x"


def test_a_read_that_never_arrived_is_sent_again(engine: Engine, proxy: Proxy) -> None:
    engine.run(Word("a").set("x"))
    proxy.cut_after_commands(0)
    assert engine.run(Word("a").get()) == "x"


@pytest.mark.parametrize("cut", range(11))
def test_reads_of_a_batch_that_is_cut_all_get_their_own_answer(
    cut: int, engine: Engine, proxy: Proxy
) -> None:
    engine.run(gather_list(Word(f"w{n}").set(f"x{n}") for n in range(10)))
    proxy.cut_after_commands(cut)
    found = engine.run(gather_list(Word(f"w{n}").get() for n in range(10)))
    assert found == [f"x{n}" for n in range(10)]


def test_a_truncated_answer_is_not_taken_for_a_whole_one(engine: Engine, proxy: Proxy) -> None:
    engine.run(Word("a").set("x" * 1_000_000))
    proxy.truncate_reply()
    assert engine.run(Word("a").get()) == "x" * 1_000_000


@pytest.mark.parametrize("verb", ONCE)
def test_a_command_that_must_not_be_repeated_is_not_when_its_answer_is_lost(
    verb: str, engine: Engine, proxy: Proxy, raw: Raw
) -> None:
    proxy.cut_before_reply()
    with pytest.raises(OutcomeUnknownError, match=f"{verb}.*Read the key"):
        engine.run(ONCE[verb]())
    assert _count(raw, verb) == 1
    engine.run(ONCE[verb]())
    assert _count(raw, verb) == 2


def test_an_entry_whose_id_the_server_completes_is_not_appended_twice(
    engine: Engine, proxy: Proxy, raw: Raw, keywright_server: RedisServer
) -> None:
    if is_redis_6(keywright_server):
        pytest.skip("Redis 6.2 does not complete ids")
    proxy.cut_before_reply()
    with pytest.raises(OutcomeUnknownError):
        engine.run(Log("a").add(Note("x"), entry_id="5-*"))
    assert _count(raw, "XADD") == 1


@pytest.mark.parametrize("verb", ONCE)
def test_a_command_that_must_not_be_repeated_is_not_when_it_never_arrived(
    verb: str, engine: Engine, proxy: Proxy, raw: Raw
) -> None:
    proxy.cut_after_commands(0)
    with pytest.raises(OutcomeUnknownError):
        engine.run(ONCE[verb]())
    assert _count(raw, verb) == 0


@pytest.mark.parametrize("cut", range(1, 7))
def test_a_cut_batch_distinguishes_applied_from_unknown_outcomes(
    cut: int, engine: Engine, proxy: Proxy, raw: Raw
) -> None:
    proxy.cut_before_reply(cut)
    found = engine.run(gather_list(Tally("a").add(1).attempt() for _ in range(6)))
    assert found[: cut - 1] == list(range(1, cut))
    assert all(isinstance(error, OutcomeUnknownError) for error in found[cut - 1 :])
    assert cut <= _count(raw, "INCRBY") <= 6


@pytest.mark.parametrize("cut", range(7))
def test_repeatable_writes_of_a_cut_batch_all_succeed(
    cut: int, engine: Engine, proxy: Proxy, raw: Raw
) -> None:
    proxy.cut_after_commands(cut)
    assert engine.run(gather_list(Word(f"w{n}").set("x") for n in range(6))) == [True] * 6
    assert len(raw.names()) == 6


@pytest.mark.parametrize("cut", range(5))
def test_a_transaction_cut_before_its_end_writes_nothing(
    cut: int, engine: Engine, proxy: Proxy, raw: Raw
) -> None:
    """MULTI, two SADD, one SPOP, EXEC: five commands, and a cut before each."""
    sets = Group("r", "a"), Group("r", "b")
    proxy.cut_after_commands(cut)
    with pytest.raises(OutcomeUnknownError):
        engine.run(atomic(sets[0].add("x"), sets[1].add("x"), sets[0].pop()))
    assert raw.names() == set()


def test_a_transaction_whose_last_answer_is_lost_wrote_everything(
    engine: Engine, proxy: Proxy, raw: Raw
) -> None:
    proxy.cut_before_reply(5)
    with pytest.raises(OutcomeUnknownError):
        engine.run(atomic(Group("r", "a").add("x", "y"), Group("r", "b").add("x"), Group("r", "a").pop()))
    assert raw("SCARD", "group:{r}:a") == raw("SCARD", "group:{r}:b") == 1


@pytest.mark.parametrize("cut", range(4))
def test_a_transaction_that_may_be_repeated_is(cut: int, engine: Engine, proxy: Proxy, raw: Raw) -> None:
    proxy.cut_after_commands(cut)
    assert engine.run(atomic(Group("r", "a").add("x"), Group("r", "b").add("x"))) == (1, 1)
    assert len(raw.names()) == 2


def test_calls_that_wait_for_a_server_that_is_killed_are_answered_after_its_restart(
    open_engine: OpenEngine, redis_url: str, keywright_server: RedisServer
) -> None:
    engine = open_engine(keywright_server.tcp_url, PATIENT)
    engine.run(Word("a").set("x"))
    keywright_server.pause()
    read, write = engine.start(Word("a").get()), engine.start(Word("b").set("y"))
    keywright_server.kill()
    keywright_server.start()
    assert read.result() == "x"
    assert write.result() is True
    assert keywright_server.call("GET", "word:b") == b"y"


@pytest.mark.parametrize("verb", ONCE)
def test_a_call_under_way_when_the_server_is_killed_happens_at_most_once(
    verb: str, open_engine: OpenEngine, redis_url: str, keywright_server: RedisServer
) -> None:
    engine = open_engine(keywright_server.tcp_url, PATIENT)
    keywright_server.pause()
    under_way = engine.start(ONCE[verb]())
    keywright_server.kill()
    keywright_server.start()
    error = under_way.exception()
    assert error is None or isinstance(error, OutcomeUnknownError)
    applied = int(keywright_server.call(*SIZES[verb]) or 0)  # type: ignore[arg-type]  # a number, or nil
    assert applied == 1 if error is None else applied in (0, 1)


def test_a_server_that_restarted_while_nothing_was_sent_is_not_noticed(
    open_engine: OpenEngine, redis_url: str, keywright_server: RedisServer
) -> None:
    engine = open_engine(keywright_server.tcp_url)
    engine.run(Tally("a").add(1))
    keywright_server.restart()
    assert engine.run(Tally("a").add(1)) == 2


def test_a_refused_connection_is_reported_after_bounded_attempts(
    open_engine: OpenEngine, proxy: Proxy
) -> None:
    engine = open_engine(proxy.url, HASTY)
    proxy.refuse()
    proxy.cut()
    with pytest.raises(ConnectionLostError, match=rf"127.0.0.1:{proxy.port} cannot be reached.*call again"):
        engine.run(Word("a").get())
    proxy.heal()
    assert engine.run(Word("a").get()) is None


def test_a_refused_connection_is_retried_until_the_time_for_attempts_is_over(
    open_engine: OpenEngine, proxy: Proxy, keywright_server: RedisServer
) -> None:
    engine = open_engine(proxy.url, PATIENT)
    keywright_server.kill()
    before = proxy.connections
    # A read: what was sent on the old connection, before its end was seen, may be sent again.
    call = engine.start(Word("a").get())
    wait_until(lambda: proxy.connections > before + 30, "many attempts were made")
    keywright_server.start()
    assert call.result() is None


def test_a_silent_server_costs_one_timeout_and_not_one_for_each_attempt(
    open_engine: OpenEngine, proxy: Proxy, keywright_server: RedisServer
) -> None:
    """An attempt takes at least half a second, so only three of them can begin within one."""
    engine = open_engine(proxy.url, Settings(timeout_seconds=1.0, connect_seconds=0.5))
    keywright_server.pause()
    proxy.cut()
    before = proxy.connections
    with pytest.raises(ConnectionLostError):
        engine.run(Word("a").get())
    assert 1 <= proxy.connections - before <= 3


def test_a_call_does_not_wait_for_a_connection_of_the_pool_longer_than_its_timeout(
    open_engine: OpenEngine, redis_url: str, keywright_server: RedisServer
) -> None:
    engine = open_engine(redis_url, Settings(timeout_seconds=0.5, most_connections=1))
    waiting = engine.start(Queue("a").wait(timedelta(seconds=60)))
    wait_until(
        lambda: "blocked_clients:1" in keywright_server.text("INFO", "clients"),
        "the first wait has the only connection",
    )
    with pytest.raises(ConnectionLostError, match="all 1 connections of the pool are in use"):
        engine.run(Queue("b").wait(timedelta(seconds=0.01)))
    keywright_server.call("RPUSH", "queue:a", "item")
    assert waiting.result() == "item"


def test_every_call_of_a_batch_too_large_for_one_write_learns_that_the_server_is_away(
    open_engine: OpenEngine, proxy: Proxy
) -> None:
    engine = open_engine(proxy.url, HASTY)
    proxy.refuse()
    proxy.cut()
    found = engine.run(gather_list(Word(f"w{n}").get().attempt() for n in range(25_000)))
    assert {type(answer) for answer in found} == {ConnectionLostError}


def test_a_batch_too_large_for_one_write_survives_a_cut(engine: Engine, proxy: Proxy) -> None:
    engine.run(gather_list(Word(f"w{n}").set(str(n)) for n in range(25_000)))
    proxy.cut_after_commands(12_345)
    found = engine.run(gather_list(Word(f"w{n}").get() for n in range(25_000)))
    assert found == [str(n) for n in range(25_000)]


def test_a_late_answer_is_a_deadline_and_is_not_taken_for_the_next_one(
    open_engine: OpenEngine, proxy: Proxy
) -> None:
    engine = open_engine(proxy.url, SHORT)
    engine.run(gather(Word("a").set("x"), Word("b").set("y")))
    proxy.delay(60)
    with pytest.raises(DeadlineError, match=r"within 0.5 s.*raise the timeout"):
        engine.run(Word("a").get())
    proxy.heal()
    assert engine.run(Word("b").get()) == "y"


def test_a_frozen_server_is_a_deadline_and_is_usable_once_it_wakes(
    open_engine: OpenEngine, redis_url: str, keywright_server: RedisServer
) -> None:
    engine = open_engine(keywright_server.tcp_url, SHORT)
    engine.run(Word("a").set("x"))
    keywright_server.pause()
    with pytest.raises(DeadlineError):
        engine.run(Tally("a").add(1))
    keywright_server.resume()
    assert engine.run(Word("a").get()) == "x"


def test_a_script_that_the_server_forgot_is_sent_whole(engine: Engine, raw: Raw) -> None:
    decide = Script("keywright.keyspace", "decide", Effect.ONCE)
    key = Word("a")
    for _ in range(2):
        assert engine.run(decide.call([key], ("id", "P", "C"), bytes)) == b""
        raw("SCRIPT", "FLUSH")


@pytest.fixture
def babbler() -> Iterator[str]:
    """A server that answers the handshake and then speaks another language."""
    listener = socket.create_server(("127.0.0.1", 0))

    def answer() -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            with client:
                while asked := client.recv(65_536):
                    handshake = asked.count(b"CLIENT\r\n")
                    client.sendall(b"+OK\r\n" * handshake or b"HTTP/1.1 400 Bad Request\r\n\r\n")

    thread = threading.Thread(target=answer)
    thread.start()
    yield f"redis://127.0.0.1:{listener.getsockname()[1]}"
    listener.shutdown(socket.SHUT_RDWR)
    thread.join()
    listener.close()


def test_a_server_that_speaks_another_protocol_is_an_error_of_ours(
    open_engine: OpenEngine, babbler: str
) -> None:
    with pytest.raises(ConnectionLostError):
        open_engine(babbler, HASTY)
