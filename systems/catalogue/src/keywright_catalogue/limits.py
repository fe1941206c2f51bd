"""limits 5.8, which Flask-Limiter and SlowAPI use: fixed, sliding and moving windows.

A name has the namespace, what the application passed to identify the caller, and the limit: the number of
calls, and a number of seconds, minutes, … in which they are allowed. The expiry follows from that. A fixed
window is a counter, a moving window a list under the same name. So there are two programs, `limits` and
`limits-moving`; a storage with another `key_prefix` than `LIMITS` is bound to it.

Not declared: namespaces with a slash.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Any, Literal

from keywright import U64, Counter, EpochFloat, Keyspace, List, Pattern, Segment, expires_in
from keywright.tools import Program

Namespace = Annotated[str, Pattern("[^/{}]+")]
Caller = Annotated[str, Segment("")]
"""What identifies the caller: a user, or an address and a route with a slash between them."""
Unit = Literal["second", "minute", "hour", "day", "month", "year"]

SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400, "month": 2592000, "year": 31104000}

limits = Keyspace("limits", "Fixed and sliding windows of limits 5.8.", prefix="LIMITS")
moving = Keyspace("limits-moving", "Moving windows of limits 5.8.", prefix="LIMITS")


def window(key: Any) -> timedelta:
    """The window of the limit."""
    return timedelta(seconds=key.count * SECONDS[key.unit])


def two_windows(key: Any) -> timedelta:
    """Twice the window of the limit."""
    return 2 * window(key)


class FixedWindow(
    Counter,
    key="<namespace>[/<caller>]/<most>/<count>/<unit>",
    space=limits,
    expiry=expires_in(window, since="first write"),
):
    """The calls in a window, which begins with the first one."""

    namespace: Namespace
    most: U64
    count: U64
    unit: Unit
    caller: Caller | None = None


class SlidingWindow(
    Counter,
    key=r"\{<namespace>[/<caller>]/<most>/<count>/<unit>\}",
    space=limits,
    expiry=expires_in(two_windows, since="first write"),
):
    """The calls in the current window of a sliding window."""

    namespace: Namespace
    most: U64
    count: U64
    unit: Unit
    caller: Caller | None = None


class PreviousWindow(
    Counter,
    key=r"\{<namespace>[/<caller>]/<most>/<count>/<unit>\}/-1",
    space=limits,
    expiry=expires_in(window, since="first write"),
):
    """The calls in the window before, of which a share counts: as much of it as still overlaps."""

    namespace: Namespace
    most: U64
    count: U64
    unit: Unit
    caller: Caller | None = None


class MovingWindow(
    List[Annotated[datetime, EpochFloat]],
    key="<namespace>[/<caller>]/<most>/<count>/<unit>",
    space=moving,
    expiry=expires_in(window),
):
    """The times of the last calls, the newest first, as many as are allowed at most."""

    namespace: Namespace
    most: U64
    count: U64
    unit: Unit
    caller: Caller | None = None


program = Program(
    "limits", "limits", "5.8", (limits,), distinctive=(FixedWindow, SlidingWindow, PreviousWindow)
)
moving_program = Program(
    "limits-moving", "limits with moving windows", "5.8", (moving,), distinctive=(MovingWindow,)
)
