"""Resources that only Discord's REST API returns: fetched by a command, and by the gateway at an interval."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest

from invoking import invoke_keywright
from keywright import Secret
from keywright.testing import Raw
from keywright_discord.gateway.configuration import ConfigurationError, load
from keywright_discord.gateway.gateway import Gateway
from keywright_discord.simulator import DiscordSimulator, SimulatorSettings
from keywright_service.discord_rest import DiscordRest
from keywright_service.errors import HttpRefusedError

from .gateways import configured, environment, eventually, ready, running

pytestmark = pytest.mark.anyio

QUICK = SimulatorSettings(identify_window_seconds=0.01, guilds=2)
COMMAND = {"name": "members", "description": "How many members are here"}


async def register(discord: DiscordSimulator, *commands: dict[str, str], guild: str | None = None) -> None:
    application = int(discord.world.application["id"])
    async with DiscordRest(Secret(discord.token), url=discord.api_url) as api:
        await api.replace_commands(application, commands, guild=None if guild is None else int(guild))


@asynccontextmanager
async def cached(
    redis_url: str, monkeypatch: pytest.MonkeyPatch, **more: str
) -> AsyncIterator[tuple[DiscordSimulator, Gateway]]:
    """Run a gateway that has filled its cache, and set the environment of commands."""
    async with DiscordSimulator(QUICK) as discord:
        for name, value in environment(discord, redis_url, **more).items():
            monkeypatch.setenv(name, value)
        async with running(configured(discord, redis_url, **more)) as gateway:
            await ready(gateway)
            await eventually(lambda: gateway.monitor.health().shards[0].backlog == 0, "the cache is filled")
            yield discord, gateway


def stored(raw: Raw, resource: str, field: str | None = None) -> dict[str, object]:
    name = f"bot:v1json:{resource}"
    found = raw("GET", name) if field is None else raw("HGET", name, field)
    assert isinstance(found, bytes), name
    return msgspec.json.decode(found, type=dict[str, object])


async def test_a_command_fetches_what_no_event_carries(
    redis_url: str, raw: Raw, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with cached(redis_url, monkeypatch) as (discord, _):
        one, other = discord.world.guilds
        await register(discord, COMMAND)
        await register(discord, {**COMMAND, "name": "only-here"}, guild=one)
        wanted = (
            "application", "commands", "widgets", "templates", "webhooks", "welcome-screens", "invites",
            "automod-rules", "integrations",
        )  # fmt: skip
        done = await asyncio.to_thread(invoke_keywright, "discord", "fetch", *wanted)
    assert done.exit_code == 0, done.output
    assert done.stdout == (
        "application: 1 stored.\ncommands: 2 stored.\nwidgets: 2 stored.\ntemplates: 2 stored.\n"
        "webhooks: 2 stored.\nwelcome-screens: 2 stored.\ninvites: 2 stored.\n"
        "automod-rules: 2 stored.\nintegrations: 2 stored.\n"
    )
    application = discord.world.application["id"]
    commands = raw("HVALS", f"bot:v1json:commands:{application}")
    assert {msgspec.json.decode(each)["name"] for each in commands} == {"members", "only-here"}
    assert stored(raw, f"applications:{application}")["owner"] == discord.world.bot["id"]
    for guild in (one, other):
        assert stored(raw, f"widget:{guild}")["id"] == guild
        assert isinstance(stored(raw, f"templates:{guild}", f"template{guild}")["creator"], str)
        webhook = stored(raw, f"webhooks:{int(guild) + 1}")
        assert webhook["token"] == f"webhook-{guild}"
        assert isinstance(webhook["user"], str), "the user is stored apart"
        assert stored(raw, f"welcome-screen:{guild}")["description"] == "Welcome"
        assert isinstance(stored(raw, f"invites:invite{guild}")["inviter"], str)
        assert 0 < raw("TTL", f"bot:v1json:invites:invite{guild}") <= 86400
        assert stored(raw, f"automod-rules:{guild}", str(int(guild) + 2))["name"] == "No links"
        integration = stored(raw, f"integrations:{guild}", str(int(guild) + 3))
        assert isinstance(integration["user"], str), "the user is stored apart"


async def test_one_guild_can_be_chosen_and_unknown_ones_are_skipped(
    redis_url: str, raw: Raw, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with cached(redis_url, monkeypatch) as (discord, _):
        chosen = discord.world.guilds[0]
        done = await asyncio.to_thread(
            invoke_keywright, "discord", "fetch", "widgets", "--guild", chosen, "--guild", "1"
        )
    assert (done.exit_code, done.stdout) == (0, "widgets: 1 stored; 1 guilds skipped.\n")
    assert raw("KEYS", "bot:v1json:widget:*") == [f"bot:v1json:widget:{chosen}".encode()]


async def test_rules_integrations_and_webhooks_removed_during_a_downtime_stay_until_they_are_fetched(
    redis_url: str, raw: Raw, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No event has a list of them; that of the API is complete."""
    async with cached(redis_url, monkeypatch) as (discord, _):
        guild = discord.world.guilds[0]
        old = [f"bot:v1json:{kind}:{guild}" for kind in ("automod-rules", "integrations")]
        for name in old:
            raw("HSET", name, "5", '{"id":"5"}')
        raw("SET", "bot:v1json:webhooks:5", '{"id":"5","token":"t"}')
        raw("HSET", f"bot:v1json-private:webhooks:{guild}", "5", guild)
        wanted = ("automod-rules", "integrations", "webhooks")
        done = await asyncio.to_thread(invoke_keywright, "discord", "fetch", *wanted)
    assert done.exit_code == 0, done.output
    for name in old:
        assert raw("HEXISTS", name, "5") == 0
        assert raw("HLEN", name) == 1
    assert raw("EXISTS", "bot:v1json:webhooks:5") == 0


