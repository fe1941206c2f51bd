"""Options of connections: those of redis-py that connections of a database have, by the same names."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from typing import Any, TypedDict

from redis import exceptions
from redis.credentials import CredentialProvider

from keywright.errors import UsageError, excerpt

__all__ = ["ConnectionOptions", "Credentials", "honoured", "require_known"]


class ConnectionOptions(TypedDict, total=False):
    """Options of redis-py that `connect` and `aconnect` take by keyword. They override those of the URL."""

    host: str
    port: int
    path: str
    """The path of a unix socket; `unix_socket_path` is the same."""
    unix_socket_path: str
    ssl: bool
    """Whether to use TLS, as `rediss://` does."""
    db: int
    protocol: int
    """The version of RESP, 2 or 3. Calls return the same in both."""
    username: str
    password: str
    credential_provider: CredentialProvider
    """Asked for user and password by every new connection, so both may change."""
    client_name: str
    socket_timeout: float
    """The seconds that each reply of the handshake may take. `Settings.timeout_seconds` is for calls."""
    socket_connect_timeout: float
    socket_keepalive: bool
    socket_keepalive_options: Mapping[int, int | bytes]
    socket_type: int
    ssl_keyfile: str
    ssl_certfile: str
    ssl_password: str
    ssl_cert_reqs: Any
    ssl_ca_certs: str
    ssl_ca_path: str
    ssl_ca_data: str
    ssl_check_hostname: bool
    ssl_include_verify_flags: Any
    ssl_exclude_verify_flags: Any
    ssl_min_version: Any
    ssl_ciphers: str
    ssl_validate_ocsp: bool
    ssl_validate_ocsp_stapled: bool
    ssl_ocsp_context: Any
    ssl_ocsp_expected_cert: str
    redis_connect_func: Callable[[Any], Any]
    """Called with each new connection instead of its handshake; it begins with `on_connect()`."""


KNOWN = frozenset(ConnectionOptions.__annotations__)
PLACES = frozenset({"host", "port", "path", "unix_socket_path"})
BLOCKING_ONLY = frozenset(
    {"ssl_validate_ocsp", "ssl_validate_ocsp_stapled", "ssl_ocsp_context", "ssl_ocsp_expected_cert"}
)
TIMEOUTS = ("socket_timeout", "socket_connect_timeout")

_RETRIES = "Pass settings=Settings(retry=Retry(…)): lost connections are retried for each call."
_TEXT = "Declare the types of values in the keyspace: replies are decoded by its codecs."
_OWN_PARSER = "Leave it out: connections are read by a parser of their own."
_OWN_NAME = "Leave it out: every connection reports keywright and its version. Use client_name for a name."

# Options of redis-py whose subject is settled elsewhere, and where.
ELSEWHERE = {
    "retry": _RETRIES,
    "retry_on_timeout": _RETRIES,
    "retry_on_error": _RETRIES,
    "encoding": _TEXT,
    "encoding_errors": _TEXT,
    "decode_responses": _TEXT,
    "max_connections": "Pass settings=Settings(most_connections=…).",
    "timeout": "Pass settings=Settings(timeout_seconds=…).",
    "legacy_responses": _OWN_PARSER,
    "parser_class": _OWN_PARSER,
    "encoder_class": _OWN_PARSER,
    "command_packer": _OWN_PARSER,
    "socket_read_size": _OWN_PARSER,
    "lib_name": _OWN_NAME,
    "lib_version": _OWN_NAME,
    "driver_info": _OWN_NAME,
    "health_check_interval": "Leave it out: a connection is checked before it is used again.",
    "single_connection_client": "Pass settings=Settings(most_connections=1).",
    "connection_pool": "Pass the pool in the place of the URL: connect(pool).",
    "connection_class": "Pass a pool with it in the place of the URL: connect(pool).",
    "maint_notifications_config": "Leave it out: these notifications are not used.",
    "auto_close_connection_pool": "Leave it out: a database closes its own connections only.",
    "cache": "Leave it out: replies are not cached in the client.",
    "cache_config": "Leave it out: replies are not cached in the client.",
}


def require_known(options: Mapping[str, Any], *, of_url: bool = False) -> None:
    """Raise UsageError for an option that connections do not have, with the nearest one that they have."""
    subject = "of the Redis URL " if of_url else ""
    for name in options.keys() - KNOWN:
        if of_url and name in ELSEWHERE:
            continue  # other programs may use the same URL
        if name in ELSEWHERE:
            raise UsageError(f"{name!r} is not an option of connections here. {ELSEWHERE[name]}")
        nearest = difflib.get_close_matches(name, KNOWN, 1)
        hint = f"use {nearest[0]!r}" if nearest else "correct its name, as in socket_timeout"
        raise UsageError(f"the option {excerpt(name)} {subject}is not known. Remove it, or {hint}.")
    if options.get("protocol") not in (None, 2, 3, "2", "3"):
        raise UsageError(f"protocol must be 2 or 3, got {excerpt(options['protocol'])}.")
    for name in TIMEOUTS:
        value = options.get(name)
        if value is not None and (
            isinstance(value, bool) or not isinstance(value, int | float) or value <= 0
        ):
            raise UsageError(f"{name} must be a number of seconds above 0, got {excerpt(value)}.")


def honoured(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a client or URL that our connections take, without those that are not set."""
    kept = {}
    for name, value in options.items():
        is_set = value is not None or name == "ssl_cert_reqs"  # None is its word for "do not verify"
        if name in BLOCKING_ONLY:
            is_set = bool(value)
        if name in KNOWN and is_set and type(value) is not object:  # which marks a default of redis-py
            kept[name] = value
    if "credential_provider" in kept:
        kept["credential_provider"] = Credentials(kept["credential_provider"])
    return kept


class Credentials(CredentialProvider):
    """A provider of the caller, whose failures do not end in an error of another library."""

    def __init__(self, provider: Any) -> None:
        if not callable(getattr(provider, "get_credentials", None)):
            raise UsageError(
                f"a {type(provider).__name__} is not a credential provider. Pass an object with "
                f"get_credentials(), which returns (user, password) or (password,)."
            )
        self._provider = provider
        own = getattr(type(provider), "get_credentials_async", None)
        # The one of redis-py logs a warning for each connection.
        self._is_async = own is not None and own is not CredentialProvider.get_credentials_async

    def get_credentials(self) -> Any:
        try:
            return self._provider.get_credentials()
        except Exception as error:
            raise _failed(error) from error

    async def get_credentials_async(self) -> Any:
        if not self._is_async:
            return self.get_credentials()
        try:
            return await self._provider.get_credentials_async()
        except Exception as error:
            raise _failed(error) from error


def _failed(error: Exception) -> exceptions.ConnectionError:
    return exceptions.ConnectionError(f"the credential provider raised {type(error).__name__}")
