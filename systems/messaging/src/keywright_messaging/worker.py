"""Workers: functions that handle the events of a group with bounded concurrency."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import Any, TypeVar

import msgspec

from keywright.errors import DeclarationError, UsageError
from keywright_messaging.contract import Broker, BrokerSettings
from keywright_messaging.encodings import Encoding, decode, encode
from keywright_messaging.handlers import Discard, HandedDelivery, Handler, HandlerFunction, Retry, handler_of
from keywright_messaging.runner import HandlerRunner
from keywright_messaging.urls import open_broker
from keywright_service.signals import stop_on_signals

__all__ = ["Discard", "Retry", "Worker"]

F = TypeVar("F", bound=HandlerFunction)

DEFAULT_CONCURRENCY = 10


class Worker:
    """Handlers of a group's events.

    A message is acknowledged when its handler returns. An exception rejects it for a retry, with the
    exception as the reason; a payload that is not of the annotated type, and `Discard`, make it a dead letter
    immediately. A handler whose return annotation is not None replies to calls with its result.

    Delivery is at least once: a handler may see a message again after a crash or a shutdown.
    """

    def __init__(
        self,
        *,
        group: str = "gateway",
        subgroup: str | None = None,
        concurrency: int = 100,
        grace: timedelta = timedelta(seconds=30),
    ) -> None:
        """`concurrency` limits the handlers that run at once; `grace` is their time to end after stop()."""
        if concurrency < 1:
            raise DeclarationError(
                f"the worker of {group!r}", f"its concurrency is {concurrency}", "Use 1 or more."
            )
        self.group = group
        self.subgroup = subgroup
        self._concurrency = concurrency
        self._grace = grace
        self._handlers: dict[str, Handler] = {}
        self._stopping: asyncio.Event | None = None

    @property
    def handlers(self) -> Mapping[str, Handler]:
        return MappingProxyType(self._handlers)

    def on(
        self, event: str, *, concurrency: int = DEFAULT_CONCURRENCY, prefetch: int | None = None
    ) -> Callable[[F], F]:
        """Handle an event with the decorated function, which is returned unchanged.

        Its first parameter is the payload, converted to the annotated type; parameters annotated `Delivery`
        or `Broker` may follow. At most `concurrency` calls run at once; with 1 they run in the queue's order.
        `prefetch` limits the messages that a crash can repeat; the default is twice the concurrency.
        """

        def declare(function: F) -> F:
            if event in self._handlers:
                raise DeclarationError(
                    f"the event {event!r}", "it has a handler already", "Use another Worker with a subgroup."
                )
            self._handlers[event] = handler_of(event, function, concurrency=concurrency, prefetch=prefetch)
            return function

        return declare

    def run(self, url: str, settings: BrokerSettings | None = None) -> None:
        """Serve until SIGINT or SIGTERM, then stop gracefully. A second signal ends the process."""
        chosen = msgspec.structs.replace(settings or BrokerSettings(), group=self.group)
        asyncio.run(self._serve_until_signalled(url, chosen))

    async def serve(self, broker: Broker) -> None:
        """Handle messages until `stop()`, or until the broker is closed.

        Stopping takes no new messages, gives running handlers their grace, and leaves the others unsettled,
        so that they are delivered again. Raise BrokerError if settling or replying failed in an outage longer
        than `connect_timeout`; an idle worker waits for the end of the outage.
        """
        await self._serve(broker, asyncio.Event())

    async def _serve(self, broker: Broker, stopping: asyncio.Event) -> None:
        self._check(broker)
        self._stopping = stopping
        limit = asyncio.Semaphore(self._concurrency)
        runners = [
            HandlerRunner(
                handler,
                broker,
                broker.consume(handler.event, subgroup=self.subgroup, prefetch=handler.prefetch),
                limit,
            )
            for handler in self._handlers.values()
        ]
        try:
            async with asyncio.TaskGroup() as tasks:
                for runner in runners:
                    tasks.create_task(runner.run(stopping, self._grace.total_seconds()))
        except BaseExceptionGroup as errors:
            raise _first(errors) from errors
        finally:
            self._stopping = None

    def stop(self) -> None:
        """Let `serve` end gracefully. Do nothing if it is not serving."""
        if self._stopping is not None:
            self._stopping.set()

    async def handle(self, event: str, payload: object) -> Any:
        """Call the handler of an event with a payload, for tests. Return or raise what the handler does.

        The payload is encoded and decoded first. To test a handler that takes a Broker, `serve` a `memory://`
        broker.
        """
        handler = self._handlers.get(event)
        if handler is None:
            raise UsageError(f"no handler for {event!r}. Declare one with on({event!r}).")
        if Broker in handler.extras:
            raise UsageError(f"the handler of {event!r} takes a Broker. Serve a memory:// broker instead.")
        body = encode(payload, Encoding.JSON)
        return await handler(decode(body, handler.payload), HandedDelivery(event, body, None), None)

    def _check(self, broker: Broker) -> None:
        """Raise UsageError unless the worker can serve this broker now."""
        if not self._handlers:
            raise UsageError("the worker has no handlers. Declare at least one with on().")
        if broker.group != self.group:
            raise UsageError(
                f"the worker handles {self.group!r}, but the broker was opened for {broker.group!r}. "
                f"Open it with BrokerSettings(group={self.group!r})."
            )
        if self._stopping is not None:
            raise UsageError("the worker is serving already. Make another Worker for another broker.")

    async def _serve_until_signalled(self, url: str, settings: BrokerSettings) -> None:
        stopping = asyncio.Event()
        with stop_on_signals(stopping.set):
            async with await open_broker(url, settings) as broker:
                await self._serve(broker, stopping)


def _first(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    found = errors.exceptions[0]
    return _first(found) if isinstance(found, BaseExceptionGroup) else found
