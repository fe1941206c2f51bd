"""Each fault of the proxy strikes where it says, and nowhere else."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator

import pytest
import redis
from hypothesis import given
from hypothesis import strategies as st

from keywright.errors import ConnectionLostError, UsageError
from keywright.testing import Proxy, RawConnection, RedisServer, wait_until
from keywright.testing.wire import Frames

_SET_A = b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n"


@pytest.fixture(scope="module")
def keywright_server() -> Iterator[RedisServer]:
    """Provide a server without a password, so that the bytes of a test are all that is sent."""
    with RedisServer(tcp=True) as server:
        yield server


@pytest.fixture
def proxy(redis_url: str, make_proxy: Callable[[str], Proxy]) -> Proxy:
    return make_proxy(redis_url)


@pytest.fixture
def wire(proxy: Proxy) -> Iterator[RawConnection]:
    with _wire(proxy) as wire:
        yield wire


def _wire(proxy: Proxy) -> RawConnection:
    return RawConnection(("127.0.0.1", proxy.port), seconds=10)


def _exchange(proxy: Proxy, sent: bytes) -> bytes:
    """Return all bytes that the proxy sends back until it closes the connection."""
    with socket.create_connection(("127.0.0.1", proxy.port), timeout=10) as connection:
        connection.sendall(sent)
        received = b""
        while data := connection.recv(4096):
            received += data
        return received


def _rpush(*values: int) -> bytes:
    return b"".join(b"*3\r\n$5\r\nRPUSH\r\n$1\r\nl\r\n$%d\r\n%d\r\n" % (len(str(v)), v) for v in values)


def test_without_faults_a_client_does_not_notice(proxy: Proxy) -> None:
    with redis.Redis.from_url(proxy.url) as client:
        client.set("big", "x" * 1_000_000)
        with client.pipeline(transaction=False) as pipeline:
            for _ in range(500):
                pipeline.strlen("big")
            assert pipeline.execute() == [1_000_000] * 500
    assert proxy.commands == 501
    assert proxy.connections == 1


def test_resp3_and_pushes_pass(proxy: Proxy) -> None:
    with redis.Redis.from_url(proxy.url, protocol=3) as client:
        client.hset("h", mapping={"f": "v"})
        assert client.hgetall("h") == {b"f": b"v"}


def test_a_tcp_upstream_works_as_a_unix_one(
    keywright_server: RedisServer, make_proxy: Callable[[str], Proxy]
) -> None:
    with _wire(make_proxy(keywright_server.tcp_url)) as wire:
        assert wire.call("PING") == b"PONG"


def test_the_url_keeps_password_and_database(make_proxy: Callable[[str], Proxy]) -> None:
    with RedisServer(password="p@ss") as server:
        proxy = make_proxy(f"{server.url}?db=3")
        with redis.Redis.from_url(proxy.url) as client:
            assert client.client_info()["db"] == 3


def test_cut_closes_every_connection_but_accepts_new_ones(proxy: Proxy, wire: RawConnection) -> None:
    with _wire(proxy) as second:
        wire.call("PING")
        second.call("PING")
        proxy.cut()
        for cut in (wire, second):
            with pytest.raises(ConnectionLostError):
                cut.call("PING")
    with _wire(proxy) as third:
        assert third.call("PING") == b"PONG"
    assert proxy.connections == 3


def test_commands_up_to_the_cut_are_applied_and_answered(proxy: Proxy, keywright_server: RedisServer) -> None:
    proxy.cut_after_commands(3)
    assert _exchange(proxy, _rpush(1, 2, 3, 4, 5)) == b":1\r\n:2\r\n:3\r\n"
    assert keywright_server.call("LLEN", "l") == 3
    assert proxy.commands == 3


def test_a_cut_after_no_command_lets_nothing_through(proxy: Proxy, keywright_server: RedisServer) -> None:
    proxy.cut_after_commands(0)
    assert _exchange(proxy, _rpush(1)) == b""
    assert keywright_server.call("EXISTS", "l") == 0


def test_a_cut_strikes_once(proxy: Proxy) -> None:
    proxy.cut_after_commands(0)
    assert _exchange(proxy, _SET_A) == b""
    with _wire(proxy) as wire:
        assert wire.call("SET", "a", "1") == b"OK"


def test_connection_set_up_does_not_count_as_a_command(proxy: Proxy) -> None:
    proxy.cut_after_commands(1)
    with redis.Redis.from_url(f"{proxy.url[:-1]}2", protocol=3, retry=None) as client:
        client.set("first", "yes")
    assert proxy.commands == 1


def test_a_cut_after_bytes_may_end_inside_a_command(proxy: Proxy, keywright_server: RedisServer) -> None:
    one = len(_rpush(1))
    proxy.cut_after_bytes(2 * one + 5)
    assert _exchange(proxy, _rpush(1, 2, 3)) == b":1\r\n:2\r\n"
    assert keywright_server.call("LLEN", "l") == 2


def test_a_lost_reply_belongs_to_a_command_that_was_applied(
    proxy: Proxy, keywright_server: RedisServer
) -> None:
    proxy.cut_before_reply(2)
    assert _exchange(proxy, _rpush(1, 2, 3)) == b":1\r\n"
    assert keywright_server.call("LRANGE", "l", 0, -1) == [b"1", b"2"]


def test_a_lost_reply_is_counted_over_connections(proxy: Proxy, wire: RawConnection) -> None:
    proxy.cut_before_reply(2)
    wire.call("INCR", "n")
    with _wire(proxy) as second, pytest.raises(ConnectionLostError):
        second.call("INCR", "n")
    assert wire.call("GET", "n") == b"2"


def test_a_blocking_command_may_lose_its_reply(proxy: Proxy, keywright_server: RedisServer) -> None:
    proxy.cut_before_reply(1)
    received: list[bytes] = []
    pop = b"*3\r\n$5\r\nBLPOP\r\n$1\r\nl\r\n$1\r\n0\r\n"
    client = threading.Thread(target=lambda: received.append(_exchange(proxy, pop)))
    client.start()
    wait_until(lambda: "blocked_clients:1" in keywright_server.text("INFO", "clients"), "the pop blocks")
    keywright_server.call("RPUSH", "l", "x")
    client.join(10)
    assert received == [b""]
    assert keywright_server.call("EXISTS", "l") == 0


def test_a_truncated_reply_ends_in_its_middle(proxy: Proxy, keywright_server: RedisServer) -> None:
    keywright_server.call("SET", "a", "0123456789")
    proxy.truncate_reply()
    whole = b"$10\r\n0123456789\r\n"
    assert _exchange(proxy, b"*2\r\n$3\r\nGET\r\n$1\r\na\r\n") == whole[: len(whole) // 2]


def test_a_delayed_reply_comes_late_but_whole(proxy: Proxy, wire: RawConnection) -> None:
    wire.call("PING")
    proxy.delay(0.2)
    before = time.monotonic()
    assert wire.call("PING") == b"PONG"
    assert time.monotonic() - before >= 0.2


def test_healing_delivers_delayed_replies(
    proxy: Proxy, wire: RawConnection, keywright_server: RedisServer
) -> None:
    proxy.delay(3600)
    replies: list[object] = []
    client = threading.Thread(target=lambda: replies.append(wire.call("SET", "a", "1")))
    client.start()
    wait_until(lambda: keywright_server.call("EXISTS", "a"), "the command is applied")
    assert replies == []
    proxy.heal()
    client.join(10)
    assert replies == [b"OK"]


def test_refused_connections_leave_open_ones_alone(proxy: Proxy, wire: RawConnection) -> None:
    wire.call("PING")
    proxy.refuse()
    with pytest.raises(ConnectionLostError, match="refused"):
        _wire(proxy)
    assert wire.call("PING") == b"PONG"


def test_a_proxy_that_refuses_connections_keeps_its_port(proxy: Proxy) -> None:
    proxy.refuse()
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind(("127.0.0.1", proxy.port))
    proxy.close()
    with socket.create_server(("127.0.0.1", proxy.port)):
        pass


def test_healing_accepts_connections_at_the_same_port(proxy: Proxy) -> None:
    url = proxy.url
    proxy.refuse()
    proxy.heal()
    assert proxy.url == url
    with _wire(proxy) as wire:
        assert wire.call("PING") == b"PONG"


def test_healing_disarms_a_cut(proxy: Proxy, wire: RawConnection) -> None:
    proxy.cut_after_commands(0)
    proxy.heal()
    assert wire.call("PING") == b"PONG"


def test_a_dead_upstream_closes_the_connection(make_proxy: Callable[[str], Proxy]) -> None:
    with RedisServer() as server:
        proxy = make_proxy(server.url)
        server.kill()
        assert _exchange(proxy, b"") == b""


def test_closing_ends_the_threads(redis_url: str) -> None:
    before = threading.active_count()
    with Proxy(redis_url) as proxy, _wire(proxy) as wire:
        wire.call("PING")
        assert threading.active_count() == before + 3
    proxy.close()
    assert threading.active_count() == before


def test_encrypted_upstreams_are_refused() -> None:
    with pytest.raises(UsageError, match="rediss"):
        Proxy("rediss://localhost")


def test_a_fault_needs_something_to_strike(proxy: Proxy) -> None:
    with pytest.raises(UsageError, match="at least 1, got 0"):
        proxy.cut_before_reply(0)


_SCALARS = st.sampled_from(
    [b"+OK\r\n", b"-ERR no\r\n", b":1\r\n", b"$-1\r\n", b"*-1\r\n", b"_\r\n", b"#t\r\n"]
)
_BULKS = st.binary(max_size=20).map(lambda body: b"$%d\r\n%b\r\n" % (len(body), body))
_MESSAGES = st.recursive(
    _SCALARS | _BULKS,
    lambda inner: (
        st.lists(inner, max_size=4).map(lambda items: b"*%d\r\n" % len(items) + b"".join(items))
        | st.lists(st.tuples(inner, inner), max_size=3).map(
            lambda pairs: b"%%%d\r\n" % len(pairs) + b"".join(key + value for key, value in pairs)
        )
        | inner.map(lambda item: b"|1\r\n+ttl\r\n:3\r\n" + item)
    ),
    max_leaves=10,
)


@given(messages=st.lists(_MESSAGES, max_size=5), size=st.integers(1, 30))
def test_frames_cut_a_stream_where_its_messages_end(messages: list[bytes], size: int) -> None:
    stream = b"".join(messages)
    frames = Frames()
    found = [
        frame for start in range(0, len(stream), size) for frame in frames.feed(stream[start : start + size])
    ]
    assert found == messages
