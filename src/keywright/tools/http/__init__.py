"""HTTP serving: listening sockets, the one server for ASGI applications, checks of requests, and signals.

Needs uvicorn and starlette, which `keywright[explorer]` and `keywright-service` install.
"""

from keywright.tools.http.access import (
    LOOPBACK_HOSTS,
    Gate,
    SharedToken,
    TokenVerdict,
    bearer_of,
    body_of,
    check_token,
    cookie_of,
    host_of,
    is_own_form,
    origin_of,
    refusal_of,
)
from keywright.tools.http.limits import HttpLimits
from keywright.tools.http.server import UvicornServer
from keywright.tools.http.signals import STOP_SIGNALS, on_signals
from keywright.tools.http.sockets import LOOPBACK, is_loopback, listening, url_of

__all__ = [
    "LOOPBACK",
    "LOOPBACK_HOSTS",
    "STOP_SIGNALS",
    "Gate",
    "HttpLimits",
    "SharedToken",
    "TokenVerdict",
    "UvicornServer",
    "bearer_of",
    "body_of",
    "check_token",
    "cookie_of",
    "host_of",
    "is_loopback",
    "is_own_form",
    "listening",
    "on_signals",
    "origin_of",
    "refusal_of",
    "url_of",
]
