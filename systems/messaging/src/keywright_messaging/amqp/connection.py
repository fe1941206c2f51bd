"""Keeps one link to the broker, and brings back what depended on a lost one.

aio-pika's robust connection is not used: it restores declarations and consumers, but a publish that waits for
its confirm when the connection dies fails, and a mismatch met while restoring is retried for ever without
anybody learning of it. Here every part says how it is attached to a new link.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Protocol, TypeVar

from aiormq.exceptions import AMQPChannelError

from keywright.errors import UsageError
from keywright_messaging.amqp.link import Address, Link, LinkLostError
from keywright_messaging.errors import BrokerError, BrokerUnreachableError

__all__ = ["Connection", "Part"]

T = TypeVar("T")

_FIRST_PAUSE_SECONDS = 0.1
_LONGEST_PAUSE_SECONDS = 5.0

_log = logging.getLogger(__name__)


class Part(Protocol):
    """Something that lives on a link, and on the next one when that is lost."""

    async def attach(self, link: Link) -> None:
        """Set itself up on a link; harmless when it is attached to it already."""

    def detach(self) -> None:
        """The link is gone; the next attach brings another."""

    def fail(self, error: BrokerError) -> None:
        """There will be no other link."""


class Connection:
    """The broker's one link at a time. Parts are attached in the order in which they were added."""

    def __init__(self, address: Address, name: str, seconds: float) -> None:
        self.address = address
        self._name = name
        self.seconds = seconds
        self._parts: list[Part] = []
        self._link: Link | None = None
        self._connected = asyncio.Event()
        self._failure: BrokerError | None = None
        self._supervisor: asyncio.Task[None] | None = None
        self._closed = False

    async def open(self) -> None:
        """Connect once, without retrying. Raises BrokerUnreachableError, or what a part raises."""
        link = await Link.open(self.address, self._name, self.seconds)
        try:
            async with asyncio.timeout(self.seconds):
                await self._attach_all(link)
        except LinkLostError as exc:
            raise BrokerUnreachableError(str(self.address), str(exc)) from exc
        except TimeoutError as exc:
            raise BrokerUnreachableError(str(self.address), "it stopped answering") from exc
        finally:
            if self._link is None:
                await link.close()
        self._supervisor = asyncio.create_task(self._supervise(link), name="keywright amqp")

    def add(self, part: Part) -> None:
        """Have a part attached to every link from the next one on."""
        if part not in self._parts:
            self._parts.append(part)

    def remove(self, part: Part) -> None:
        with suppress(ValueError):
            self._parts.remove(part)

    async def run(self, operation: Callable[[Link], Coroutine[Any, Any, T]]) -> T:
        """The result of an operation that may be repeated: on the next link, if this one is lost."""
        try:
            async with asyncio.timeout(self.seconds):
                while True:
                    link = await self._current()
                    with suppress(LinkLostError):
                        return await link.during(operation(link))
                    await asyncio.sleep(0)
        except TimeoutError as exc:
            raise self.unreachable() from exc

    def unreachable(self) -> BrokerUnreachableError:
        """The error of an operation that waited long enough."""
        return BrokerUnreachableError(str(self.address), f"no connection within {self.seconds:g} s")

    async def close(self) -> None:
        """End the link for good."""
        self._closed = True
        if self._supervisor is not None:
            self._supervisor.cancel()
            await asyncio.wait({self._supervisor})
        if self._link is not None:
            await self._link.close()
            self._link = None
        self._connected.set()

    async def _current(self) -> Link:
        while True:
            await self._connected.wait()
            if self._closed:
                raise UsageError("this broker is closed. Open another one.")
            if self._failure is not None:
                raise self._failure
            if self._link is not None and not self._link.lost.done():
                return self._link
            self._connected.clear()

    async def _attach_all(self, link: Link) -> None:
        try:
            for part in tuple(self._parts):
                await link.during(part.attach(link))
        except AMQPChannelError as exc:
            raise BrokerError(f"{self.address} refused: {exc}. Grant this user what it names.") from exc
        self._link = link
        self._connected.set()

    async def _supervise(self, link: Link) -> None:
        try:
            await self._keep_linked(link)
        except BrokerError as exc:
            self._give_up(exc)
        except Exception as exc:
            # Whoever waits for the broker must not wait for ever.
            self._give_up(BrokerError(f"reconnecting to {self.address} failed: {exc!r}. Report it."))
            raise

    async def _keep_linked(self, link: Link) -> None:
        while True:
            reason = await asyncio.shield(link.lost)
            _log.warning("the connection to %s was lost (%s); reconnecting", self.address, reason)
            self._connected.clear()
            self._link = None
            for part in tuple(self._parts):
                part.detach()
            await link.close()
            link = await self._reconnect()

    async def _reconnect(self) -> Link:
        pause = _FIRST_PAUSE_SECONDS
        while True:
            try:
                link = await Link.open(self.address, self._name, self.seconds)
            except BrokerUnreachableError as exc:
                _log.debug("%s", exc)
            else:
                if await self._restored(link):
                    return link
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)

    async def _restored(self, link: Link) -> bool:
        """Whether all parts are attached. A link that dies meanwhile is no reason to give up."""
        try:
            async with asyncio.timeout(self.seconds):
                await self._attach_all(link)
        except (LinkLostError, TimeoutError) as exc:
            _log.debug("the new connection to %s did not last: %s", self.address, exc)
        finally:
            if self._link is None:
                for part in tuple(self._parts):
                    part.detach()
                await link.close()
        return self._link is not None

    def _give_up(self, error: BrokerError) -> None:
        self._failure = error
        self._connected.set()
        for part in tuple(self._parts):
            part.fail(error)
