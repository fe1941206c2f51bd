"""A worker that prints every message with the names of its server, channel and author, from the cache.

The cache is written before an event is published, so the message itself can be read from it, with its author
and member in place of ids.
"""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import msgspec

from keywright import AsyncDatabase, aconnect, gather
from keywright_discord.drc.reader import DrcReader
from keywright_discord.gateway.configuration import Configuration, cache_bindings, load
from keywright_messaging import BrokerSettings, Discard, Worker, open_broker
from keywright_service.signals import stop_on_signals

CONFIGURATION = Path(__file__).with_name("gateway.toml")

reader = DrcReader()


class Message(msgspec.Struct):
    """The fields of a message that this worker reads. A direct message has no guild."""

    id: str
    channel_id: str
    guild_id: str | None = None


def make_worker(db: AsyncDatabase) -> Worker:
    worker = Worker(group="gateway", subgroup="log")

    @worker.on("MESSAGE_CREATE", concurrency=1)  # in the order of the queue
    async def log(message: Message) -> None:
        if message.guild_id is not None:
            print(await line(db, message.guild_id, message), flush=True)

    return worker


async def line(db: AsyncDatabase, guild: str, message: Message) -> str:
    """Return one line of the log. The three reads share their round trips."""
    server, channel, hydrated = await db.run(
        gather(
            reader.guild(guild),
            reader.channel(guild, message.channel_id),  # or a thread
            reader.message(message.channel_id, message.id),
        )
    )
    if hydrated is None:
        raise Discard("the message has expired")
    author = hydrated["author"]
    name = (hydrated.get("member") or {}).get("nick") or author["username"]
    return (
        f"{server['name'] if server else guild} #{channel['name'] if channel else message.channel_id} "
        f"{name}: {hydrated['content']}"
    )


async def main(configuration: Configuration) -> None:
    assert configuration.redis.url is not None, "set REDIS_URL"
    settings = BrokerSettings(group=configuration.broker.group)
    async with (
        aconnect(configuration.redis.url, *cache_bindings(configuration)) as db,
        await open_broker(configuration.broker_url or configuration.redis.url, settings) as broker,
    ):
        worker = make_worker(db)
        with stop_on_signals(worker.stop):
            print("log: ready", flush=True)
            await worker.serve(broker)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    asyncio.run(main(load(CONFIGURATION)))
