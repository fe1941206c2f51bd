"""HTTP serving: listening sockets, the one server for ASGI applications, checks of requests, and signals.

Needs uvicorn and starlette, which `keywright[explorer]` and `keywright-service` install.
"""

from keywright.tools.http.limits import HttpLimits
from keywright.tools.http.server import UvicornServer
from keywright.tools.http.signals import STOP_SIGNALS, on_signals
from keywright.tools.http.sockets import LOOPBACK, is_loopback, listening, url_of

__all__ = [
    "LOOPBACK",
    "STOP_SIGNALS",
    "HttpLimits",
    "UvicornServer",
    "is_loopback",
    "listening",
    "on_signals",
    "url_of",
]
