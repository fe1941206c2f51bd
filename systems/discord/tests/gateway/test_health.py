"""`/health` of a gateway while Redis or the broker is away."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from keywright.testing import RedisServer
from keywright_discord.gateway.gateway import Gateway
from keywright_discord.simulator import DiscordSimulator, SimulatorSettings
from keywright_messaging.testing.rabbitmq import RabbitServer

from ..gateways import configured, eventually_true, ready, running

pytestmark = pytest.mark.anyio

QUICK = SimulatorSettings(identify_window_seconds=0.01)


async def answer(gateway: Gateway) -> tuple[int, Any]:
    assert gateway.address is not None
    host, port = gateway.address
    async with httpx.AsyncClient(timeout=10) as http:
        response = await http.get(f"http://{host}:{port}/health")
    return response.status_code, response.json()


async def until_failing(gateway: Gateway, *failing: str) -> None:
    async def as_wanted() -> bool:
        status, body = await answer(gateway)
        # A page that is answered with an error of its own, as on a machine that is too busy, is asked again.
        return (status, body.get("failing")) == (503 if failing else 200, list(failing))

    await eventually_true(as_wanted, f"/health names {failing or 'nothing'}")


async def test_health_reports_an_outage_of_rabbitmq(
    redis_url: str, amqp_url: str, keywright_rabbitmq: RabbitServer
) -> None:
    async with DiscordSimulator(QUICK) as discord:
        more = {"BROKER_URL": amqp_url, "PROMETHEUS_ADDRESS": ":0"}
        async with running(configured(discord, redis_url, **more)) as gateway:
            await ready(gateway)
            await until_failing(gateway)
            await asyncio.to_thread(keywright_rabbitmq.kill)
            await until_failing(gateway, "broker")
            _, body = await answer(gateway)
            assert amqp_url.rpartition("/")[2] not in str(body), "addresses are not for everybody"
            await asyncio.to_thread(keywright_rabbitmq.start)
            await until_failing(gateway)


async def test_health_reports_a_rabbitmq_that_does_not_answer(
    redis_url: str, amqp_url: str, keywright_rabbitmq: RabbitServer
) -> None:
    async with DiscordSimulator(QUICK) as discord:
        more = {"BROKER_URL": amqp_url, "PROMETHEUS_ADDRESS": ":0"}
        async with running(configured(discord, redis_url, **more)) as gateway:
            await ready(gateway)
            keywright_rabbitmq.pause()
            try:
                await until_failing(gateway, "broker")
            finally:
                keywright_rabbitmq.resume()
            await until_failing(gateway)


async def test_health_reports_an_outage_of_the_redis_that_is_the_broker(redis_url: str) -> None:
    with RedisServer() as server:
        async with DiscordSimulator(QUICK) as discord:
            more = {"BROKER_URL": server.url, "PROMETHEUS_ADDRESS": ":0"}
            async with running(configured(discord, redis_url, **more)) as gateway:
                await ready(gateway)
                server.kill()
                await until_failing(gateway, "broker")
                server.start()
                await until_failing(gateway)


async def test_health_reports_an_outage_of_the_redis_of_the_cache() -> None:
    with RedisServer() as server:
        async with (
            DiscordSimulator(QUICK) as discord,
            running(configured(discord, server.url, PROMETHEUS_ADDRESS=":0")) as gateway,
        ):
            await ready(gateway)
            server.kill()
            await until_failing(gateway, "redis")
            server.start()
            await until_failing(gateway)
