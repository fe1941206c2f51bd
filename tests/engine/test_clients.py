"""A client of redis-py in the place of a URL, and options by keyword: own connections, the same options."""

from __future__ import annotations

import asyncio
import inspect
import ssl
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import redis
import redis.asyncio
import redis.asyncio.sentinel
import redis.cluster
import redis.sentinel
from redis.asyncio.cluster import ClusterNode as AsyncClusterNode
from redis.asyncio.connection import Connection as AsyncConnection
from redis.connection import Connection, SSLConnection, UnixDomainSocketConnection
from redis.credentials import CredentialProvider

import cached_keys as shelved
from certificates import write_certificate
from engines import Asyncio, Blocking, Engine, Word
from keywright import Id, Keyspace, Retry, Settings, Value, aconnect, connect, gather_list
from keywright.engine.options import ELSEWHERE, KNOWN
from keywright.errors import ConnectionLostError, EngineError, ServerRefusedError, UsageError
from keywright.testing import RedisCluster, RedisSentinel, RedisServer
from keywright.testing.servers import LOOPBACK, free_port
from new_valkey import new_binary

SECRET = "correct-horse"
ONCE = Settings(retry=Retry(attempts=1))

OpenEngine = Callable[..., Engine]
BlockingClient: Any = redis.Redis  # redis-py leaves parts of these untyped
BlockingSentinel: Any = redis.sentinel.Sentinel
BaseConnection: Any = Connection
parse_url: Any = redis.connection.parse_url


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    """A server with a password, and a user who has another."""
    with RedisServer(tcp=True, password=SECRET) as server:
        server.call("ACL", "SETUSER", "ann", "on", ">letmein", "~*", "+@all")
        server.call("ACL", "SETUSER", "bob", "on", ">letmein", "~*", "+@all", "-client")
        yield server


def _listed(server: RedisServer, key: str, value: str) -> list[dict[str, str]]:
    """Return the clients in CLIENT LIST with this value."""
    lines = server.text("CLIENT", "LIST").splitlines()
    clients = [dict(pair.split("=", 1) for pair in line.split(" ") if "=" in pair) for line in lines]
    return [client for client in clients if client.get(key) == value]


def _clients(port: int, **options: Any) -> list[Any]:
    return [redis.Redis(LOOPBACK, port, **options), redis.asyncio.Redis(host=LOOPBACK, port=port, **options)]


@pytest.mark.parametrize("of", [0, 1], ids=["blocking client", "asyncio client"])
def test_a_client_gives_user_database_and_name_and_is_left_alone(
    of: int, open_engine: OpenEngine, server: RedisServer
) -> None:
    name = "guest"
    client = _clients(server.port, username="ann", password="letmein", db=3, client_name=name)[of]
    engine = open_engine(client)
    engine.run(Word("a").set("x"))
    (ours,) = _listed(server, "name", name)  # one connection: the client itself opened none
    assert (ours["user"], ours["db"]) == ("ann", "3")


@pytest.mark.parametrize("kind", [Blocking, Asyncio])
def test_a_client_that_is_in_use_stays_usable_when_the_database_closes(
    kind: Callable[[Any], Engine], server: RedisServer
) -> None:
    with redis.Redis(LOOPBACK, server.port, password=SECRET, decode_responses=True, protocol=3) as client:
        client.set("word:b", "y")
        before = client.client_id()
        engine = kind(client)
        assert engine.run(Word("b").get()) == "y"
        engine.close()
        assert client.client_id() == before


@pytest.mark.parametrize("kind", [redis.ConnectionPool, redis.BlockingConnectionPool])
def test_a_pool_gives_its_options(kind: Any, open_engine: OpenEngine, server: RedisServer) -> None:
    pool = kind.from_url(server.tcp_url, db=2)
    engine = open_engine(pool)
    engine.run(Word("pooled").set("x"))
    with redis.Redis(connection_pool=pool) as client:
        assert client.get("word:pooled") == b"x"
    pool.disconnect()


