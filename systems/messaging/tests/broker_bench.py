"""Every broker behind one way to open it, and the few steps that most stories about brokers share."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, ParamSpec
from uuid import uuid4

from keywright_messaging import Broker, BrokerSettings, Consumer, Delivery, open_broker

P = ParamSpec("P")
EVENT = "MESSAGE_CREATE"
STORY_SECONDS = 120.0


def story(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """An async test as pytest can call it; one that hangs fails."""

    @functools.wraps(test)
    def told(*args: P.args, **kwargs: P.kwargs) -> None:
        asyncio.run(asyncio.wait_for(test(*args, **kwargs), STORY_SECONDS))

    return told


@dataclass(frozen=True)
class Bench:
    """One kind of broker; every bench has a group of its own."""

    kind: str
    url: str
    settings: dict[str, Any] = field(default_factory=dict)
    group: str = field(default_factory=lambda: f"group-{uuid4().hex[:12]}")

    @property
    def keeps_undeclared(self) -> bool:
        """Whether what is published before anybody declared its queue is kept: a stream is its own queue."""
        return self.kind in ("redis", "cluster")

    @asynccontextmanager
    async def opened(self, **settings: Any) -> AsyncIterator[Broker]:
        chosen = BrokerSettings(**{"group": self.group, **self.settings, **settings})
        async with await open_broker(self.url, chosen) as broker:
            yield broker

    @asynccontextmanager
    async def declared(self, *events: str, **settings: Any) -> AsyncIterator[Broker]:
        """A broker whose events have a queue: EVENT, unless others are named."""
        async with self.opened(**settings) as broker:
            await broker.declare(*(events or (EVENT,)))
            yield broker


async def take(consumer: Consumer, count: int) -> list[Delivery]:
    """So many deliveries, unsettled."""
    taken: list[Delivery] = []
    while len(taken) < count:
        taken.extend(await consumer.batch(count - len(taken)))
    return taken


async def receive(consumer: Consumer, count: int) -> list[Any]:
    """The data of so many deliveries, acknowledged."""
    taken = await take(consumer, count)
    await consumer.acknowledge_all(taken)
    return [delivery.data for delivery in taken]


async def next_one(consumer: Consumer) -> Delivery:
    return (await take(consumer, 1))[0]


async def has_nothing(broker: Broker, *events: str, subgroup: str | None = None) -> bool:
    """Whether nothing waits in the queues: a message published now is the first to arrive on each."""
    async with broker.consume(*events, subgroup=subgroup) as consumer:
        for event in events:
            await broker.publish(event, {"marker": event})
        found = await receive(consumer, len(events))
    return all("marker" in data for data in found)


async def until(condition: Callable[[], object]) -> None:
    """Ask until it is true."""
    async with asyncio.timeout(50):
        while not condition():  # noqa: ASYNC110  # another process's progress has no event to wait for
            await asyncio.sleep(0.002)


async def dead_letters_of(broker: Broker, event: str, count: int, subgroup: str | None = None) -> list[Any]:
    """The dead letters, once there are so many: a broker may move them after the rejection returned."""
    async with asyncio.timeout(20):
        while len(found := await broker.dead_letters(event, subgroup=subgroup)) < count:  # noqa: ASYNC110
            await asyncio.sleep(0.02)  # another process's progress has no event to wait for
    return found


async def answer_doubled(delivery: Delivery) -> None:
    assert delivery.wants_reply
    await delivery.reply({"doubled": delivery.data * 2})
    await delivery.acknowledge()
