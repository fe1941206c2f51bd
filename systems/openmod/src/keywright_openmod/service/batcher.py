"""A request batcher: concurrent lookups of single names share requests."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Generic, TypeVar

__all__ = ["LookupBatcher"]

T = TypeVar("T")


class LookupBatcher(Generic[T]):
    """Collects the names of one iteration of the event loop, and requests up to `batch_size` together."""

    def __init__(
        self, request: Callable[[list[str]], Awaitable[Mapping[str, T]]], *, batch_size: int
    ) -> None:
        self._request = request
        self._batch_size = batch_size
        self._waiting: list[tuple[str, asyncio.Future[T | None]]] = []
        self._requests: set[asyncio.Task[None]] = set()

    async def get(self, name: str) -> T | None:
        """Return the result for this name, or None if the reply lacks it."""
        future: asyncio.Future[T | None] = asyncio.get_running_loop().create_future()
        self._waiting.append((name, future))
        if len(self._waiting) == 1:
            task = asyncio.create_task(self._send_waiting())
            self._requests.add(task)
            task.add_done_callback(self._requests.discard)
        return await future

    async def _send_waiting(self) -> None:
        await asyncio.sleep(0)
        while self._waiting:
            batch, self._waiting = self._waiting[: self._batch_size], self._waiting[self._batch_size :]
            await self._send(batch)

    async def _send(self, batch: list[tuple[str, asyncio.Future[T | None]]]) -> None:
        try:
            found = await self._request(sorted({name for name, _ in batch}))
        except Exception as error:  # noqa: BLE001  # the callers get it, whatever it is
            for _, future in batch:
                if not future.done():
                    future.set_exception(error)
            return
        for name, future in batch:
            if not future.done():
                future.set_result(found.get(name))
