"""Keeps one connection to the broker open, and restores everything that depended on a lost one.

aio-pika's robust connection is not used: it restores declarations and consumers, but a publish that waits for
its confirm when the connection is lost fails, and a queue that was declared differently in the meantime is
retried forever without an error. Here every attachment restores itself on a new connection.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Protocol, TypeVar

from aiormq.exceptions import AMQPChannelError

from keywright_messaging.amqp.connection import AmqpConnection, AmqpConnectionLostError, BrokerAddress
from keywright_messaging.contract import closed_error
from keywright_messaging.errors import BrokerError, BrokerUnreachableError
from keywright_service.backoff import Backoff

__all__ = ["Attachment", "Reconnector"]

T = TypeVar("T")

_BACKOFF = Backoff(first_seconds=0.1, longest_seconds=5.0)
# A connection that lasts for less counts as a failure: a message may end every connection that it meets.
_STABLE_SECONDS = 10.0

_log = logging.getLogger(__name__)


class Attachment(Protocol):
    """An object that uses a connection, and the next one when that is lost."""

    async def attach(self, connection: AmqpConnection) -> None:
        """Set itself up on a connection. Do nothing if it is attached to it already."""

    def detach(self) -> None:
        """Forget a lost connection; attach() brings the next one."""

    def fail(self, error: BrokerError) -> None:
        """Give up: there will be no other connection."""


class Reconnector:
    """Owns the broker's one connection at a time. Attaches in the order of add()."""

    def __init__(self, address: BrokerAddress, name: str, seconds: float) -> None:
        self.address = address
        self._name = name
        self.seconds = seconds
        self._attachments: list[Attachment] = []
        self._connection: AmqpConnection | None = None
        self._connected = asyncio.Event()
        self._failure: BrokerError | None = None
        self._supervisor: asyncio.Task[None] | None = None
        self._closed = False

    async def open(self) -> None:
        """Connect once, without retry. Raise BrokerUnreachableError, or the error of an attachment."""
        connection = await AmqpConnection.open(self.address, self._name, self.seconds)
        try:
            async with asyncio.timeout(self.seconds):
                await self._attach_all(connection)
        except AmqpConnectionLostError as exc:
            raise BrokerUnreachableError(str(self.address), str(exc)) from exc
        except TimeoutError as exc:
            raise BrokerUnreachableError(str(self.address), "it stopped answering") from exc
        finally:
            if self._connection is None:
                await connection.close()
        self._supervisor = asyncio.create_task(self._supervise(connection), name="keywright amqp")

    def add(self, attachment: Attachment) -> None:
        """Attach this object to every connection from the next one on."""
        if attachment not in self._attachments:
            self._attachments.append(attachment)

    def remove(self, attachment: Attachment) -> None:
        with suppress(ValueError):
            self._attachments.remove(attachment)

    async def run(self, operation: Callable[[AmqpConnection], Coroutine[Any, Any, T]]) -> T:
        """Return the result of a repeatable operation; repeat it on the next connection if one is lost."""
        try:
            async with asyncio.timeout(self.seconds):
                while True:
                    connection = await self._current()
                    with suppress(AmqpConnectionLostError):
                        return await connection.during(operation(connection))
                    await asyncio.sleep(0)
        except TimeoutError as exc:
            raise self.unreachable() from exc

    async def ping(self, exchange: str) -> None:
        """Return when the server has answered. Raise BrokerUnreachableError if the connection is lost."""
        connection = self._connection
        if connection is None:
            raise BrokerUnreachableError(str(self.address), "the connection is lost")
        try:
            await connection.during(_asked(connection, exchange))
        except AmqpConnectionLostError as exc:
            raise BrokerUnreachableError(str(self.address), str(exc)) from exc

    def unreachable(self) -> BrokerUnreachableError:
        """Return the error of an operation whose time is over."""
        return BrokerUnreachableError(str(self.address), f"no connection within {self.seconds:g} s")

    async def close(self) -> None:
        """End the connection and do not reconnect."""
        self._closed = True
        if self._supervisor is not None:
            self._supervisor.cancel()
            await asyncio.wait({self._supervisor})
        if self._connection is not None:
            await self._connection.close()
            self._connection = None
        self._connected.set()

    async def _current(self) -> AmqpConnection:
        while True:
            await self._connected.wait()
            if self._closed:
                raise closed_error()
            if self._failure is not None:
                raise self._failure
            if self._connection is not None and not self._connection.lost.done():
                return self._connection
            self._connected.clear()

    async def _attach_all(self, connection: AmqpConnection) -> None:
        try:
            for attachment in tuple(self._attachments):
                await connection.during(attachment.attach(connection))
        except AMQPChannelError as exc:
            raise BrokerError(
                f"{self.address} refused: {exc}. Grant this user the permission that the reply names."
            ) from exc
        self._connection = connection
        self._connected.set()

    async def _supervise(self, connection: AmqpConnection) -> None:
        try:
            await self._keep_connected(connection)
        except BrokerError as exc:
            self._give_up(exc)
        except Exception as exc:
            # Operations that wait for a connection must not wait forever.
            self._give_up(BrokerError(f"reconnecting to {self.address} failed: {exc!r}. Report it."))
            raise

    async def _keep_connected(self, connection: AmqpConnection) -> None:
        clock, short_lived = asyncio.get_running_loop().time, 0
        while True:
            attached_at = clock()
            reason = await asyncio.shield(connection.lost)
            short_lived = short_lived + 1 if clock() - attached_at < _STABLE_SECONDS else 0
            _log.warning("the connection to %s was lost (%s); reconnecting", self.address, reason)
            self._connected.clear()
            self._connection = None
            for attachment in tuple(self._attachments):
                attachment.detach()
            await connection.close()
            if short_lived:
                await asyncio.sleep(_BACKOFF.pause(short_lived))
            connection = await self._reconnect()

    async def _reconnect(self) -> AmqpConnection:
        failures = 0
        while True:
            try:
                connection = await AmqpConnection.open(self.address, self._name, self.seconds)
            except BrokerUnreachableError as exc:
                _log.debug("%s", exc)
            else:
                if await self._restored(connection):
                    return connection
            failures += 1
            await asyncio.sleep(_BACKOFF.pause(failures))

    async def _restored(self, connection: AmqpConnection) -> bool:
        """Return whether everything is attached; False if the connection was lost in the meantime."""
        try:
            async with asyncio.timeout(self.seconds):
                await self._attach_all(connection)
        except (AmqpConnectionLostError, TimeoutError) as exc:
            _log.debug("the new connection to %s did not last: %s", self.address, exc)
        finally:
            if self._connection is None:
                for attachment in tuple(self._attachments):
                    attachment.detach()
                await connection.close()
        return self._connection is not None

    def _give_up(self, error: BrokerError) -> None:
        self._failure = error
        self._connected.set()
        for attachment in tuple(self._attachments):
            attachment.fail(error)


async def _asked(connection: AmqpConnection, exchange: str) -> None:
    async with connection.scratch() as channel:
        await channel.exchange_declare(exchange, exchange_type="direct", durable=True, passive=True)
