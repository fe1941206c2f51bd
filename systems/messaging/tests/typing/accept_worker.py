"""Handlers of every accepted shape; the decorated function keeps its type."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, assert_type

import msgspec

from keywright_messaging import Broker, Delivery, Worker, open_broker


class Message(msgspec.Struct):
    id: str


@dataclass
class Question:
    guild: str


class Answer(msgspec.Struct):
    members: int


worker = Worker(group="gateway", subgroup="greeter")


@worker.on("MESSAGE_CREATE", concurrency=20)
async def greet(message: Message) -> None: ...


@worker.on("STATS")
async def stats(question: Question, delivery: Delivery) -> Answer:
    return Answer(delivery.attempt)


@worker.on("TYPING_START", prefetch=50)
async def forward(data: dict[str, Any], broker: Broker, delivery: Delivery) -> None:
    await broker.publish("SEND", delivery.convert(Message).id)


async def main() -> None:
    assert_type(await stats(Question("1"), _delivery()), Answer)
    assert_type(await worker.handle("STATS", Question("1")), Any)
    async with await open_broker("memory://") as broker:
        assert_type(await worker.serve(broker), None)
        assert_type(await broker.call("STATS", Question("1"), reply=Answer), Answer)
        assert_type(await broker.call("STATS", Question("1")), Any)
        async with broker.consume("MESSAGE_CREATE") as consumer:
            async for delivery in consumer:
                assert_type(delivery.convert(Message), Message)


def _delivery() -> Delivery:
    raise NotImplementedError
