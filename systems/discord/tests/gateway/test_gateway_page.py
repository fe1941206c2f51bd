"""docs/gateway.md as a reader pastes it: the sample worker, and the gateway on the simulator."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from keywright.testing import Raw
from keywright_discord.gateway.configuration import load
from keywright_discord.gateway.opcodes import Op
from keywright_discord.simulator import DiscordSimulator, SimulatorSettings

from ..gateways import configured, eventually, ready, running

pytestmark = pytest.mark.anyio

PAGE = (Path(__file__).parents[2] / "docs" / "gateway.md").read_text()
QUICK = SimulatorSettings(identify_window_seconds=0.01)


def section(heading: str) -> str:
    return PAGE.split(f"## {heading}\n")[1].split("\n## ")[0]


async def test_the_sample_worker_takes_direct_messages_and_messages_of_guilds(
    redis_url: str, raw: Raw, capsys: pytest.CaptureFixture[str]
) -> None:
    [sample] = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names: dict[str, Any] = {}
    exec(sample, names)  # the sample itself
    intents = re.findall(r"^DISCORD_INTENTS=(\S*MESSAGE_CONTENT)$", PAGE, re.MULTILINE)[0]
    async with DiscordSimulator(QUICK) as discord:
        more = {"BROKER_URL": redis_url, "DISCORD_INTENTS": intents}
        async with running(configured(discord, redis_url, **more)) as gateway:
            await ready(gateway)
            working = asyncio.create_task(names["worker"](redis_url))
            guild = discord.world.guilds[0]
            direct = discord.world.message("in private", guild=guild)
            for name in ("guild_id", "member"):
                direct.pop(name, None)
            await discord.dispatch("MESSAGE_CREATE", direct)
            await discord.say("in public", guild=guild)
            [request] = await discord.until(
                lambda: discord.received(Op.REQUEST_GUILD_MEMBERS), "the members are requested"
            )
            assert request.data["guild_id"] == guild
            await eventually(
                lambda: raw("XPENDING", "MESSAGE_CREATE", "gateway")["pending"] == 0, "all are acknowledged"
            )
            assert not working.done()
            working.cancel()
            await asyncio.wait([working])
    printed = capsys.readouterr().out
    assert "said in private" in printed
    assert "said in public" in printed


async def test_the_gateway_runs_on_the_simulator_with_the_variables_of_the_page(redis_url: str) -> None:
    text = section("Without Discord")
    variables = dict(re.findall(r"\b([A-Z]+_[A-Z_]+)=(\S+)", text))
    assert f"--token {variables['DISCORD_TOKEN']}" in text
    assert f"--api-port {variables['DISCORD_API_HOST'].rpartition(':')[2]}" in text
    settings = SimulatorSettings(identify_window_seconds=0.01, token=variables["DISCORD_TOKEN"])
    async with DiscordSimulator(settings) as discord:
        # The ports of the page may be taken on this machine.
        host = discord.api_url.split("/")[2]
        given = variables | {"DISCORD_API_HOST": host, "REDIS_URL": redis_url}
        async with running(load(environment=given)) as gateway:
            await ready(gateway)


def test_the_policy_of_the_page_limits_the_queues_of_events_only() -> None:
    [pattern] = re.findall(r"set_policy bounded '([^']+)'", PAGE)
    limited = ["gateway:log:MESSAGE_CREATE", "gateway:stats:GUILD_CREATE"]
    others = ["gateway:SEND", "gateway:0", "gateway:log:MESSAGE_CREATE::dead", "other:log:MESSAGE_CREATE"]
    assert [name for name in limited + others if re.search(pattern, name)] == limited


def test_the_page_links_the_events_and_names_the_commands() -> None:
    assert "(events.md)" in PAGE
    for command in ("keywright gateway reset", "keywright broker dead list", "keywright gateway simulate"):
        assert command in PAGE
