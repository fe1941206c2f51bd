"""Clients of redis-py in the place of a URL: their address and options, for connections of our own."""

from __future__ import annotations

from typing import Any, TypeAlias

import redis
import redis.asyncio
import redis.asyncio.sentinel
import redis.sentinel
from redis import connection as blocking
from redis.asyncio import connection as asynchronous

from keywright.engine.address import Address, Sentinels
from keywright.engine.options import honoured
from keywright.errors import UsageError

__all__ = ["Client", "address_of"]

Client: TypeAlias = (
    redis.Redis
    | redis.RedisCluster
    | redis.ConnectionPool
    | redis.asyncio.Redis
    | redis.asyncio.RedisCluster
    | redis.asyncio.ConnectionPool
)
"""A client or connection pool of redis-py, blocking or for asyncio, of one server, Sentinel or a cluster."""

_SCHEMES: dict[type[Any], str] = {
    blocking.SSLConnection: "rediss",
    asynchronous.SSLConnection: "rediss",
    blocking.UnixDomainSocketConnection: "unix",
    asynchronous.UnixDomainSocketConnection: "unix",
    blocking.Connection: "redis",
    asynchronous.Connection: "redis",
}
_MANAGED: dict[type[Any], str] = {
    redis.sentinel.SentinelManagedSSLConnection: "rediss",
    redis.asyncio.sentinel.SentinelManagedSSLConnection: "rediss",
    redis.sentinel.SentinelManagedConnection: "redis",
    redis.asyncio.sentinel.SentinelManagedConnection: "redis",
}
# A batch is written and read as a whole, past these methods.
_PASSED_BY = (
    "send_command",
    "send_packed_command",
    "read_response",
    "pack_command",
    "pack_commands",
)


def address_of(client: Client, *, is_async: bool) -> Address:
    """Return the address and the options of a client. Raise UsageError if they cannot be used here."""
    if isinstance(client, redis.RedisCluster | redis.asyncio.RedisCluster):
        return _cluster_address(client, is_async=is_async)
    if isinstance(client, redis.sentinel.Sentinel | redis.asyncio.sentinel.Sentinel):
        raise UsageError("a Sentinel watches several services. Pass sentinel.master_for(service).")
    pool: Any = getattr(client, "connection_pool", client)
    if isinstance(
        pool, redis.sentinel.SentinelConnectionPool | redis.asyncio.sentinel.SentinelConnectionPool
    ):
        return _sentinel_address(pool)
    if not isinstance(pool, redis.ConnectionPool | redis.asyncio.ConnectionPool):
        raise _not_a_client(client)
    options = dict(pool.connection_kwargs)
    scheme, kind = _scheme(pool.connection_class, is_async=is_async)
    settings = honoured(options)
    if kind is not None:
        settings = {**_own_options(kind, options), **settings}
    _require_handshake(settings, pool, is_async=is_async)
    return Address(scheme, settings, None, False, kind)


def _sentinel_address(pool: Any) -> Address:
    if not pool.is_master:
        raise UsageError(
            "a client of slave_for reads from replicas only. Pass that of master_for; "
            "db.nodes(prefer_replica=True) reads from replicas."
        )
    scheme = _MANAGED.get(pool.connection_class)
    if scheme is None:
        raise _foreign(pool.connection_class, "the connections of Sentinel are opened by redis-py's own")
    settings = honoured(pool.connection_kwargs)
    settings.pop("host", None)
    settings.pop("port", None)
    _refuse_handshake(settings)
    manager = pool.sentinel_manager
    places = [sentinel.connection_pool.connection_kwargs for sentinel in manager.sentinels]
    hosts = tuple((place["host"], place["port"]) for place in places)
    # Arguments of a client, to which `ssl` belongs.
    options = honoured(manager.sentinel_kwargs)
    arguments = {"min_other_sentinels": manager.min_other_sentinels}
    return Address(scheme, settings, Sentinels(hosts, pool.service_name, options, arguments), False)


