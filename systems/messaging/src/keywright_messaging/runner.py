"""Runs one handler: feeds it deliveries, settles them by its outcome, acknowledges them in batches."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from keywright.errors import UsageError
from keywright_messaging.contract import Broker, Consumer, Delivery
from keywright_messaging.errors import UndecodableError
from keywright_messaging.handlers import Discard, HandedDelivery, Handler, Retry

__all__ = ["HandlerRunner"]

LONGEST_REASON = 500

_log = logging.getLogger("keywright.worker")


class HandlerRunner:
    """A handler with its consumer and as many lanes as it may run concurrently."""

    def __init__(
        self, handler: Handler, broker: Broker, consumer: Consumer, limit: asyncio.Semaphore
    ) -> None:
        self._handler = handler
        self._broker = broker
        self._consumer = consumer
        self._limit = limit
        self._inbox: asyncio.Queue[Delivery | None] = asyncio.Queue(handler.concurrency)
        self._done: list[Delivery] = []
        self._some_done = asyncio.Event()
        self._over = False

    async def run(self, stopping: asyncio.Event, grace_seconds: float) -> None:
        """Handle messages until `stopping`; then give running calls their grace and return the rest."""
        async with self._consumer, asyncio.TaskGroup() as tasks:
            feeding = tasks.create_task(self._feed(stopping))
            lanes = [tasks.create_task(self._lane(stopping)) for _ in range(self._handler.concurrency)]
            tasks.create_task(self._acknowledge())
            await stopping.wait()
            feeding.cancel()
            await asyncio.wait({feeding})
            await self._end(lanes, grace_seconds)
            self._over = True
            self._some_done.set()

    async def _feed(self, stopping: asyncio.Event) -> None:
        try:
            while True:
                for delivery in await self._consumer.batch(self._handler.concurrency):
                    await self._inbox.put(delivery)
        except StopAsyncIteration:  # the broker was closed
            stopping.set()

    async def _end(self, lanes: Sequence[asyncio.Task[None]], grace_seconds: float) -> None:
        while not self._inbox.empty():
            self._inbox.get_nowait()
        for _ in lanes:
            self._inbox.put_nowait(None)
        _, late = await asyncio.wait(lanes, timeout=grace_seconds)
        for lane in late:
            _log.warning(
                "a handler of %s did not end within its grace and was cancelled", self._handler.event
            )
            lane.cancel()
        if late:
            await asyncio.wait(late)

    async def _lane(self, stopping: asyncio.Event) -> None:
        while (delivery := await self._inbox.get()) is not None:
            async with self._limit:
                if stopping.is_set():
                    return
                await self._attend(delivery)

    async def _attend(self, delivery: Delivery) -> None:
        try:
            payload = delivery.convert(self._handler.payload)
        except UndecodableError as error:
            return await self._refuse(delivery, error)
        handed = HandedDelivery(delivery.event, delivery.body, delivery)
        try:
            returned = await self._handler(payload, handed, self._broker)
        except Discard as error:
            return await self._refuse(delivery, error)
        except Retry as error:
            return await delivery.reject(_reason(error), retry=True)
        except asyncio.CancelledError as error:
            if _is_being_cancelled():
                raise
            return await self._try_again(delivery, error)
        except Exception as error:  # noqa: BLE001  # any exception of a handler rejects its message
            return await self._try_again(delivery, error)
        return await self._finish(delivery, returned)

    async def _finish(self, delivery: Delivery, returned: object) -> None:
        if delivery.wants_reply and self._handler.replies_with(returned):
            try:
                await delivery.reply(returned)
            except UsageError as error:  # a retry would fail as well: the reply cannot be encoded
                return await self._refuse(delivery, error)
        self._done.append(delivery)
        self._some_done.set()
        return None

    async def _try_again(self, delivery: Delivery, error: BaseException) -> None:
        _log.warning("the handler of %s failed, attempt %d", delivery.event, delivery.attempt, exc_info=error)
        await delivery.reject(_reason(error), retry=True)

    async def _refuse(self, delivery: Delivery, error: Exception) -> None:
        _log.warning("a message of %s became a dead letter: %s", delivery.event, _reason(error))
        await delivery.reject(_reason(error))

    async def _acknowledge(self) -> None:
        """Acknowledge handled deliveries in batches; one batch collects while the last is written."""
        while not self._over or self._done:
            await self._some_done.wait()
            self._some_done.clear()
            done, self._done = self._done, []
            if done:
                await self._consumer.acknowledge_all(done)


def _is_being_cancelled() -> bool:
    """Return whether this task is cancelled, and not only a task or future that the handler awaits."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _reason(error: BaseException) -> str:
    reason = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return reason if len(reason) <= LONGEST_REASON else f"{reason[: LONGEST_REASON - 1]}…"