def test_a_unix_socket_of_a_client_is_used(open_engine: OpenEngine, server: RedisServer) -> None:
    client = redis.Redis(unix_socket_path=str(server.socket), password=SECRET, client_name="by-socket")
    open_engine(client).run(Word("a").set("x"))
    (ours,) = _listed(server, "name", "by-socket")
    assert str(server.socket) in ours["addr"]


class Rotating(CredentialProvider):
    """Gives the password that is valid now."""

    def __init__(self) -> None:
        self.password = "first"
        self.asked = 0

    def get_credentials(self) -> tuple[str, str]:
        self.asked += 1
        return "rotated", self.password


@pytest.mark.parametrize("by_keyword", [False, True], ids=["of a client", "by keyword"])
def test_a_credential_provider_is_asked_for_each_connection(
    by_keyword: bool, open_engine: OpenEngine, server: RedisServer
) -> None:
    provider = Rotating()
    server.call("ACL", "SETUSER", "rotated", "reset", "on", ">first", "~*", "+@all")
    if by_keyword:
        engine = open_engine(f"redis://:wrong@{LOOPBACK}:{server.port}", credential_provider=provider)
    else:
        engine = open_engine(redis.Redis(LOOPBACK, server.port, credential_provider=provider))
    engine.run(Word("a").set("x"))
    provider.password = "second"
    server.call("ACL", "SETUSER", "rotated", "<first", ">second")
    server.call("CLIENT", "KILL", "USER", "rotated")
    before = provider.asked
    assert engine.run(Word("a").get()) == "x"
    assert provider.asked > before


class AsyncOnly(CredentialProvider):
    """Gives the password by asyncio."""

    async def get_credentials_async(self) -> tuple[str]:
        return (SECRET,)


def test_an_asyncio_provider_is_awaited(server: RedisServer) -> None:
    engine = Asyncio(f"redis://{LOOPBACK}:{server.port}", credential_provider=AsyncOnly())
    try:
        assert engine.run(Word("none").get()) is None
    finally:
        engine.close()


class Failing(CredentialProvider):
    """Raises an error with a secret in it."""

    def get_credentials(self) -> tuple[str]:
        raise RuntimeError(SECRET)


def test_a_failing_credential_provider_is_an_outage(open_engine: OpenEngine, server: RedisServer) -> None:
    with pytest.raises(ConnectionLostError, match="the credential provider raised RuntimeError") as caught:
        open_engine(f"redis://{LOOPBACK}:{server.port}", ONCE, credential_provider=Failing())
    assert SECRET not in str(caught.value)


