"""The gateway over RabbitMQ: events wait for the first worker, and packets are sent."""

from __future__ import annotations

import pytest

from keywright_discord.gateway.opcodes import Op
from keywright_discord.simulator import DiscordSimulator, SimulatorSettings

from ..gateways import configured, ready, running, take, workers_broker

pytestmark = pytest.mark.anyio

QUICK = SimulatorSettings(identify_window_seconds=0.01)


async def test_events_wait_in_declared_queues_and_packets_reach_discord(
    redis_url: str, amqp_url: str
) -> None:
    async with DiscordSimulator(QUICK) as discord:
        settings = {"BROKER_TYPE": "amqp", "AMQP_URL": amqp_url, "BROKER_URL": ""}
        configuration = configured(discord, redis_url, BROKER_SUBGROUPS=".,audit", **settings)
        async with running(configuration) as gateway:
            await ready(gateway)
            guild = discord.world.guilds[0]
            for number in range(20):
                await discord.say(str(number), guild=guild)
            async with await workers_broker(amqp_url) as broker:
                got = await take(broker, "MESSAGE_CREATE", 20)
                assert [each["content"] for each in got] == [str(number) for number in range(20)]
                again = await take(broker, "MESSAGE_CREATE", 20, subgroup="audit")
                assert again == got
                packet = {"op": 4, "d": {"guild_id": guild, "channel_id": None}}
                await broker.publish("SEND", {"guild_id": guild, "packet": packet})
                await discord.until(lambda: discord.received(Op.VOICE_STATE_UPDATE), "it is sent")
