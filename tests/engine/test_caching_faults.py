"""A cache of a cluster, of a service with failover, and behind connections that break or lie."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cached_keys import Cached, OpenCached, Tags, Total, Word
from engines import Asyncio, Blocking
from keywright import Caching, RoundTrip, Settings, aconnect, gather, gather_list
from keywright.engine.address import parse_address
from keywright.engine.reply_cache import ReplyCache
from keywright.engine.topology import Node
from keywright.engine.tracking_link import LostTrackingError, RefusedTrackingError, TrackingLink
from keywright.keyspace.context import Context
from keywright.operations import slot_of
from keywright.testing import Proxy, RedisCluster, RedisServer, wait_until
from keywright.testing.runs import Raw
from keywright.testing.sentinel import RedisSentinel

SLOT = slot_of(b"word:a")


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


def test_a_read_meets_a_connection_that_was_given_up_and_has_unread_reports(redis_url: str, raw: Raw) -> None:
    with ExitStack() as opened:
        engine = Blocking(redis_url, None)
        opened.callback(engine.close)
        cached = Cached(engine, [])
        cached.warm()
        for number in range(20):
            cached.settle()
            line = engine.database._caching()._lines[None]
            with line._lock:
                raw("SET", "word:a", number)
                line._give_up()
            line.catch_up()  # before its thread closes the connection
            assert cached.run(Word("a").get()) == str(number)


def test_on_a_cluster_every_node_reports_changes(
    open_cached: OpenCached, cluster_url: str, raw_cluster: Raw
) -> None:
    cached = open_cached(cluster_url)
    cached.warm()
    words = [Word(f"w{number}") for number in range(60)]
    cached.run(gather_list([word.set("x") for word in words]))
    cached.settle()
    reads = gather_list([word.get() for word in words])
    assert cached.run(reads) == ["x"] * 60
    assert cached.trips_of(reads) == 0
    for word in words:
        raw_cluster("SET", bytes(word), "y")
    cached.settle()
    assert cached.run(reads) == ["y"] * 60
    cached.run(gather(Word("w1").set("z"), Tags("w1").add("z")))
    assert cached.run(Word("w1").get()) == "z"


def test_a_key_whose_slot_moved_is_not_served_from_before(
    open_cached: OpenCached, cluster_url: str, keywright_cluster: RedisCluster, raw_cluster: Raw
) -> None:
    cached = open_cached(cluster_url)
    cached.run(Word("a").set("1"))
    cached.settle()
    for value in ("2", "3"):
        cached.run(Word("a").get())
        owner = keywright_cluster.master_of(SLOT)
        target = next(node for node in keywright_cluster.masters() if node is not owner)
        keywright_cluster.migrate_slot(SLOT, target)
        with target.wire() as wire:
            wire.call("SET", "word:a", value)
        cached.settle()
        assert cached.run(Word("a").get()) == value
        cached.settle()
        cached.run(Word("a").get())
        wait_until(lambda: cached.trips_of(Word("a").get()) == 0, "the new node reports changes")


def test_after_a_failover_of_a_cluster_the_successor_reports_changes(
    open_cached: OpenCached, cluster_url: str, keywright_cluster: RedisCluster
) -> None:
    cached = open_cached(cluster_url)
    cached.run(Word("a").set("1"))
    cached.settle()
    cached.run(Word("a").get())
    successor = keywright_cluster.hand_over(keywright_cluster.master_of(SLOT))
    wait_until(lambda: cached.stats.invalidations > 0, "the demotion is noticed")
    with successor.wire() as wire:
        wire.call("SET", "word:a", "2")
    cached.settle()
    assert cached.run(Word("a").get()) == "2"
    wait_until(lambda: cached.trips_of(Word("a").get()) == 0, "the successor reports changes")


def test_after_a_failover_by_sentinels_the_successor_reports_changes(open_cached: OpenCached) -> None:
    with RedisSentinel() as service:
        cached = open_cached(service.url)
        cached.run(Word("a").set("1"))
        cached.settle()
        cached.run(Word("a").get())
        successor = service.hand_over()
        wait_until(lambda: cached.stats.entries == 0, "the demotion is noticed")
        successor.call("SET", "word:a", "2")
        cached.settle()
        assert cached.run(Word("a").get()) == "2"
        cached.run(Word("a").get())
        assert cached.trips_of(Word("a").get()) == 0


class Liar:
    """A proxy in front of a server that adds bytes of its own to the connections that track changes."""

    def __init__(self, server: RedisServer) -> None:
        self._server = server
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._tracking: list[socket.socket] = []
        self._open: list[socket.socket] = []
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def say(self, data: bytes) -> None:
        for client in self._tracking:
            with suppress(OSError):
                client.sendall(data)
        self._tracking.clear()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._accepting.join()  # afterwards no connection is added
        for each in (self._listener, *self._open):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                behind = socket.create_connection(("127.0.0.1", self._server.port))
                self._open += [client, behind]
                for pair in ((client, behind), (behind, client)):
                    threading.Thread(target=self._pump, args=(*pair, client), daemon=True).start()

    def _pump(self, source: socket.socket, target: socket.socket, client: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
                if source is client and b"TRACKING" in data:
                    self._tracking.append(client)
        for each in (source, target):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


LIES = [
    b"+OK\r\n",
    b"!not a reply\r\n",
    b">2\r\n$10\r\ninvalidate\r\n:7\r\n",
    b">2\r\n$10\r\ninvalidate\r\n*1\r\n:7\r\n",
    b"%1\r\n$4\r\nrole\r\n$5\r\nslave\r\n",
    b"-ERR something\r\n",
    b"*-5\r\n",
]


def test_a_connection_that_says_what_no_server_says_is_given_up(
    open_cached: OpenCached, keywright_server: RedisServer, redis_url: str
) -> None:
    liar = Liar(keywright_server)
    try:
        url = keywright_server.tcp_url.replace(f":{keywright_server.port}/", f":{liar.port}/")
        cached = open_cached(url)
        cached.run(Word("a").set("x"))
        for lie in LIES:
            cached.settle()
            assert cached.run(Word("a").get()) == "x"
            dropped = cached.stats.invalidations
            liar.say(lie)
            wait_until(lambda: cached.stats.invalidations > dropped, f"{lie!r} is noticed")  # noqa: B023
            assert cached.run(Word("a").get()) == "x"
    finally:
        liar.close()


ADDRESS = parse_address("redis://localhost:7000")


def _link(node: Node | None, clock: Callable[[], float] = lambda: 0.0) -> TrackingLink:
    links: list[TrackingLink] = []
    cache = ReplyCache(Caching(), lambda _: links[0], clock)
    link = TrackingLink(cache, node, [b"word:"], ADDRESS, clock)
    links.append(link)
    return link


GREETED = b"+OK\r\n%1\r\n$4\r\nrole\r\n$6\r\nmaster\r\n"
SLOTS = b"*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\nlocalhost\r\n:7000\r\n"


@given(st.sampled_from([None, Node("localhost", 7000)]), st.lists(st.binary(max_size=40), max_size=5))
@example(None, [b"-NOPERM no\r\n"])
@example(Node("localhost", 7000), [GREETED, b"*1\r\n*3\r\n:0\r\n:99999\r\n$1\r\nx\r\n"])
@example(Node("localhost", 7000), [GREETED + SLOTS, b"$-1\r\n"])
def test_foreign_bytes_end_the_link_or_are_reports(node: Node | None, chunks: list[bytes]) -> None:
    link = _link(node)
    link.greeting()
    for chunk in chunks:
        try:
            link.feed(chunk)
        except (LostTrackingError, RefusedTrackingError):
            link.end()
            break
    assert link.vouched_until <= 3.0


def test_a_reply_that_arrives_after_the_report_of_a_change_is_not_kept() -> None:
    link = _link(None)
    link.greeting()
    link.feed(GREETED)
    context = Context()
    wires = [Word("a").get().lower(context)]  # type: ignore[attr-defined]
    for changed in (
        b">2\r\n$10\r\ninvalidate\r\n*1\r\n$6\r\nword:a\r\n",
        b">2\r\n$10\r\ninvalidate\r\n_\r\n",
    ):
        lookup = link.cache.look(wires, context.cached)
        link.feed(changed)
        assert link.cache.land(lookup, [-1, b"old"], straight=True) == [b"old"]
        assert link.cache.look(wires, context.cached).sent != []
    lookup = link.cache.look(wires, context.cached)
    link.cache.land(lookup, [-1, b"new"], straight=True)
    assert link.cache.look(wires, context.cached).replies == [b"new"]
    assert link.cache.look(wires, context.cached).sent == []


def test_a_read_that_was_sent_twice_or_elsewhere_is_not_kept() -> None:
    link = _link(None)
    link.greeting()
    link.feed(GREETED)
    context = Context()
    wires = [Total("a").get().lower(context)]  # type: ignore[attr-defined]
    lookup = link.cache.look(wires, context.cached)
    link.cache.land(lookup, [-1, b"1"], straight=False)
    assert link.cache.stats(tracking=True, refusal=None).entries == 0


def test_of_two_reads_at_once_that_differ_none_is_kept() -> None:
    link = _link(None)
    link.greeting()
    link.feed(GREETED)
    context = Context()
    wires = [Word("a").get().lower(context)]  # type: ignore[attr-defined]
    lookups = [link.cache.look(wires, context.cached) for _ in range(2)]
    assert link.cache.land(lookups[1], [-1, b"new"], straight=True) == [b"new"]
    assert link.cache.land(lookups[0], [-1, b"old"], straight=True) == [b"old"]
    assert link.cache.look(wires, context.cached).sent != []


def test_a_reply_is_served_while_it_is_vouched_for_and_young_enough() -> None:
    now = [0.0]
    link = _link(None, lambda: now[0])
    link.greeting()
    link.feed(GREETED)
    context = Context()
    wires = [Word("a").get().lower(context)]  # type: ignore[attr-defined]

    def is_served(at: float) -> bool:
        now[0] = at
        return link.cache.look(wires, context.cached).sent == []

    def read(longest: float) -> None:
        lookup = link.cache.look(wires, {Word: longest})
        link.cache.land(lookup, [-1, b"x"], straight=True)

    read(60.0)
    assert is_served(2.9)
    assert not is_served(3.1)  # nobody answered since
    for moment in range(4, 400, 2):
        now[0] = float(moment)
        link.question()
        link.feed(GREETED[5:])
        if moment == 4:
            read(60.0)
        if moment == 100:
            read(1000.0)  # more than the bound of all
        assert is_served(moment + 1) is (4 <= moment < 63 or 100 <= moment < 399), moment


def test_closing_ends_while_connections_are_made_again(
    keywright_server: RedisServer, redis_url: str, make_proxy: Callable[[str], Proxy]
) -> None:
    """redis-py may lose the cancellation of a task that connects."""
    proxy = make_proxy(keywright_server.tcp_url)

    async def open_and_close(turns: int) -> None:
        async with aconnect(proxy.url) as database:
            await database.run(Word("a").get())  # which begins to connect
            for _ in range(turns):
                await asyncio.sleep(0)
            proxy.cut()

    async def often() -> None:
        async with asyncio.timeout(60):
            for number in range(400):
                await open_and_close(number % 40)

    asyncio.run(often())