def test_something_else_than_a_provider_is_refused(open_engine: OpenEngine) -> None:
    with pytest.raises(UsageError, match="a str is not a credential provider"):
        open_engine("redis://localhost", credential_provider=SECRET)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return write_certificate(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def tls_port(certificate: tuple[Path, Path]) -> Iterator[int]:
    """The TLS port of a server; it asks clients for no certificate."""
    port = free_port()
    shown, key = certificate
    options = {
        "tls-port": str(port),
        "tls-cert-file": str(shown),
        "tls-key-file": str(key),
        "tls-ca-cert-file": str(shown),
        "tls-auth-clients": "no",
    }
    try:
        server = RedisServer(options=options, password=SECRET).start()
    except EngineError as error:
        if "tls-port" not in str(error) and "Failed finding TLS support" not in str(error):
            raise
        pytest.skip("this server is built without TLS")
    try:
        yield port
    finally:
        server.close()


@pytest.mark.parametrize("of", [0, 1], ids=["blocking client", "asyncio client"])
def test_a_client_with_tls_gives_its_certificates(
    of: int, open_engine: OpenEngine, certificate: tuple[Path, Path], tls_port: int
) -> None:
    client = _clients(tls_port, ssl=True, ssl_ca_certs=str(certificate[0]), password=SECRET)[of]
    engine = open_engine(client)
    engine.run(Word("a").set("x"))
    assert engine.run(Word("a").get()) == "x"


def test_tls_by_keyword(open_engine: OpenEngine, certificate: tuple[Path, Path], tls_port: int) -> None:
    engine = open_engine(
        None,
        host=LOOPBACK,
        port=tls_port,
        ssl=True,
        ssl_ca_certs=str(certificate[0]),
        password=SECRET,
        ssl_min_version=ssl.TLSVersion.TLSv1_2,
    )
    assert engine.run(Word("none").get()) is None


def test_a_cache_learns_of_changes_over_tls(
    open_engine: OpenEngine, certificate: tuple[Path, Path], tls_port: int
) -> None:
    client = BlockingClient(LOOPBACK, tls_port, ssl=True, ssl_ca_certs=str(certificate[0]), password=SECRET)
    writer = open_engine(client)
    cached = shelved.Cached(open_engine(client), [])  # type: ignore[arg-type]  # either engine
    cached.warm()
    for number in range(20):
        writer.run(gather_list([shelved.Word(f"w{each}").set(f"{number}") for each in range(40)]))
        cached.settle()
        reads = [shelved.Word(f"w{each}").get() for each in range(40)]
        assert [cached.run(gather_list(reads)) for _ in range(2)] == [[f"{number}"] * 40] * 2
    assert cached.stats.hits >= 20 * 40


def test_a_certificate_that_is_not_trusted_is_refused(open_engine: OpenEngine, tls_port: int) -> None:
    with pytest.raises(ConnectionLostError, match=r"(?i)certificate"):
        open_engine(redis.Redis(LOOPBACK, tls_port, ssl=True, password=SECRET), ONCE)


def test_a_client_that_verifies_nothing_stays_so(open_engine: OpenEngine, tls_port: int) -> None:
    client = BlockingClient(
        LOOPBACK, tls_port, ssl=True, ssl_cert_reqs=None, ssl_check_hostname=False, password=SECRET
    )
    assert open_engine(client).run(Word("none").get()) is None


@pytest.mark.cluster
def test_a_cluster_client_gives_its_nodes(
    open_engine: OpenEngine, cluster_url: str, keywright_cluster: RedisCluster
) -> None:
    client = redis.RedisCluster.from_url(cluster_url, client_name="clustered")
    engine = open_engine(client)
    for number in range(20):
        engine.run(Word(f"w{number}").set("x"))
    assert [client.get(f"word:w{number}") for number in range(20)] == [b"x"] * 20
    for node in client.nodes_manager.nodes_cache.values():
        if node.redis_connection:
            node.redis_connection.connection_pool.disconnect()
    client.close()


@pytest.mark.cluster
@pytest.mark.anyio
async def test_an_asyncio_cluster_client_that_is_not_open_yet_gives_its_nodes(cluster_url: str) -> None:
    options = parse_url(cluster_url)
    nodes = [AsyncClusterNode(LOOPBACK, 1), AsyncClusterNode(options["host"], options["port"])]
    client = redis.asyncio.RedisCluster(startup_nodes=nodes, password=options["password"])
    async with aconnect(client, settings=ONCE) as db:  # though the first node is down
        await db.run(Word("a").set("x"))
        assert await db.run(Word("a").get()) == "x"
    await client.aclose()


def test_a_remapped_cluster_is_refused() -> None:
    client = redis.RedisCluster.__new__(redis.RedisCluster)
    client.nodes_manager = redis.cluster.NodesManager.__new__(redis.cluster.NodesManager)
    client.nodes_manager.address_remap = lambda address: address
    with pytest.raises(UsageError, match="address_remap"):
        connect(client)


@pytest.fixture(scope="module")
def sentinels() -> Iterator[RedisSentinel]:
    with RedisSentinel() as deployment:
        yield deployment


@pytest.mark.parametrize(
    "kind",
    [redis.sentinel.Sentinel, redis.asyncio.sentinel.Sentinel],
    ids=["blocking client", "asyncio client"],
)
def test_a_sentinel_client_gives_service_and_sentinels(
    kind: Any, open_engine: OpenEngine, sentinels: RedisSentinel
) -> None:
    hosts = [(LOOPBACK, sentinel.port) for sentinel in sentinels.sentinels]
    client = kind(hosts, socket_timeout=1).master_for("mymaster", db=4, client_name="watched")
    engine = open_engine(client)
    engine.run(Word("a").set("x"))
    (ours,) = _listed(sentinels.master, "name", "watched")
    assert ours["db"] == "4"


def test_the_primary_of_sentinels_is_used_in_resp3(open_engine: OpenEngine, sentinels: RedisSentinel) -> None:
    hosts = [(LOOPBACK, sentinel.port) for sentinel in sentinels.sentinels]
    client = BlockingSentinel(hosts, socket_timeout=1).master_for("mymaster", client_name="third")
    open_engine(client, protocol=3).run(Word("a").set("x"))
    (ours,) = _listed(sentinels.master, "name", "third")
    assert ours.get("resp", "3") == "3"  # Redis 6.2 does not list it


def test_sentinels_with_a_password_are_asked_with_it(
    open_engine: OpenEngine, sentinels: RedisSentinel
) -> None:
    hosts = [(LOOPBACK, sentinel.port) for sentinel in sentinels.sentinels]
    for sentinel in sentinels.sentinels:
        sentinel.call("ACL", "SETUSER", "watcher", "on", f">{SECRET}", "+@all")
        sentinel.call("ACL", "SETUSER", "default", "-sentinel")
    try:
        options = {"username": "watcher", "password": SECRET}
        client = BlockingSentinel(hosts, sentinel_kwargs=options).master_for("mymaster")
        engine = open_engine(client)
        assert engine.run(Word("none").get()) is None
        address = engine.database.address  # type: ignore[attr-defined]  # of both engines of the tests
        assert SECRET not in f"{address!r} {address.sentinels!r} {engine!r}"
    finally:
        for sentinel in sentinels.sentinels:
            with redis.Redis(LOOPBACK, sentinel.port, username="watcher", password=SECRET) as watcher:
                watcher.execute_command("ACL", "SETUSER", "default", "+@all")


def test_other_objects_of_sentinel_are_refused_with_the_remedy() -> None:
    sentinel = BlockingSentinel([(LOOPBACK, 1)])
    with pytest.raises(UsageError, match=r"Pass sentinel\.master_for\(service\)"):
        connect(sentinel)
    with pytest.raises(UsageError, match=r"slave_for.*prefer_replica"):
        connect(sentinel.slave_for("main"))


class Greeting(BaseConnection):  # type: ignore[misc]  # typed as Any
    """Greets the server with a command of its own, whose argument is an option of its own."""

    def __init__(self, greeting: str = "", **options: Any) -> None:
        super().__init__(**options)
        self.greeting = greeting

    def on_connect(self) -> None:
        super().on_connect()
        self._greet()

    def on_connect_check_health(self, check_health: bool = True) -> None:
        super().on_connect_check_health(check_health=check_health)
        self._greet()

    def _greet(self) -> None:
        self.send_command("SET", "greeting", self.greeting)
        self.read_response()


def test_a_connection_class_of_the_caller_is_used(server: RedisServer) -> None:
    pool = redis.ConnectionPool(
        Greeting, host=LOOPBACK, port=server.port, password=SECRET, greeting="good day"
    )
    with connect(pool) as db:
        assert db.run(Word("none").get()) is None
    assert server.call("GET", "greeting") == b"good day"


class Replacing(Connection):
    def read_response(self, *arguments: Any, **options: Any) -> Any:
        return super().read_response(*arguments, **options)


class Asynchronous(AsyncConnection):
    pass


class Alien:
    pass


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        (Replacing, r"Replacing .*replaces read_response\(\)"),
        (Asynchronous, "Asynchronous .*other engine"),
        (Alien, "Alien .*not derived"),
    ],
)
def test_a_connection_class_that_cannot_be_used_is_refused(kind: Any, why: str) -> None:
    pool = redis.ConnectionPool(host=LOOPBACK, password=SECRET)
    pool.connection_class = kind
    with pytest.raises(UsageError, match=why) as caught:
        connect(pool)
    assert SECRET not in str(caught.value)


