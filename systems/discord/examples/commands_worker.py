"""A worker that registers the slash command /members, and answers it from the cache.

The gateway publishes the use of a command as INTERACTION_CREATE; the answer goes to Discord's REST API.
Discord sends few members of its own accord, so the worker requests those of each guild, through the gateway.
Start as many of these processes as the bot needs: each message is handled by one of them.
"""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import msgspec

from keywright import AsyncDatabase, aconnect, gather
from keywright_discord.drc.reader import DrcReader
from keywright_discord.gateway.configuration import Configuration, cache_bindings, load
from keywright_messaging import Broker, BrokerSettings, Discard, Worker, open_broker
from keywright_service.discord_rest import DiscordRest
from keywright_service.signals import stop_on_signals

CONFIGURATION = Path(__file__).with_name("gateway.toml")
COMMANDS = [{"name": "members", "description": "Who is a member of this server?"}]
MESSAGE = 4
"""The type of an answer that is a message in the channel."""
REQUEST_MEMBERS = 8
"""The opcode of the gateway; the answer fills the cache."""
SHOWN = 5

reader = DrcReader()


class Guild(msgspec.Struct):
    id: str


class Command(msgspec.Struct):
    name: str


class Interaction(msgspec.Struct):
    """The fields of an interaction that this worker reads. A command in a direct message has no guild."""

    id: str
    token: str
    data: Command
    guild_id: str | None = None


def make_worker(db: AsyncDatabase, api: DiscordRest) -> Worker:
    worker = Worker(group="gateway", subgroup="commands")

    @worker.on("GUILD_CREATE")
    async def request_members(guild: Guild, broker: Broker) -> None:
        packet = {"op": REQUEST_MEMBERS, "d": {"guild_id": guild.id, "query": "", "limit": 0}}
        await broker.publish("SEND", {"guild_id": guild.id, "packet": packet})

    @worker.on("INTERACTION_CREATE", concurrency=20)
    async def answer(interaction: Interaction) -> None:
        if interaction.data.name != "members":
            raise Discard(f"no such command: {interaction.data.name}")
        text = (
            "Use it in a server." if interaction.guild_id is None else await members(db, interaction.guild_id)
        )
        in_time = await api.answer_interaction(
            int(interaction.id), interaction.token, {"type": MESSAGE, "data": {"content": text}}
        )
        if not in_time:  # a repeated delivery, or the three seconds are over
            raise Discard("the interaction is over, or was answered before")

    return worker


async def members(db: AsyncDatabase, guild: str) -> str:
    """Return the name of a guild and of some members, from two reads that share a round trip."""
    about, known = await db.run(gather(reader.guild(guild), reader.members(guild)))
    name = "this server" if about is None else about["name"]
    names = sorted(member["nick"] or member["user"]["username"] for member in known.values())
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"{name}: {', '.join(names[:SHOWN])}{more}"


async def register(api: DiscordRest) -> None:
    """Make the commands known to Discord. Doing so again changes nothing."""
    me: Any = msgspec.json.decode(await api.resource("/applications/@me") or b"{}")
    await api.replace_commands(int(me["id"]), COMMANDS)


async def main(configuration: Configuration) -> None:
    assert configuration.redis.url is not None, "set REDIS_URL"
    settings = BrokerSettings(group=configuration.broker.group)
    async with (
        aconnect(configuration.redis.url, *cache_bindings(configuration)) as db,
        DiscordRest(configuration.token, url=configuration.api.url) as api,
        await open_broker(configuration.broker_url or configuration.redis.url, settings) as broker,
    ):
        await register(api)
        worker = make_worker(db, api)
        with stop_on_signals(worker.stop):
            print("commands: ready", flush=True)
            await worker.serve(broker)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    asyncio.run(main(load(CONFIGURATION)))