def _cluster_address(client: Any, *, is_async: bool) -> Address:
    manager = client.nodes_manager
    if getattr(manager, "address_remap", None) is not None:
        raise UsageError(
            "the cluster client has address_remap, which connections of a database do not follow. Pass the "
            "URL of a node, and let the nodes announce addresses that can be reached (cluster-announce-ip)."
        )
    if getattr(client, "user_on_connect_func", None) is not None:
        _refuse_handshake({"redis_connect_func": client.user_on_connect_func})
    options = dict(manager.connection_kwargs)
    options.pop("redis_connect_func", None)  # of the cluster client itself
    default = blocking.SSLConnection if options.get("ssl") else blocking.Connection
    scheme, kind = _scheme(options.get("connection_class", default), is_async=is_async)
    (host, port), *others = [(node.host, int(node.port)) for node in manager.startup_nodes.values()]
    settings = honoured(options)
    settings.pop("ssl", None)
    if kind is not None:
        settings = {**_own_options(kind, options), **settings}
    return Address(scheme, {**settings, "host": host, "port": port}, None, True, kind, tuple(others))


def _scheme(kind: type[Any], *, is_async: bool) -> tuple[str, type[Any] | None]:
    """Return the scheme of a connection class, and the class itself if it is not one of redis-py."""
    if kind in _SCHEMES:
        return _SCHEMES[kind], None
    base = next((each for each in _SCHEMES if isinstance(kind, type) and issubclass(kind, each)), None)
    if base is None:
        raise _foreign(kind, "it is not derived from a connection class of redis-py")
    if issubclass(kind, asynchronous.AbstractConnection) is not is_async:
        engine = "asyncio" if is_async else "blocking"
        raise _foreign(kind, f"it is of the other engine, and this database is {engine}")
    for name in _PASSED_BY:
        if getattr(kind, name, None) is not getattr(base, name, None):
            raise _foreign(kind, f"it replaces {name}(), and batches are sent and read without it")
    return _SCHEMES[base], kind


def _own_options(kind: type[Any], options: dict[str, Any]) -> dict[str, Any]:
    """Return the options that a connection class of the caller added."""
    base = next(each for each in _SCHEMES if issubclass(kind, each))
    theirs = set(_arguments(kind)) - set(_arguments(base))
    return {name: value for name, value in options.items() if name in theirs}


def _arguments(kind: type[Any]) -> list[str]:
    """Return the names that the constructors of a class take."""
    constructors = [vars(each)["__init__"] for each in kind.__mro__ if "__init__" in vars(each)]
    return [name for each in constructors for name in _names(each)]


def _names(function: Any) -> tuple[str, ...]:
    function = getattr(function, "__wrapped__", function)
    code = getattr(function, "__code__", None)
    return () if code is None else code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def _require_handshake(settings: dict[str, Any], pool: object, *, is_async: bool) -> None:
    """Require that a handshake of the caller is for this engine."""
    if isinstance(pool, redis.asyncio.ConnectionPool) is not is_async:
        _refuse_handshake(settings)


def _refuse_handshake(settings: dict[str, Any]) -> None:
    if "redis_connect_func" in settings:
        raise UsageError(
            "the redis_connect_func of this client cannot be used by connections of a database. "
            "Pass the URL, with a function for this engine: connect(url, redis_connect_func=…)."
        )


def _foreign(kind: object, why: str) -> UsageError:
    name = getattr(kind, "__qualname__", type(kind).__name__)
    return UsageError(
        f"connections of the class {name} cannot be opened here: {why}. "
        f"Pass a URL, or a client with the connection class of redis-py."
    )


def _not_a_client(found: object) -> UsageError:
    return UsageError(
        f"a database is opened with the URL of its server as text, or with a client or connection pool of "
        f"redis-py, got {type(found).__name__}. Pass the address, as in redis://localhost:6379/0."
    )
