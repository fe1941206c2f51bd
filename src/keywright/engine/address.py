"""Addresses of databases: URLs, keywords and clients become options of redis-py's connections."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from redis.connection import parse_url as _parse_url

from keywright.engine.identity import IDENTITY
from keywright.engine.options import BLOCKING_ONLY, PLACES, honoured, require_known
from keywright.engine.settings import Settings
from keywright.errors import UsageError

parse_url: Callable[[str], dict[str, Any]] = _parse_url  # redis-py leaves it untyped

SCHEMES = {"redis": "redis", "rediss": "rediss", "unix": "unix", "valkey": "redis", "valkeys": "rediss"}


class Sentinels(NamedTuple):
    """The sentinels of a service, which report the address of its primary."""

    hosts: tuple[tuple[str, int], ...]
    service: str
    options: Mapping[str, Any] = MappingProxyType({})
    """How the sentinels themselves are reached. It may hold a password, and is never shown."""
    arguments: Mapping[str, Any] = MappingProxyType({})

    def __repr__(self) -> str:
        return f"Sentinels({self.service})"


class Address(NamedTuple):
    """The address of a database, or the path of a file. `settings` may hold a password: it is never shown."""

    scheme: str
    settings: dict[str, Any]
    sentinels: Sentinels | None
    cluster: bool
    kind: type[Any] | None = None
    """The connection class of the caller, if it is not one of redis-py."""
    others: tuple[tuple[str, int], ...] = ()
    """Further nodes of a cluster that may be asked for its topology."""

    @property
    def shown(self) -> str:
        """Return the address without user, password or options."""
        if self.sentinels:
            hosts = ",".join(f"{host}:{port}" for host, port in self.sentinels.hosts)
            return f"sentinel {hosts}/{self.sentinels.service}"
        if self.scheme in ("unix", "file"):
            return str(self.settings.get("path", "unix socket"))
        return f"{self.settings.get('host', 'localhost')}:{self.settings.get('port', 6379)}"

    @property
    def database(self) -> int | None:
        """Return the database that the URL, the client or a keyword names; None if none does."""
        number = self.settings.get("db")
        return None if number is None else int(number)

    @property
    def protocol(self) -> int:
        """Return the version of RESP: 2, unless the URL, the client or a keyword says 3."""
        return int(self.settings.get("protocol", 2))

    def at(self, host: str, port: int) -> Address:
        """Return the address of another node, reached by TCP, with the same settings."""
        settings = {name: value for name, value in self.settings.items() if name != "path"}
        settings |= {"host": host, "port": port}
        if self.scheme == "unix":
            return self._replace(scheme="redis", settings=settings, sentinels=None, kind=None)
        return self._replace(settings=settings, sentinels=None)

    def with_database(self, number: int) -> Address:
        """Return the address of another database of the same server."""
        return self._replace(settings={**self.settings, "db": number})

    def with_options(self, options: Mapping[str, Any], *, is_async: bool) -> Address:
        """Return the address with options that replace its own. Raise UsageError for one it cannot have."""
        given = honoured(options)
        settings = {**self.settings, **given}
        secure = settings.pop("ssl", self.scheme == "rediss")
        if self.scheme == "unix" and secure:
            raise UsageError("a unix socket has no TLS. Leave ssl out, or pass a host.")
        if "credential_provider" in given:
            if "username" in given or "password" in given:
                raise UsageError("user and password are given twice. Pass them, or a credential_provider.")
            settings = {
                name: value for name, value in settings.items() if name not in ("username", "password")
            }
        elif "password" in given or "username" in given:
            settings.pop("credential_provider", None)
        if is_async and (found := BLOCKING_ONLY & settings.keys()):
            raise UsageError(f"redis-py has {min(found)!r} for blocking connections only. Use connect().")
        scheme = self.scheme if self.scheme == "unix" else "rediss" if secure else "redis"
        kind = self.kind if scheme == self.scheme else None
        if self.kind is not None and kind is None:
            raise UsageError(
                "ssl= does not go with a client that has its own connection class. Leave it out."
            )
        return self._replace(scheme=scheme, settings=settings, kind=kind)

    def connection_options(self, settings: Settings) -> dict[str, Any]:
        """Return the options of every connection to this address. Batches have timeouts of their own."""
        return {
            "socket_timeout": settings.connect_seconds,
            "socket_connect_timeout": settings.connect_seconds,
            **self.settings,
            **IDENTITY,
            "protocol": self.protocol,
            "health_check_interval": 0,
        }

    def __repr__(self) -> str:
        return f"Address({self.shown})"


def parse_address(url: str) -> Address:
    """Parse `redis://`, `rediss://`, `unix://`, `valkey://`, and `+sentinel` and `+cluster` forms of them."""
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
    return Address(scheme, _options_of(settings), None, mode == "cluster")


def address_at(places: Mapping[str, Any]) -> Address:
    """Return the address of a host and port, or of a unix socket, given by keyword."""
    path = places.get("path") or places.get("unix_socket_path")
    if path is None:
        return Address("redis", dict(places), None, False)
    if len(places) > 1:
        raise UsageError("the address is given twice. Pass host and port, or the path of a unix socket.")
    return Address("unix", {"path": str(path)}, None, False)


def refuse_second_place(options: Mapping[str, Any]) -> None:
    """Raise UsageError for keywords that say where the server is, beside a URL or client that does."""
    if found := PLACES & options.keys():
        raise UsageError(f"the address is given twice: leave out {min(found)}=, or the URL or client.")


def _options_of(parsed: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a URL that connections have. Raise UsageError for one that is not known."""
    parsed.pop("connection_class", None)
    require_known(parsed, of_url=True)
    if "ssl" in parsed or "unix_socket_path" in parsed:
        raise UsageError("the scheme of a Redis URL says how to connect. Write rediss:// or unix://.")
    return honoured(parsed)


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
    settings = _options_of(settings)
    settings.pop("host", None)
    if len(path) > 1:
        settings["db"] = int(path[1])
    return Address(scheme, settings, Sentinels(tuple(map(_host, hosts.split(","))), unquote(path[0])), False)


def _host(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return (host, int(port)) if host else (port, 26379)
