"""Opens every broker in one way, and has the steps that most tests of brokers share."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from keywright_messaging import Broker, BrokerSettings, Consumer, Delivery, open_broker

EVENT = "MESSAGE_CREATE"


@dataclass(frozen=True)
class Bench:
    """One kind of broker; each instance has a group of its own."""

    kind: str
    url: str
    settings: dict[str, Any] = field(default_factory=dict)
    group: str = field(default_factory=lambda: f"group-{uuid4().hex[:12]}")

    @property
    def keeps_undeclared(self) -> bool:
        """Whether a message is kept that was published before any queue was declared."""
        return self.kind in ("redis", "cluster")

    @asynccontextmanager
    async def opened(self, **settings: Any) -> AsyncIterator[Broker]:
        chosen = BrokerSettings(**{"group": self.group, **self.settings, **settings})
        async with await open_broker(self.url, chosen) as broker:
            yield broker

    @asynccontextmanager
    async def declared(self, *events: str, **settings: Any) -> AsyncIterator[Broker]:
        """Open a broker and declare the queues of events, by default of EVENT."""
        async with self.opened(**settings) as broker:
            await broker.declare(*(events or (EVENT,)))
            yield broker


async def take(consumer: Consumer, count: int) -> list[Delivery]:
    """Return this number of deliveries, unsettled."""
    taken: list[Delivery] = []
    while len(taken) < count:
        taken.extend(await consumer.batch(count - len(taken)))
    return taken


async def receive(consumer: Consumer, count: int) -> list[Any]:
    """Return the data of this number of deliveries, acknowledged: they may be more than the prefetch."""
    received: list[Any] = []
    while len(received) < count:
        batch = await consumer.batch(count - len(received))
        received += [delivery.data for delivery in batch]
        await consumer.acknowledge_all(batch)
    return received


async def next_one(consumer: Consumer) -> Delivery:
    return (await take(consumer, 1))[0]


async def has_nothing(broker: Broker, *events: str, subgroup: str | None = None) -> bool:
    """Return whether the queues are empty: a message published now is the first to arrive on each."""
    async with broker.consume(*events, subgroup=subgroup) as consumer:
        for event in events:
            await broker.publish(event, {"marker": event})
        found = await receive(consumer, len(events))
    return all("marker" in data for data in found)


async def until(condition: Callable[[], object]) -> None:
    """Poll a condition until it is true."""
    async with asyncio.timeout(50):
        while not condition():  # noqa: ASYNC110  # the progress of another process has no event
            await asyncio.sleep(0.002)


async def dead_letters_of(broker: Broker, event: str, count: int, subgroup: str | None = None) -> list[Any]:
    """Wait for this number of dead letters: a broker may move them after the rejection returned."""
    async with asyncio.timeout(20):
        while len(found := await broker.dead_letters(event, subgroup=subgroup)) < count:  # noqa: ASYNC110
            await asyncio.sleep(0.02)  # the progress of another process has no event
    return found


async def answer_doubled(delivery: Delivery) -> None:
    assert delivery.wants_reply
    await delivery.reply({"doubled": delivery.data * 2})
    await delivery.acknowledge()
