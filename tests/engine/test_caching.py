"""Reads of cached classes cost no round trip while their keys are unchanged, and are never stale for long."""

from __future__ import annotations

import os
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta
from typing import Any

import pytest

from cached_keys import (
    Cached,
    Lines,
    Member,
    OpenCached,
    Person,
    Places,
    Plain,
    Price,
    Ranks,
    Tags,
    Token,
    Total,
    Word,
    shelf,
    vault,
)
from engines import Asyncio, Blocking
from keywright import (
    AsyncDatabase,
    Binding,
    Caching,
    Call,
    Effect,
    Keyring,
    Point,
    Retry,
    RoundTrip,
    Settings,
    atomic,
    connect,
    gather,
    gather_list,
)
from keywright.errors import EngineError
from keywright.operations import raw
from keywright.testing import Proxy, RedisServer, wait_until
from keywright.testing.servers import as_user
from new_valkey import new_binary
from old_redis import old_binary

MakeProxy = Callable[[str], Proxy]


@pytest.fixture(params=[Blocking, Asyncio], ids=["blocking", "asyncio"])
def open_cached(request: pytest.FixtureRequest) -> Iterator[OpenCached]:
    """Opens databases whose round trips are counted, once for each engine."""
    with ExitStack() as opened:

        def opening(url: str, settings: Settings | None = None) -> Cached:
            trips: list[RoundTrip] = []
            engine = request.param(url, settings, [trips.append])
            opened.callback(engine.close)
            return Cached(engine, trips)

        yield opening


@pytest.fixture
def cached(open_cached: OpenCached, redis_url: str) -> Cached:
    """An open database on an empty server that reports changes."""
    database = open_cached(redis_url)
    database.warm()
    return database


WRITES: list[Call[Any]] = [
    Word("a").set("x"),
    Total("a").set(3),
    Member("a").put(Person("Ada", 36)),
    Price("a").put("tea", 2),
    Tags("a").add("x", "y"),
    Ranks("a").add("ada", 3),
    Lines("a").push("x", "y"),
    Places("a").add("tower", Point(2.3, 48.9)),
]
READS: list[Call[Any]] = [
    Word("a").get(),
    Word("a").exists(),
    Word("a").length(),
    Total("a").get(),
    Member("a").get(),
    Price("a").all(),
    Price("a").get("tea"),
    Tags("a").members(),
    Tags("a").has("x"),
    Ranks("a").score("ada"),
    Ranks("a").range(0, 1),
    Lines("a").range(0, -1),
    Places("a").position("tower"),
    Word("missing").get(),
    gather(Word("a").get(), Tags("a").members()),
    gather_list([Word("a").get()] * 40),
    Word.get_many(["a", "missing"]),
]


def test_a_read_of_an_unchanged_key_makes_no_round_trip(cached: Cached) -> None:
    cached.run(gather_list(WRITES))
    cached.settle()
    for read in READS:
        first = cached.run(read)
        assert cached.trips_of(read) == 0, read
        assert cached.run(read) == first
    assert cached.stats.hits >= 2 * len(READS)


@pytest.mark.parametrize("binary", [old_binary, new_binary], ids=["Redis 6.2", "Valkey"])
def test_the_oldest_and_the_newest_server_report_changes(
    open_cached: OpenCached, binary: Callable[[], Any]
) -> None:
    with RedisServer(binary=binary()) as server:
        cached = open_cached(server.url)
        cached.warm()
        server.call("SET", "word:a", "x")
        assert cached.run(Word("a").get()) == "x"
        cached.settle()
        cached.run(Word("a").get())
        assert cached.trips_of(Word("a").get()) == 0
        server.call("SET", "word:a", "y")
        cached.settle()
        assert cached.run(Word("a").get()) == "y"


def test_a_database_in_resp3_keeps_the_same_replies(
    open_cached: OpenCached, redis_url: str, keywright_server: RedisServer
) -> None:
    cached = open_cached(f"{redis_url}?protocol=3")
    cached.run(gather_list(WRITES))
    cached.settle()
    for read in READS:
        first = cached.run(read)
        assert cached.trips_of(read) == 0, read
        assert cached.run(read) == first
    keywright_server.call("ZADD", "ranks:a", "9", "ada")
    cached.settle()
    assert cached.run(Ranks("a").range(0, 1)) == [("ada", 9)]