def test_a_handshake_for_the_other_engine_is_refused() -> None:
    client = BlockingClient(redis_connect_func=lambda connection: connection.on_connect())
    with pytest.raises(UsageError, match="redis_connect_func"):
        asyncio.run(_opened(client))


def test_a_handshake_of_a_client_is_used(server: RedisServer) -> None:
    def greeted(connection: Any) -> None:
        connection.on_connect()
        connection.send_command("SET", "greeting", "hello")
        connection.read_response()

    with connect(BlockingClient(LOOPBACK, server.port, password=SECRET, redis_connect_func=greeted)):
        assert server.call("GET", "greeting") == b"hello"


def test_a_check_that_asyncio_has_not_is_not_dropped() -> None:
    client = redis.Redis(ssl=True, ssl_validate_ocsp=True)
    with pytest.raises(UsageError, match=r"'ssl_validate_ocsp' for blocking connections only"):
        asyncio.run(_opened(client))


async def _opened(client: Any) -> None:
    await aconnect(client)


def test_a_client_that_cannot_log_in_shows_no_password(open_engine: OpenEngine, server: RedisServer) -> None:
    with pytest.raises(ServerRefusedError, match="Check user and password") as caught:
        open_engine(redis.Redis(LOOPBACK, server.port, password="hunter2"), ONCE)
    assert "hunter2" not in f"{caught.value!r} {caught.value}"


