"""Handlers and deliveries used wrongly. Each marked line is refused by both checkers; nothing else is."""

from __future__ import annotations

from accept_worker import Answer, Message, Question, stats, worker

from keywright_messaging import Broker, Delivery


def blocking(message: Message) -> None: ...


worker.on("BLOCKING")(blocking)  # E: mypy[type-var] pyright[reportArgumentType]
worker.on("CONCURRENCY", concurrency="many")  # E: mypy[arg-type] pyright[reportArgumentType]
worker.on("POSITIONAL", 5)  # E: mypy[call-arg] pyright[reportCallIssue]


def heed(message: Message) -> None: ...


async def misuse(broker: Broker, delivery: Delivery) -> None:
    await stats(Message("1"), delivery)  # E: mypy[arg-type] pyright[reportArgumentType]
    heed(await broker.call("STATS", 1, reply=Answer))  # E: mypy[arg-type] pyright[reportArgumentType]
    heed(delivery.convert(Question))  # E: mypy[arg-type] pyright[reportArgumentType]
    await delivery.reject("no", True)  # E: mypy[call-arg] pyright[reportCallIssue]
    await broker.publish("EVENT")  # E: mypy[call-arg] pyright[reportCallIssue]
