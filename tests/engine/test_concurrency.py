"""One blocking database shared by threads and inherited by a forked process."""

from __future__ import annotations

import itertools
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from typing import cast

import pytest

from engines import Group, Queue, Tally, Word
from keywright import Database, Settings, connect, gather
from keywright.engine.topology import Node, Topology
from keywright.errors import ConnectionLostError, UsageError
from keywright.keyspace.slots import SLOTS
from keywright.operations import slot_of
from keywright.testing import Proxy, RedisCluster, RedisServer, wait_until
from keywright.testing.runs import Raw

THREADS = 32
ROUNDS = 200


def _in_threads(work: Callable[[int], object], count: int = THREADS) -> None:
    with ThreadPoolExecutor(count) as threads:
        for done in [threads.submit(work, number) for number in range(count)]:
            done.result(timeout=60)


def test_threads_that_share_a_database_get_their_own_answers(redis_url: str, raw: Raw) -> None:
    with connect(redis_url) as database:

        def work(number: int) -> None:
            for turn in range(ROUNDS):
                database.run(Tally("all").add(1))
                database.run(Word(f"w{number}").set(f"{number}-{turn}"))
                assert database.run(Word(f"w{number}").get()) == f"{number}-{turn}"

        _in_threads(work)
    assert raw("GET", "tally:all") == str(THREADS * ROUNDS).encode()


def test_threads_use_no_more_connections_than_allowed(
    redis_url: str, make_proxy: Callable[[str], Proxy]
) -> None:
    proxy = make_proxy(redis_url)
    with connect(proxy.url, settings=Settings(most_connections=3)) as database:
        _in_threads(lambda _: [database.run(Tally("all").add(1)) for _ in range(20)])
        assert database.run(Tally("all").get()) == THREADS * 20
    assert proxy.connections <= 3


def test_threads_that_need_the_same_nodes_in_another_order_do_not_wait_for_each_other(
    cluster_url: str, keywright_cluster: RedisCluster
) -> None:
    """With one connection per node, two threads in different orders would be a deadlock."""
    names = _one_word_on_each_master(keywright_cluster)
    with connect(cluster_url, settings=Settings(most_connections=1)) as database:

        def work(number: int) -> None:
            mine = names if number % 2 else names[::-1]
            for _ in range(ROUNDS):
                database.run(gather(*(Word(name).set("x") for name in mine)))

        _in_threads(work, 4)


def _one_word_on_each_master(cluster: RedisCluster) -> list[str]:
    found: dict[int, str] = {}
    for number in range(100):
        name = f"w{number}"
        found.setdefault(cluster.master_of(slot_of(b"word:" + name.encode())).port, name)
        if len(found) == 3:
            return list(found.values())
    raise AssertionError("no three masters among a hundred names")


def test_a_forked_process_does_not_speak_on_its_parents_connections(redis_url: str, raw: Raw) -> None:
    with connect(redis_url) as database:
        database.run(Word("a").set("parent"))
        child = _forked(lambda: _add_often(database))
        _add_often(database)
        assert database.run(Word("a").get()) == "parent"
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert raw("GET", "tally:all") == str(2 * ROUNDS).encode()


def test_threads_of_a_forked_process_may_begin_all_at_once(redis_url: str) -> None:
    with connect(redis_url) as database:
        database.run(Word("a").set("parent"))
        for _ in range(20):
            child = _forked(lambda: _read_all_at_once(database))
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def _read_all_at_once(database: Database) -> None:
    begin = threading.Barrier(16)

    def read(_: int) -> None:
        begin.wait()
        for _ in range(5):
            assert database.run(Word("a").get()) == "parent"

    with _hasty_threads():
        _in_threads(read, 16)


def _add_often(database: Database) -> None:
    for _ in range(ROUNDS):
        database.run(Tally("all").add(1))
        assert database.run(Group("r", "a").members()) == set()


def _forked(work: Callable[[], None]) -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # since 3.12, where threads run
        child = os.fork()
    if child:
        return child
    try:
        work()
    except BaseException:  # noqa: BLE001  # the parent sees it by the exit code
        os._exit(1)
    os._exit(0)


def test_an_interrupted_call_does_not_leave_its_answer_to_the_next(
    redis_url: str,
    keywright_server: RedisServer,
    make_proxy: Callable[[str], Proxy],
) -> None:
    proxy = make_proxy(redis_url)
    with connect(proxy.url) as database:
        database.run(Word("a").set("x"))
        sent = proxy.commands
        keywright_server.pause()
        interrupter = threading.Thread(target=_interrupt_once, args=(lambda: proxy.commands > sent,))
        interrupter.start()
        with pytest.raises(KeyboardInterrupt):
            database.run(Word("a").get())
        interrupter.join()
        keywright_server.resume()
        assert database.run(Tally("all").add(1)) == 1


def _interrupt_once(sent: Callable[[], bool]) -> None:
    """Press Ctrl-C once the main thread waits for its answer."""
    wait_until(sent, "the command is on its way")
    main = threading.main_thread().ident
    assert main is not None
    signal.pthread_kill(main, signal.SIGINT)


def test_a_call_that_cannot_be_packed_keeps_no_connection(redis_url: str) -> None:
    with connect(redis_url, settings=Settings(most_connections=1)) as database:
        with pytest.raises(UsageError, match=r"LRANGE b'queue:a' cannot be sent.*Pass arguments"):
            database.run(Queue("a").range(cast("int", None)))
        room = database._home._room
        assert room.acquire(blocking=False), "the only connection was never given back"
        room.release()
        assert database.run(Word("a").get()) is None


def test_a_closed_database_says_so_at_once(redis_url: str, make_proxy: Callable[[str], Proxy]) -> None:
    proxy = make_proxy(redis_url)
    database = connect(proxy.url)
    database.close()
    connections = proxy.connections
    with pytest.raises(ConnectionLostError, match="closed"):
        database.run(Word("a").get())
    with pytest.raises(ConnectionLostError, match="closed"):
        list(database.scan(Word))
    assert proxy.connections == connections


def test_a_call_that_outlives_the_closing_leaves_no_connection(redis_url: str, raw: Raw) -> None:
    database = connect(redis_url)
    before = _clients(raw)
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(database.run, Queue("a").wait(timedelta(seconds=60)))
        wait_until(lambda: int(raw("INFO", "clients")["blocked_clients"]) == 1, "the pop waits")
        database.close()
        raw("RPUSH", "queue:a", "item")
        assert waiting.result(timeout=30) == "item"
    wait_until(lambda: _clients(raw) == before - 1, "the connection is closed")


def _clients(raw: Raw) -> int:
    return int(raw("INFO", "clients")["connected_clients"])


def test_a_topology_may_be_asked_for_its_nodes_while_another_thread_learns_of_one() -> None:
    topology = Topology([Node("a", 1)] * SLOTS, {Node("a", 1): []})
    enough = threading.Event()

    def learn() -> None:
        for number in itertools.count():
            if enough.is_set():
                return
            topology.moved(number % SLOTS, Node("b", number))

    with _hasty_threads(), ThreadPoolExecutor(1) as threads:
        learning = threads.submit(learn)
        try:
            for _ in range(30):
                assert topology.sources
        finally:
            enough.set()
        learning.result()


@contextmanager
def _hasty_threads() -> Iterator[None]:
    """Make threads switch as often as possible, so that races show."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(usual)