async def test_a_layout_without_these_resources_is_refused(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with cached(redis_url, monkeypatch, CACHE_LAYOUT="spectacles"):
        done = await asyncio.to_thread(invoke_keywright, "discord", "fetch", "widgets")
        assert done.exit_code == 2
        assert "the layout 'spectacles' has no REST resources" in done.stderr
    with pytest.raises(ConfigurationError, match="has no such keys"):
        load(environment={"DISCORD_TOKEN": "a", "CACHE_LAYOUT": "spectacles", "REST_FETCH": "widgets"})


async def test_the_gateway_fetches_again_at_an_interval(
    redis_url: str, raw: Raw, monkeypatch: pytest.MonkeyPatch
) -> None:
    more = {"REST_FETCH": "commands,webhooks", "REST_EVERY": "100ms"}
    async with cached(redis_url, monkeypatch, **more) as (discord, _):
        guild = discord.world.guilds[0]
        await eventually(lambda: raw("EXISTS", f"bot:v1json:webhooks:{int(guild) + 1}"), "it is fetched")
        commands = f"bot:v1json:commands:{discord.world.application['id']}"
        assert raw("HLEN", commands) == 0
        await register(discord, COMMAND)
        await eventually(lambda: raw("HLEN", commands) == 1, "the new command is fetched")
        await register(discord)
        await eventually(lambda: raw("EXISTS", commands) == 0, "the removed command is gone")


async def test_an_interaction_is_answered_once_and_its_token_stays_out_of_errors() -> None:
    async with (
        DiscordSimulator(QUICK) as discord,
        DiscordRest(Secret(discord.token), url=discord.api_url) as api,
    ):
        await register(discord, COMMAND)
        used = await discord.use_command("members", guild=discord.world.guilds[0])
        assert used.response is None
        answer = {"type": 4, "data": {"content": "20"}}
        assert await api.answer_interaction(int(used.id), used.token, answer)
        assert used.response == answer
        assert not await api.answer_interaction(int(used.id), used.token, answer), "it was answered before"
        assert not await api.answer_interaction(int(used.id), "not its token", answer)
        async with DiscordRest(Secret("x"), url=discord.api_url.replace("v10", "v6")) as old:
            with pytest.raises(HttpRefusedError) as caught:
                await old.answer_interaction(int(used.id), used.token, answer)
        assert used.token not in str(caught.value)
