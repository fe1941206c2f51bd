"""Reads at chosen nodes: replicas that go away, slots that move, and the telemetry of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from engines import Engine, Group, Tally, Word
from keywright import RoundTrip, gather, gather_list
from keywright.engine.nodes import Batch, NodeReader, info, key_count, name_page
from keywright.errors import ServerRefusedError, UsageError, WrongTypeError
from keywright.keyspace.slots import slot_of
from keywright.operations import Effect, Operation, ServerCommand, Wire
from keywright.testing import RedisCluster, RedisServer, wait_until
from replicas import replica_in_sync

OpenEngine = Callable[..., Engine]

SLOT = slot_of(b"word:a")


@pytest.fixture(scope="module")
def primary() -> Iterator[RedisServer]:
    with RedisServer(tcp=True) as server:
        yield server


@pytest.fixture(scope="module")
def replica(primary: RedisServer) -> Iterator[RedisServer]:
    with RedisServer(tcp=True, replica_of=primary) as server:
        replica_in_sync(primary, server)
        yield server


@pytest.fixture
def lost_replica() -> Iterator[tuple[RedisServer, RedisServer]]:
    """A primary with a key, and a replica that a test may end."""
    with RedisServer(tcp=True) as primary, RedisServer(tcp=True, replica_of=primary) as replica:
        replica_in_sync(primary, replica)
        primary.call("SET", "word:a", "x")
        wait_until(lambda: replica.call("DBSIZE") == 1, "the replica has the key")
        yield primary, replica


def _reads_of(server: RedisServer, verb: str) -> int:
    found = [line for line in server.text("INFO", "commandstats").splitlines() if f"cmdstat_{verb}:" in line]
    return int(found[0].partition("calls=")[2].partition(",")[0]) if found else 0


def _replicated(cluster: RedisCluster) -> None:
    for server in cluster.masters():
        with server.wire() as wire:
            assert wire.call("WAIT", "1", "5000")


def _owner(nodes: list[NodeReader], server: RedisServer) -> NodeReader:
    return next(node for node in nodes if node.primary is not None and node.primary.port == server.port)


def test_a_replica_is_read_in_place_of_its_primary(
    open_engine: OpenEngine, primary: RedisServer, replica: RedisServer
) -> None:
    engine = open_engine(primary.tcp_url)
    (node,) = engine.nodes(prefer_replica=True)
    assert node.label == f"127.0.0.1:{replica.port} (replica)"
    before = _reads_of(replica, "get"), _reads_of(primary, "get")
    engine.run(Word("a").get(), at=node)
    assert (_reads_of(replica, "get"), _reads_of(primary, "get")) == (before[0] + 1, before[1])


def test_the_primary_is_read_unless_a_replica_is_asked_for(
    open_engine: OpenEngine, primary: RedisServer, replica: RedisServer
) -> None:
    assert [node.label for node in open_engine(primary.tcp_url).nodes()] == [f"127.0.0.1:{primary.port}"]


def test_a_replica_of_a_server_behind_a_socket_is_read(
    open_engine: OpenEngine, primary: RedisServer, replica: RedisServer
) -> None:
    (node,) = open_engine(primary.url).nodes(prefer_replica=True)
    assert node.label == f"127.0.0.1:{replica.port} (replica)"


def test_a_replica_that_does_not_report_its_state_is_left_alone(
    open_engine: OpenEngine, primary: RedisServer, replica: RedisServer
) -> None:
    replica.call("ACL", "SETUSER", "default", "-info")
    try:
        (node,) = open_engine(primary.tcp_url).nodes(prefer_replica=True)
        assert node.label == f"127.0.0.1:{primary.port}"
    finally:
        replica.call("ACL", "SETUSER", "default", "+info")


def test_a_size_that_is_refused_is_an_error_of_ours(
    open_engine: OpenEngine, primary: RedisServer, replica: RedisServer
) -> None:
    engine = open_engine(primary.tcp_url)
    replica.call("ACL", "SETUSER", "default", "-dbsize")
    try:
        with pytest.raises(ServerRefusedError, match=r"DBSIZE.*NOPERM.*Grant"):
            engine.run(key_count(), at=engine.nodes(prefer_replica=True))
    finally:
        replica.call("ACL", "SETUSER", "default", "+dbsize")


def test_a_replica_that_goes_away_is_replaced_by_its_primary(
    open_engine: OpenEngine, lost_replica: tuple[RedisServer, RedisServer]
) -> None:
    primary, replica = lost_replica
    engine = open_engine(primary.tcp_url)
    (node,) = engine.nodes(prefer_replica=True)
    assert engine.run(Word("a").get(), at=node) == "x"
    replica.stop()
    assert engine.run(gather(Word("a").get(), Word("b").get()), at=node) == ("x", None)
    assert node.label == f"127.0.0.1:{primary.port}"


def test_a_replica_that_loses_its_primary_and_does_not_serve_old_data_is_replaced(
    open_engine: OpenEngine, lost_replica: tuple[RedisServer, RedisServer]
) -> None:
    primary, replica = lost_replica
    engine = open_engine(primary.tcp_url)
    (node,) = engine.nodes(prefer_replica=True)
    replica.call("CONFIG", "SET", "replica-serve-stale-data", "no")
    replica.call("REPLICAOF", "127.0.0.1", "1")
    assert engine.run(Word("a").get(), at=node) == "x"
    assert node.label == f"127.0.0.1:{primary.port}"


def test_a_connection_to_a_replica_that_breaks_is_opened_again(
    open_engine: OpenEngine, primary: RedisServer, replica: RedisServer
) -> None:
    engine = open_engine(primary.tcp_url)
    (node,) = engine.nodes(prefer_replica=True)
    engine.run(Word("a").get(), at=node)
    replica.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    engine.run(Word("a").get(), at=node)
    assert node.label == f"127.0.0.1:{replica.port} (replica)"


def test_every_node_is_asked_about_itself(
    open_engine: OpenEngine, cluster_url: str, keywright_cluster: RedisCluster
) -> None:
    engine = open_engine(cluster_url)
    words = [Word(f"w{number}") for number in range(100)]
    engine.run(gather_list(word.set("x") for word in words))
    nodes = engine.nodes()
    assert {int(node.label.rpartition(":")[2]) for node in nodes} == {
        server.port for server in keywright_cluster.masters()
    }
    sizes = [engine.run(key_count(), at=node) for node in nodes]
    assert sum(sizes) == 100 > max(sizes)
    found = {name for node in nodes for name in engine.run(name_page(0, 1000, lead=b"word:"), at=node)[1]}
    assert found == {f"word:{word.word}".encode() for word in words}
    ports = [engine.run(info(b"server"), at=node)["tcp_port"] for node in nodes]
    assert ports == [node.label.rpartition(":")[2] for node in nodes]


def test_replicas_of_a_cluster_answer_for_the_keys_of_their_primaries(
    open_engine: OpenEngine, cluster_url: str, keywright_cluster: RedisCluster
) -> None:
    """Without READONLY they would redirect each reader to the primary."""
    engine = open_engine(cluster_url)
    words = [Word(f"w{number}") for number in range(100)]
    engine.run(gather_list(word.set(word.word) for word in words))
    _replicated(keywright_cluster)
    wait_until(
        lambda: all(node.replica for node in engine.nodes(prefer_replica=True)), "replicas that follow"
    )
    nodes = engine.nodes(prefer_replica=True)
    before = [_reads_of(server, "get") for server in keywright_cluster.masters()]
    assert engine.run(gather_list(word.get() for word in words), at=nodes) == [word.word for word in words]
    assert all(node.replica for node in nodes)
    assert [_reads_of(server, "get") for server in keywright_cluster.masters()] == before


@pytest.mark.parametrize("prefer_replica", [False, True])
def test_a_key_of_another_node_is_read_there(
    open_engine: OpenEngine, cluster_url: str, keywright_cluster: RedisCluster, prefer_replica: bool
) -> None:
    engine = open_engine(cluster_url)
    engine.run(Word("a").set("x"))
    owner = keywright_cluster.master_of(SLOT)
    nodes = engine.nodes(prefer_replica=prefer_replica)
    others = [node for node in nodes if node is not _owner(nodes, owner)]
    assert [engine.run(Word("a").get(), at=node) for node in others] == ["x", "x"]


def test_a_slot_that_moves_is_followed_from_a_chosen_node(
    open_engine: OpenEngine, cluster_url: str, keywright_cluster: RedisCluster
) -> None:
    engine = open_engine(cluster_url)
    here, moved = Group("r", "here"), Group("r", "moved")
    engine.run(gather(here.add("x"), moved.add("y")))
    slot = slot_of(b"r")
    owner = keywright_cluster.master_of(slot)
    target = next(server for server in keywright_cluster.masters() if server is not owner)
    node = _owner(engine.nodes(), owner)
    keywright_cluster.begin_migration(slot, target)
    try:
        keywright_cluster.move_key("group:{r}:moved", target)
        assert engine.run(gather(here.members(), moved.members()), at=node) == ({"x"}, {"y"})
    finally:
        keywright_cluster.finish_migration(slot, target)
    assert engine.run(gather(here.members(), moved.members()), at=node) == ({"x"}, {"y"})


def test_a_call_that_writes_is_not_sent_to_a_chosen_node(open_engine: OpenEngine, redis_url: str) -> None:
    engine = open_engine(redis_url)
    with pytest.raises(UsageError, match=r"may write.*without `at`"):
        engine.run(gather(Word("a").get(), Tally("a").add(1)), at=engine.nodes())
    assert engine.run(Tally("a").get()) == 0


def test_replies_to_a_batch_come_as_they_are_with_errors_among_them(
    open_engine: OpenEngine, redis_url: str
) -> None:
    engine = open_engine(redis_url)
    engine.run(gather(Word("a").set("x"), Group("r", "b").add("y")))
    get = Operation("get", b"GET", Effect.READ)
    wires = [Wire((b"GET", name), name, get, Word) for name in (b"word:a", b"group:{r}:b")]
    value, error = engine.run(Batch(wires), at=engine.nodes())
    assert value == b"x"
    assert isinstance(error, WrongTypeError)


@pytest.mark.parametrize("url", ["redis_url", "cluster_url"])
def test_observers_see_every_round_trip_at_a_node(
    open_engine: OpenEngine, url: str, request: pytest.FixtureRequest
) -> None:
    trips: list[RoundTrip] = []
    engine = open_engine(request.getfixturevalue(url), None, trips.append)
    nodes = engine.nodes(prefer_replica=True)
    engine.scan(Word)
    asked = sum((trip.operations for trip in trips), Counter())
    assert asked["", "replication"] >= 1
    assert asked["word:<word>", "scan"] >= len(nodes)
    assert ("", "topology") in asked or url == "redis_url"
    trips.clear()
    engine.run(gather(Word("a").get(), Word("b").get()), at=nodes)
    engine.run(key_count(), at=nodes[0])
    assert [trip.operations for trip in trips] == [
        Counter({("word:<word>", "get"): 2}),
        Counter({("", "key count"): 1}),
    ]


@pytest.mark.parametrize("url", ["redis_url", "cluster_url"])
def test_a_server_command_of_a_program_runs_at_each_node(
    open_engine: OpenEngine, url: str, request: pytest.FixtureRequest
) -> None:
    engine = open_engine(request.getfixturevalue(url))
    engine.run(gather_list(Word(name).set("x") for name in ("a", "b", "c")))
    count = ServerCommand(Operation("key count", b"DBSIZE", Effect.READ)).map(int)
    assert sum(engine.run(count, at=node) for node in engine.nodes()) == 3