def test_what_another_client_changed_is_read_again(cached: Cached, keywright_server: RedisServer) -> None:
    cached.run(gather_list(WRITES))
    cached.settle()
    cached.run(gather_list(READS))
    for words in (
        ("SET", "word:a", "other"),
        ("INCRBY", "total:a", 1),
        ("HSET", "member:a", "age", 37),
        ("HSET", "price:a", "tea", 5),
        ("SREM", "tags:a", "x"),
        ("ZADD", "ranks:a", 9, "ada"),
        ("LPOP", "lines:a"),
        ("SET", "word:missing", "found"),
    ):
        keywright_server.call(*words)
    cached.settle()
    assert cached.run(Word("a").get()) == "other"
    assert cached.run(Total("a").get()) == 4
    assert cached.run(Member("a").get()) == Person("Ada", 37)
    assert cached.run(Price("a").get("tea")) == 5
    assert cached.run(Tags("a").members()) == {"y"}
    assert cached.run(Ranks("a").score("ada")) == 9
    assert cached.run(Lines("a").range(0, -1)) == ["y"]
    assert cached.run(Word("missing").get()) == "found"


@pytest.mark.parametrize(
    "words",
    [("FLUSHALL",), ("DEL", "word:a"), ("RENAME", "word:a", "word:b")],
    ids=lambda words: words[0],
)
def test_a_key_that_went_away_is_not_served(
    cached: Cached, keywright_server: RedisServer, words: tuple[str, ...]
) -> None:
    cached.run(Word("a").set("x"))
    cached.settle()
    assert cached.run(Word("a").get()) == "x"
    keywright_server.call(*words)
    cached.settle()
    assert cached.run(Word("a").get()) is None


def test_own_writes_are_read_at_once(cached: Cached) -> None:
    cached.run(gather_list(WRITES))
    writes: list[tuple[Call[Any], Call[Any], Any]] = [
        (Word("a").set("1"), Word("a").get(), "1"),
        (Word.set_many([("a", "2"), ("b", "2")]), Word("a").get(), "2"),
        (atomic(Word("a").set("3")), Word("a").get(), "3"),
        (gather(Word("a").set("4"), Plain("z").set("")), Word("a").get(), "4"),
        (raw(b"SET", Word("a"), "5"), Word("a").get(), "5"),
        (Word("a").delete(), Word("a").get(), None),
        (raw(b"FLUSHDB"), Tags("a").members(), set()),
    ]
    for write, read, expected in writes:
        cached.run(read)
        cached.run(write)
        assert cached.run(read) == expected, write


def test_many_writers_of_one_process_read_at_least_what_they_wrote(cached: Cached) -> None:
    behind = [
        (written, read)
        for _ in range(50)
        for written, read in [
            (each.result(), cached.run(Total("shared").get()))
            for each in [cached.engine.start(Total("shared").add(1)) for _ in range(8)]
        ]
        if read < written
    ]
    assert behind == []


def test_keys_of_other_classes_are_read_from_the_server(cached: Cached) -> None:
    assert cached.trips_of(Plain("a").get()) == cached.trips_of(Plain("a").get()) == 1


def test_reads_at_a_node_and_in_a_transaction_go_to_the_server(cached: Cached) -> None:
    cached.run(Word("a").set("x"))
    cached.settle()
    cached.run(Word("a").get())
    before = len(cached.trips)
    cached.engine.run(Word("a").get(), at=cached.engine.nodes())
    assert len(cached.trips) == before + 1
    assert cached.trips_of(atomic(Word("a").get())) == 1


def test_replies_that_do_not_follow_from_the_value_alone_are_not_cached(cached: Cached) -> None:
    cached.run(gather(Word("a").set("x"), Tags("a").add("x", "y")))
    cached.settle()
    for read in (Word("a").ttl(), Tags("a").sample(1), Word("a").memory()):
        cached.run(read)
        assert cached.trips_of(read) == 1, read


