"""The example bot, as its README runs it: gateway and workers in processes of their own, on the simulator."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from keywright.testing import Raw
from keywright_discord.simulator import DiscordSimulator, SimulatorSettings

from .gateways import environment, eventually

pytestmark = pytest.mark.anyio

EXAMPLES = Path(__file__).parents[1] / "examples"
QUICK = SimulatorSettings(identify_window_seconds=0.01, guilds=2, members=8)
# What the file of the example says; the environment would win over it.
OF_THE_FILE = ("DISCORD_EVENTS", "DISCORD_INTENTS", "CACHE_PREFIX")


@contextmanager
def process(*arguments: str, variables: Mapping[str, str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as output:
        child = subprocess.Popen(
            [sys.executable, *arguments], env=dict(variables), stdout=output, stderr=subprocess.STDOUT
        )
    try:
        yield child
    finally:
        child.kill()
        child.wait()


async def test_the_example_bot_answers_a_command_and_logs_messages(
    redis_url: str, raw: Raw, tmp_path: Path
) -> None:
    async with DiscordSimulator(QUICK) as discord:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("DISCORD_")}
        given = environment(discord, redis_url, BROKER_URL=redis_url, PROMETHEUS_ADDRESS="127.0.0.1:0")
        variables = inherited | {name: value for name, value in given.items() if name not in OF_THE_FILE}
        logs = {name: tmp_path / f"{name}.log" for name in ("gateway", "commands", "log")}
        with ExitStack() as running:
            children = [
                running.enter_context(process(*arguments, variables=variables, log=logs[name]))
                for name, arguments in {
                    "gateway": (
                        *("-m", "keywright", "gateway", "run"),
                        *("--config", str(EXAMPLES / "gateway.toml")),
                    ),
                    "commands": (str(EXAMPLES / "commands_worker.py"),),
                    "log": (str(EXAMPLES / "log_worker.py"),),
                }.items()
            ]
            guild = discord.world.guilds[0]
            await eventually(lambda: "shard 0: ready" in logs["gateway"].read_text(), "the gateway is ready")
            for name in ("commands", "log"):
                ready = f"{name}: ready"
                await eventually(lambda: ready in logs[name].read_text(), ready)  # noqa: B023
            await eventually(lambda: raw("SCARD", f"example:v1json:members:{guild}") == 8, "it is cached")

            used = await discord.use_command("members", guild=guild)
            response = await eventually(lambda: used.response, "the command is answered")
            name = discord.world.guild_create(guild)["name"]  # type: ignore[index]  # it is available
            assert response["type"] == 4
            assert response["data"]["content"].startswith(f"{name}: ")
            assert response["data"]["content"].endswith(" and 3 more")

            assert used.token not in logs["commands"].read_text()

            button = used.data | {"type": 3, "data": {"custom_id": "again"}}
            await discord.dispatch("INTERACTION_CREATE", button)
            after_it = await discord.use_command("members", guild=guild)
            await eventually(lambda: after_it.response, "the command after a button is answered")

            said = await discord.say("hello from the test", guild=guild)
            author = said["member"].get("nick") or said["author"]["username"]
            await eventually(
                lambda: f" {author}: hello from the test\n" in logs["log"].read_text(), "it is logged"
            )
            assert f"{name} #" in logs["log"].read_text()

            for child in children:
                child.send_signal(signal.SIGTERM)
            assert [child.wait(30) for child in children] == [0, 0, 0]
        assert raw("XLEN", "{GUILD_CREATE}:gateway:commands:dead") == 0
        assert raw("XLEN", "{INTERACTION_CREATE}:gateway:commands:dead") == 0
        assert raw("XLEN", "{MESSAGE_CREATE}:gateway:log:dead") == 0
