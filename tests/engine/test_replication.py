"""Writes that must reach replicas, and a primary that Sentinel replaces."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest

from engines import Engine, Group, Queue, Tally, Word
from keywright import Durability, Retry, Settings, atomic, gather
from keywright.errors import EngineError, ServerRefusedError, UnderReplicatedError
from keywright.operations import Effect, Script
from keywright.testing import Proxy, RedisSentinel, RedisServer, free_port, wait_until
from kinship import home
from replicas import replica_in_sync

OpenEngine = Callable[..., Engine]

SOON = Settings(durability=Durability(replicas=1, within_ms=150))
LASTING = Settings(retry=Retry(within_seconds=60, longest_seconds=0.1))
IN_TIME = Settings(durability=Durability(replicas=1, within_ms=20_000))


@pytest.fixture(scope="module")
def pair() -> Iterator[tuple[RedisServer, RedisServer]]:
    """A primary and its replica."""
    with RedisServer(tcp=True) as primary, RedisServer(tcp=True, replica_of=primary) as replica:
        yield primary, replica


@pytest.fixture
def primary(pair: tuple[RedisServer, RedisServer]) -> Iterator[RedisServer]:
    primary, replica = pair
    replica.resume()
    replica_in_sync(primary, replica)
    primary.call("FLUSHALL")
    yield primary
    replica.resume()


@pytest.fixture
def replica(pair: tuple[RedisServer, RedisServer], primary: RedisServer) -> RedisServer:
    return pair[1]


def test_a_durable_write_is_on_the_replica_when_it_returns(
    open_engine: OpenEngine, primary: RedisServer, replica: RedisServer
) -> None:
    engine = open_engine(primary.tcp_url, IN_TIME)
    for number in range(20):
        engine.run(Word(f"w{number}").set("x"))
        assert replica.call("GET", f"word:w{number}") == b"x"


def test_a_write_that_the_replica_does_not_confirm_is_reported_and_applied_once(
    open_engine: OpenEngine, primary: RedisServer, replica: RedisServer
) -> None:
    engine = open_engine(primary.tcp_url, SOON)
    replica.pause()
    with pytest.raises(UnderReplicatedError, match=r"0 of 1 replicas.*Check the replicas"):
        engine.run(Tally("a").add(1))
    assert primary.call("GET", "tally:a") == b"1"


def test_a_read_does_not_wait_for_replicas(
    open_engine: OpenEngine, primary: RedisServer, replica: RedisServer
) -> None:
    engine = open_engine(primary.tcp_url, SOON)
    replica.pause()
    assert engine.run(Word("a").get()) is None


def test_a_refused_write_is_not_reported_as_applied(
    open_engine: OpenEngine, primary: RedisServer, replica: RedisServer
) -> None:
    engine = open_engine(primary.tcp_url, SOON)
    primary.call("SET", "tally:a", "9223372036854775807")
    replica.pause()
    with pytest.raises(ServerRefusedError, match="overflow"):
        engine.run(Tally("a").add(1))


def test_a_forgotten_script_is_sent_whole_though_replicas_are_away(
    open_engine: OpenEngine, primary: RedisServer, replica: RedisServer
) -> None:
    engine = open_engine(primary.tcp_url, SOON)
    primary.call("SCRIPT", "FLUSH")
    primary.call("HSET", "word:a", "id", "Pplan")
    replica.pause()
    decide = Script("keywright.keyspace", "decide", Effect.ONCE)
    with pytest.raises(UnderReplicatedError):
        engine.run(decide.call([Word("a")], ("id", "P", "C"), bytes))
    assert primary.call("HGET", "word:a", "id") == b"Cplan"


def test_a_write_whose_confirmation_is_lost_is_not_reported_as_durable(
    open_engine: OpenEngine, primary: RedisServer, make_proxy: Callable[[str], Proxy]
) -> None:
    proxy = make_proxy(primary.tcp_url)
    engine = open_engine(proxy.url, IN_TIME)
    proxy.cut_before_reply(2)  # that of WAIT
    with pytest.raises(UnderReplicatedError, match="0 of 1 replicas"):
        engine.run(Tally("a").add(1))
    assert primary.call("GET", "tally:a") == b"1"


def test_the_timeout_leaves_replicas_the_time_they_were_given(
    open_engine: OpenEngine, primary: RedisServer, replica: RedisServer
) -> None:
    engine = open_engine(
        primary.tcp_url, Settings(timeout_seconds=0.5, durability=Durability(replicas=1, within_ms=700))
    )
    replica.pause()
    with pytest.raises(UnderReplicatedError):
        engine.run(Word("a").set("x"))


def test_a_database_behind_sentinel_may_reconnect_as_often_as_it_must(open_engine: OpenEngine) -> None:
    with RedisSentinel() as deployment:
        engine = open_engine(deployment.url)
        for _ in range(120):
            deployment.master.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
            engine.run(Word("a").set("x"))


def test_writes_go_on_after_sentinel_replaced_a_dead_primary(open_engine: OpenEngine) -> None:
    with RedisSentinel() as deployment:
        engine = open_engine(deployment.url, Settings(retry=Retry(attempts=4)))
        engine.run(Word("a").set("before"))
        dead = deployment.master
        wait_until(lambda: _has_it(deployment, dead), "the replica has the write")
        dead.kill()

        def written() -> bool:
            try:
                return engine.run(Word("a").set("after"))
            except EngineError:
                return False

        wait_until(written, "the new primary takes writes", seconds=60)
        assert deployment.master is not dead
        assert deployment.master.call("GET", "word:a") == b"after"


def test_calls_leave_a_primary_that_was_demoted_and_stays_alive(open_engine: OpenEngine) -> None:
    with RedisSentinel() as deployment:
        engine = open_engine(deployment.url, LASTING)
        former = deployment.master
        waits = [engine.start(Queue(f"q{number}").wait(timedelta(seconds=60))) for number in range(4)]
        wait_until(lambda: "blocked_clients:4" in former.text("INFO", "clients"), "four calls wait")
        engine.run(Word("a").set("before"))
        new = deployment.hand_over()
        assert engine.run(Word("a").set("after")) is True
        assert engine.run(Tally("a").add(1)) == 1
        assert new.call("MGET", "word:a", "tally:a") == [b"after", b"1"]
        for number, waiting in enumerate(waits):
            engine.run(Queue(f"q{number}").push("item"))
            assert waiting.result() == "item"


def test_a_script_and_a_transaction_leave_a_demoted_primary_too(open_engine: OpenEngine) -> None:
    with RedisSentinel() as deployment:
        engine = open_engine(deployment.url, LASTING)
        engine.run(gather(atomic(Group("r", "a").add("x"), Group("r", "b").add("x")), home.of("ann")))
        new = deployment.hand_over()
        assert engine.run(atomic(Group("r", "a").add("y"), Group("r", "b").add("y"))) == (1, 1)
        deployment.hand_over()
        engine.run(home.assign("ann", "one"))
        assert engine.run(home.of("ann")) == "one"
        assert new.text("INFO", "replication").startswith("# Replication\r\nrole:slave")


def test_a_refused_write_is_sent_again_on_another_connection_until_the_server_is_a_primary(
    open_engine: OpenEngine, make_proxy: Callable[[str], Proxy]
) -> None:
    """The name of a server may lead to another one after each connect."""
    with RedisServer(tcp=True) as server:
        proxy = make_proxy(server.url)
        engine = open_engine(proxy.url, LASTING)
        server.call("REPLICAOF", "127.0.0.1", free_port())
        before = proxy.connections
        writing = engine.start(Tally("a").add(1))
        wait_until(lambda: proxy.connections > before + 1, "the connection was left")
        server.call("REPLICAOF", "NO", "ONE")
        assert writing.result() == 1


def test_a_server_that_stays_a_replica_is_reported_as_one(
    open_engine: OpenEngine, primary: RedisServer, replica: RedisServer
) -> None:
    engine = open_engine(replica.tcp_url, Settings(timeout_seconds=0.5))
    with pytest.raises(ServerRefusedError, match=r"READONLY.*connect to the primary"):
        engine.run(Word("a").set("x"))
    assert engine.run(Word("a").get()) is None


def _has_it(deployment: RedisSentinel, primary: RedisServer) -> bool:
    other = next(server for server in deployment.servers if server is not primary)
    return other.call("GET", "word:a") == b"before"
