"""The queues that a gateway declares: those that are consumed, and no others."""

from __future__ import annotations

import re

import pytest

from keywright.testing import Raw
from keywright_discord.gateway.configuration import ConfigurationError, load
from keywright_discord.gateway.opcodes import Op
from keywright_discord.gateway_events import GATEWAY_EVENTS
from keywright_discord.simulator import DiscordSimulator, SimulatorSettings
from keywright_messaging.testing.rabbitmq import RabbitServer

from ..gateways import configured, eventually, ready, running, take, workers_broker

pytestmark = pytest.mark.anyio

QUICK = SimulatorSettings(identify_window_seconds=0.01)
EVENT = "MESSAGE_CREATE"
DISPATCHED = [each.name for each in GATEWAY_EVENTS.values() if each.dispatched]


def rabbit_queues(server: RabbitServer, amqp_url: str) -> dict[str, int]:
    """Return the queues of a virtual host with the number of their messages."""
    vhost = amqp_url.rpartition("/")[2]
    every = f'rabbit_amqqueue:info_all(<<"{vhost}">>, [name, messages])'
    listed = server.evaluate(f"[{{element(4, N), M}} || [{{name, N}}, {{messages, M}}] <- {every}]")
    return {name: int(messages) for name, messages in re.findall(r'\{<<"([^"]*)">>,(\d+)\}', listed)}


def groups(raw: Raw, stream: str) -> set[str]:
    found = raw("XINFO", "GROUPS", stream)
    assert isinstance(found, list)
    return {each[b"name"].decode() for each in found}


@pytest.mark.parametrize(
    ("subgroups", "expected"),
    [("", {"gateway"}), ("log", {"gateway:log"}), (".,log", {"gateway", "gateway:log"})],
)
async def test_redis_has_the_groups_that_consume_and_no_others(
    redis_url: str, raw: Raw, subgroups: str, expected: set[str]
) -> None:
    async with DiscordSimulator(QUICK) as discord:
        more = {"BROKER_URL": redis_url, "BROKER_SUBGROUPS": subgroups}
        async with running(configured(discord, redis_url, **more)) as gateway:
            await ready(gateway)
            assert groups(raw, EVENT) == expected


@pytest.mark.parametrize(
    ("subgroups", "expected"),
    [("", {f"gateway:{EVENT}"}), ("log", {f"gateway:log:{EVENT}"}), (".,log", None)],
)
async def test_rabbitmq_has_the_queues_that_are_consumed_and_no_others(
    redis_url: str,
    amqp_url: str,
    keywright_rabbitmq: RabbitServer,
    subgroups: str,
    expected: set[str] | None,
) -> None:
    async with DiscordSimulator(QUICK) as discord:
        more = {"BROKER_URL": amqp_url, "BROKER_SUBGROUPS": subgroups}
        async with running(configured(discord, redis_url, **more)) as gateway:
            await ready(gateway)
            for number in range(3):
                await discord.say(str(number), guild=discord.world.guilds[0])
            published = f'gateway_events_published{{shard="0",t="{EVENT}"}} 3.0'
            await eventually(lambda: published in gateway.monitor.exposition().decode(), "all are published")
        found = rabbit_queues(keywright_rabbitmq, amqp_url)
        wanted = expected or {f"gateway:{EVENT}", f"gateway:log:{EVENT}"}
        assert {name for name in found if name.endswith(EVENT)} == wanted
        assert {found[name] for name in wanted} == {3}


async def test_all_events_are_declared_for_every_subgroup(
    redis_url: str, amqp_url: str, keywright_rabbitmq: RabbitServer
) -> None:
    async with DiscordSimulator(QUICK) as discord:
        more = {"BROKER_URL": amqp_url, "BROKER_SUBGROUPS": "log", "DISCORD_EVENTS": "*"}
        async with running(configured(discord, redis_url, **more)) as gateway:
            await ready(gateway)
            queues = rabbit_queues(keywright_rabbitmq, amqp_url)
            assert {f"gateway:log:{event}" for event in DISPATCHED} <= set(queues)
            assert f"gateway:{EVENT}" not in queues


async def test_an_event_that_no_table_has_is_kept_for_the_subgroup(redis_url: str, amqp_url: str) -> None:
    async with DiscordSimulator(QUICK) as discord:
        more = {"BROKER_URL": amqp_url, "BROKER_SUBGROUPS": "log", "DISCORD_EVENTS": "*"}
        async with running(configured(discord, redis_url, **more)) as gateway:
            await ready(gateway)
            await discord.dispatch("BRAND_NEW", {"guild_id": discord.world.guilds[0]})
            async with await workers_broker(amqp_url) as broker:
                await eventually(
                    lambda: 't="BRAND_NEW"} 1.0' in gateway.monitor.exposition().decode(), "it is published"
                )
                [got] = await take(broker, "BRAND_NEW", 1, subgroup="log")
                assert got == {"guild_id": discord.world.guilds[0]}


async def test_only_dispatches_are_published(redis_url: str) -> None:
    beating = SimulatorSettings(identify_window_seconds=0.01, heartbeat_interval_ms=100)
    async with (
        DiscordSimulator(beating) as discord,
        running(configured(discord, redis_url, DISCORD_EVENTS="*")) as gateway,
    ):

        def counted(pattern: str) -> set[str]:
            return set(re.findall(pattern, gateway.monitor.exposition().decode()))

        await ready(gateway)
        await discord.request_heartbeat(0)
        await discord.reconnect(0)
        await discord.until(lambda: discord.received(Op.RESUME), "it resumes")
        await ready(gateway)
        opcodes = {"0", "1", "7", "10", "11"}
        await eventually(
            lambda: opcodes <= counted(r'gateway_packets_received\{op="(\d+)"'), "all of them are received"
        )
        await discord.say("the last", guild=discord.world.guilds[0])
        published = r'gateway_events_published\{shard="0",t="(\w+)"'
        await eventually(lambda: EVENT in counted(published), "it is published")
        assert "READY" in counted(published)
        assert counted(published) <= set(DISPATCHED)


@pytest.mark.parametrize(
    ("events", "reason"),
    [
        (
            "MESSAGE_CRATE",
            "is not an event of Discord's gateway. The nearest is MESSAGE_CREATE",
        ),
        ("GUILD_CREATE,message_create", "'message_create' is written MESSAGE_CREATE"),
        ("HELLO", "HELLO is not published"),
    ],
)
def test_a_misspelt_event_is_refused_with_a_suggestion(events: str, reason: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load(environment={"DISCORD_TOKEN": "abc", "DISCORD_EVENTS": events})
    assert caught.value.subject == "events"
    assert reason in caught.value.reason


def test_a_limit_of_rabbitmq_is_refused_with_the_policy_that_sets_it() -> None:
    given = {"DISCORD_TOKEN": "abc", "BROKER_URL": "amqp://localhost", "BROKER_MAX_LENGTH": "1000"}
    with pytest.raises(ConfigurationError, match="policy"):
        load(environment=given)
    given["BROKER_URL"] = "redis://localhost"
    assert load(environment=given).broker.max_length == 1000
