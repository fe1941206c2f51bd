"""Questions that are asked at once, in one request."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Generic, TypeVar

__all__ = ["Together"]

T = TypeVar("T")


class Together(Generic[T]):
    """Collects what is asked for in one turn of the event loop, and asks for up to `most` of it together."""

    def __init__(self, ask: Callable[[list[str]], Awaitable[Mapping[str, T]]], *, most: int) -> None:
        self._ask = ask
        self._most = most
        self._waiting: list[tuple[str, asyncio.Future[T | None]]] = []
        self._asking: set[asyncio.Task[None]] = set()

    async def get(self, name: str) -> T | None:
        """What was answered for this name; None when the answer does not have it."""
        future: asyncio.Future[T | None] = asyncio.get_running_loop().create_future()
        self._waiting.append((name, future))
        if len(self._waiting) == 1:
            task = asyncio.create_task(self._next_turn())
            self._asking.add(task)
            task.add_done_callback(self._asking.discard)
        return await future

    async def _next_turn(self) -> None:
        await asyncio.sleep(0)
        while self._waiting:
            batch, self._waiting = self._waiting[: self._most], self._waiting[self._most :]
            await self._answer(batch)

    async def _answer(self, batch: list[tuple[str, asyncio.Future[T | None]]]) -> None:
        try:
            found = await self._ask(sorted({name for name, _ in batch}))
        except Exception as error:  # noqa: BLE001  # whatever it is, those who asked are told
            for _, future in batch:
                if not future.done():
                    future.set_exception(error)
            return
        for name, future in batch:
            if not future.done():
                future.set_result(found.get(name))