def test_a_reply_is_not_kept_longer_than_its_key_lives(
    open_cached: OpenCached,
) -> None:
    """The server deletes an expired key, and reports it, when it meets it by chance: here never."""
    with RedisServer(options={"enable-debug-command": "local"}) as server:
        server.call("DEBUG", "SET-ACTIVE-EXPIRE", "0")
        cached = open_cached(server.url)
        cached.warm()
        server.call("SET", "word:a", "x", "PX", "300")
        cached.settle()
        wait_until(lambda: cached.run(Word("a").get()) is None, "the key has expired")
        assert cached.stats.hits > 0


def test_nothing_is_served_after_the_connection_that_reports_changes_is_lost(
    open_cached: OpenCached, keywright_server: RedisServer, redis_url: str, make_proxy: MakeProxy
) -> None:
    proxy = make_proxy(keywright_server.tcp_url)
    cached = open_cached(proxy.url, Settings(timeout_seconds=2.0, retry=Retry(attempts=1)))
    cached.run(Word("a").set("x"))
    cached.settle()
    assert cached.run(Word("a").get()) == "x"
    proxy.refuse()
    proxy.cut()
    wait_until(lambda: not cached.stats.tracking, "the loss is noticed")
    assert cached.stats.entries == 0
    keywright_server.call("SET", "word:a", "y")
    with pytest.raises(EngineError):
        cached.run(Word("a").get())
    proxy.heal()
    assert cached.run(Word("a").get()) == "y"
    cached.settle()
    cached.run(Word("a").get())
    assert cached.trips_of(Word("a").get()) == 0


def test_nothing_is_served_after_the_server_was_silent_for_too_long(
    open_cached: OpenCached, keywright_server: RedisServer, redis_url: str
) -> None:
    limits = Settings(timeout_seconds=0.2, retry=Retry(attempts=1), caching=Caching(silence_seconds=1.0))
    cached = open_cached(redis_url, limits)
    cached.run(Word("a").set("x"))
    cached.settle()
    cached.run(Word("a").get())
    keywright_server.pause()

    def fails() -> bool:
        try:
            cached.run(Word("a").get())
        except EngineError:
            return True
        return False

    try:
        wait_until(fails, "the cache stops serving")
    finally:
        keywright_server.resume()
    assert cached.run(Word("a").get()) == "x"


def test_without_permission_nothing_is_cached_and_the_reason_is_known(
    open_cached: OpenCached, keywright_server: RedisServer, redis_url: str
) -> None:
    keywright_server.call("ACL", "SETUSER", "reader", "on", ">pw", "~*", "+@all", "-client|tracking")
    try:
        cached = open_cached(as_user(redis_url, "reader", "pw"))
        cached.run(Word("a").set("x"))
        wait_until(lambda: cached.run(Word("a").get()) and cached.stats.refusal, "the refusal is known")
        assert "NOPERM" in (cached.stats.refusal or "")
        assert cached.trips_of(Word("a").get()) == 1
        assert not cached.stats.tracking
        assert cached.stats.entries == 0
    finally:
        keywright_server.call("ACL", "DELUSER", "reader")


def test_the_cache_stays_within_its_bounds_and_keeps_what_was_used_last(
    open_cached: OpenCached, redis_url: str
) -> None:
    cached = open_cached(redis_url, Settings(caching=Caching(most_bytes=100_000, most_entries=50)))
    cached.warm()
    words = [f"w{number}" for number in range(120)]
    cached.run(gather_list([Word(word).set("x" * 100) for word in words]))
    cached.run(Word("large").set("x" * 200_000))
    cached.settle()
    for word in words:
        cached.run(gather(Word("w0").get(), Word(word).get()))
        assert cached.stats.entries <= 50
        assert cached.stats.bytes <= 100_000
    assert cached.stats.evictions >= 70
    assert cached.trips_of(Word("w0").get()) == 0
    assert cached.trips_of(Word("w1").get()) == 1
    assert cached.trips_of(Word("large").get()) == cached.trips_of(Word("large").get()) == 1
    for word in words:
        cached.run(Word(word).set("x" * 4000))
    cached.settle()
    for word in words:
        cached.run(Word(word).get())
        assert cached.stats.bytes <= 100_000


