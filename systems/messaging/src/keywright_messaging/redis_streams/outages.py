"""The one border where the engine's errors become the broker's, and outages are waited out."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TypeVar

from keywright import AsyncDatabase, Call, Retry
from keywright.errors import (
    ConnectionLostError,
    DeadlineError,
    EngineError,
    OutcomeUnknownError,
    ServerRefusedError,
)
from keywright_messaging.contract import closed_error
from keywright_messaging.errors import BrokerError, BrokerUnreachableError

__all__ = ["BACKOFF", "RetryingDatabase", "is_passing", "waited_out"]

T = TypeVar("T")

BACKOFF = Retry(first_seconds=0.02, longest_seconds=1.0)
_PASSING = ("LOADING", "CLUSTERDOWN", "MASTERDOWN", "TRYAGAIN", "BUSY", "READONLY", "NOREPLICAS")


def is_passing(error: EngineError) -> bool:
    """Whether waiting may help: the server is away, busy, or about to change its role."""
    if isinstance(error, ServerRefusedError):
        return error.reply.split(" ", 1)[0] in _PASSING
    return isinstance(error, ConnectionLostError | OutcomeUnknownError | DeadlineError)


async def waited_out(attempt: Callable[[], Awaitable[T]], address: str, patience: timedelta) -> T:
    """What `attempt` returns, made again while the server is away, for so long.

    Then BrokerUnreachableError; BrokerError at once for what waiting does not help.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + patience.total_seconds()
    failures = 0
    while True:
        try:
            return await attempt()
        except EngineError as error:
            if not is_passing(error):
                raise BrokerError(str(error)) from error
            failures += 1
            pause = BACKOFF.pause(min(failures + 1, 16))
            if loop.time() + pause > deadline:
                raise BrokerUnreachableError(address, _reason(error)) from error
        await asyncio.sleep(pause)


class RetryingDatabase:
    """The database as the broker uses it."""

    def __init__(self, database: AsyncDatabase, patience: timedelta) -> None:
        self.engine = database
        self.address = database.address.shown
        self.patience = patience
        self.closed = False

    async def run(self, call: Call[T]) -> T:
        """Run a call, and again after an outage: whatever it does may then have been done twice."""
        if self.closed:
            raise closed_error()
        try:
            return await self.engine.run(call)
        except EngineError as error:
            if not is_passing(error):
                raise BrokerError(str(error)) from error
        return await waited_out(lambda: self.engine.run(call), self.address, self.patience)


def _reason(error: EngineError) -> str:
    return error.reason if isinstance(error, ConnectionLostError) else str(error).rstrip(".")
