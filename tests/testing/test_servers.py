"""Test servers, the cluster and the sentinels do what their real counterparts do."""

from __future__ import annotations

import pytest
import redis

from keywright.errors import ConnectionLostError, ServerRefusedError, UsageError
from keywright.operations import slot_of
from keywright.testing import (
    RawConnection,
    RedisCluster,
    RedisSentinel,
    RedisServer,
    started_pids,
    wait_until,
)

pytestmark = pytest.mark.usefixtures("keywright_server")

_KEY, _SLOT = "{a}:1", slot_of(b"a")


class TestServer:
    def test_a_restart_keeps_data_socket_and_port(self) -> None:
        with RedisServer(tcp=True) as server:
            urls = server.url, server.tcp_url
            server.call("SET", "kept", "yes")
            server.restart()
            assert (server.url, server.tcp_url) == urls
            assert server.call("GET", "kept") == b"yes"

    def test_a_killed_server_comes_back_with_its_data(self) -> None:
        with RedisServer() as server:
            server.call("SET", "kept", "yes")
            server.kill()
            assert server.pid is None
            with pytest.raises(ConnectionLostError):
                server.call("PING")
            assert server.start().call("GET", "kept") == b"yes"

    def test_a_paused_server_answers_when_resumed(self) -> None:
        with RedisServer() as server, RawConnection(server.socket, seconds=0.1) as wire:
            server.pause()
            assert not server.answers
            with pytest.raises(ConnectionLostError, match="timed out"):
                wire.call("PING")
            server.resume()
            assert server.call("PING") == b"PONG"

    def test_a_password_is_part_of_both_urls(self) -> None:
        with RedisServer(tcp=True, password='p@ss/"word') as server:
            for url in (server.url, server.tcp_url):
                with redis.Redis.from_url(url) as client:
                    assert client.ping()
            with RawConnection(server.socket) as stranger, pytest.raises(ServerRefusedError, match="NOAUTH"):
                stranger.call("GET", "x")

    def test_a_replica_follows_its_master(self) -> None:
        with (
            RedisServer(tcp=True, password="secret") as master,
            RedisServer(replica_of=master) as replica,
        ):
            master.call("SET", "copied", "yes")
            wait_until(lambda: replica.call("GET", "copied") == b"yes", "the replica has the key")

    def test_options_are_lines_of_the_configuration(self) -> None:
        with RedisServer(options={"maxmemory": "10mb"}) as server:
            assert server.call("CONFIG", "GET", "maxmemory") == [b"maxmemory", b"10485760"]

    def test_close_leaves_no_process_and_no_folder(self) -> None:
        server = RedisServer().start()
        pid, folder = server.pid, server.socket.parent
        server.close()
        server.close()
        assert pid not in started_pids()
        assert not folder.exists()
        with pytest.raises(UsageError, match=r"Call start\(\)"):
            _ = server.url

    def test_a_server_without_tcp_has_no_port(self) -> None:
        with RedisServer() as server, pytest.raises(UsageError, match="tcp=True"):
            _ = server.tcp_url


@pytest.mark.cluster
class TestCluster:
    def test_three_masters_share_the_slots_and_have_a_replica_each(
        self, keywright_cluster: RedisCluster, cluster_url: str
    ) -> None:
        masters = keywright_cluster.masters()
        assert len(masters) == 3
        assert [len(keywright_cluster.replicas_of(master)) for master in masters] == [1, 1, 1]
        with redis.RedisCluster.from_url(cluster_url) as client:
            client.set(_KEY, "value")
            assert client.get(_KEY) == b"value"

    def test_a_key_on_another_node_is_answered_with_moved(
        self, keywright_cluster: RedisCluster, cluster_url: str
    ) -> None:
        owner = keywright_cluster.master_of(_SLOT)
        stranger = _other_master(keywright_cluster, owner)
        with pytest.raises(ServerRefusedError, match=f"MOVED {_SLOT} 127.0.0.1:{owner.port}"):
            stranger.call("GET", _KEY)

    def test_a_moved_key_of_an_open_slot_is_answered_with_ask(
        self, keywright_cluster: RedisCluster, cluster_url: str
    ) -> None:
        source = keywright_cluster.master_of(_SLOT)
        target = _other_master(keywright_cluster, source)
        source.call("SET", _KEY, "moved")
        source.call("SET", "{a}:2", "stays")
        keywright_cluster.begin_migration(_SLOT, target)
        keywright_cluster.move_key(_KEY, target)
        with pytest.raises(ServerRefusedError, match=f"ASK {_SLOT} 127.0.0.1:{target.port}"):
            source.call("GET", _KEY)
        assert source.call("GET", "{a}:2") == b"stays"
        keywright_cluster.finish_migration(_SLOT, target)
        assert keywright_cluster.master_of(_SLOT) is target
        assert target.call("MGET", _KEY, "{a}:2") == [b"moved", b"stays"]

    def test_a_migrated_slot_takes_all_its_keys_along(
        self, keywright_cluster: RedisCluster, cluster_url: str
    ) -> None:
        source = keywright_cluster.master_of(_SLOT)
        target = _other_master(keywright_cluster, source)
        for number in range(250):
            source.call("SET", f"{{a}}:{number}", number)
        keywright_cluster.migrate_slot(_SLOT, target)
        assert target.call("CLUSTER", "COUNTKEYSINSLOT", _SLOT) == 250
        assert source.call("CLUSTER", "COUNTKEYSINSLOT", _SLOT) == 0

    def test_flush_empties_masters_and_replicas(
        self, keywright_cluster: RedisCluster, cluster_url: str
    ) -> None:
        keywright_cluster.master_of(_SLOT).call("SET", _KEY, "value")
        keywright_cluster.flush()
        assert [node.call("DBSIZE") for node in keywright_cluster.nodes] == [0] * 6

    def test_a_replica_takes_over_from_a_killed_master(
        self, keywright_cluster: RedisCluster, cluster_url: str
    ) -> None:
        master = keywright_cluster.master_of(_SLOT)
        (replica,) = keywright_cluster.replicas_of(master)
        with master.wire() as wire:
            wire.call("SET", _KEY, "kept")
            assert wire.call("WAIT", 1, 5_000) == 1
        keywright_cluster.kill(master)
        assert keywright_cluster.master_of(_SLOT) is replica
        assert replica.call("GET", _KEY) == b"kept"
        keywright_cluster.heal()
        assert keywright_cluster.replicas_of(replica) == (master,)


class TestSentinel:
    def test_the_sentinels_replace_a_killed_master(self) -> None:
        with RedisSentinel() as deployment:
            first, second = deployment.servers
            assert deployment.master is first
            assert deployment.url.startswith("redis+sentinel://127.0.0.1:")
            assert deployment.url.endswith("/mymaster/0")
            first.kill()
            wait_until(lambda: deployment.master is second, "the replica is named master")


def _other_master(cluster: RedisCluster, owner: RedisServer) -> RedisServer:
    return next(master for master in cluster.masters() if master is not owner)
