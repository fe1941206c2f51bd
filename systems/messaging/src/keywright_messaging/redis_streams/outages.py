"""Retries calls during an outage, and translates the errors of the engine into those of the broker."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TypeVar

from keywright import AsyncDatabase, Call
from keywright.errors import ConnectionLostError, EngineError
from keywright_messaging.contract import closed_error
from keywright_messaging.errors import BrokerError, BrokerUnreachableError
from keywright_service.backoff import Backoff

__all__ = ["BACKOFF", "RetryingDatabase", "broker_error", "retried"]

T = TypeVar("T")

BACKOFF = Backoff(first_seconds=0.02, longest_seconds=1.0)


def broker_error(error: EngineError) -> BrokerError:
    """Return the broker's error for an error of the engine that a retry does not help."""
    translated = BrokerError(str(error))
    translated.__cause__ = error
    return translated


async def retried(attempt: Callable[[], Awaitable[T]], address: str, patience: timedelta) -> T:
    """Return the result of `attempt`, repeated with back-off while the server is away.

    Raise BrokerUnreachableError when the patience is over, and BrokerError immediately where a retry does not
    help.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + patience.total_seconds()
    failures = 0
    while True:
        try:
            return await attempt()
        except EngineError as error:
            if not error.is_transient:
                raise broker_error(error) from error
            failures += 1
            pause = BACKOFF.pause(failures)
            if loop.time() + pause > deadline:
                reason = str(error).rstrip(".")
                if isinstance(error, ConnectionLostError):
                    reason = error.reason  # without its address and remedy, which follow here
                raise BrokerUnreachableError(address, reason) from error
        await asyncio.sleep(pause)


class RetryingDatabase:
    """Runs calls, and repeats them during an outage. `engine` runs them once."""

    def __init__(self, engine: AsyncDatabase, patience: timedelta) -> None:
        self.engine = engine
        self.address = engine.address.shown
        self.closed = False
        self._patience = patience

    async def run(self, call: Call[T]) -> T:
        """Run a call, and again after an outage: its effects may then happen twice."""
        if self.closed:
            raise closed_error()
        try:
            return await self.engine.run(call)
        except EngineError as error:
            if not error.is_transient:
                raise broker_error(error) from error
        return await self.retried(lambda: self.engine.run(call))

    async def retried(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """Return the result of `attempt`, repeated during an outage."""
        return await retried(attempt, self.address, self._patience)
