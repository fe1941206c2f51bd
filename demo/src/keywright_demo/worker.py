"""The sample worker: counts events, requests guild members now and then, replies to STATS."""

from __future__ import annotations

import asyncio
import os
from datetime import timedelta
from typing import Any

import msgspec

from keywright_demo import names
from keywright_discord.gateway.opcodes import Op
from keywright_messaging import Broker, Worker, open_broker
from keywright_service.signals import stop_on_signals

__all__ = ["Stats", "sample_worker"]

MESSAGES_A_REQUEST = 50


class Stats(msgspec.Struct):
    """The reply to a STATS call."""

    handled: int = 0
    requested: int = 0


class MessageEvent(msgspec.Struct):
    """The members of a message event that are used."""

    guild_id: str | None = None


def sample_worker() -> Worker:
    worker = Worker(group=names.GROUP, grace=timedelta(seconds=2))
    stats = Stats()

    async def count(payload: Any) -> None:
        stats.handled += 1

    async def request_members(message: MessageEvent, broker: Broker) -> None:
        stats.handled += 1
        if message.guild_id is not None and stats.handled % MESSAGES_A_REQUEST == 0:
            stats.requested += 1
            await broker.publish("SEND", _request(message.guild_id))

    async def report(payload: Any) -> Stats:
        return stats

    for event in names.EVENTS:
        worker.on(event)(request_members if event == "MESSAGE_CREATE" else count)
    worker.on(names.STATS)(report)
    return worker


def _request(guild: str) -> dict[str, Any]:
    """Return the packet that requests some members of a guild, for the shard that has the guild."""
    data = {"guild_id": guild, "query": "", "limit": 10}
    return {"guild_id": guild, "packet": {"op": Op.REQUEST_GUILD_MEMBERS, "d": data}}


async def serve() -> None:
    """Serve until SIGTERM or SIGINT."""
    worker = sample_worker()
    with stop_on_signals(worker.stop):
        async with await open_broker(os.environ["BROKER_URL"], names.broker_settings()) as broker:
            await broker.declare(*worker.handlers, "SEND")
            print("ready")
            await worker.serve(broker)


if __name__ == "__main__":
    asyncio.run(serve())
