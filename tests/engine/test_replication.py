"""Writes that must reach replicas, and a primary that Sentinel replaces."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from engines import Engine, Tally, Word
from keywright import Durability, Retry, Settings
from keywright.errors import EngineError, ServerRefusedError, UnderReplicatedError
from keywright.operations import Effect, Script
from keywright.testing import Proxy, RedisSentinel, RedisServer, wait_until

OpenEngine = Callable[..., Engine]

SOON = Settings(durability=Durability(replicas=1, within_ms=150))
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
    wait_until(lambda: "state=online" in primary.text("INFO", "replication"), "the replica follows")
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


def _has_it(deployment: RedisSentinel, primary: RedisServer) -> bool:
    other = next(server for server in deployment.servers if server is not primary)
    return other.call("GET", "word:a") == b"before"