def test_options_replace_those_of_the_url(open_engine: OpenEngine, server: RedisServer) -> None:
    name = "by-keyword"
    url = f"redis://{LOOPBACK}:{server.port}/1?client_name=by-url&decode_responses=true"
    engine = open_engine(
        url, username="ann", password="letmein", db=5, client_name=name, socket_keepalive=True
    )
    engine.run(Word("a").set("x"))
    (ours,) = _listed(server, "name", name)
    assert (ours["user"], ours["db"]) == ("ann", "5")


def test_an_option_of_none_leaves_that_of_the_url(open_engine: OpenEngine, server: RedisServer) -> None:
    engine = open_engine(server.tcp_url, credential_provider=None, username=None, client_name=None)
    assert engine.run(Word("none").get()) is None


def test_a_password_replaces_the_provider_of_a_client(open_engine: OpenEngine, server: RedisServer) -> None:
    client = redis.Redis(LOOPBACK, server.port, credential_provider=Failing())
    assert open_engine(client, password=SECRET).run(Word("none").get()) is None


def test_the_path_of_a_socket_by_keyword(open_engine: OpenEngine, server: RedisServer) -> None:
    engine = open_engine(None, unix_socket_path=str(server.socket), password=SECRET)
    assert engine.run(Word("none").get()) is None


def test_connections_without_permission_for_a_client_name_have_none(
    open_engine: OpenEngine, server: RedisServer
) -> None:
    engine = open_engine(server.tcp_url, username="bob", password="letmein", client_name="bobs")
    assert engine.run(Word("none").get()) is None
    assert _listed(server, "user", "bob")
    assert not _listed(server, "name", "bobs")


def test_a_client_name_that_the_server_refuses_is_an_error(
    open_engine: OpenEngine, server: RedisServer
) -> None:
    with pytest.raises(ServerRefusedError, match=r"(?i)client names? cannot contain spaces"):
        open_engine(server.tcp_url, ONCE, client_name="a name")


