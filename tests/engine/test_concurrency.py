"""One blocking database shared by threads and inherited by a forked process."""

from __future__ import annotations

import os
import signal
import threading
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from engines import Group, Tally, Word
from keywright import Database, Settings, connect, gather
from keywright.keyspace.call import Command, as_is
from keywright.keyspace.kinds.value import GET
from keywright.keyspace.slots import slot_of
from keywright.testing import Proxy, RedisCluster, RedisServer, wait_until
from running import Raw

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
    """With one connection a node, each of two threads could hold what the other waits for."""
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
    except BaseException:  # noqa: BLE001  # told to the parent by the exit code
        os._exit(1)
    os._exit(0)


def test_an_interrupted_call_does_not_leave_its_answer_to_the_next(
    redis_url: str, keywright_server: RedisServer, make_proxy: Callable[[str], Proxy]
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
    unpackable: Command[object] = Command(GET, Word("a"), (object(),), as_is)
    with connect(redis_url, settings=Settings(most_connections=1)) as database:
        with pytest.raises(TypeError):
            database.run(unpackable)
        room = database._home._room
        assert room.acquire(blocking=False), "the only connection was never given back"
        room.release()
        assert database.run(Word("a").get()) is None
