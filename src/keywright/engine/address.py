"""Addresses of databases: URLs of every kind, parsed into options of redis-py's connections."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from redis.connection import parse_url as _parse_url

from keywright.engine.settings import Settings
from keywright.errors import UsageError, excerpt

parse_url: Callable[[str], dict[str, Any]] = _parse_url  # redis-py leaves it untyped

SCHEMES = {"redis": "redis", "rediss": "rediss", "unix": "unix", "valkey": "redis", "valkeys": "rediss"}


class Sentinels(NamedTuple):
    """The sentinels of a service, which report the address of its primary."""

    hosts: tuple[tuple[str, int], ...]
    service: str


class Address(NamedTuple):
    """A parsed URL. `settings` may hold a password: it is never shown."""

    scheme: str
    settings: dict[str, Any]
    sentinels: Sentinels | None
    cluster: bool

    @property
    def shown(self) -> str:
        """Return the address without user, password or options."""
        if self.sentinels:
            hosts = ",".join(f"{host}:{port}" for host, port in self.sentinels.hosts)
            return f"sentinel {hosts}/{self.sentinels.service}"
        if self.scheme == "unix":
            return str(self.settings.get("path", "unix socket"))
        return f"{self.settings.get('host', 'localhost')}:{self.settings.get('port', 6379)}"

    def at(self, host: str, port: int) -> Address:
        """Return the address of another node, reached by TCP, with the same settings."""
        settings = {name: value for name, value in self.settings.items() if name != "path"}
        scheme = "redis" if self.scheme == "unix" else self.scheme
        return self._replace(scheme=scheme, settings={**settings, "host": host, "port": port}, sentinels=None)

    def connection_options(self, settings: Settings) -> dict[str, Any]:
        """Return the options of every connection to this address. Batches have timeouts of their own."""
        return {
            "socket_timeout": settings.connect_seconds,
            "socket_connect_timeout": settings.connect_seconds,
            **self.settings,
            "protocol": 2,
            "health_check_interval": 0,
        }

    def __repr__(self) -> str:
        return f"Address({self.shown})"


def parse_address(url: str) -> Address:
    """Parse `redis://`, `rediss://`, `unix://`, `valkey://`, and `+sentinel` and `+cluster` forms of them."""
    if not isinstance(url, str):
        raise UsageError(
            f"a database is opened with the URL of its server as text, got {excerpt(url)}. "
            f"Pass the address, as in redis://localhost:6379/0, and not a client or a pool."
        )
    try:
        parts = urlsplit(url)
    except ValueError:
        raise _malformed() from None
    base, _, mode = parts.scheme.partition("+")
    if base not in SCHEMES or mode not in ("", "sentinel", "cluster"):
        raise UsageError(
            f"the URL scheme {parts.scheme!r} is not supported. Use redis://, rediss://, unix://, valkey://, "
            f"redis+cluster:// or redis+sentinel://host:port,host:port/service/db."
        )
    scheme = SCHEMES[base]
    if scheme != "unix" and "@" in parts.path + parts.fragment + ("" if "@" in parts.netloc else parts.query):
        raise _malformed()  # a password with / ? or #, which end the part that it stands in
    try:
        if mode == "sentinel":
            return _sentinel_address(scheme, url)
        if scheme != "unix":
            int(parts.path.strip("/") or 0)  # redis-py would take anything else for database 0
        settings = parse_url(scheme + url[len(parts.scheme) :])
    except ValueError:
        raise _malformed() from None
    settings.pop("connection_class", None)
    return Address(scheme, settings, None, mode == "cluster")


def _malformed() -> UsageError:
    """Return an error that quotes nothing of the URL: any part of it may be a part of the password."""
    return UsageError(
        "the Redis URL is malformed. Check the port and the database, which are numbers, and the options; "
        "special characters of a user or password must be percent-encoded, as %23 for # and %2F for /."
    )


def _sentinel_address(scheme: str, url: str) -> Address:
    parts = urlsplit(url)
    credentials, _, hosts = parts.netloc.rpartition("@")
    path = [part for part in parts.path.split("/") if part]
    if not hosts or not path:
        raise UsageError(
            "the sentinel URL lacks hosts or a service. Write redis+sentinel://host:26379,host/service/0."
        )
    settings = parse_url(f"{scheme}://{credentials}@host/?{parts.query}")
    settings.pop("host", None)
    settings.pop("connection_class", None)
    if len(path) > 1:
        settings["db"] = int(path[1])
    return Address(scheme, settings, Sentinels(tuple(map(_host, hosts.split(","))), unquote(path[0])), False)


def _host(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return (host, int(port)) if host else (port, 26379)