def test_connections_report_the_library(open_engine: OpenEngine) -> None:
    with RedisServer(tcp=True, binary=new_binary()) as server:
        open_engine(server.tcp_url, client_name="reporting")
        (ours,) = _listed(server, "name", "reporting")
        assert (ours["lib-name"], ours["lib-ver"]) == ("keywright", version("keywright"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sockettimeout": 1}, "'sockettimeout' is not known.*use 'socket_timeout'"),
        ({"user": "a"}, "'user' is not known.*use 'username'"),
        ({"zzz": 1}, "'zzz' is not known.*correct its name"),
        ({"retry": None}, r"'retry' .*Settings\(retry="),
        ({"decode_responses": True}, "'decode_responses' .*codecs"),
        ({"max_connections": 3}, "most_connections"),
        ({"protocol": 4}, "protocol must be 2 or 3, got 4"),
        ({"socket_timeout": "2"}, "socket_timeout must be a number of seconds"),
        ({"socket_connect_timeout": 0}, "socket_connect_timeout must be a number of seconds"),
        ({"credential_provider": AsyncOnly(), "password": "x"}, "user and password are given twice"),
        ({"host": "elsewhere"}, "the address is given twice: leave out host="),
        ({"ssl_check_hostname": True}, "'ssl_check_hostname' does not go with this sort of connection"),
    ],
)
def test_an_option_that_cannot_be_used_is_refused_with_the_remedy(
    options: dict[str, Any], message: str, open_engine: OpenEngine, server: RedisServer
) -> None:
    with pytest.raises(UsageError, match=message):
        open_engine(server.tcp_url, **options)


def test_the_scheme_of_a_url_says_whether_it_has_tls(open_engine: OpenEngine) -> None:
    with pytest.raises(UsageError, match="Write rediss://"):
        open_engine("redis://localhost?ssl=false")


@pytest.mark.parametrize("options", [{"path": "/tmp/x", "host": "a"}, {"path": "/tmp/x", "ssl": True}])
def test_places_that_exclude_each_other_are_refused(options: dict[str, Any], open_engine: OpenEngine) -> None:
    with pytest.raises(UsageError, match=r"given twice|has no TLS"):
        open_engine(None, **options)


# Objects that redis-py passes from its clients to its connections.
PLUMBING = {
    "event_dispatcher",
    "himport_registry",
    "maint_notifications_pool_handler",
    "maintenance_notification_hash",
    "maintenance_state",
    "orig_host_address",
    "orig_socket_connect_timeout",
    "orig_socket_timeout",
    "oss_cluster_maint_notifications_handler",
    "parser",
}


def _taken(kind: type[Any]) -> set[str]:
    """Return the names that the constructors of a class take."""
    constructors = [vars(each)["__init__"] for each in kind.__mro__ if "__init__" in vars(each)]
    parameters = [each for init in constructors for each in inspect.signature(init).parameters.values()]
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return {each.name for each in parameters if each.kind in named} - {"self"}


@pytest.mark.parametrize(
    "kind",
    [
        SSLConnection,
        UnixDomainSocketConnection,
        redis.asyncio.SSLConnection,
        redis.asyncio.UnixDomainSocketConnection,
        redis.Redis,
        redis.asyncio.Redis,
    ],
)
def test_every_option_of_redis_py_is_taken_or_refused_with_the_remedy(kind: type[Any]) -> None:
    assert _taken(kind) - KNOWN - ELSEWHERE.keys() - PLUMBING == set()


def test_bindings_without_an_address_open_the_server_of_the_environment(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REDIS_URL", redis_url)
    space = Keyspace("words", "Words.")

    class Saved(Value[str], key="saved:<name>", space=space):
        name: Id

    async def read() -> tuple[str | None, bytes]:
        async with aconnect(space.bind(prefix="live")) as db:
            return await db.run(Saved("a").get()), db.name(Saved("a"))

    with connect(space.bind(prefix="live")) as db:
        db.run(Saved("a").set("one"))
    assert asyncio.run(read()) == ("one", b"live:saved:a")