def test_the_bytes_of_the_statistics_are_those_of_the_process(redis_url: str) -> None:
    database = connect(redis_url)
    with database:
        database.run(gather_list([Word(f"w{number}").set("x" * 50) for number in range(3000)]))
        database.run(gather_list([Tags(f"t{number}").add(*map(str, range(20))) for number in range(500)]))
        assert database.settle_cache()
        reads: list[Call[Any]] = [Word(f"w{number}").get() for number in range(3000)]
        reads += [Tags(f"t{number}").members() for number in range(500)]
        tracemalloc.start()
        try:
            for read in reads:
                database.run(read)
            used, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert database.cache_stats().entries == 3500
        assert 0.7 < used / database.cache_stats().bytes < 1.1


def test_a_sealed_value_is_kept_sealed(redis_url: str) -> None:
    keyring = Keyring("k", {"k": bytes(range(32))})
    with connect(redis_url, vault.bind(keyring=keyring)) as database:
        assert database.settle_cache()
        database.run(Token("ada").set("correct horse"))
        assert database.settle_cache()
        assert database.run(Token("ada").get()) == database.run(Token("ada").get()) == "correct horse"
        cache = database._cache
        assert cache is not None
        kept = [entry.reply for entry in cache.replies._entries.values()]
        assert kept
        assert all(b"horse" not in reply for reply in kept)
        assert database.cache_stats().hits == 1
        assert "token" not in repr(cache.replies)


def test_a_reader_that_changes_a_list_does_not_change_what_is_kept(cached: Cached) -> None:
    cached.run(Lines("a").push("x", "y"))
    cached.settle()
    for _ in range(3):
        found = cached.run(raw(b"LRANGE", Lines("a"), 0, -1, effect=Effect.READ))
        assert found == [b"x", b"y"]
        found.clear()


@pytest.mark.parametrize("chosen", [False, timedelta(seconds=0.001)], ids=["not", "briefly"])
def test_a_binding_says_otherwise_than_the_declaration(redis_url: str, chosen: bool | timedelta) -> None:
    binding: Binding = shelf.bind(cached={Word: chosen, Plain: True})
    with connect(redis_url, binding) as database:
        assert database.settle_cache()
        database.run(gather(Word("a").set("x"), Plain("a").set("x")))
        assert database.settle_cache()
        for _ in range(3):
            database.run(Plain("a").get())
        assert database.cache_stats().hits == 2
        if chosen is False:
            database.run(gather(Word("a").get(), Word("a").get()))
            assert database.cache_stats().misses == 1


def test_a_database_may_cache_nothing_whatever_is_declared(open_cached: OpenCached, redis_url: str) -> None:
    cached = open_cached(redis_url, Settings(caching=None))
    assert cached.trips_of(Word("a").get()) == cached.trips_of(Word("a").get()) == 1
    assert not cached.settled(0.1)


def test_a_forked_child_has_a_cache_of_its_own(redis_url: str, keywright_server: RedisServer) -> None:
    with connect(redis_url) as database:
        database.run(Word("a").set("x"))
        assert database.settle_cache()
        assert database.run(Word("a").get()) == "x"
        child = os.fork()
        if child == 0:
            fresh = database.cache_stats().entries == 0 and database.settle_cache()
            fresh = fresh and database.run(Word("a").get()) == database.run(Word("a").get()) == "x"
            os._exit(0 if fresh and database.cache_stats().hits == 1 else 1)
        assert os.waitpid(child, 0)[1] == 0
        keywright_server.call("SET", "word:a", "y")
        assert database.settle_cache()
        assert database.run(Word("a").get()) == "y"


def test_a_change_that_was_reported_before_a_call_began_is_known_to_it(
    cached: Cached, keywright_server: RedisServer
) -> None:
    """The server has reported a change by the time that it answers the next command.

    The writer shares the thread of the event loop, so that the loop has no turn in which to read the report.
    """
    engine = cached.engine
    with keywright_server.wire() as wire:

        def change(number: int) -> str:
            wire.call("SET", "word:a", number)
            wire.call("PING")
            return str(number)

        async def read_in_the_loop(database: AsyncDatabase) -> None:
            for number in range(200):
                expected = change(number)
                assert [await database.run(Word("a").get()) for _ in range(2)] == [expected] * 2

        if isinstance(engine, Asyncio):
            engine.wait(read_in_the_loop(engine.database))
        else:
            for number in range(200):
                expected = change(number)
                assert [engine.run(Word("a").get()) for _ in range(2)] == [expected] * 2
    assert cached.stats.hits > 0
